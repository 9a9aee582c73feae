"""When an engine worked, by its own clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from conformance.core.observation import Observation


def intervals(observation: Observation) -> Iterator[tuple[float, float]]:
    """When each micro-batch began and ended, in seconds since the epoch."""
    for step in observation.steps:
        for batch in step.batches:
            began = datetime.fromisoformat(batch.progress["timestamp"]).timestamp()
            yield began, began + batch.duration_ms / 1000


def covered(intervals: list[tuple[float, float]], first: float, last: float) -> float:
    """Seconds between two moments in which at least one of the intervals, in the order of their beginnings, goes on."""
    covered, until = 0.0, first
    for start, end in intervals:
        start, end = max(start, until), min(end, last)
        if end > start:
            covered, until = covered + end - start, end
    return covered
