"""Why Spark refuses the state of a checkpoint: the columns in which the two schemas of its error differ.

Spark compares the schema that is stored beside the state with that of the query, column by column in order; names may differ. Source:
``StateSchemaCompatibilityChecker.schemasCompatible`` and ``DataType.equalsIgnoreNameAndCompatibleNullability``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from conformance.checkpoints.state import JOIN
from conformance.core.data import read_data
from conformance.core.versions import SparkVersion, VersionRange

DifferenceKind: TypeAlias = Literal["type", "nullability", "number of columns"]
SchemaPart: TypeAlias = Literal["key", "value"]

_STORED = r"Existing {0}[_ ]schema(?:=|: )"
_WANTED = r"(?:new {0}_schema=|Provided {0} schema: )"
_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint", "null": "void"}
_SIMPLE = re.compile(r"(\w+?)(Type|UDT)\$?(\([\w, ]*\))?(?=[,)])")
_NESTED = re.compile(r"(Struct|Array|Map)Type\(")
_FIELD = re.compile(
    r"StructField\((.*?),(?=(?:Struct|Array|Map)Type\(|\w+(?:Type|UDT)\$?(?:\([\w, ]*\))?,(?:true|false)\))", re.DOTALL
)
_NULLABLE = re.compile(r",(true|false)\)")


@dataclass(frozen=True)
class StateDifference:
    """A column of the state that the query cannot read."""

    operator: str
    """``aggregation``, ``symmetricHashJoin``, ``dedupe`` …: the columns that Spark itself adds tell which; empty if they do not."""
    part: SchemaPart
    column: str
    """``window.start``: the names down to it, as the checkpoint has them; empty if the number of columns differs at the top."""
    kind: DifferenceKind
    stored: str
    """What the checkpoint has: ``double``, ``NOT NULL``, ``3 columns``."""
    wanted: str
    """What the query wants in its place."""

    def __str__(self) -> str:
        """``state of the aggregation, column sum: double in the checkpoint, bigint wanted``."""
        where = f"column {self.column}" if self.column else f"its {self.part}"
        operator = f"state of {_TITLES.get(self.operator, self.operator)}" if self.operator else "state"
        return f"{operator}, {where}: {self.stored} in the checkpoint, {self.wanted} wanted"


_TITLES = {
    "aggregation": "the aggregation",
    JOIN: "the join",
    "dedupe": "the deduplication",
    "groups": "the state function",
}


def state_differences(message: str) -> tuple[StateDifference, ...]:
    """The columns for which Spark refuses a checkpoint, from the message of its error; none if it does not hold two schemas that differ.

    A difference of nullability counts only where nothing worse differs; where the checkpoint has NOT NULL, that is what Spark minds.
    """
    parts: tuple[SchemaPart, ...] = ("key", "value")
    schemas = {
        part: (stored, wanted)
        for part in parts
        if (stored := _schema(message, _STORED.format(part))) and (wanted := _schema(message, _WANTED.format(part)))
    }
    stored_columns = [column.name for stored, _ in schemas.values() for column in stored]
    operator = _operator(stored_columns, has_value="value" in schemas)
    differences = [
        StateDifference(operator, part, ".".join(names), kind, a, b)
        for part, pair in schemas.items()
        for names, kind, a, b in _compared(*pair, ())
    ]
    severe = [difference for difference in differences if difference.kind != "nullability"]
    not_null = [difference for difference in differences if difference.stored == "NOT NULL"]
    return tuple(severe or not_null or differences)


def state_workarounds(
    differences: Iterable[StateDifference], before: SparkVersion, after: SparkVersion
) -> Iterator[tuple[str, str]]:
    """The settings that may help with such differences, key and value; whether they do is to be seen."""
    kinds = {difference.kind for difference in differences}
    for entry in read_data("conformance.checkpoints", "workarounds.yaml"):
        concerned = before in VersionRange.parse(entry["from"]) and after in VersionRange.parse(entry["to"])
        if concerned and not kinds.isdisjoint(entry["kinds"]):
            yield entry["key"], entry["value"]


def right_rows_prove(key: str, differences: Iterable[StateDifference]) -> bool:
    """Whether right rows after such a difference prove a setting, or Spark reads bytes of one type as another with it."""
    (entry,) = (entry for entry in read_data("conformance.checkpoints", "workarounds.yaml") if entry["key"] == key)
    return all(difference.kind in entry["proves"] for difference in differences)


@dataclass(frozen=True)
class _Column:
    """A column; ``parts`` are the fields of a struct, the element of an array, key and value of a map."""

    name: str
    type: str
    nullable: bool
    parts: tuple[_Column, ...] = ()


def _operator(columns: Sequence[str], *, has_value: bool) -> str:
    """Whose state has these columns; sources: ``SymmetricHashJoinStateManager``, ``StreamingDeduplicateExec``,
    ``FlatMapGroupsWithStateExecHelper``. An aggregation adds none of its own, and neither does the key of a deduplication."""
    if "matched" in columns[-1:] or "field0" in columns[:1]:
        return JOIN
    if columns[-1:] in (["__dummy__"], ["expiresAtMicros"]):
        return "dedupe"
    if {"groupState", "timeoutTimestamp"}.intersection(columns):
        return "groups"
    return "aggregation" if has_value else ""


def _compared(
    stored: Sequence[_Column], wanted: Sequence[_Column], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], DifferenceKind, str, str]]:
    if len(stored) != len(wanted):
        yield above, "number of columns", _counted(stored), _counted(wanted)
        return
    for a, b in zip(stored, wanted, strict=True):
        names = (*above, a.name)
        if a.type != b.type:
            yield names, "type", a.type, b.type
        elif a.nullable != b.nullable:
            yield names, "nullability", *(("nullable", "NOT NULL") if a.nullable else ("NOT NULL", "nullable"))
        if a.type == b.type:
            yield from _compared(a.parts, b.parts, names)


def _counted(columns: Sequence[_Column]) -> str:
    return f"{len(columns)} ({', '.join(f'{column.name} {column.type}' for column in columns)})"


def _schema(message: str, before: str) -> tuple[_Column, ...] | None:
    """The columns of the schema that follows a text; None if there is none, or it is not a whole one."""
    place = re.search(before, message)
    if place is None:
        return None
    try:
        column, _ = _type(message, place.end(), "", nullable=True)
    except ValueError:
        return None
    return column.parts if column.type == "struct" else None


def _type(text: str, at: int, name: str, *, nullable: bool) -> tuple[_Column, int]:
    """A type as Scala prints it, ``StructType(StructField(a,LongType,true))``, and where it ends; raises `ValueError` without one."""
    nested = _NESTED.match(text, at)
    if nested is None:
        simple = _matched(_SIMPLE, text, at)
        sql = simple[1].lower() if simple[2] == "Type" else simple[1]
        return _Column(name, _SQL_NAMES.get(sql, sql) + (simple[3] or ""), nullable), simple.end()
    at, parts = nested.end(), []
    if nested[1] == "Struct":
        while not text.startswith(")", at):
            field, at = _field(text, at + text.startswith(",", at))
            parts.append(field)
        return _Column(name, "struct", nullable, tuple(parts)), at + 1
    for part in ("element",) if nested[1] == "Array" else ("key", "value"):
        column, at = _type(text, at + text.startswith(",", at), part, nullable=False)
        parts.append(column)
    end = _matched(_NULLABLE, text, at)
    parts[-1] = replace(parts[-1], nullable=end[1] == "true")
    return _Column(name, nested[1].lower(), nullable, tuple(parts)), end.end()


def _field(text: str, at: int) -> tuple[_Column, int]:
    """``StructField(name,type,nullable)``, and where it ends; the name may hold commas and parentheses. Raises `ValueError` without one."""
    field = _matched(_FIELD, text, at)
    column, at = _type(text, field.end(), field[1], nullable=True)
    end = _matched(_NULLABLE, text, at)
    return replace(column, nullable=end[1] == "true"), end.end()


def _matched(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    if (match := pattern.match(text, at)) is None:
        raise ValueError(text[at : at + 40])
    return match
