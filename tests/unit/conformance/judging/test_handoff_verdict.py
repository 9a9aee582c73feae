"""Verdicts on a case whose checkpoint one version writes and another resumes."""

from typing import Any

import pytest

from conformance.core.case import Backlog, Case, ExpectedError, Idle, Partitioned, Restart, Start, Upgrade
from conformance.core.observation import StepSeen
from conformance.core.operations import read_pipeline
from conformance.core.versions import SparkVersion, VersionRange
from conformance.judging.checkpoint_verdict import (
    CheckpointHandoff,
    VersionPair,
    cuts,
    handoffs,
    judge_upgrade,
    no_checkpoint,
)
from conformance.judging.verdict import Verdict
from tests.support.observations import batch, case, change, differs, expect, failed, observed, step, window

OLD, NEW = SparkVersion.parse("3.5.9"), SparkVersion.parse("4.3.0")
PAIR = VersionPair(OLD, NEW)
ROW, OTHER = window("12:00", "12:10", 1), window("12:00", "12:10", 2)
ROWS, OTHERS = [["12:00", "12:10", 1]], [["12:00", "12:10", 2]]


def three(**keys: Any) -> Case:
    """Three steps, each of which emits one row."""
    return case(*(expect(rows=ROWS) for _ in range(3)), **keys)


def answered(*rows: tuple[Any, ...] | StepSeen) -> tuple[StepSeen, ...]:
    return tuple(
        one if isinstance(one, StepSeen) else step(number, batch(number, one)) for number, one in enumerate(rows, 1)
    )


def judged(of: Case, *steps: tuple[Any, ...] | StepSeen, cut: int = 2, pair: VersionPair = PAIR) -> Verdict:
    return judge_upgrade(CheckpointHandoff(of, cut), pair, observed(*answered(*steps)))


def upgrade(**keys: Any) -> Upgrade:
    return Upgrade(**{"because": "it is so", "link": "SPARK-1", **keys})


REFUSED = upgrade(error=ExpectedError(classes=("Incompatible",), stage="run"))


def with_actions(*actions: Any) -> Case:
    of = case(*(None for _ in actions))
    steps = tuple(one.model_copy(update={"action": action}) for one, action in zip(of.steps, actions, strict=True))
    return of.model_copy(update={"steps": steps})


ADD = case(None).steps[0].action
IDLE, START, RESTART = Idle(), Start(), Restart(how="graceful")
BACKLOG = Backlog(entries=({"events": Partitioned(partitions=((),))},))


@pytest.mark.parametrize(
    ("actions", "once", "each"),
    [
        ((ADD,), (), ()),
        ((ADD, ADD), (2,), (2,)),
        ((ADD, ADD, ADD), (2,), (2, 3)),
        ((ADD, ADD, RESTART, RESTART), (3,), (2, 3, 4)),
        ((ADD, RESTART), (2,), (2,)),
        ((IDLE, START, BACKLOG, ADD, ADD), (4,), (2, 3, 4, 5)),
        ((START, ADD), (), (2,)),
        ((RESTART, ADD, ADD), (3,), (2, 3)),
        ((START, RESTART, ADD, ADD), (2,), (2, 3, 4)),
        ((), (), ()),
    ],
)
def test_versions_change_where_it_matters_most_or_before_each_step(actions, once, each) -> None:
    of = with_actions(*actions)
    assert cuts(of) == once
    assert cuts(of, each=True) == each


def test_where_the_case_drives_the_clock_versions_change_only_at_its_own_restarts() -> None:
    of = with_actions(ADD, ADD, RESTART, ADD)
    driven = of.model_copy(update={"trigger": "processingTime", "interval_ms": 1})
    assert (cuts(driven), cuts(driven, each=True)) == ((3,), (3,))


