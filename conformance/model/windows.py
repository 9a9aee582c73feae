"""Time windows: which of them a row is in. Source: «Types of time windows» of the guide."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.model.rules import Rules

Window = tuple[int, int]
"""Start and end in µs."""


def windows_of(time_us: int, size: int, slide: int, start: int, rules: Rules) -> Iterator[Window]:
    """The windows that hold an instant, the earliest first.

    Args:
        time_us: the instant.
        size: length of a window, in µs.
        slide: from the start of one window to that of the next, in µs.
        start: by how much windows are shifted against the epoch, in µs.
        rules: say which of its ends a window holds, and how it is rounded before the epoch.
    """
    latest = _latest_start(time_us, slide, start, rules)
    if rules.window_holds_its_end and latest == time_us:
        latest -= slide
    starts = [latest - slide * back for back in range(-(-size // slide))]
    # On a version that rounds wrongly a tumbling window may lie beside its row; of sliding ones only those that hold it count.
    sliding = size != slide
    for first in reversed(starts):
        if not sliding or _holds((first, first + size), time_us, rules):
            yield first, first + size


def _latest_start(time_us: int, slide: int, start: int, rules: Rules) -> int:
    if rules.window_before_origin == "contains its rows":
        return time_us - (time_us - start) % slide
    # Java's remainder has the sign of the dividend (SPARK-39347).
    dividend = time_us - start + slide
    remainder = abs(dividend) % slide * (1 if dividend >= 0 else -1)
    return time_us - remainder


def _holds(window: Window, time_us: int, rules: Rules) -> bool:
    if rules.window_holds_its_end:
        return window[0] < time_us <= window[1]
    return window[0] <= time_us < window[1]
