"""Progress, offset log and commit log: evidence of the same watermark. Progress and data source: of the same state."""

from typing import Any

import pytest

from conformance.core.case import Restart, RestartChange, Step
from conformance.core.observation import Interrupted, StoredState
from conformance.judging.finding import EvidenceDisagrees, ReplayDiffers
from conformance.judging.verdict import judge
from tests.support.observations import NEWEST, batch, case, ms, observed, step, window


def found(*batches: Any) -> list[tuple[str, Any, Any, tuple[int, ...]]]:
    """Evidence, what the offset log says, what it says, and the batches; each batch is a step of its own."""
    verdict = judge(case(*(None for _ in batches)), NEWEST, observed(*(step(n, b) for n, b in enumerate(batches, 1))))
    disagreements = [finding for finding in verdict.findings if isinstance(finding, EvidenceDisagrees)]
    assert verdict.status == ("violates" if disagreements else "conforms")
    return [(one.evidence, one.expected, one.observed, one.place.batches) for one in disagreements]


def test_all_agree() -> None:
    assert found(batch(0, next_watermark=ms(11, 35)), batch(1, watermark=ms(11, 35), next_watermark=ms(12))) == []


def test_progress_against_offset_log() -> None:
    assert found(batch(3, watermark=ms(12), logged=ms(12, 5))) == [("progress", "12:05", "12:00", (3,))]


def test_commit_log_against_the_next_offset_log() -> None:
    seen = batch(0, next_watermark=ms(12)), batch(1, watermark=ms(12, 5))
    assert found(*seen) == [("commit log of the batch before", "12:05", "12:00", (1,))]


@pytest.mark.parametrize(
    "batches",
    [
        # A query without a watermark has none in its progress.
        (batch(0, watermark=None, logged=0), batch(1, watermark=None, logged=0)),
        # A batch that was not committed promises nothing to the next.
        (batch(0, next_watermark=None), batch(1, watermark=ms(12))),
        # A replayed batch runs with what it was planned with, not with what its first run led to.
        (batch(0, next_watermark=ms(12)), batch(0, next_watermark=ms(12)), batch(1, watermark=ms(12))),
        (batch(4, next_watermark=ms(12)), batch(6, watermark=ms(13))),
    ],
)
def test_nothing_to_compare(batches: tuple[Any, ...]) -> None:
    assert found(*batches) == []


def test_a_replayed_batch_carries_the_chain_on() -> None:
    seen = batch(0, next_watermark=ms(12)), batch(0, next_watermark=ms(12)), batch(1, watermark=ms(13))
    assert [one[3] for one in found(*seen)] == [(1,)]


def test_it_reads() -> None:
    seen = observed(step(1, batch(0, watermark=ms(12), logged=ms(12, 5))))
    (finding,) = judge(case(None), NEWEST, seen).findings
    assert finding.describe() == (
        "step 1 (late-drops/window-still-open.yaml:16), micro-batch 0\n"
        "  watermark: the offset log says the batch ran with 12:05, the progress says 12:00"
    )


def after_a_kill(*again: Any, **change: Any) -> tuple[str, ...]:
    """What is found where a micro-batch had given (12:00, 12:10, 3) to the sink before the engine was killed."""
    restarted = Restart(how="kill", at="emitted", change=RestartChange(**change))
    killed = case(None).model_copy(update={"steps": (Step(number=1, action=restarted),)})
    before = Interrupted(id=4, rows=(window("12:00", "12:10", 3),))
    verdict = judge(killed, NEWEST, observed(step(1, *again, interrupted=before)))
    return tuple(finding.describe() for finding in verdict.findings if isinstance(finding, ReplayDiffers))


def test_what_the_sink_had_before_a_kill_comes_again_and_nothing_else() -> None:
    assert after_a_kill(batch(4, window("12:00", "12:10", 3))) == ()
    (lost,) = after_a_kill(batch(4))
    assert "before: [[1970-01-01T12:00:00.000000Z, 1970-01-01T12:10:00.000000Z, 3]]" in lost
    assert "again:  []" in lost
    (doubled,) = after_a_kill(batch(4, window("12:00", "12:10", 3), window("12:00", "12:10", 3)))
    assert "micro-batch 4" in doubled
    (other,) = after_a_kill(batch(4, window("12:00", "12:10", 4)))
    assert "again:  [[1970-01-01T12:00:00.000000Z, 1970-01-01T12:10:00.000000Z, 4]]" in other


def test_another_query_after_the_kill_may_emit_something_else() -> None:
    assert after_a_kill(batch(4), conf={"spark.sql.x": "1"}) == ()


def state_found(counted: tuple[int, ...], *stored: int | None) -> list[tuple[Any, Any]]:
    """What the progress and the data source say where they differ, of two operators or more."""
    operators = tuple(StoredState(operator="dedupe", rows=rows) for rows in stored)
    seen = observed(step(1, batch(0, state=(9,)), batch(1, state=counted), stored=operators))
    findings = judge(case(None), NEWEST, seen).findings
    assert all(isinstance(one, EvidenceDisagrees) and one.place.batches == (1,) for one in findings)
    return [(list(one.expected), list(one.observed)) for one in findings if isinstance(one, EvidenceDisagrees)]


@pytest.mark.parametrize(
    ("counted", "stored", "found"),
    [
        ((3, 5), (3, 5), []),
        ((3, 5), (3, 4), [([3, 5], [3, 4])]),
        ((3, 5), (5, 3), [([3, 5], [5, 3])]),
        # An operator that is not counted is not compared, and the others are.
        ((7, 5), (None, 5), []),
        ((7, 5), (None, 4), [([None, 5], [None, 4])]),
        ((3,), (3, 0), [([3], [3, 0])]),
        ((3, 0), (None,), [([3, 0], [None])]),
    ],
)
def test_the_state_in_the_checkpoint_has_as_many_rows_as_the_progress_says(counted, stored, found) -> None:
    assert state_found(counted, *stored) == found


def test_state_that_was_not_read_is_not_compared() -> None:
    assert judge(case(None), NEWEST, observed(step(1, batch(0, state=(9,))))).findings == ()


def test_it_reads_of_state() -> None:
    seen = observed(step(1, batch(0, state=(2,)), stored=(StoredState(operator="dedupe", rows=1),)))
    (finding,) = judge(case(None), NEWEST, seen).findings
    assert finding.describe().endswith("  state: the progress says [2], the data source statestore says [1]")
