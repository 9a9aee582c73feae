"""Scalar functions, operators and aggregate functions: their values and types."""

import math
import re
import statistics
import struct
from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import ROUND_HALF_UP, Decimal
from fnmatch import fnmatchcase
from operator import eq, ge, gt, itemgetter, le, lt, mul, ne, neg, not_

from conformance.core.intervals import DAY_US, Interval
from conformance.core.spark_types import DataType, Field
from conformance.core.values import NotAValue, canonical
from conformance.model.columns import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, Value
from conformance.model.errors import Unpredictable
from conformance.model.time_zones import check_same_offset, instant_of, offset_us, truncated

_BITS = 0xFFFFFFFF


def spark_hash(*values: Value) -> int:
    """The hash of whole numbers of 32 bits and of texts; each is the seed of the next, and NULL changes nothing."""
    seed = 42
    for value in values:
        if isinstance(value, str):
            seed = _of_bytes(value.encode(), seed)
        elif value is not None:
            seed = _mixed(_with_word(seed, value & _BITS), 4)
    return seed - (1 << 32) if seed >> 31 else seed


def _of_bytes(data: bytes, seed: int) -> int:
    whole = len(data) - len(data) % 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        seed = _with_word(seed, word)
    for byte in data[whole:]:
        seed = _with_word(seed, byte - 256 & _BITS if byte > 127 else byte)
    return _mixed(seed, len(data))


def _with_word(seed: int, word: int) -> int:
    word = _rotated(word * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS
    return (_rotated(seed ^ word, 13) * 5 + 0xE6546B64) & _BITS


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _BITS


def _mixed(seed: int, length: int) -> int:
    """The last step of Murmur3."""
    seed ^= length
    seed = (seed ^ seed >> 16) * 0x85EBCA6B & _BITS
    seed = (seed ^ seed >> 13) * 0xC2B2AE35 & _BITS
    return seed ^ seed >> 16


MOST_CHARACTERS = 10_000
"""The characters of a text or of a type that a query makes, up to which the model predicts."""
INTERVAL = DataType("interval")
TIMESTAMP_NTZ = DataType("timestamp_ntz")
WHOLE = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*WHOLE, "float", "double", "decimal")
AT_LEAST = "at_least_n_non_nulls"
"""The function of ``dropna``, which counts NaN as NULL."""
UNITS_US = {"second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": DAY_US}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ScalarFunction:
    """A scalar function: its value for operands that are not NULL, and its type, which may depend on theirs."""

    value: Callable[..., Value]
    type: DataType | Callable[[Sequence[DataType]], DataType]
    tolerates_null: bool = False
    """Whether it takes NULL as an operand; any other function of NULL is NULL."""


def _same(kinds: Sequence[DataType]) -> DataType:
    return next((kind for kind in kinds if kind.name != "void"), kinds[0])


def _number(kinds: Sequence[DataType]) -> DataType:
    names = {kind.name for kind in kinds}
    if names <= set(WHOLE):
        return BIGINT if "bigint" in names else INT
    if names <= {*WHOLE, "double"}:
        return DOUBLE
    raise Unpredictable(f"arithmetic over {' and '.join(sorted(names))}")


def _sum_type(kinds: Sequence[DataType]) -> DataType:
    names = [kind.name for kind in kinds]
    return TIMESTAMP if "timestamp" in names else INTERVAL if set(names) == {"interval"} else _number(kinds)


def _add(left: Value, right: Value, zone: tzinfo | None = None) -> Value:
    if isinstance(right, Interval) and isinstance(left, int):
        return _moved(left, right, zone)
    if isinstance(left, Interval) and isinstance(right, int):
        return _moved(right, left, zone)
    return left + right


def _subtract(left: Value, right: Value, zone: tzinfo | None = None) -> Value:
    return _moved(left, -right, zone) if isinstance(right, Interval) and isinstance(left, int) else left - right


