"""Data types, as a DDL schema and as Spark's simple strings write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.core.spark_types import DataType, Field, NotAType, parse_schema, parse_type

NAMES = ["tinyint", "smallint", "int", "bigint", "float", "double", "string", "boolean", "date", "binary"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("TIMESTAMP", "timestamp"),
        ("Timestamp_LTZ", "timestamp"),
        ("TIMESTAMP WITH LOCAL TIME ZONE", "timestamp"),
        ("timestamp_ntz", "timestamp_ntz"),
        ("TIMESTAMP WITHOUT TIME ZONE", "timestamp_ntz"),
        ("INT", "int"),
        ("INTEGER", "int"),
        ("LONG", "bigint"),
        ("SHORT", "smallint"),
        ("BYTE", "tinyint"),
        ("REAL", "float"),
        ("VARCHAR(10)", "string"),
        ("char( 3 )", "string"),
        ("interval day to second", "interval"),
        ("INTERVAL", "interval"),
        ("null", "void"),
    ],
)
def test_names_and_aliases(text: str, name: str) -> None:
    assert parse_type(text) == DataType(name)


@pytest.mark.parametrize(
    ("text", "precision", "scale"),
    [("DECIMAL", 10, 0), ("DEC(4)", 4, 0), ("numeric(38, 18)", 38, 18), ("decimal(1,1)", 1, 1)],
)
def test_decimals(text: str, precision: int, scale: int) -> None:
    assert parse_type(text) == DataType("decimal", precision=precision, scale=scale)


def test_a_schema() -> None:
    schema = parse_schema(
        "event_time TIMESTAMP NOT NULL COMMENT 'when, exactly', `odd ``name` INT, note STRING COMMENT \"x\""
    )
    assert schema.fields == (
        Field("event_time", DataType("timestamp")),
        Field("odd `name", DataType("int")),
        Field("note", DataType("string")),
    )
    assert schema.struct == DataType("struct", schema.fields)


def test_nesting() -> None:
    (field,) = parse_schema("a ARRAY<STRUCT<b: MAP<STRING, ARRAY<INT>>, c TIMESTAMP NOT NULL>>").fields
    inner = DataType("map", elements=(DataType("string"), DataType("array", elements=(DataType("int"),))))
    struct = DataType("struct", (Field("b", inner), Field("c", DataType("timestamp"))))
    assert field.type == DataType("array", elements=(struct,))


def test_a_simple_string_may_repeat_a_name() -> None:
    assert [field.name for field in parse_type("struct<a:int,a:int>").fields] == ["a", "a"]


@pytest.mark.parametrize(
    ("ddl", "offset", "reason"),
    [
        ("", 0, "a column name is missing at the end"),
        ("a", 1, "a type is missing at the end"),
        ("a INT,", 6, "a column name is missing at the end"),
        ("a TIMESTMP", 2, "'TIMESTMP' is not a Spark type"),
        ("a INT b INT", 6, "unexpected 'b' after the type: is a comma missing?"),
        ("a INT, A INT", 7, "duplicate column 'A'"),
        ("a STRUCT<b INT", 14, "'>' is missing: STRUCT< is not closed"),
        ("a STRUCT<b INT, b INT>", 16, "duplicate column 'b'"),
        ("a INT;", 5, "unexpected ';' in a schema"),
        ("a: INT", 1, "write a space, not ':', between a column and its type"),
        ("a DECIMAL(39)", 2, "DECIMAL(39,0): precision 1 to 38, scale 0 to precision"),
        ("a DECIMAL(4, 5)", 2, "DECIMAL(4,5): precision 1 to 38, scale 0 to precision"),
        ("a DECIMAL(4", 11, "')' is missing"),
        ("a DECIMAL(x)", 10, "'x' is not a whole number"),
        ("a ARRAY", 2, "ARRAY needs its element types: ARRAY<INT>"),
        ("a MAP<STRING>", 12, "MAP needs a key and a value type: MAP<STRING, INT>"),
        ("a ARRAY<INT", 11, "'>' is missing: ARRAY< is not closed"),
        ("<a> INT", 0, "'<' is not a column name"),
        ("a INT COMMENT x", 14, "COMMENT needs quoted text, not 'x'"),
        ("a INT COMMENT", 13, "the text of the comment is missing at the end"),
        ("a `INT`", 2, "'`INT`' is not a Spark type"),
        ("`a INT", 0, "unexpected '`' in a schema"),
    ],
)
def test_what_is_wrong_and_where(ddl: str, offset: int, reason: str) -> None:
    with pytest.raises(NotAType) as caught:
        parse_schema(ddl)
    assert (caught.value.offset, str(caught.value)) == (offset, reason)


def test_a_type_is_all_there_is() -> None:
    with pytest.raises(NotAType, match="unexpected ','"):
        parse_type("int, int")


@st.composite
def types(draw: st.DrawFn, depth: int = 3) -> DataType:
    kinds = ["plain", "decimal", *(["struct", "array", "map"] if depth else [])]
    match draw(st.sampled_from(kinds)):
        case "decimal":
            precision = draw(st.integers(1, 38))
            return DataType("decimal", precision=precision, scale=draw(st.integers(0, precision)))
        case "struct":
            names = draw(
                st.lists(
                    st.text(st.characters(blacklist_categories=["Cs", "Cc", "Z"]), min_size=1), unique_by=str.lower
                )
            )
            return DataType("struct", tuple(Field(name, draw(types(depth - 1))) for name in names))
        case "array":
            return DataType("array", elements=(draw(types(depth - 1)),))
        case "map":
            return DataType("map", elements=(draw(types(0)), draw(types(depth - 1))))
        case _:
            return DataType(draw(st.sampled_from([*NAMES, "timestamp", "timestamp_ntz"])))


@given(types())
def test_every_type_can_be_read_from_what_it_prints(type: DataType) -> None:
    assert parse_type(str(type)) == type


@given(st.text(alphabet="abINT<>(),:`' 0_1"))
def test_any_text_is_a_schema_or_its_error_has_a_position(text: str) -> None:
    wrong: NotAType | None = None
    try:
        assert parse_schema(text).fields
    except NotAType as found:
        wrong = found
    if wrong is not None:
        assert 0 <= wrong.offset <= len(text)
        assert str(wrong)
