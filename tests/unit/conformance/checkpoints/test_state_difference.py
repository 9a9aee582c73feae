"""Why Spark refuses a state, read from the messages that 3.5.9 and 4.3.0 gave."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.checkpoints.state import state_differences

_WINDOW = (
    "StructField(window,StructType(StructField(start,TimestampType,true),StructField(end,TimestampType,true)),{}),"
)
SUM_ON_4_3 = """[STREAM_FAILED] Query [id = 0f46, runId = 9784] terminated with exception: [STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] \
Provided value schema does not match existing state value schema.
Please check number and type of fields.
Existing value_schema=StructType(StructField(sum,DoubleType,true)) and new value_schema=StructType(StructField(sum,LongType,true)).
If you want to force running the query without schema validation, please set spark.sql.streaming.stateStore.stateSchemaCheck to false.
However, please note that running the query with incompatible schema could cause non-deterministic behavior. SQLSTATE: XXKST"""
SUM_ON_3_5 = f"""StateSchemaNotCompatible: Provided schema doesn't match to the schema for existing state! Please note that Spark \
allow difference of field name: check count of fields and data type of each field.
- Provided key schema: StructType({_WINDOW.format("false")}StructField(shop,StringType,true))
- Existing key schema: StructType({_WINDOW.format("true")}StructField(shop,StringType,true))
- Provided value schema: StructType(StructField(sum,DoubleType,true))
- Existing value schema: StructType(StructField(sum,LongType,true))
If you want to force running query without schema validation, please set spark.sql.streaming.stateStore.stateSchemaCheck to false.
"""
NESTED_KEY = f"""Existing key_schema=StructType({_WINDOW.format("false")}StructField(_groupingexpression,DoubleType,true),\
StructField(_groupingexpression,StructType(StructField(shop,StringType,true),StructField(z,DoubleType,true)),true)) and new \
key_schema=StructType({_WINDOW.format("false")}StructField(_groupingexpression,LongType,true),\
StructField(_groupingexpression,StructType(StructField(shop,StringType,true),StructField(z,LongType,true)),false))."""


def value(stored: str, wanted: str) -> str:
    return f"Existing value_schema=StructType({stored}) and new value_schema=StructType({wanted}).\n"


def said(message: str) -> list[str]:
    return [str(difference) for difference in state_differences(message)]


def test_a_field_of_a_key() -> None:
    expected = [("key", "_groupingexpression", "type"), ("key", "_groupingexpression.z", "type")]
    assert [(each.part, each.column, each.kind) for each in state_differences(NESTED_KEY)] == expected


N = "StructField(n,LongType,true)"
JOINED = "StructField(id,LongType,false),StructField(at,TimestampType,false),StructField(matched,BooleanType,true)"
NAMES = "StructField(sum(a, b),DecimalType(10,2),true),StructField(m,MapType(StringType,ArrayType(LongType,true),false),true)"
ELEMENTS = "StructField(l,ArrayType(LongType,false),true)"


@pytest.mark.parametrize(
    ("message", "difference"),
    [
        (SUM_ON_4_3, "aggregation, column sum: double in the checkpoint, bigint wanted"),
        # A key that may be NULL in the checkpoint only is no reason.
        (SUM_ON_3_5, "aggregation, column sum: bigint in the checkpoint, double wanted"),
        (
            value(JOINED, JOINED.replace("id,LongType,false", "id,LongType,true")),
            "join, column id: NOT NULL in the checkpoint, nullable wanted",
        ),
        # Spark 3.1 minds it; see the source of its ``StateSchemaCompatibilityChecker``.
        (value(N, N.replace("true", "false")), "aggregation, column n: nullable in the checkpoint, NOT NULL wanted"),
        (
            value(N, f"{N},StructField(s,DecimalType(10,2),true)"),
            "aggregation, its value: 1 (n bigint) in the checkpoint, 2 (n bigint, s decimal(10,2)) wanted",
        ),
        (
            value(NAMES, NAMES.replace("(10,2)", "(20,2)")),
            "aggregation, column sum(a, b): decimal(10,2) in the checkpoint, decimal(20,2) wanted",
        ),
        (
            value(ELEMENTS, ELEMENTS.replace("LongType,false", "LongType,true")),
            "aggregation, column l.element: NOT NULL in the checkpoint, nullable wanted",
        ),
    ],
)
def test_what_differs_is_named_with_both(message: str, difference: str) -> None:
    assert said(message) == [f"state of the {difference}"]


@pytest.mark.parametrize(
    ("columns", "operator"),
    [
        ("StructField(field0,LongType,false),StructField(index,LongType,true)", "the join"),
        ("StructField(__dummy__,NullType,true)", "the deduplication"),
        ("StructField(expiresAtMicros,LongType,false)", "the deduplication"),
        ("StructField(groupState,StructType(StructField(v,LongType,true)),true)", "the state function"),
    ],
)
def test_the_operator_is_known_by_the_columns_that_spark_adds(columns: str, operator: str) -> None:
    (difference,) = said(value(columns, columns + ",StructField(more,LongType,true)"))
    assert difference.startswith(f"state of {operator}, its value: ")


def test_a_key_alone_does_not_tell_an_aggregation_from_a_deduplication() -> None:
    stored, wanted = (f"StructType(StructField(paid,{name},true))" for name in ("DoubleType", "LongType"))
    assert said(f"Existing key_schema={stored}; new key_schema={wanted}") == [
        "state, column paid: double in the checkpoint, bigint wanted"
    ]


@given(st.integers(0, len(NESTED_KEY) - 3))
def test_a_message_that_was_cut_off_says_nothing(end: int) -> None:
    assert state_differences(NESTED_KEY[:end]) == ()


@given(st.text(alphabet="(),StructFieldTypeLongtruefalse ", max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(state_differences(f"Existing value_schema={text} and new value_schema={text}"), tuple)
