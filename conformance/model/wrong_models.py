"""Wrong models: each misreads one rule. A suite that can detect errors has at least one case that detects each of them.

``wrong_models.yaml`` lists them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from conformance.core.data import read_data
from conformance.model.catalogue import WrongModel, rule_value


def _before(time_us: int, watermark_ms: int) -> bool:
    return time_us < watermark_ms * 1000


def _at_or_before_in_ms(time_us: int, watermark_ms: int) -> bool:
    return time_us // 1000 <= watermark_ms


def _start(window: tuple[int, int]) -> int:
    return window[0]


WRONG_FUNCTIONS: Mapping[str, Mapping[str, Any]] = {
    "event_time_ms": {
        "rounded up, null as the epoch": lambda us: 0 if us is None else -(-us // 1000),
        "whole milliseconds, null as the far future": lambda us: 10**14 if us is None else us // 1000,
    },
    "highest_of_batch": {"lowest": min},
    "node_watermark_ms": {
        "highest": lambda highest, _: highest,
        "highest minus delay minus 1 ms": lambda highest, delay: highest - delay - 1,
        "highest minus delay plus 1 ms": lambda highest, delay: highest - delay + 1,
    },
    "policies": {"max for both": {"min": max, "max": max}, "min for both": {"min": min, "max": min}},
    "is_late": {"before": _before, "at or before, in whole milliseconds": _at_or_before_in_ms},
    "late_time_of_window": {"start": _start},
    "is_over": {"before": _before, "at or before, in whole milliseconds": _at_or_before_in_ms},
    "over_time_of_window": {"start": _start},
    "evicts_in": {
        "append": frozenset({"append"}),
        "append, update and complete": frozenset({"append", "update", "complete"}),
    },
    "session_end_us": {"time plus half a gap": lambda us, gap: us + gap // 2},
    "window_time_us": {"end": lambda end: end},
    "within_expires_us": {"time": lambda us, _: us},
    "within_is_expired": {"before": _before},
    "bound_of_several": {"highest": max, "first": lambda bounds: bounds[0], "last": lambda bounds: bounds[-1]},
    "join_state_goes": {"before": _before},
    "timeout_fires": {"at or before": lambda timeout, watermark: timeout <= watermark},
    "timer_fires": {"before": lambda timer, watermark: timer < watermark},
}
"""Rule → name of a wrong value in ``wrong_models.yaml`` → the function."""


def _wrong_model(name: str, entry: dict[str, Any]) -> WrongModel:
    detected_by, accepts = entry.pop("detected_by"), entry.pop("accepts", None)
    rules = {rule: rule_value(rule, written, WRONG_FUNCTIONS) for rule, written in entry.items()}
    return WrongModel(name, MappingProxyType(rules), detected_by, (accepts,) if accepts else ())


WRONG_MODELS = tuple(
    _wrong_model(name, entry) for name, entry in read_data("conformance.model", "wrong_models.yaml").items()
)
