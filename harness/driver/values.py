"""Spark's values as JSON. ``conformance/core/observation.py`` describes the encoding."""

from __future__ import annotations

import base64
import math
from datetime import timezone
from typing import Any, Iterable

from pyspark.sql import types as t

_NTZ = getattr(t, "TimestampNTZType", ())


def encode_row(row: Iterable[Any], schema: t.StructType) -> list[Any]:
    """A Row as a list of JSON values in schema order."""
    return [encode(value, field.dataType) for value, field in zip(row, schema.fields)]


def encode(value: Any, data_type: t.DataType) -> Any:
    """One value of the given Spark type as JSON; None stays None."""
    if value is None:
        return None
    if isinstance(data_type, t.TimestampType):
        # collect() gives naive local times, and the process runs in UTC.
        aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        return aware.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if _NTZ and isinstance(data_type, _NTZ):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%f")
    if isinstance(data_type, t.StructType):
        return encode_row(value, data_type)
    if isinstance(data_type, t.ArrayType):
        return [encode(item, data_type.elementType) for item in value]
    if isinstance(data_type, t.MapType):
        return [[encode(k, data_type.keyType), encode(v, data_type.valueType)] for k, v in value.items()]
    if isinstance(data_type, (t.FloatType, t.DoubleType)):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return value
    if isinstance(data_type, t.DateType):
        return value.isoformat()
    if isinstance(data_type, t.BinaryType):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, (bool, int, str)):
        return value
    return str(value)
