"""Watermark delays, window sizes, gaps and intervals: the durations of a case, on one scale."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from conformance.core.wording import counted

SECOND_US = 1_000_000


@dataclass(frozen=True)
class Length:
    """A duration in Spark's notation and in µs."""

    text: str
    us: int


@dataclass(frozen=True)
class Scale:
    """The unit of which the durations of a case are multiples, so that boundaries coincide."""

    unit: str
    us: int


SCALES = (Scale("second", SECOND_US), Scale("minute", 60 * SECOND_US), Scale("hour", 3600 * SECOND_US))
_COUNTS = (1, 2, 5, 10, 10, 20)
_ODD = (
    Length("1 millisecond", 1_000),
    Length("1500 milliseconds", 1_500_000),
    Length("1 microsecond", 1),
    Length("1999 microseconds", 1_999),
    Length("1 minute 30 seconds", 90 * SECOND_US),
    Length("1 day", 86_400 * SECOND_US),
)
_ZERO = Length("0 seconds", 0)


def scales() -> st.SearchStrategy[Scale]:
    """Seconds or minutes, rarely hours."""
    return st.sampled_from((SCALES[0], SCALES[0], SCALES[1], SCALES[1], SCALES[2]))


def length(count: int, scale: Scale) -> Length:
    """A number of units: ``10 minutes``."""
    return Length(counted(count, scale.unit), count * scale.us)


def spans(scale: Scale) -> st.SearchStrategy[Length]:
    """Positive window sizes, gaps and intervals."""
    return st.sampled_from([length(count, scale) for count in _COUNTS])


def delay_lengths(scale: Scale) -> st.SearchStrategy[Length]:
    """Delays with their length in µs."""
    usual = [length(count, scale) for count in _COUNTS]
    return st.sampled_from([*usual, *usual, *usual, _ZERO, _ZERO, _ZERO, _ZERO, *_ODD])


def delays() -> st.SearchStrategy[str]:
    """Delays for ``withWatermark``: whole units, zero, and occasionally an odd one."""
    return scales().flatmap(delay_lengths).map(lambda one: one.text)