def test_only_cases_that_keep_state_are_handed_over() -> None:
    stateless = three()
    stateful = three(query=read_pipeline([*stateless.query.wire(), {"distinct": True}]))
    assert handoffs([stateless, stateful]) == (CheckpointHandoff(stateful, 2),)
    assert [one.cut for one in handoffs([stateful], each=True)] == [2, 3]


def test_a_case_that_goes_on_as_expected_resumes() -> None:
    found = judged(three(), ROW, ROW, ROW)
    assert (found.status, found.outcome, found.findings) == ("conforms", "resumed", ())
    assert found.error is found.differs is None
    assert (found.origin, found.version, found.cut) == (OLD, NEW, 2)


@pytest.mark.parametrize("wrong", [1, 2, 3])
def test_a_wrong_row_of_either_version_violates(wrong: int) -> None:
    rows = [OTHER if number == wrong else ROW for number in (1, 2, 3)]
    found = judged(three(), *rows)
    assert (found.status, [finding.place.step for finding in found.findings]) == ("violates", [wrong])


@pytest.mark.parametrize("cut", [2, 3])
def test_each_version_is_expected_to_do_what_it_does_alone(cut: int) -> None:
    of = three(
        differs=(differs("<4", because="it was so", link="SPARK-1", steps={n: change(rows=OTHERS) for n in (1, 2, 3)}),)
    )
    rows = [OTHER if number < cut else ROW for number in (1, 2, 3)]
    assert judged(of, *rows, cut=cut).status == "conforms"
    assert judged(of, *reversed(rows), cut=cut).status == "violates"


def test_an_error_of_the_resuming_version_is_kept_and_one_before_is_not() -> None:
    after = judged(three(), ROW, failed(2, "SparkException"))
    before = judged(three(), failed(1, "SparkException"))
    assert after.error is not None
    assert (after.status, before.status, before.error) == ("violates", "violates", None)


def test_cases_about_other_versions_and_without_a_checkpoint_are_not_applicable() -> None:
    def reason(of: Case, cut: int = 2) -> str | None:
        found = no_checkpoint(CheckpointHandoff(of, cut), PAIR)
        assert found is None or found.status == "not-applicable"
        return None if found is None else found.notes[0]

    assert reason(three()) is None
    assert reason(three(spark=VersionRange.parse("<4"))) == "the case is about Spark <4, not about 4.3.0"
    assert reason(three(spark=VersionRange.parse(">=4"))) == "the case is about Spark >=4, not about 3.5.9"
    missing = differs("<4", unsupported="it arrived in 4.0", link="SPARK-1")
    assert reason(three(differs=(missing,))) == "3.5.9 writes no checkpoint: it arrived in 4.0"
    ends, later = (
        differs("<4", because="it failed", link="SPARK-1", steps={at: change(error={"class": ("E",), "stage": "run"})})
        for at in (2, 3)
    )
    assert reason(three(differs=(ends,)), cut=2) is None
    assert reason(three(differs=(ends,)), cut=3) == "on 3.5.9 the case ends with an error before step 3"
    assert judged(three(differs=(ends,)), ROW, ROW, cut=3).status == "not-applicable"
    assert reason(three(differs=(later,)), cut=2) is None


def test_a_version_without_the_feature_must_reject_the_query() -> None:
    of = three(differs=(differs(">=4", unsupported="it is gone", link="SPARK-1"),))
    found = judged(of, ROW, failed(2, "AttributeError", stage="analysis"))
    assert (found.status, found.outcome, found.differs) == ("unsupported", "refused", of.differs[0])
    assert judged(of, ROW, ROW, ROW).status == "violates"


def test_a_version_without_the_feature_may_refuse_the_checkpoint_as_an_entry_says() -> None:
    of = three(differs=(differs(">=4", unsupported="it is gone", link="SPARK-1"),), upgrades=(REFUSED,))
    found = judged(of, ROW, failed(2, "Incompatible", stage="run"))
    assert (found.status, found.outcome, found.differs) == ("differs", "refused", REFUSED)
    assert judged(of, ROW, failed(2, "AttributeError", stage="analysis")).status == "unsupported"
    assert judged(of, ROW, failed(2, "Another", stage="run")).status == "violates"
    assert judged(of, OTHER, failed(2, "Incompatible", stage="run")).status == "violates"


