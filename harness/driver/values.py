"""Spark's values as JSON. ``conformance/core/observation.py`` describes the encoding."""

from __future__ import annotations

import base64
import io
import math
import pickle
from contextlib import nullcontext
from datetime import date, datetime, timedelta, timezone
from typing import Any, Iterable

from pyspark import serializers
from pyspark.sql import types as t

_NTZ = getattr(t, "TimestampNTZType", ())
_Pickled = getattr(serializers, "CPickleSerializer", None) or serializers.PickleSerializer  # the only name up to 3.2


class _Unpickler(pickle.Unpickler):
    """Reads rows as the values that Spark holds, which Python's dates and times do not reach: instants are microseconds, dates days."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "_create_row_inbound_converter":
            return lambda _type: lambda *values: values
        return super().find_class(module, name)


class _Serializer(_Pickled):  # type: ignore[misc, valid-type]
    def loads(self, obj: bytes, encoding: str = "bytes") -> Any:
        return _Unpickler(io.BytesIO(obj), encoding=encoding).load()


def collected(frame: Any) -> list[list[Any]]:
    """The rows of a frame of this process, each as a list of JSON values, whatever Spark can hold."""
    try:
        from pyspark.util import _load_from_socket
    except ImportError:  # up to 3.5
        from pyspark.rdd import _load_from_socket
    schema = frame.schema
    loaded = _load_from_socket(frame._jdf.collectToPython(), serializers.BatchedSerializer(_Serializer()))
    with loaded if hasattr(loaded, "__enter__") else nullcontext(loaded) as rows:
        return [encode_row(row, schema) for row in rows]


def encode_row(row: Iterable[Any], schema: t.StructType) -> list[Any]:
    """A Row as a list of JSON values in schema order."""
    return [encode(value, field.dataType) for value, field in zip(row, schema.fields)]


def encode(value: Any, data_type: t.DataType) -> Any:
    """One value of the given Spark type as JSON, from Python's value or from that which Spark holds; None stays None."""
    if value is None:
        return None
    if isinstance(value, int) and isinstance(data_type, (t.TimestampType, _NTZ or t.TimestampType)):
        return _instant(value, "Z" if isinstance(data_type, t.TimestampType) else "")
    if isinstance(value, int) and isinstance(data_type, t.DateType):
        return _day(value)
    if isinstance(data_type, t.TimestampType):
        # collect() gives naive times in the zone that the process has now, whatever a job made of it; `fold` tells apart what an hour
        # that a clock repeats would make one.
        return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
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
    if data_type.needConversion() and isinstance(value, (int, dict, tuple)):
        value = data_type.fromInternal(value)
    if isinstance(value, (bool, int, str)):
        return value
    # The decimal context of the process may write a small `e`.
    return str(value).upper() if isinstance(data_type, t.DecimalType) else str(value)


def _instant(micros: int, zone: str) -> str:
    """Beyond Python's years, 1 to 9999, the seconds since 1970: ``1772366400000.000000 s``."""
    try:
        return (datetime(1970, 1, 1) + timedelta(microseconds=micros)).isoformat(timespec="microseconds") + zone
    except OverflowError:
        sign = "-" if micros < 0 else ""
        return "{}{}.{:06d} s".format(sign, *divmod(abs(micros), 10**6))


def _day(days: int) -> str:
    """Beyond Python's years the days since 1970: ``20513500 d``."""
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return "{} d".format(days)
