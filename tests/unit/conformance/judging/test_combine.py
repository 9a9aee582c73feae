"""Several runs of one cell."""

import pytest

from conformance.judging.verdict import Verdict, combine, judge, no_answer
from tests.support.observations import NEWEST, OLD, batch, case, expect, observed, step, window

CASE = case(expect(rows=[["12:00", "12:10", 1]]))
ANSWER = observed(step(1, batch(0, window("12:00", "12:10", 1))))
RIGHT = judge(CASE, NEWEST, ANSWER)
WRONG = judge(CASE, NEWEST, observed(step(1, batch(0, window("12:00", "12:10", 2)))))
OTHERWISE = judge(CASE, NEWEST, observed(step(1, batch(0, window("12:00", "12:10", 1), state=(9,)))))


def test_one_run_is_itself() -> None:
    assert combine([RIGHT]) is RIGHT


@pytest.mark.parametrize("one", [RIGHT, WRONG])
def test_runs_that_agree(one: Verdict) -> None:
    both = combine([one, one])
    assert (both.status, both.findings, both.behaviour) == (one.status, one.findings, one.behaviour)
    assert both.runs == (one, one)


@pytest.mark.parametrize("runs", [(RIGHT, WRONG), (WRONG, RIGHT), (RIGHT, OTHERWISE), (RIGHT, RIGHT, WRONG)])
def test_runs_that_disagree_are_flaky_and_keep_their_evidence(runs: tuple[Verdict, ...]) -> None:
    verdict = combine(runs)
    assert verdict.status == "flaky"
    assert verdict.runs == runs
    assert verdict.notes == (f"{len(runs)} runs of this cell showed 2 behaviours",)


def test_a_broken_run_breaks_the_cell_unless_the_others_disagree() -> None:
    lost = no_answer(CASE, NEWEST, "broken", "the engine was lost")
    assert combine([RIGHT, lost]).status == "broken"
    assert combine([RIGHT, lost]).notes == ("the engine was lost",)
    assert combine([RIGHT, lost, WRONG]).status == "flaky"
    assert combine([RIGHT, no_answer(CASE, NEWEST, "not-run", "stopped")]).status == "not-run"


def test_the_text_shows_every_run() -> None:
    assert combine([RIGHT, WRONG]).describe() == (
        "late-drops/window-still-open on 4.3.0: flaky\n"
        "  note: 2 runs of this cell showed 2 behaviours\n"
        f"  run 1: conforms, behaviour {str(RIGHT.behaviour)[:12]}\n"
        f"  run 2: violates, behaviour {str(WRONG.behaviour)[:12]}\n"
        "    step 1 (late-drops/window-still-open.yaml:16), micro-batch 0\n"
        "      rows\n"
        "          start | end   | total\n"
        "        - 12:00 | 12:10 |     1   expected, not emitted\n"
        "        + 12:00 | 12:10 |     2   emitted, not expected"
    )


def test_runs_of_different_cells_cannot_be_combined() -> None:
    with pytest.raises(ValueError, match="several cells"):
        combine([RIGHT, judge(CASE, OLD, ANSWER)])
    with pytest.raises(ValueError, match="no verdicts"):
        combine([])