def test_what_an_entry_says_is_expected_from_the_cut_on() -> None:
    entry = upgrade(steps={2: change(rows=OTHERS), 3: change(rows=OTHERS)})
    of = three(upgrades=(entry,))
    found = judged(of, ROW, OTHER, OTHER)
    assert (found.status, found.outcome, found.differs) == ("differs", "other rows", entry)
    assert judged(of, ROW, ROW, OTHER, cut=3).status == "differs"
    assert judged(of, ROW, OTHER, OTHER, cut=3).status == "violates"
    assert judged(of, OTHER, OTHER, OTHER).status == "violates"


def test_an_entry_that_no_longer_holds_is_stale() -> None:
    of = three(upgrades=(upgrade(steps={3: change(rows=OTHERS)}),))
    found = judged(of, ROW, ROW, ROW)
    assert found.status == "violates"
    assert "it goes on as if it had written the checkpoint itself" in found.findings[0].describe()


def test_a_refusal_is_the_error_of_the_entry_before_anything_has_run() -> None:
    of = three(upgrades=(REFUSED,))
    found = judged(of, ROW, failed(2, "Incompatible"))
    assert (found.status, found.outcome, found.differs, found.findings) == ("differs", "refused", REFUSED, ())
    assert found.error is not None
    late = failed(2, "Incompatible").model_copy(update={"batches": (batch(2, ROW),)})
    at_start = failed(2, "Incompatible", stage="start")
    for wrong, mismatches in ((late, ()), (failed(2, "Other"), ("class",)), (at_start, ("stage",))):
        found = judged(of, ROW, wrong)
        assert (found.status, [one.kind for one in found.findings]) == ("violates", ["error"])
        assert (found.findings[0].place.step, found.findings[0].mismatches) == (2, mismatches)
    (other,) = judged(of, ROW, ROW, failed(3, "Other"), cut=3).findings
    assert other.place.step == 3
    assert judged(of, ROW, ROW, failed(3, "Incompatible"), cut=3).outcome == "refused"
    assert judged(of, ROW, ROW, failed(3, "Incompatible"), cut=2).status == "violates"


def test_a_refused_checkpoint_was_written_as_expected() -> None:
    found = judged(three(upgrades=(REFUSED,)), OTHER, failed(2, "Incompatible"))
    assert (found.status, [one.kind for one in found.findings]) == ("violates", ["rows"])


def test_a_checkpoint_that_is_not_refused_makes_the_entry_stale() -> None:
    found = judged(three(upgrades=(REFUSED,)), ROW, ROW, ROW)
    assert found.status == "violates"
    assert found.findings[0].describe().splitlines()[1] == (
        "  stale upgrades entry for 3.5.9 → 4.3.0: the checkpoint is resumed to the end of the case"
    )


def test_a_version_that_fails_alone_fails_when_it_resumes_or_where_it_fails_later() -> None:
    error = {"class": ("Gone",), "stage": "run"}
    of = three(differs=(differs(">=4", because="it fails", link="SPARK-1", steps={1: change(error=error)}),))
    assert judged(of, ROW, failed(2, "Gone")).status == "conforms"
    assert judged(of, ROW, ROW, failed(3, "Gone"), cut=3).status == "conforms"
    assert judged(of, ROW, ROW, ROW).status == "violates"
    later = three(differs=(differs(">=4", because="it fails", link="SPARK-1", steps={3: change(error=error)}),))
    assert judged(later, ROW, ROW, failed(3, "Gone")).status == "conforms"


SETTING = upgrade(error=ExpectedError(classes=("Incompatible",), stage="run"), workaround="spark.sql.check=false")


