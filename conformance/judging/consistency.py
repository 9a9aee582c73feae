"""Whether an observation agrees with itself and with its case.

Compares the records of a watermark (progress, offset log, commit log) and of the state: a disagreement is a finding. And finds streams
that a case gives rows to and its query should read, but that no micro-batch had as a source.

The offset log has the watermark that a micro-batch was planned with, the progress the one it ran with, and the commit log of
the previous micro-batch the one it should run with: Spark's ``OffsetSeqMetadata`` and ``CommitMetadata``. The progress counts the rows
of the state while they change; the data source ``statestore``, where it was asked, has read them from the checkpoint.
"""

import json
import re
from collections.abc import Iterator

from conformance.core.case import Case, Restart
from conformance.core.observation import BatchSeen, Observation
from conformance.core.values import show_ms
from conformance.judging.finding import Evidence, EvidenceDisagrees, FindingLocation, ReplayDiffers


def disagreements(case: Case, observation: Observation) -> Iterator[EvidenceDisagrees]:
    """Every micro-batch whose watermark is not the same in all records.

    The progress has no watermark if the query has none, which is not a disagreement. The commit log is compared only between
    consecutive ids, since a replayed micro-batch has the id of the one before it.
    """
    before: BatchSeen | None = None
    for step in observation.steps:
        for batch in step.batches:
            place = FindingLocation.of_step(case, step.number, (batch.id,))
            committed = before.next_watermark if before is not None and batch.id == before.id + 1 else None
            said: dict[Evidence, int | None] = {
                "progress": batch.watermark,
                "commit log of the batch before": committed,
            }
            for evidence, watermark in said.items():
                if watermark not in (None, batch.logged):
                    expected, observed = show_ms(batch.logged), show_ms(watermark)
                    yield EvidenceDisagrees(place=place, expected=expected, observed=observed, evidence=evidence)
            before = batch


def state_disagreements(case: Case, observation: Observation) -> Iterator[EvidenceDisagrees]:
    """Every step after which the state in the checkpoint does not have as many rows as the progress says."""
    for step in observation.steps:
        if step.stored is None:
            continue
        last = step.batches[-1]
        counted: tuple[int | None, ...] = last.state
        stored = tuple(store.rows for store in step.stored)
        # What a processor keeps in variables is not counted.
        if len(stored) == len(counted):
            counted = tuple(rows if other is not None else None for rows, other in zip(counted, stored, strict=True))
        if counted != stored:
            place, said = FindingLocation.of_step(case, step.number, (last.id,)), "data source statestore"
            yield EvidenceDisagrees(aspect="state", place=place, expected=counted, observed=stored, evidence=said)


def lost_or_doubled(case: Case, observation: Observation) -> Iterator[ReplayDiffers]:
    """Yield micro-batches that emitted other rows before a kill than again, if the restart changes neither query nor setting."""
    for step in observation.steps:
        action = case.steps[step.number - 1].action
        if step.interrupted is None or not isinstance(action, Restart) or action.change.model_fields_set:
            continue
        again = next((batch for batch in step.batches if batch.id == step.interrupted.id), None)
        if again is not None and sorted(map(json.dumps, again.rows)) != sorted(map(json.dumps, step.interrupted.rows)):
            place = FindingLocation.of_step(case, step.number, (again.id,))
            yield ReplayDiffers(place=place, expected=step.interrupted.rows, observed=again.rows)


def why_unread(case: Case, observation: Observation) -> str | None:
    """The first stream whose rows the query cannot have read, and what it read instead; None if there is none.

    What such a query emits says nothing about the case: user code may read a source of its own instead of the DataFrame it is given.

    A step that ends with an error proves nothing: Spark may refuse the query before it reads. Neither do rows on a stream that the
    query of their step, after a restart with another query, does not name. That a micro-batch runs at all is checked where the case
    runs (``harness/engine/alignment.py``).
    """
    sources = {read.stream for step in observation.steps for batch in step.batches for read in batch.sources}
    if not sources:
        return None
    query = case.query
    for step, seen in zip(case.steps, observation.steps, strict=False):
        if isinstance(step.action, Restart):
            query = step.action.change.query or query
        if seen.error is not None:
            return None
        for arrival in step.arrivals():
            for name, placed in arrival.items():
                if any(placed.partitions) and name in query.streams() and name not in sources:
                    return _reason(case, step.number, name, sorted(sources - case.streams.keys()))
    return None


def _reason(case: Case, step: int, stream: str, others: list[str]) -> str:
    instead = f"; it reads {', '.join(others)} instead" if others else ""
    advice = (
        ". The function that `call` names must build on the DataFrame that it is given" if any(case.calls()) else ""
    )
    return f"step {step} places rows on the stream {stream!r}, but no micro-batch of the query has it as a source{instead}{advice}"


_CLOCK = re.compile(r"\b(?:(?:current_timestamp|current_date|localtimestamp)\b|now\(\s*\))", re.IGNORECASE)


def reads_the_clock(case: Case) -> bool:
    return any(_CLOCK.search(text) for operation in case.operations() for text in operation.texts())


def behaviour(case: Case, observation: Observation) -> str:
    """The digest of the observation, without watermarks if the case reads the clock."""
    return observation.digest(instants=not reads_the_clock(case))


def digest_omits_instants(digest: str | None, observation: Observation) -> bool:
    """Whether a recorded digest was made without watermarks, that is, whether its case reads the clock."""
    return digest == observation.digest(instants=False) != observation.behaviour_digest