def _remainder(left: Value, right: Value) -> Value:
    """With the sign of the dividend."""
    if right == 0:
        raise Unpredictable("a remainder of a division by zero")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def _moved(instant_us: int, by: Interval, zone: tzinfo | None) -> int:
    offset = offset_us(instant_us, zone)
    later_us = instant_us
    if by.months:
        moment = _EPOCH + timedelta(microseconds=instant_us + offset)
        months = moment.year * 12 + moment.month - 1 + by.months
        year, month = divmod(months, 12)
        day = min(moment.day, monthrange(year, month + 1)[1])
        later_us = (moment.replace(year=year, month=month + 1, day=day) - _EPOCH) // timedelta(microseconds=1) - offset
    days_later_us = later_us + by.days * DAY_US
    check_same_offset(zone, instant_us, later_us, days_later_us, days_later_us + by.micros)
    return days_later_us + by.micros


def _difference(left: int, right: int, zone: tzinfo | None) -> Interval:
    check_same_offset(zone, left, right)
    return Interval(micros=left - right, ansi=True)


def _case(*operands: Value) -> Value:
    """Alternating conditions and values, then the value of ELSE."""
    for condition, value in zip(operands[:-1:2], operands[1:-1:2], strict=True):
        if condition:
            return value
    return operands[-1]


def _to_timestamp_by(pattern: str, text: str, zone: tzinfo | None) -> int:
    """Text that the pattern does not read is NULL or an error, depending on ANSI mode."""
    try:
        moment = datetime.strptime(text, pattern).replace(tzinfo=UTC)
    except ValueError:
        raise Unpredictable("to_timestamp of text that its pattern does not read") from None
    if moment.strftime(pattern) != text:
        raise Unpredictable("to_timestamp of text with fewer digits than its pattern")
    return instant_of((moment - _EPOCH) // timedelta(microseconds=1), zone)


def _unknown(name: str) -> Callable[..., Value]:
    """The value of a function that depends on the run."""

    def value(*_: Value) -> Value:
        raise Unpredictable(f"{name}, whose value is another in each run")

    return value


def _to_timestamp(value: Value, zone: tzinfo | None) -> Value:
    """CAST(… AS TIMESTAMP) of an instant or of text, which may name a zone."""
    if isinstance(value, int):
        return value
    try:
        return instant_of(_to_timestamp_ntz(value), zone)
    except Unpredictable:
        return _read(value, TIMESTAMP)


def _to_timestamp_ntz(value: Value) -> Value:
    """CAST(… AS TIMESTAMP_NTZ) of what a clock shows or of text without a zone."""
    return value if isinstance(value, int) else _read(value, TIMESTAMP_NTZ)


def _read(text: Value, kind: DataType) -> Value:
    """Raises Unpredictable too for a time without a date: to Spark that is a time of the current day
    (``SparkDateTimeUtils.parseTimestampString``), in a case one of 1970-01-01."""
    if isinstance(text, str) and ":" in text and "-" not in text:
        raise Unpredictable("CAST of a time without a date")
    try:
        return canonical(text.replace("T", " ") if isinstance(text, str) else text, kind)
    except NotAValue:
        raise Unpredictable("CAST of text that is not an instant") from None


def _to_string(value: Value) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Unpredictable("CAST AS STRING of other than whole numbers")
    return str(value)


def _time_to_string(instant_us: int, zone: tzinfo | None = None) -> str:
    """Without the zeros at the end of a fraction."""
    moment = _shown(instant_us, zone)
    fraction = f".{moment.microsecond:06}".rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction}"


def _shown(instant_us: int, zone: tzinfo | None) -> datetime:
    """What a clock of the zone shows."""
    return _EPOCH + timedelta(microseconds=instant_us + offset_us(instant_us, zone))


def _to_int(value: Value) -> int:
    if not isinstance(value, int | float):
        raise Unpredictable("CAST AS INT or BIGINT of other than numbers")
    return int(value)


