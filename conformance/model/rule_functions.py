"""Values of rules that are functions, by the names ``rules.yaml`` gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _at_or_before(time_us: int, watermark_ms: int) -> bool:
    return time_us <= watermark_ms * 1000


def _end(window: tuple[int, int]) -> int:
    return window[1]


READINGS: Mapping[str, Mapping[str, Any]] = {
    "event_time_ms": {"whole milliseconds, null as the epoch": lambda us: 0 if us is None else us // 1000},
    "highest_of_batch": {"highest": max},
    "node_watermark_ms": {"highest minus delay": lambda highest, delay: highest - delay},
    "policies": {"min and max": {"min": min, "max": max}},
    "is_late": {"at or before": _at_or_before},
    "late_time_of_window": {"end": _end},
    "is_over": {"at or before": _at_or_before},
    "over_time_of_window": {"end": _end},
    "evicts_in": {"append and update": frozenset({"append", "update"})},
    "session_end_us": {"time plus gap": lambda us, gap: us + gap},
    "window_time_us": {"end minus 1 µs": lambda end: end - 1},
    "within_expires_us": {"time plus delay": lambda us, delay_ms: us + delay_ms * 1000},
    "within_is_expired": {"at or before": _at_or_before},
    "join_state_goes": {"at or before": _at_or_before},
}
"""Rule → name of a value → the value."""
