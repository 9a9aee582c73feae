"""Event times that are not a TIMESTAMP column: text with a format or numbers with a unit, also inside a struct, JSON text or text with
separators, as records of a topic have them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache

from conformance.core.data import Json
from conformance.core.errors import WrongUsage

_UNITS: Mapping[str, int | Decimal] = {"s": 10**6, "ms": 10**3, "us": 1, "ns": Decimal("0.001")}
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?P<between>[T ])\d\d:\d\d(?P<s>:\d\d)?(?P<f>\.\d{1,6})?(?P<z>Z|[+-]\d\d:?\d\d)?")
_YEARS = range(946_684_800, 4_102_444_800)
"""2000 to 2099 in seconds: a number that is in these years in no unit is taken for no time."""
_TOKEN = re.compile(r"'([^']*)'|(([A-Za-z])\3*)|[^A-Za-z']+")
_LETTERS = "yyyy=%Y uuuu=%Y yy=%y MMM=%b MM=%m M=%m dd=%d d=%d HH=%H H=%H hh=%I h=%I mm=%M m=%M ss=%S s=%S a=%p X=%z XX=%z XXX=%z Z=%z"
_PYTHON = dict(pair.split("=") for pair in _LETTERS.split(" ")) | {"S" * digits: "%f" for digits in range(1, 7)}
_SEPARATOR = re.compile(r"[\t|;,]")
_DIGITS = re.compile(r"[0-9]{10,19}")
_DAY = re.compile("%[Yymbd].*%[Yymbd]")


@dataclass(frozen=True)
class Place:
    """Where a time stands in a row, and how it is written."""

    column: int
    keys: tuple[str, ...]
    """The keys inside the column, of a struct or of JSON text, or the position in text with separators, from 0; none if the column itself
    is the time."""
    format: str
    """A unit (s, ms, us, ns) or a pattern as Spark writes it: ``dd.MM.yyyy HH:mm``."""

    def value(self, row: Sequence[Json]) -> Json:
        value = row[self.column]
        if self.keys:
            value = _inside(value)
        for key in self.keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def micros(self, row: Sequence[Json]) -> int | None:
        """The time in µs since the epoch, in UTC without a zone; None if there is none that can be read."""
        value = self.value(row)
        if self.format in _UNITS:
            number = _number(value)
            return int(number * _UNITS[self.format]) if number is not None else None
        with suppress(ValueError, TypeError):
            moment = datetime.strptime(value, pattern(self.format))
            since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            return since // timedelta(microseconds=1)
        return None

    def later(self, row: Sequence[Json], days: int) -> Json:
        """The column with a time that is so many days later, otherwise the same text; as it is if it holds no time."""
        old, whole = self.value(row), row[self.column]
        if self.micros(row) is None:
            return whole
        if (number := _number(old)) is not None and self.format in _UNITS:
            new = type(old)(number + type(number)(days * 86_400 * 10**6 / _UNITS[self.format]))
        else:
            day = _DAY.search(pattern(self.format))
            moment = datetime.strptime(old, pattern(self.format))
            dates = [at.strftime(day[0] if day else "") for at in (moment, moment + timedelta(days=days))]
            new = old.replace(*dates)
        if not self.keys:
            return new
        if isinstance(whole, Mapping):
            return _with(whole, self.keys, new)
        if json_object(whole) is None:
            separator = separator_of(whole)
            parts = whole.split(separator)
            parts[int(self.keys[0])] = new
            return separator.join(parts)
        named = re.compile(rf'("{re.escape(self.keys[-1])}"\s*:\s*){re.escape(_text(old))}')
        return named.sub(lambda found: found[1] + _text(new), whole)


@dataclass(frozen=True)
class WrittenTime:
    places: tuple[Place, ...]
    """The first is the event time; the query may use any."""

    def micros(self, row: Sequence[Json]) -> int | None:
        return self.places[0].micros(row)

    def later(self, row: Sequence[Json], days: int) -> tuple[Json, ...] | None:
        """The row with its times so many days later, each written as it was; None if the event time does not read back."""
        values = [*row]
        for place in self.places:
            values[place.column] = place.later(values, days)
        before, after = self.micros(row), self.micros(values)
        return tuple(values) if before is not None and after == before + days * 86_400 * 10**6 else None


def written_time(row: Sequence[Json], names: Sequence[str], said: str | None = None) -> WrittenTime | None:
    """The times that a row shows, texts first; ``said``: what ``--event-time`` says, ``ordered_at as dd.MM.yyyy HH:mm``, ``ts as ms``."""
    name, format = column_and_format(said or "")
    if format and format not in _UNITS:
        pattern(format)
    keys = tuple(name.split("."))
    places = [
        Place(column, at, format or _shape(value))
        for column, text in enumerate(row)
        for at, value in _leaves((), text)
        if said is None or keys in (at, (names[column], *at))
        if format or _shape(value)
    ]
    return WrittenTime(tuple(sorted(places, key=lambda place: place.format in _UNITS))) if places else None


def column_and_format(said: str) -> tuple[str, str]:
    """Divide ``ts as ms``, as options name a time: where it stands, and how it is written, empty if that is not said."""
    column, _, format = said.partition(" as ")
    return column, format


def instant_text(value: Json, format: str) -> str | None:
    """Return a time, a number also as text, in ISO 8601, without a zone if its pattern has none; None if it is not written so."""
    with suppress(ValueError, TypeError, ArithmeticError):
        if format in _UNITS:
            micros = int(Decimal(str(value)) * _UNITS[format])
            return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).isoformat(" ")
        return datetime.strptime(str(value), pattern(format)).isoformat(" ")
    return None


@cache
def pattern(format: str) -> str:
    """The pattern of Python for one of Spark; raises WrongUsage."""
    parts = []
    for token in _TOKEN.finditer(format):
        if token[2] and token[2] not in _PYTHON:
            raise WrongUsage(
                f"--event-time: {token[2]} of {format!r} is not known: known are {', '.join(_PYTHON)}, and units {', '.join(_UNITS)}"
            )
        parts.append(_PYTHON[token[2]] if token[2] else (token[1] or token[0]).replace("%", "%%"))
    return "".join(parts)


def _shape(value: Json) -> str:
    """How a time is written, as far as that can be seen; empty if it is none."""
    if (number := _number(value)) is not None:
        return next((unit for unit, micros in _UNITS.items() if int(number * micros) // 10**6 in _YEARS), "")
    iso = _ISO.fullmatch(value) if isinstance(value, str) else None
    if iso is None:
        return ""
    fraction = f".{'S' * (len(iso['f']) - 1)}" if iso["f"] else ""
    return f"yyyy-MM-dd'{iso['between']}'HH:mm{':ss' if iso['s'] else ''}{fraction}{'XXX' if iso['z'] else ''}"


def _leaves(at: tuple[str, ...], value: Json) -> Iterator[tuple[tuple[str, ...], Json]]:
    inner = value if at else _inside(value)
    if not isinstance(inner, Mapping):
        yield at, value
        return
    for key, item in inner.items():
        yield from _leaves((*at, key), item)


def _inside(value: Json) -> Mapping[str, Json] | None:
    """The values of a struct, of the object that a text is as JSON, or of a text with separators, by position; None of other values."""
    if isinstance(value, Mapping):
        return value
    if (inner := json_object(value)) is not None:
        return inner
    separator = separator_of(value)
    return {str(at): part for at, part in enumerate(value.split(separator))} if separator else None


def separator_of(value: Json) -> str:
    """Return the first separator in a text: tab, ``|``, ``;`` or ``,``; empty without one."""
    separator = _SEPARATOR.search(value) if isinstance(value, str) else None
    return separator[0] if separator is not None else ""


def _with(struct: Mapping[str, Json], keys: Sequence[str], value: Json) -> dict[str, Json]:
    key, *inner = keys
    return {**struct, key: _with(struct[key], inner, value) if inner else value}


def json_object(text: Json) -> dict[str, Json] | None:
    """Return the object that a text is as JSON, its fractions as decimals; None if it is none."""
    with suppress(ValueError):
        if isinstance(text, str) and text.lstrip()[:1] == "{":
            read: dict[str, Json] = json.loads(text, parse_float=Decimal)
            return read
    return None


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _number(value: Json) -> int | Decimal | None:
    """A number, also if text has nothing but its digits."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    return value if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