def _to_double(value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unpredictable("CAST AS DOUBLE of other than numbers")
    return float(value)


def _day_time_interval(days: int = 0, hours: int = 0, minutes: int = 0, seconds: float = 0) -> Interval:
    micros = (hours * 3600 + minutes * 60) * 1_000_000 + round(seconds * 1_000_000)
    return Interval(0, days, micros, ansi=True)


def _divided(left: Value, right: Value) -> float:
    """A division by zero is NULL or an error, depending on ANSI mode."""
    if right == 0:
        raise Unpredictable("a division by zero")
    return float(left / right)


def _like(text: str, pattern: str) -> bool:
    """``%`` is any text, ``_`` any character."""
    if "\\" in pattern:
        raise Unpredictable("LIKE with a pattern that escapes characters")
    wildcards = {"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"}
    return fnmatchcase(text, "".join(wildcards.get(character, character) for character in pattern))


def _concat(*texts: Value) -> Value:
    if None in texts:
        return None
    if sum(map(len, texts)) > MOST_CHARACTERS:
        raise Unpredictable(f"a text of more than {MOST_CHARACTERS:,} characters")
    return "".join(texts)


def _split(text: str, by: str) -> tuple[str, ...]:
    """Source: `StringSplit`, whose separator is a regular expression."""
    if not by or (re.escape(by) != by and by not in ("-", "#", "&", "~", " ")):
        raise Unpredictable("split by a regular expression")
    return tuple(text.split(by))


def _element(array: tuple[Value, ...], index: int) -> Value:
    """Beyond the end it is NULL or an error, depending on ANSI mode."""
    if not 0 <= index < len(array):
        raise Unpredictable("an element beyond the end of an array")
    return array[index]


def _text(kinds: Sequence[DataType]) -> DataType:
    if any(kind != STRING for kind in kinds):
        raise Unpredictable(f"text of {' and '.join(str(kind) for kind in kinds)}")
    return STRING


def _hash_type(kinds: Sequence[DataType]) -> DataType:
    if any(kind not in (INT, STRING) and kind.name != "void" for kind in kinds):
        raise Unpredictable("hash of other than INT and STRING")
    return INT


def _rounded(value: Value, places: int) -> Value:
    """Half up, of the shortest text that means the fraction (`RoundBase`, `BigDecimal`)."""
    if value is None:
        return None
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP))


def _compared(kinds: Sequence[DataType]) -> DataType:
    comparable = {"number" if kind.name in _NUMBERS else kind.name for kind in kinds if kind.name != "void"}
    if len(comparable) > 1:
        raise Unpredictable(f"a comparison of {' and '.join(str(kind) for kind in kinds)}")
    return BOOLEAN


