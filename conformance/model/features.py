"""Constructs that not every version has, as data: name → the version that brought it, and where that is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Feature:
    """A construct and the first version that has it."""

    since: str
    link: str


FEATURES: Mapping[str, Feature] = {
    "timestamp_seconds": Feature("3.1", "SPARK-31710"),
    "timestamp_millis": Feature("3.1", "SPARK-31710"),
    "fullOuter": Feature("3.1", "SPARK-32863"),
    "leftSemi": Feature("3.1", "SPARK-32862"),
    "session_window": Feature("3.2", "SPARK-34893"),
    "ANSI delay": Feature("3.2", "SPARK-35815"),
    "availableNow": Feature("3.3", "SPARK-36533"),
    "window_time": Feature("3.4", "SPARK-40821"),
    "window of a window": Feature("3.4", "SPARK-40821"),
    "TIMESTAMP_NTZ": Feature("3.4", "SPARK-35662"),
    "applyInPandasWithState": Feature("3.4", "SPARK-40434"),
    "allowMultiple": Feature("3.4", "SPARK-40925"),
    "dropDuplicatesWithinWatermark": Feature("3.5", "SPARK-42931"),
    "WATERMARK clause": Feature("4.1", "SPARK-53687"),
}
