"""What a sample made a job's stateful operators do, and what it never did: what no micro-batch showed, the verdict does not cover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from conformance.core.observation import DROPPED_ROWS, BatchSeen, Observation
from conformance.query.reading import read_plan

_TITLES = {
    "stateStoreSave": "the aggregation",
    "sessionWindowStateStoreSaveExec": "the session windows",
    # Up to 3.5, in which no other operator has no name of its own.
    "defaultName": "the session windows",
    "globalLimit": "the limit",
    "symmetricHashJoin": "the join",
    "dedupe": "the deduplication",
    "dedupeWithinWatermark": "the deduplication",
}
"""``operatorName`` of the progress → what it is; other operators keep the state of the author's functions."""
_PLACES = ("first", "second", "third", "fourth", "fifth")


def titles(progress: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the stateful operators of a micro-batch, in the order of its progress: the last that rows pass comes first.

    Of operators of one kind, the name says which in the order in which rows pass: ``the second aggregation``.
    """
    names = [str(operator.get("operatorName") or "") for operator in progress.get("stateOperators", ())]
    kinds = [
        _TITLES.get(name, f"the operator {name}" if name else f"stateful operator {at}")
        for at, name in enumerate(names)
    ]
    return tuple(
        kind
        if kinds.count(kind) == 1
        else f"the {_PLACES[min(kinds[at + 1 :].count(kind), 4)]} {kind.removeprefix('the ')}"
        for at, kind in enumerate(kinds)
    )


def never_shown(seen: Observation, plan: str, *, digests: bool = False) -> Iterator[str]:
    """Yield what no micro-batch made a stateful operator of the last query do, and what to add to the sample.

    Args:
        plan: extended; empty if unknown.
        digests: whether the observation has digests of rows, which do not tell of rows without a match.
    """
    has_watermark = any(batch.watermark for batch in seen.batches)
    batches = [batch for batch in seen.batches if batch.progress.get("stateOperators")]
    operators = len(batches[-1].state) if batches else 0
    batches = [batch for batch in batches if len(batch.state) == operators]
    query = read_plan(plan)
    times_out = any(function.times_out for function in query.state_functions)
    for place, operator in enumerate(titles(batches[-1].progress) if operators else ()):
        progress = [batch.progress["stateOperators"][place] for batch in batches]
        name = str(progress[-1].get("operatorName", ""))
        rows = [int(counts["numRowsTotal"]) for counts in progress]
        removed = any(later < earlier for earlier, later in pairwise(rows))
        removed = removed or any(int(counts.get("numRowsRemoved") or 0) for counts in progress)
        if not any(rows):
            yield f"{operator} never had a row in its state: add rows that reach it"
        elif has_watermark and not removed:
            yield (
                f"{operator} never removed a row from its state: none of its keys, conditions and timeouts depends on the "
                "watermark, or the watermark has not passed them"
            )
        # Old versions do not count the rows that they drop.
        dropped = [counts.get(DROPPED_ROWS) for counts in progress]
        if has_watermark and None not in dropped and not any(dropped):
            yield f"{operator} never dropped a late row: it took none that reached it for late; add one"
        duplicates = [counts.get("customMetrics", {}).get("numDroppedDuplicateRows") for counts in progress]
        if None not in duplicates and not any(duplicates):
            yield f"{operator} never dropped a duplicate: none arrived while its key was in the state; add one"
        if name not in _TITLES and times_out and not any(map(_timed_out, batches, progress)):
            yield f"no key of {operator} was seen to time out: add rows after which the watermark passes its timeout"
    outer = any(join.stateful and join.kind.endswith("Outer") for join in query.joins)
    unmatched = any(None in row or batch.kind == "no-data" for batch in seen.batches for row in batch.rows)
    if outer and not digests and not unmatched:
        yield "the outer join was never seen to emit a row without a match: add a row that has none"


def _timed_out(batch: BatchSeen, progress: Mapping[str, Any]) -> bool:
    """Whether a key of an author's function timed out: a timer expired, or the function changed state without rows."""
    changed = any(int(progress.get(count) or 0) for count in ("numRowsUpdated", "numRowsRemoved"))
    return bool(progress.get("customMetrics", {}).get("numExpiredTimers")) or (batch.kind == "no-data" and changed)
