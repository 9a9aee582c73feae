"""What a sample made a job's stateful operators do, and what it never did: what no micro-batch showed, the verdict does not cover."""

from __future__ import annotations

from collections.abc import Iterator
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


def never_shown(seen: Observation) -> Iterator[str]:
    """What no micro-batch made a stateful operator of the last query do, with what to add to the sample, a sentence each."""
    every = [batch for step in seen.steps for batch in step.batches]
    has_watermark = any(batch.watermark for batch in every)
    batches = [batch for batch in every if batch.progress.get("stateOperators")]
    operators = len(batches[-1].state) if batches else 0
    for place in range(operators):
        progress = [batch.progress["stateOperators"][place] for batch in batches if len(batch.state) == operators]
        name = str(progress[-1].get("operatorName", ""))
        operator = _TITLES.get(name, f"the operator {name}" if name else f"stateful operator {place}")
        rows = [int(each["numRowsTotal"]) for each in progress]
        removed = any(later < earlier for earlier, later in pairwise(rows))
        if not any(rows):
            yield f"{operator} never had a row in its state: add rows that reach it"
        elif has_watermark and not removed and not any(int(each.get("numRowsRemoved") or 0) for each in progress):
            yield f"{operator} never removed a row from its state: add rows that are later, so that the watermark passes the others"
        # Old versions do not count the rows that they drop.
        dropped = [each.get(DROPPED_ROWS) for each in progress]
        if has_watermark and None not in dropped and not any(dropped):
            yield f"{operator} never dropped a late row: add a row whose event time is behind the watermark"
