"""What a sample made a job's stateful operators do, and what it never did: what no micro-batch showed, the verdict does not cover."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from conformance.core.observation import DROPPED_ROWS, Observation

_TITLES = {
    "stateStoreSave": "the aggregation",
    "sessionWindowStateStoreSaveExec": "the session windows",
    "symmetricHashJoin": "the join",
    "dedupe": "the deduplication",
    "dedupeWithinWatermark": "the deduplication",
}
"""``operatorName`` of the progress → what it is; other operators keep the state of the author's functions."""


@dataclass(frozen=True)
class OperatorCoverage:
    """What one stateful operator did in all micro-batches."""

    operator: str
    """``the aggregation``"""
    stored: bool
    """Its state had a row."""
    removed: bool
    """A row left its state: a window closed, a key was forgotten."""
    dropped: bool | None
    """It dropped a late row; None if the version does not count them."""


def coverage(seen: Observation) -> tuple[OperatorCoverage, ...]:
    """What each stateful operator of the last query did, in the order of the progress; empty if none kept state."""
    batches = [batch for step in seen.steps for batch in step.batches if batch.progress.get("stateOperators")]
    operators = len(batches[-1].state) if batches else 0
    found = []
    for place in range(operators):
        progress = [batch.progress["stateOperators"][place] for batch in batches if len(batch.state) == operators]
        rows = [int(each["numRowsTotal"]) for each in progress]
        counts = [each.get(DROPPED_ROWS) for each in progress]
        name = str(progress[-1].get("operatorName", ""))
        found.append(
            OperatorCoverage(
                operator=_TITLES.get(name, f"the operator {name}" if name else f"stateful operator {place}"),
                stored=any(rows),
                removed=any(later < earlier for earlier, later in pairwise(rows))
                or any(int(each.get("numRowsRemoved") or 0) for each in progress),
                dropped=None if None in counts else any(counts),
            )
        )
    return tuple(found)


def never_shown(seen: Observation) -> Iterator[str]:
    """What no micro-batch showed, with what to add to the sample, a sentence each."""
    has_watermark = any(batch.watermark for step in seen.steps for batch in step.batches)
    for each in coverage(seen):
        if not each.stored:
            yield f"{each.operator} never had a row in its state: add rows that reach it"
        elif has_watermark and not each.removed:
            yield f"{each.operator} never removed a row from its state: add rows that are later, so that the watermark passes the others"
        if has_watermark and each.dropped is False:
            yield f"{each.operator} never dropped a late row: add a row whose event time is behind the watermark"
