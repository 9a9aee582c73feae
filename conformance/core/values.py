"""Converts values of cases to one canonical form per type, in which they can be compared.

A canonical value is hashable and equal for all notations of the same value: an instant is an int of microseconds since the
epoch, a number an int or a ``Decimal`` (which Python compares and hashes by value), a struct and an array a tuple, a map a
frozenset of pairs, a date its ISO text, BINARY bytes, NaN and the infinities their names, null None. The notations are those
under "Values" in ``docs/case-language/streams.md`` and the wire format of ``conformance.core.observation``.
"""

import base64
import binascii
import json
import math
import re
import struct
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, TypeAlias

from conformance.core.data import Json
from conformance.core.spark_types import DataType

Canonical: TypeAlias = Any
"""None, bool, int, Decimal, str, bytes, or a tuple or frozenset of these; always hashable."""

INSTANT = "an instant: '12:05' or '12:05:00.5' (1970-01-01, UTC), '2024-03-01 12:05', ISO 8601, or seconds since 1970"
"""The three notations of an instant, for messages."""

_TIME = r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:\.(?P<fraction>\d+))?)?"
_DATE = r"(?P<date>\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))"
_ZONE = r"(?P<zone>Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
_SECONDS = r"-?\d{9,15}(?:\.\d{1,6})? s"
"""Outside the years 1 to 9999, which Python and ISO 8601 do not reach: what `show` writes of an instant of an engine."""
INSTANT_PATTERN = re.sub(r"\?P<\w+>", "?:", f"^(?:{_TIME}|{_DATE}(?:[T ]{_TIME}(?: ?{_ZONE})?)?|{_SECONDS})$")
"""The textual notations, as an ECMA 262 regular expression for the JSON Schema."""

_TIME_ALONE = re.compile(_TIME)
_DATE_AND_TIME = re.compile(f"{_DATE}(?:[T ]{_TIME}(?: ?{_ZONE})?)?")
_NO_FINER = "an instant that Spark can hold: its precision is one microsecond (six decimals)"
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_WITHIN = "within the years 1 to 9999 (a plain number is seconds since 1970)"
_LAST_SECOND = 10**12
"""Beyond the year 9999 in either direction, but small enough for exact arithmetic."""

INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
"""Type of whole numbers → its bits."""
MAX_PRECISION = 38
"""The most digits of a DECIMAL."""
_ENDLESS = ("NaN", "Infinity", "-Infinity")
_WIDE = Context(prec=400)
"""Enough digits for every double with nine decimals."""
_NINE_DECIMALS = Decimal("1e-9")


