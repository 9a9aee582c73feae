"""The state of a stateful processor over a restart: which other columns and modes Spark accepts, and what it finds in a value.

In Avro a value is read as a row of the present columns, by their names. An UnsafeRow has places and types only. Sources: "State schema
evolution" of the transformWithState guide; `StateSchemaCompatibilityChecker.check` and `SchemaConverters.toAvroTypeWithDefaults`
(SPARK-50714), "Schema Resolution" of the Avro specification; `TransformWithStateOperatorProperties.validateOperatorProperties`, which
Spark calls after it (`StateSchemaAndOperatorMetadataRule`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from conformance.core.spark_types import Field, parse_schema
from conformance.model.errors import Unpredictable
from conformance.model.group_functions import STATEFUL_PROCESSORS, ProcessorState
from conformance.model.plan import StatefulProcessor
from conformance.model.rules import Rules

_TYPES = {
    "boolean": "BooleanType",
    "int": "IntegerType",
    "bigint": "LongType",
    "float": "FloatType",
    "double": "DoubleType",
    "string": "StringType",
    "binary": "BinaryType",
}
"""The types that have an Avro type of their own → what Spark calls them in messages."""

_AVRO_READS_AS = {
    "int": ("bigint", "float", "double"),
    "bigint": ("float", "double"),
    "float": ("double",),
    "string": ("binary",),
    "binary": ("string",),
}
"""Type that was written → the other types as which Avro reads it."""

_PLAIN_COLUMNS = re.compile(r"\s*\w+\s+\w+\s*(,\s*\w+\s+\w+\s*)*")


def columns_of_state(ddl: str) -> tuple[Field, ...]:
    """The columns of a processor's state, given as ``count BIGINT, note STRING``."""
    columns = parse_schema(ddl).fields
    if not _PLAIN_COLUMNS.fullmatch(ddl) or any(column.type.name not in _TYPES for column in columns):
        raise Unpredictable(f"the columns {ddl} of a processor's state")
    return columns


def check_processor(
    node: StatefulProcessor, before: Sequence[StatefulProcessor], rules: Rules, *, in_avro: bool, most_changes: int
) -> None:
    """Compare a processor with those that wrote its state, one for each micro-batch, the newest last.

    ``most_changes``: the conf ``valueStateSchemaEvolutionThreshold``, which the number of changes may not reach. Raises Refused: Spark does
    not accept its columns or modes; Unpredictable: it has other variables or another time to live.
    """
    mine, theirs = (STATEFUL_PROCESSORS[writer.processor] for writer in (node, before[-1]))
    schemas = [writer.keeps for writer in before]
    if not in_avro and mine.keeps == theirs.keeps and (mine.ttl_ms is None) != (theirs.ttl_ms is None):
        # With a time to live, a value is kept with the time at which it expires (SPARK-46906).
        raise rules.refusal("state of another value")
    if (mine.keeps, mine.ttl_ms) != (theirs.keeps, theirs.ttl_ms):
        raise Unpredictable("a processor that finds the state of another one")
    if node.keeps != schemas[-1] and mine.ttl_ms is not None:
        raise Unpredictable("other columns of state with a time to live")
    if node.keeps != schemas[-1]:
        if in_avro:
            _check_avro(node.keeps, schemas, rules, most_changes)
        elif [column.type for column in node.keeps] != [column.type for column in schemas[-1]]:
            raise rules.refusal("state of another value")
    for what, now, then in (
        ("timeMode", node.time_mode, before[-1].time_mode),
        ("outputMode", node.mode, before[-1].mode),
    ):
        if now != then:
            raise rules.refusal("another mode of a processor", what)


def taken_over(state: ProcessorState, columns: tuple[Field, ...], *, in_avro: bool) -> ProcessorState:
    """The state of a processor with these columns, after a restart. UnsafeRow has kept no names, so a value gets the present ones."""
    if in_avro:
        return state
    names = [column.name for column in columns]
    return replace(
        state, values={key: dict(zip(names, value.values(), strict=True)) for key, value in state.values.items()}
    )


def _check_avro(now: tuple[Field, ...], schemas: Sequence[tuple[Field, ...]], rules: Rules, most_changes: int) -> None:
    """A value may still be written with any earlier schema, so the present one must be able to read all of them."""
    for old in reversed(schemas):
        types = {column.name: column.type.name for column in old}
        for column in now:
            then = types.get(column.name, column.type.name)
            if column.type.name not in (then, *_AVRO_READS_AS.get(then, ())):
                what = f"new value_schema={_in_messages(now)} and old value_schema={_in_messages(old)}"
                raise rules.refusal("state in Avro of another schema", what)
    changes = 1 + sum(earlier != later for earlier, later in pairwise(schemas))
    if changes >= most_changes:
        what = f"{changes} exceeds the maximum number of state schema evolutions, {most_changes}"
        raise rules.refusal("too many schemas of state", what)


def _in_messages(columns: tuple[Field, ...]) -> str:
    fields = (f"StructField({column.name},{_TYPES[column.type.name]},true)" for column in columns)
    return f"StructType({','.join(fields)})"