def with_workaround(*steps: tuple[Any, ...] | StepSeen) -> Verdict:
    of, refused = three(upgrades=(SETTING,)), observed(*answered(ROW, failed(2, "Incompatible")))
    return judge_upgrade(CheckpointHandoff(of, 2), PAIR, refused, observed(*answered(*steps)))


def test_a_workaround_is_proven_by_the_right_rows() -> None:
    found = with_workaround(ROW, ROW, ROW)
    assert (found.outcome, found.proven, found.notes) == ("refused", True, ())
    assert not judged(three(upgrades=(SETTING,)), ROW, failed(2, "Incompatible")).proven


@pytest.mark.parametrize("steps", [(ROW, ROW, OTHER), (ROW, failed(2, "Incompatible")), (ROW, ROW)])
def test_a_workaround_with_other_rows_or_an_error_is_none(steps: tuple[Any, ...]) -> None:
    found = with_workaround(*steps)
    assert (found.outcome, found.proven) == ("refused", False)
    assert found.notes == (
        "the workaround spark.sql.check=false was tried and is none: with it, the query does not emit the right rows",
    )


def test_what_a_restart_alone_changes_does_not_count_against_a_workaround() -> None:
    of = case(expect(rows=ROWS), expect(rows=ROWS, watermark="12:00"), upgrades=(SETTING,))
    refused, resumed = (observed(*answered(ROW, second)) for second in (failed(2, "Incompatible"), ROW))
    assert judge_upgrade(CheckpointHandoff(of, 2), PAIR, refused, resumed).proven


def outcome(entry: Upgrade, *rows: tuple[Any, ...] | StepSeen) -> tuple[str, str | None]:
    found = judged(case(expect(rows=ROWS), expect(rows=ROWS), expect(rows=ROWS, state=1), upgrades=(entry,)), *rows)
    return found.status, found.outcome


def test_an_entry_says_what_becomes_of_the_checkpoint() -> None:
    """Other rows are not the same as another watermark; a query that fails in a later step was not refused."""
    third = step(3, batch(3, ROW, state=(1,)))
    seen = (ROW, ROW, step(3, batch(3, ROW, state=(9,))))
    assert outcome(upgrade(steps={3: change(state=9)}), *seen) == ("differs", "resumed")
    assert outcome(upgrade(steps={3: change(state=9)}, bug=True), *seen) == ("bug", "resumed")
    assert outcome(upgrade(steps={2: change(rows=OTHERS)}, bug=True), ROW, OTHER, third) == ("bug", "other rows")
    fails = upgrade(steps={3: change(error={"class": ("Gone",), "stage": "run"})})
    assert outcome(fails, ROW, ROW, failed(3, "Gone")) == ("differs", "fails later")
    assert outcome(REFUSED.model_copy(update={"bug": True}), ROW, failed(2, "Incompatible")) == ("bug", "refused")


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        ((ROW, OTHER, ROW), "other rows"),
        ((ROW, step(2), ROW), "other rows"),
        ((ROW, failed(2, "Incompatible")), "refused"),
        ((ROW, ROW, failed(3, "Incompatible")), "fails later"),
        ((ROW, failed(2, "NullPointerException")), "unclear"),
        ((OTHER, ROW, ROW), "resumed"),
    ],
)
def test_of_an_unexpected_cell_the_outcome_is_what_was_observed(seen, outcome) -> None:
    found = judged(three(), *seen)
    assert (found.status, found.outcome) == ("violates", outcome)


def test_without_an_answer_there_is_no_outcome() -> None:
    found = judged(three(), ROW)
    assert (found.status, found.outcome) == ("broken", "no answer")
    assert judged(three(spark=VersionRange.parse("<4")), ROW).outcome is None


def test_a_pair_says_which_side_runs_through_connect() -> None:
    assert str(VersionPair(OLD, NEW, ("classic", "classic"))) == "3.5.9 → 4.3.0"
    assert str(VersionPair(OLD, NEW, ("classic", "connect"))) == "3.5.9 → 4.3.0 through Connect"
