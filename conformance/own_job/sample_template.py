"""Templates of samples: a few rows with values of the right types, to be replaced by the user's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from conformance.core.data import Json
from conformance.core.spark_types import DataType, Schema

_ROWS = 3
_FIRST, _APART = datetime(2026, 3, 1, 12, tzinfo=UTC), timedelta(minutes=10)
_RECORD = "the value of a record"
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})


def template(schema: Schema | None) -> str:
    """The rows as JSON lines, their event times ten minutes apart. ``schema``: the columns; None for records of Kafka."""
    rows = [
        {field.name: _value(field.type, number) for field in schema.fields} if schema else {"value": _RECORD}
        for number in range(_ROWS)
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _value(type: DataType, number: int) -> Json:
    time = _FIRST + number * _APART
    simple: Mapping[str, Json] = {
        "timestamp": f"{time:%Y-%m-%d %H:%M:%S}",
        "timestamp_ntz": f"{time:%Y-%m-%d %H:%M:%S}",
        "date": f"{time:%Y-%m-%d}",
        "string": "a",
        "boolean": True,
        "double": number + 0.5,
        "float": number + 0.5,
        "decimal": number,
    }
    match type.name:
        case name if name in _WHOLE:
            return number
        case "struct":
            return {field.name: _value(field.type, number) for field in type.fields}
        case "array":
            return [_value(type.elements[0], number)]
        case "map" if type.elements[0].name == "string":
            return {"a": _value(type.elements[1], number)}
        case name:
            return simple.get(name)