FUNCTIONS: dict[str, ScalarFunction] = {
    **{
        name: ScalarFunction(compares, _compared)
        for name, compares in {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}.items()
    },
    "<=>": ScalarFunction(eq, _compared, tolerates_null=True),
    "+": ScalarFunction(_add, _sum_type),
    "-": ScalarFunction(_subtract, _sum_type),
    "*": ScalarFunction(mul, _number),
    "%": ScalarFunction(_remainder, _number),
    "/": ScalarFunction(_divided, lambda kinds: _number(kinds) and DOUBLE),
    "abs": ScalarFunction(abs, _number),
    "round": ScalarFunction(_rounded, DOUBLE, tolerates_null=True),
    "like": ScalarFunction(_like, _compared),
    "concat": ScalarFunction(_concat, _text, tolerates_null=True),
    "hash": ScalarFunction(spark_hash, _hash_type, tolerates_null=True),
    "split": ScalarFunction(_split, lambda kinds: DataType("array", elements=(_text(kinds),))),
    "element": ScalarFunction(_element, lambda kinds: kinds[0].elements[0]),
    "negative": ScalarFunction(neg, _same),
    "and": ScalarFunction(
        lambda *all: False if False in all else None if None in all else True, BOOLEAN, tolerates_null=True
    ),
    "or": ScalarFunction(
        lambda *all: True if True in all else None if None in all else False, BOOLEAN, tolerates_null=True
    ),
    "not": ScalarFunction(not_, BOOLEAN),
    "is null": ScalarFunction(lambda a: a is None, BOOLEAN, tolerates_null=True),
    AT_LEAST: ScalarFunction(
        lambda least, *values: least <= sum(value is not None and value == value for value in values),
        BOOLEAN,
        tolerates_null=True,
    ),
    "is not null": ScalarFunction(lambda a: a is not None, BOOLEAN, tolerates_null=True),
    "case": ScalarFunction(_case, lambda kinds: _same([*kinds[1::2], kinds[-1]]), tolerates_null=True),
    "coalesce": ScalarFunction(
        lambda *all: next((value for value in all if value is not None), None), _same, tolerates_null=True
    ),
    "struct": ScalarFunction(
        lambda *all: all,
        lambda kinds: DataType("struct", tuple(Field(f"col{n}", kind) for n, kind in enumerate(kinds, 1))),
        tolerates_null=True,
    ),
    "size": ScalarFunction(len, INT),
    "array_sort": ScalarFunction(lambda array: tuple(sorted(array)), _same),
    "upper": ScalarFunction(str.upper, STRING),
    "lower": ScalarFunction(str.lower, STRING),
    "length": ScalarFunction(len, INT),
    "timestamp_seconds": ScalarFunction(lambda seconds: seconds * 1_000_000, TIMESTAMP),
    "timestamp_millis": ScalarFunction(lambda millis: millis * 1_000, TIMESTAMP),
    "cast number to timestamp": ScalarFunction(lambda seconds: seconds * 1_000_000, TIMESTAMP),
    "cast to timestamp": ScalarFunction(_to_timestamp, TIMESTAMP),
    "cast to timestamp_ntz": ScalarFunction(_to_timestamp_ntz, TIMESTAMP_NTZ),
    "cast timestamp to timestamp_ntz": ScalarFunction(lambda us, zone: us + offset_us(us, zone), TIMESTAMP_NTZ),
    "cast timestamp_ntz to timestamp": ScalarFunction(instant_of, TIMESTAMP),
    "cast timestamp_ntz to string": ScalarFunction(_time_to_string, STRING),
    "cast to string": ScalarFunction(_to_string, STRING),
    "cast to int": ScalarFunction(_to_int, INT),
    "cast to bigint": ScalarFunction(_to_int, BIGINT),
    "cast to double": ScalarFunction(_to_double, DOUBLE),
    "cast to float": ScalarFunction(_to_double, DOUBLE),
    "cast timestamp to int": ScalarFunction(lambda us: us // 1_000_000, INT),
    "cast timestamp to bigint": ScalarFunction(lambda us: us // 1_000_000, BIGINT),
    "cast timestamp to double": ScalarFunction(lambda us: us / 1_000_000, DOUBLE),
    "cast timestamp to float": ScalarFunction(lambda us: us / 1_000_000, DOUBLE),
    "cast timestamp to string": ScalarFunction(_time_to_string, STRING),
    "to_timestamp": ScalarFunction(_to_timestamp, TIMESTAMP),
    "to_timestamp by pattern": ScalarFunction(_to_timestamp_by, TIMESTAMP),
    "unix_timestamp": ScalarFunction(lambda us: us // 1_000_000, BIGINT),
    "time difference": ScalarFunction(_difference, INTERVAL),
    "make_dt_interval": ScalarFunction(_day_time_interval, INTERVAL),
    "date_format": ScalarFunction(lambda pattern, us, zone: _shown(us, zone).strftime(pattern), STRING),
    "date_trunc": ScalarFunction(lambda unit, us, zone: truncated(us, UNITS_US[unit.lower()], zone), TIMESTAMP),
    **{name: ScalarFunction(_unknown(name), TIMESTAMP) for name in ("current_timestamp", "now")},
    **{name: ScalarFunction(_unknown(name), DOUBLE) for name in ("rand", "randn")},
    "uuid": ScalarFunction(_unknown("uuid"), STRING),
    "monotonically_increasing_id": ScalarFunction(_unknown("monotonically_increasing_id"), BIGINT),
}
"""Scalar functions by their name in Spark SQL, or by operator."""

BY_TIME_ZONE = frozenset(
    {"cast timestamp to string", "cast timestamp to timestamp_ntz", "cast timestamp_ntz to timestamp"}
    | {"cast to timestamp", "to_timestamp", "to_timestamp by pattern", "date_format", "date_trunc"}
    | {"+", "-", "time difference"}
)
"""Functions whose last operand is the time zone of the session, as `TimeZoneAwareExpression` keeps it."""


def type_of(name: str, kinds: Sequence[DataType]) -> DataType:
    if name not in FUNCTIONS:
        raise Unpredictable(f"function {name}")
    kind = FUNCTIONS[name].type
    return kind if isinstance(kind, DataType) else kind(kinds)


Operands = tuple[Value, ...]
"""The arguments of an aggregate function for one row."""


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate function: its value over rows, and its type given the types of its arguments."""

    value: Callable[[Sequence[Operands]], Value]
    type: Callable[[Sequence[DataType]], DataType]


def _present(rows: Sequence[Operands]) -> list[Value]:
    return [row[0] for row in rows if row[0] is not None]


def _of_present(function: Callable[[Sequence[Value]], Value], least: int = 1) -> Callable[[Sequence[Operands]], Value]:
    """A function of the values that are not NULL; NULL if there are fewer than ``least``."""

    def value(rows: Sequence[Operands]) -> Value:
        values = _present(rows)
        return function(values) if len(values) >= least else None

    return value


def _mean(values: Sequence[Value]) -> Value:
    return sum(values) / len(values)


def _deviation(values: Sequence[Value]) -> float:
    mean = _mean(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def _sample_variance(values: Sequence[Value]) -> float:
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _by(choose: Callable[..., Operands]) -> Callable[[Sequence[Operands]], Value]:
    def value(rows: Sequence[Operands]) -> Value:
        ordered = [row for row in rows if row[1] is not None]
        if not ordered:
            return None
        chosen = choose(ordered, key=lambda row: row[1])
        if any(row[1] == chosen[1] and row[0] != chosen[0] for row in ordered):
            raise Unpredictable("max_by or min_by with equal values")
        return chosen[0]

    return value


def _type_of_sum(kinds: Sequence[DataType]) -> DataType:
    if kinds[0].name in WHOLE:
        return BIGINT
    if kinds[0].name in ("float", "double"):
        return DOUBLE
    raise Unpredictable(f"sum over {kinds[0]}")


def _array(kinds: Sequence[DataType]) -> DataType:
    return DataType("array", elements=(kinds[0],))


def _percentile(rows: Sequence[Operands]) -> Value:
    """The value of the rank; among a few thousand none is approximated (`QuantileSummaries`)."""
    values = sorted(_present(rows))
    return values[max(math.ceil(rows[0][1] * len(values)), 1) - 1] if values else None


def _of_one_share(kinds: Sequence[DataType]) -> DataType:
    if len(kinds) != 2 or kinds[1] != DOUBLE:
        raise Unpredictable("percentile_approx other than of one share, with the default accuracy")
    return kinds[0]


AGGREGATES: Mapping[str, AggregateFunction] = {
    "count": AggregateFunction(lambda rows: sum(None not in row for row in rows), lambda _: BIGINT),
    "count_if": AggregateFunction(lambda rows: sum(row[0] is True for row in rows), lambda _: BIGINT),
    "sum": AggregateFunction(_of_present(sum), _type_of_sum),
    "min": AggregateFunction(_of_present(min), itemgetter(0)),
    "max": AggregateFunction(_of_present(max), itemgetter(0)),
    "avg": AggregateFunction(_of_present(_mean), lambda _: DOUBLE),
    "stddev_pop": AggregateFunction(_of_present(_deviation), lambda _: DOUBLE),
    "stddev": AggregateFunction(_of_present(lambda values: math.sqrt(_sample_variance(values)), 2), lambda _: DOUBLE),
    "variance": AggregateFunction(_of_present(_sample_variance, 2), lambda _: DOUBLE),
    "median": AggregateFunction(_of_present(lambda values: float(statistics.median(values))), lambda _: DOUBLE),
    "percentile_approx": AggregateFunction(_percentile, _of_one_share),
    "max_by": AggregateFunction(_by(max), itemgetter(0)),
    "min_by": AggregateFunction(_by(min), itemgetter(0)),
    "first": AggregateFunction(lambda rows: rows[0][0] if rows else None, itemgetter(0)),
    "last": AggregateFunction(lambda rows: rows[-1][0] if rows else None, itemgetter(0)),
    "first ignoring nulls": AggregateFunction(_of_present(itemgetter(0)), itemgetter(0)),
    "last ignoring nulls": AggregateFunction(_of_present(itemgetter(-1)), itemgetter(0)),
    "collect_list": AggregateFunction(lambda rows: tuple(_present(rows)), _array),
    "collect_set": AggregateFunction(lambda rows: tuple(dict.fromkeys(_present(rows))), _array),
}
"""``count(*)`` is ``count`` without arguments."""

DISTINCT = " distinct"
"""After the name of a function over distinct values, which no streaming query may have."""
BY_ORDER = frozenset({"first", "last", "first ignoring nulls", "last ignoring nulls", "collect_list"})
"""Functions whose result depends on the order of the rows: that of their arrival, as far as the plan keeps it."""
