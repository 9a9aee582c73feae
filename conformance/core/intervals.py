"""Intervals in Spark's notation: delays, gaps, window sizes, and bounds in join conditions."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MICROS = {"microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}
_PART = re.compile(r"('?)([+-]?\d+(?:\.\d+)?)\1\s+([a-z]+)")
"""``10 seconds``, or an ANSI interval of one field, ``'10' second``."""
_SPAN_UNITS = ("day", "hour", "minute", "second")
_SPAN = re.compile(r"'?([+-]?)([\d:. ]+)'?\s+(day|hour|minute)\s+to\s+(hour|minute|second)")
_YEAR_MONTH = re.compile(r"'?([+-]?)(\d+)-(\d+)'?\s+year\s+to\s+month")
DAY_US = 24 * _MICROS["hour"]


class NotAnInterval(ValueError):
    pass


@dataclass(frozen=True)
class Interval:
    """Separate months, days and microseconds, like Spark's CalendarInterval."""

    months: int = 0
    days: int = 0
    micros: int = 0
    ansi: bool = False
    """Written as an ANSI interval: ``INTERVAL '1 2:3:4' DAY TO SECOND``."""

    @property
    def delay_us(self) -> int:
        """The interval as a delay, in µs: a month is 31 days (SPARK-18894)."""
        return (self.months * 31 + self.days) * DAY_US + self.micros

    @property
    def delay_ms(self) -> int:
        """The same delay, truncated to ms."""
        return self.delay_us // 1000

    def __lt__(self, other: Interval) -> bool:
        return self.delay_us < other.delay_us

    def __le__(self, other: Interval) -> bool:
        return self.delay_us <= other.delay_us

    def __add__(self, other: Interval) -> Interval:
        return Interval(
            self.months + other.months, self.days + other.days, self.micros + other.micros, self.ansi or other.ansi
        )

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.days, -self.micros, self.ansi)


def parse_interval(text: str) -> Interval:
    """Read ``10 minutes``, ``INTERVAL 1 hour 30 minutes``, ``INTERVAL '1:30' MINUTE TO SECOND``, ``INTERVAL '0-2' YEAR TO MONTH``;
    raise `NotAnInterval` for any other text."""
    words = text.strip().lower().removeprefix("interval").strip()
    if match := _SPAN.fullmatch(words):
        span = _span(match[2], match[3], match[4], text)
        return -span if match[1] == "-" else span
    if match := _YEAR_MONTH.fullmatch(words):
        months = int(match[2]) * 12 + int(match[3])
        return Interval(-months if match[1] == "-" else months, ansi=True)
    quoted = words.startswith("'") and words.endswith("'")
    return _parts(words.strip("'") if quoted else words, text)


def _span(value: str, first: str, last: str, text: str) -> Interval:
    """Return ``1 2:03``, day to minute."""
    units = _SPAN_UNITS[_SPAN_UNITS.index(first) : _SPAN_UNITS.index(last) + 1]
    numbers = re.split("[ :]", value.strip())
    fraction = any("." in number for number in numbers[:-1]) or ("." in value and last != "second")
    if fraction or len(numbers) != len(units):
        raise NotAnInterval(text)
    parts = dict(zip(units, numbers, strict=True))
    days = int(parts.pop("day", 0))
    micros = sum(round(float(number) * _MICROS[unit]) for unit, number in parts.items())
    return Interval(0, days, micros, ansi=True)


def _parts(words: str, text: str) -> Interval:
    months = days = micros = 0
    rest, ansi = words, False
    while rest:
        match = _PART.match(rest)
        unit = match[3].removesuffix("s") if match else ""
        if match is None or unit not in {*_MICROS, *_DAYS, *_MONTHS}:
            raise NotAnInterval(text)
        if unit in _MICROS:
            micros += round(float(match[2]) * _MICROS[unit]) if "." in match[2] else int(match[2]) * _MICROS[unit]
        elif "." in match[2]:
            raise NotAnInterval(text)
        else:
            days += int(match[2]) * _DAYS.get(unit, 0)
            months += int(match[2]) * _MONTHS.get(unit, 0)
        ansi = ansi or match[1] != ""
        rest = rest[match.end() :].strip()
    if not words:
        raise NotAnInterval(text)
    return Interval(months, days, micros, ansi)