class NotAValue(ValueError):
    """The value, which lies at ``path`` (field names and indices) inside the whole value, is not what is ``allowed``."""

    def __init__(self, value: Json, type: DataType | None, allowed: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{literal(value)} is not {allowed}")
        self.value = value
        self.type = type
        self.allowed = allowed
        self.path = path


def canonical(value: Json, type: DataType) -> Canonical:
    """Return the form of a value, as a case or an engine writes it, which is equal for all of its notations; raise `NotAValue` if it does
    not match the type. An instant more precise than a microsecond matches none."""
    if value is None:
        return None
    match type.name:
        case "timestamp":
            return _micros(value, type, zoned=True)
        case "timestamp_ntz":
            return _micros(value, type, zoned=False)
        case "tinyint" | "smallint" | "int" | "bigint":
            return _integer(value, type)
        case "float" | "double":
            return _floating(value, type)
        case "decimal":
            return _decimal(value, type)
        case "boolean":
            return _of(bool, value, type, "true or false")
        case "string":
            return _of(str, value, type, "text: quote it")
        case "date":
            return _date(value, type)
        case "binary":
            return _binary(value, type)
        case "struct":
            return _struct(value, type)
        case "array":
            items = _of((list, tuple), value, type, "a list")
            return tuple(_inside(index, item, type.elements[0]) for index, item in enumerate(items))
        case "map":
            key_type, item_type = type.elements
            pairs = _pairs(value, type)
            return frozenset((_inside(key, key, key_type), _inside(key, item, item_type)) for key, item in pairs)
        case "void":
            raise NotAValue(value, type, "null, the only value of its type")
        case _:  # INTERVAL and VARIANT are compared by Spark's own text
            return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def to_json_value(value: Json, type: DataType) -> Json:
    """Return the value as Spark's JSON source reads it with this type; raise `NotAValue`, as `canonical`.

    Instants become ``1970-01-01T12:05:00.500000Z`` (TIMESTAMP_NTZ without ``Z``), structs objects, decimals numbers (or
    strings, which Spark accepts too, if a double would lose digits)."""
    if value is None:
        return None
    match type.name:
        case "struct":
            items = struct_items(value, type)
            return {field.name: to_json_value(item, field.type) for field, item in zip(type.fields, items, strict=True)}
        case "array":
            return [to_json_value(item, type.elements[0]) for item in _of((list, tuple), value, type, "a list")]
        case "map":
            pairs = _pairs(value, type)
            keys = [_of(str, key, type, "text, the only type of key in JSON") for key, _ in pairs]
            return {key: to_json_value(item, type.elements[1]) for key, (_, item) in zip(keys, pairs, strict=True)}
        case "timestamp" | "timestamp_ntz":
            try:
                moment = _EPOCH + canonical(value, type) * _MICROSECOND
            except OverflowError:
                raise NotAValue(value, type, _WITHIN) from None
            return moment.isoformat(timespec="microseconds") + ("Z" if type.name == "timestamp" else "")
        case "float" | "double":
            canonical(value, type)
            return _endless(value) or (float(value) if isinstance(value, Decimal) else value)
        case "decimal":
            exact = canonical(value, type)
            return exact if isinstance(exact, int) else to_json_number(exact)
        case "tinyint" | "smallint" | "int" | "bigint":
            return canonical(value, type)
        case _:
            canonical(value, type)
            return value


def to_json_number(value: Decimal) -> float | str:
    """Return a decimal with a fraction as a JSON number if that is exact, else as text."""
    return float(value) if _as_decimal(float(value)) == value else str(value)


def instant_ms(value: Json) -> int:
    """Return an instant of an expectation (``watermark``, ``eventTime``) in milliseconds since the epoch, truncated as Spark does. Raises
    `NotAValue` if it is in none of the three notations, or more precise than a microsecond."""
    return _micros(value, None, zoned=True) // 1000


def show(micros: int) -> str:
    """Return an instant (µs since the epoch) in the shortest notation of a case: ``12:05``, ``12:05:00.5``, ``2024-03-01 12:05``."""
    try:
        moment = _EPOCH + micros * _MICROSECOND
    except OverflowError:  # outside the years 1 to 9999, which an engine may report
        return f"{Decimal(micros) / 1_000_000:f} s"
    text = f"{moment:%H:%M}"
    if moment.microsecond:
        text += f"{moment:.%f}".rstrip("0").replace(".", f":{moment:%S}.", 1)
    elif moment.second:
        text += f"{moment::%S}"
    return text if moment.date() == _EPOCH.date() else f"{moment.date().isoformat()} {text}"


def show_ms(millis: int | None) -> str | None:
    """Return the same as ``show``, of milliseconds since the epoch."""
    return None if millis is None else show(millis * 1000)


def show_in_full(micros: int) -> str:
    """Return an instant (µs) with date, seconds and zone, ``1970-01-01T12:05:00Z``; as ``show`` outside the years 1 to 9999."""
    try:
        return f"{(_EPOCH + micros * _MICROSECOND).isoformat()}Z"
    except OverflowError:
        return show(micros)


def _micros(value: Json, type: DataType | None, *, zoned: bool) -> int:
    if isinstance(value, str):
        return _micros_of_text(value, type, zoned=zoned)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not _is_finite(value):
        raise NotAValue(value, type, INSTANT)
    if not -_LAST_SECOND <= value <= _LAST_SECOND:
        raise NotAValue(value, type, _WITHIN)
    exact = _WIDE.multiply(_as_decimal(value), 1_000_000)
    if exact != int(exact):
        raise NotAValue(value, type, _NO_FINER)
    return _in_range(int(exact), value, type)


@lru_cache(maxsize=4096)  # rows, expectations and observations repeat the same few times
def _micros_of_text(value: str, type: DataType | None, *, zoned: bool) -> int:
    if re.fullmatch(_SECONDS, value):
        return int(_WIDE.multiply(Decimal(value[:-2]), 1_000_000))
    match = _TIME_ALONE.fullmatch(value) or _DATE_AND_TIME.fullmatch(value)
    if match is None:
        raise NotAValue(value, type, INSTANT)
    parts = match.groupdict()
    fraction = (parts["fraction"] or "").rstrip("0")
    if len(fraction) > 6:
        raise NotAValue(value, type, _NO_FINER)
    zone = parts.get("zone")
    if zone and not zoned:
        raise NotAValue(value, type, "a TIMESTAMP_NTZ, which has no zone")
    try:
        day = datetime.fromisoformat(parts.get("date") or "1970-01-01")
    except ValueError:
        raise NotAValue(value, type, "an existing date") from None
    clock = timedelta(
        hours=int(parts["hour"] or 0),
        minutes=int(parts["minute"] or 0),
        seconds=int(parts["second"] or 0),
        microseconds=int(fraction.ljust(6, "0")),
    )
    return _in_range((day - _EPOCH + clock - _offset(zone)) // _MICROSECOND, value, type)


def _in_range(micros: int, value: Json, type: DataType | None) -> int:
    try:
        _EPOCH + micros * _MICROSECOND
    except OverflowError:
        raise NotAValue(value, type, _WITHIN) from None
    return micros


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta(0)
    digits = zone[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return -offset if zone[0] == "-" else offset


def _integer(value: Json, type: DataType) -> int:
    bits = INTEGERS[type.name]
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    allowed = f"a whole number from {low} to {high} ({type.name.upper()})"
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not _is_finite(value):
        raise NotAValue(value, type, allowed)
    if not low <= value <= high or value != int(value):
        raise NotAValue(value, type, allowed)
    return int(value)


def _floating(value: Json, type: DataType) -> int | Decimal | str:
    if endless := _endless(value):
        return endless
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise NotAValue(value, type, "a number, 'NaN', 'Infinity' or '-Infinity'")
    try:
        number = float(value)
        if type.name == "float":
            # Python converts a FLOAT to the nearest double: 0.1 becomes 0.10000000149011612.
            number = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise NotAValue(value, type, f"a number that a {type.name.upper()} can hold")
    return _tidy(_as_decimal(number).quantize(_NINE_DECIMALS, context=_WIDE))


def _decimal(value: Json, type: DataType) -> int | Decimal:
    allowed = "a decimal number, plain or quoted"
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise NotAValue(value, type, allowed)
    try:
        number = _as_decimal(value)
    except InvalidOperation:
        raise NotAValue(value, type, allowed) from None
    if not number.is_finite():
        raise NotAValue(value, type, allowed)
    precision, scale = type.precision or MAX_PRECISION, type.scale or 0
    # Check the exponent first: 1e999999999 is a short text but a long number.
    before = max(number.adjusted() + 1, 0) if number else 0
    after = scale if number.adjusted() >= -MAX_PRECISION or not number else MAX_PRECISION + 1
    if (
        before > precision - scale
        or after > scale
        or number != number.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    ):
        digits = f"{precision - scale} digits before the point and {scale} after it"
        raise NotAValue(value, type, f"a DECIMAL({precision},{scale}): at most {digits}")
    return _tidy(number)


def _date(value: Json, type: DataType) -> str:
    allowed = "a date like '2024-03-01'"
    text: str = _of(str, value, type, allowed)
    if re.fullmatch(
        r"-?\d{6,10} d", text
    ):  # what an engine says of a date outside the years 1 to 9999: days since 1970
        return text
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise NotAValue(value, type, allowed) from None


def _binary(value: Json, type: DataType) -> bytes:
    allowed = "bytes in base64, as text"
    try:
        return base64.b64decode(_of(str, value, type, allowed), validate=True)
    except binascii.Error:
        raise NotAValue(value, type, allowed) from None


def _struct(value: Json, type: DataType) -> tuple[Canonical, ...]:
    steps = [field.name if isinstance(value, Mapping) else index for index, field in enumerate(type.fields)]
    items = struct_items(value, type)
    return tuple(_inside(step, item, field.type) for step, item, field in zip(steps, items, type.fields, strict=True))


def struct_items(value: Json, type: DataType) -> list[Json]:
    """Return the values of a struct, a list or a mapping, in the order of its fields; raise `NotAValue` for anything else."""
    names = [field.name for field in type.fields]
    columns = f"{len(names)} value{'s' * (len(names) != 1)} ({', '.join(names)})"
    if isinstance(value, list | tuple):
        if len(value) != len(names):
            raise NotAValue(value, type, columns)
        return list(value)
    if not isinstance(value, Mapping):
        raise NotAValue(value, type, f"a list of {columns}, or a mapping")
    for name in value:
        if name not in names:
            raise NotAValue(name, type, f"one of {', '.join(names)}", (name,))
    for name in names:
        if name not in value:
            raise NotAValue(value, type, f"complete: {name} is missing; write null for a missing value")
    return [value[name] for name in names]


def _pairs(value: Json, type: DataType) -> list[tuple[Json, Json]]:
    allowed = "a mapping, or a list of [key, value] pairs"
    if isinstance(value, Mapping):
        return list(value.items())
    pairs = _of((list, tuple), value, type, allowed)
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise NotAValue(value, type, allowed)
    return [tuple(pair) for pair in pairs]


def _inside(step: str | int, value: Json, type: DataType) -> Canonical:
    try:
        return canonical(value, type)
    except NotAValue as wrong:
        raise NotAValue(wrong.value, wrong.type, wrong.allowed, (step, *wrong.path)) from None


def _of(kind: Any, value: Json, type: DataType, allowed: str) -> Any:
    if not isinstance(value, kind):
        raise NotAValue(value, type, allowed)
    return value


def _endless(value: Json) -> str | None:
    if isinstance(value, float | Decimal) and not _is_finite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if isinstance(value, str) and value in _ENDLESS else None


def _is_finite(number: float | Decimal) -> bool:
    """Return the same as ``math.isfinite``, which is wrong or fails for numbers that a double cannot hold."""
    if isinstance(number, Decimal):
        return number.is_finite()
    return isinstance(number, int) or math.isfinite(number)


def _as_decimal(number: float | Decimal | str) -> Decimal:
    """Return the digits as written: ``30.0009`` is 30.0009, not the nearest binary fraction."""
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def _tidy(number: Decimal) -> int | Decimal:
    """Return whole numbers as int, others without trailing zeros."""
    return int(number) if number == int(number) else number.normalize(_WIDE)


def literal(value: Json) -> str:
    """Return a value as in YAML, truncated if long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}…"
