"""What changes between two versions, and what it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.core.observation import BatchSeen, Observation
from conformance.judging.divergence import Divergence, divergence
from reports.analysis import equivalence
from reports.analysis.change import Changes, change, changes
from reports.analysis.matrix import Matrix
from reports.results.known_bug import KnownBug
from tests.support import cells as a
from tests.support.observations import batch, differs, failed, step, window


def pair(tmp_path: Path, before, after, **differing) -> Changes:  # type: ignore[no-untyped-def]
    results = a.results(tmp_path / "r", {a.CASE: {"3.5.9": before, "4.3.0": after}}, differing or None)
    matrix = Matrix.of(results)
    return changes(matrix, *matrix.targets)


@pytest.mark.parametrize(
    ("before", "after", "meaning", "what"),
    [
        (a.CALM, a.LOST, "rows", "1 of 2 rows is no longer emitted, 1 more dropped as late"),
        (a.LOST, a.CALM, "rows", "1 more row than before, 1 fewer dropped as late"),
        (a.CALM, a.OTHER, "rows", "1 row has different values"),
        (a.CALM, a.REFUSED, "refused", "is refused at start: AnalysisException"),
        (a.CALM, a.FAILED, "refused", "fails while it runs: SparkException"),
        (a.REFUSED, a.CALM, "accepted", "runs; it was refused at start (AnalysisException) before"),
        (a.CALM, a.HELD, "timing", "1 row later: still in state when the case ends"),
        (a.HELD, a.CALM, "timing", "1 row earlier: previously still in state when the case ends"),
        (a.CALM, a.EARLIER, "timing", "1 row earlier, within the same step"),
        (a.EARLIER, a.CALM, "timing", "1 row later, within the same step"),
        (a.CALM, a.FULLER, "metric", "same rows; differs in rows in state"),
        (
            a.REFUSED,
            a.FAILED_LATER,
            "accepted",
            "starts, then fails while it runs: SparkException; it was refused at start (AnalysisException) before",
        ),
        (a.FAILED_LATER, a.REFUSED, "refused", "is refused at start: AnalysisException"),
        (a.REFUSED, a.FAILED, "metric", "fails at run instead of start"),
        (a.REFUSED, a.REFUSED_OTHERWISE, "metric", "fails with ParseException instead of AnalysisException"),
    ],
)
def test_each_meaning(tmp_path: Path, before, after, meaning, what) -> None:  # type: ignore[no-untyped-def]
    (change,) = pair(tmp_path, before, after).changes
    assert (change.meaning, change.what) == (meaning, what)


THIRD = window("12:20", "12:30", 3)


def answered(*batches: BatchSeen) -> Observation:
    return a.seen(step(1, *batches))


BOTH = answered(batch(0, a.FIRST, a.SECOND), batch(1, kind="no-data"))


@pytest.mark.parametrize(
    ("rows", "state", "dropped", "meaning", "what"),
    [
        ((), 3, 0, "timing", "2 rows later: still in state when the case ends"),
        ((), 4, 0, "timing", "2 rows later: still in state when the case ends"),
        ((), 2, 0, "rows", "2 of 2 rows are no longer emitted"),
        ((), 1, 0, "rows", "2 of 2 rows are no longer emitted"),
        ((), 3, 1, "rows", "2 of 2 rows are no longer emitted, 1 more dropped as late"),
        ((a.FIRST, THIRD), 3, 0, "rows", "1 row has different values"),
        ((THIRD, THIRD), 3, 0, "rows", "2 rows have different values"),
        ((THIRD,), 3, 0, "rows", "1 different row instead of 2"),
        ((THIRD, THIRD, THIRD), 3, 0, "rows", "3 different rows instead of 2"),
    ],
)
def test_a_missing_row_is_only_later_if_state_keeps_as_many_rows_and_no_more_are_dropped(
    tmp_path: Path, rows, state, dropped, meaning, what
) -> None:  # type: ignore[no-untyped-def]
    after = answered(batch(0, *rows), batch(1, kind="no-data", state=(state,), dropped=dropped))
    (change,) = pair(tmp_path, BOTH, after).changes
    assert (change.meaning, change.what) == (meaning, what)


@pytest.mark.parametrize(
    ("state", "dropped", "meaning", "what"),
    [
        (3, 0, "timing", "2 rows earlier: previously still in state when the case ends"),
        (4, 0, "timing", "2 rows earlier: previously still in state when the case ends"),
        (2, 0, "rows", "2 more rows than before"),
        (1, 0, "rows", "2 more rows than before"),
        (3, 1, "rows", "2 more rows than before, 1 fewer dropped as late"),
    ],
)
def test_an_added_row_is_only_earlier_if_state_kept_as_many_rows_and_no_fewer_are_dropped(
    tmp_path: Path, state, dropped, meaning, what
) -> None:  # type: ignore[no-untyped-def]
    before = answered(batch(0), batch(1, kind="no-data", state=(state,), dropped=dropped))
    (change,) = pair(tmp_path, before, BOTH).changes
    assert (change.meaning, change.what) == (meaning, what)


def test_a_row_that_was_in_state_is_earlier_although_more_are_dropped(tmp_path: Path) -> None:
    before = answered(batch(0), batch(1, kind="no-data", state=(3,)))
    after = answered(batch(0, a.FIRST, a.SECOND), batch(1, kind="no-data", dropped=1))
    (change,) = pair(tmp_path, before, after).changes
    assert (change.meaning, change.what) == (
        "timing",
        "2 rows earlier: previously still in state when the case ends",
    )


def test_fewer_dropped_rows_do_not_explain_a_lost_one(tmp_path: Path) -> None:
    before = answered(batch(0, a.FIRST, a.SECOND, dropped=1))
    (change,) = pair(tmp_path, before, answered(batch(0, a.FIRST))).changes
    assert (change.meaning, change.what) == ("rows", "1 of 2 rows is no longer emitted")
    more = answered(batch(0, a.FIRST, a.SECOND, dropped=1))
    (change,) = pair(tmp_path, answered(batch(0, a.FIRST)), more).changes
    assert (change.meaning, change.what) == ("rows", "1 more row than before")


def test_state_is_that_of_all_operators_when_the_case_ends(tmp_path: Path) -> None:
    before = answered(batch(0, a.FIRST, a.SECOND, state=(1, 1)))
    in_another = answered(batch(0, a.FIRST, state=(9, 9)), batch(1, kind="no-data", state=(0, 3)))
    assert [one.meaning for one in pair(tmp_path, before, in_another).changes] == ["timing"]
    no_longer = answered(batch(0, a.FIRST, state=(9, 9)), batch(1, kind="no-data", state=(1, 1)))
    assert [one.meaning for one in pair(tmp_path, before, no_longer).changes] == ["rows"]


@pytest.mark.parametrize(
    ("after", "what"),
    [
        ((step(1, batch(0, a.SECOND), batch(1, a.FIRST)),), "1 row later and 1 row earlier, within the same step"),
        ((step(1, batch(0), batch(1, a.FIRST, a.SECOND)),), "1 row later, within the same step"),
        ((step(1, batch(0, a.FIRST)), step(2, batch(1, a.SECOND))), "1 row later"),
        ((step(1, batch(0)), step(2, batch(1, a.FIRST, a.SECOND))), "2 rows later"),
        ((step(1), step(2, batch(0), batch(1, a.SECOND), batch(2, a.FIRST))), "2 rows later"),
    ],
)
def test_where_the_same_rows_come(tmp_path: Path, after, what) -> None:  # type: ignore[no-untyped-def]
    matrix = Matrix.of(a.results(tmp_path / "r", {a.CASE: {"3.5.9": a.CALM, "4.3.0": a.EARLIER}}))
    old, new = (matrix.cells[a.CASE, target.name] for target in matrix.targets)
    moved = new.model_copy(update={"observation": a.seen(*after)})
    found = change(old, matrix.targets[0], moved, matrix.targets[1])
    assert (found.meaning, found.what) == ("timing", what)


def test_of_equal_rows_the_first_is_compared_with_the_first(tmp_path: Path) -> None:
    before = answered(batch(0, a.FIRST), batch(1), batch(2, a.FIRST), batch(3))
    after = answered(batch(0), batch(1, a.FIRST), batch(2), batch(3, a.FIRST))
    assert [one.what for one in pair(tmp_path, before, after).changes] == ["2 rows later, within the same step"]


def test_every_metric_that_differs_is_told(tmp_path: Path) -> None:
    after = answered(batch(0, a.FIRST), batch(1, a.SECOND, kind="no-data", state=(3,), watermark=5, next_watermark=6))
    (change,) = pair(tmp_path, a.CALM, after).changes
    assert (change.meaning, change.what) == ("metric", "same rows; differs in watermark, rows in state")


def test_changes_of_one_kind(tmp_path: Path) -> None:
    ids = {"a/rows": a.LOST, "a/metric": a.FULLER, "a/timing": a.EARLIER, "a/refused": a.REFUSED}
    results = a.results(tmp_path / "r", {id: {"3.5.9": a.CALM, "4.3.0": answer} for id, answer in ids.items()})
    matrix = Matrix.of(results)
    found = changes(matrix, *matrix.targets)
    for meaning in ("rows", "metric", "timing", "refused"):
        assert [one.case for one in found.of(meaning)] == [f"a/{meaning}"]
    assert found.of("accepted") == ()


def test_a_reason_that_both_versions_have_is_told_once(tmp_path: Path) -> None:
    said = {"because": "it was late", "link": "SPARK-1"}
    entries = (
        differs("<4", steps={1: {"rows": [["12:00", "12:10", 1]]}}, **said),
        differs(">=4", steps={1: {"state": 7}}, **said),
    )
    (change,) = pair(tmp_path, a.LOST, a.FULLER, **{a.CASE: entries}).changes
    assert [(one.spark, one.text) for one in change.reasons] == [("3.5.9", "it was late")]
    other = (entries[0], differs(">=4", because="it was late", link="SPARK-2", steps={1: {"state": 7}}))
    (change,) = pair(tmp_path, a.LOST, a.FULLER, **{a.CASE: other}).changes
    assert [(one.spark, one.link) for one in change.reasons] == [("3.5.9", "SPARK-1"), ("4.3.0", "SPARK-2")]


def test_an_unsupported_version_says_why(tmp_path: Path) -> None:
    entry = differs("<4", unsupported="it arrived in 4.0", link="SPARK-1")
    (change,) = pair(tmp_path, a.REFUSED, a.CALM, **{a.CASE: (entry,)}).changes
    assert [one.text for one in change.reasons] == ["it arrived in 4.0"]


def test_equal_answers_are_not_a_change(tmp_path: Path) -> None:
    found = pair(tmp_path, a.CALM, a.CALM)
    assert (found.changes, found.same, found.compared) == ((), (a.CASE,), 1)


def test_a_version_without_the_metric_says_nothing_of_it(tmp_path: Path) -> None:
    assert pair(tmp_path, a.UNCOUNTED, a.CALM).changes == ()
    assert len(pair(tmp_path, a.UNCOUNTED, a.OTHER).changes) == 1


def test_cells_without_an_answer_are_told_and_cases_about_other_versions_are_not_missing(tmp_path: Path) -> None:
    broken = pair(tmp_path, a.BROKEN, a.CALM)
    assert [(one.case, one.target, one.status) for one in broken.missing] == [(a.CASE, "spark-3.5.9", "broken")]
    assert broken.compared == 0
    outside = pair(tmp_path, a.OUTSIDE, a.CALM)
    assert (outside.missing, outside.outside) == ((), (a.CASE,))
    assert len(pair(tmp_path, a.OUTSIDE, a.NOT_RUN).missing) == 1


def test_a_change_carries_the_reason_of_the_case(tmp_path: Path) -> None:
    entry = differs("<4", because="it was late", link="SPARK-1", steps={1: {"rows": [["12:00", "12:10", 1]]}})
    (change,) = pair(tmp_path, a.LOST, a.CALM, **{a.CASE: (entry,)}).changes
    assert [(one.spark, one.text, one.link, one.bug) for one in change.reasons] == [
        ("3.5.9", "it was late", "SPARK-1", None)
    ]


def test_a_known_bug_is_told_with_the_release_that_mends_it(tmp_path: Path) -> None:
    entry = differs(
        ">=3.5,<3.5.4", because="a bug", link="SPARK-2", bug=True, steps={1: {"rows": [["12:00", "12:10", 1]]}}
    )
    results = a.results(tmp_path / "r", {a.CASE: {"3.5.0": a.LOST, "3.5.9": a.CALM}}, {a.CASE: (entry,)})
    matrix = Matrix.of(results)
    (there,) = changes(matrix, *matrix.targets).changes
    (back,) = changes(matrix, *reversed(matrix.targets)).changes
    assert [one.bug for one in there.reasons] == [KnownBug("SPARK-2", "3.5.4", replaced_in="3.5.4")]
    assert (there.brings_a_bug, back.brings_a_bug) == (False, True)


@pytest.mark.parametrize(
    ("ranges", "spark", "told"),
    [
        (">=3.4,<3.4.4 or >=3.5,<3.5.4", "3.4.3", "known bug, fixed in 3.4.4"),
        (">=3.4,<3.5.2", "3.4.4", "known bug, fixed in 3.5.2"),
        (">=3.0", "3.5.9", "known bug, not fixed in any release"),
    ],
)
def test_the_release_that_mends_a_bug(tmp_path: Path, ranges: str, spark: str, told: str) -> None:
    entry = differs(
        ranges.split(" or "), because="a bug", link="SPARK-2", bug=True, steps={1: {"rows": [["12:00", "12:10", 1]]}}
    )
    assert str(KnownBug.of(a.cell(a.CASE, f"spark-{spark}", a.LOST, (entry,)), spark)) == told


def test_worst_first(tmp_path: Path) -> None:
    ids = {"z/rows": a.LOST, "a/metric": a.FULLER, "b/refused": a.REFUSED, "c/timing": a.EARLIER}
    results = a.results(tmp_path / "r", {id: {"3.5.9": a.CALM, "4.3.0": answer} for id, answer in ids.items()})
    matrix = Matrix.of(results)
    found = changes(matrix, *matrix.targets)
    assert [change.case for change in found.changes] == ["z/rows", "b/refused", "c/timing", "a/metric"]


def test_every_case_with_two_answers_is_compared(tmp_path: Path) -> None:
    answers = {"a/same": {"3.5.9": a.CALM, "4.3.0": a.CALM}, "a/other": {"3.5.9": a.LOST, "4.3.0": a.CALM}}
    matrix = Matrix.of(a.results(tmp_path / "r", answers))
    found = changes(matrix, *matrix.targets)
    assert (len(found.changes), found.same, found.compared) == (1, ("a/same",), 2)


def test_one_observation_is_not_compared(tmp_path: Path) -> None:
    for answers in ((a.CALM, None), (None, a.CALM)):
        found = between(tmp_path, *answers)
        assert (found.meaning, found.what) == ("metric", "no observation was recorded")


def test_a_row_is_lost_and_not_in_state_if_nothing_ran(tmp_path: Path) -> None:
    found = between(tmp_path, answered(batch(0, a.FIRST, state=(0,))), a.seen(step(1)))
    assert (found.meaning, found.what) == ("rows", "1 of 1 row is no longer emitted")


def between(tmp_path: Path, *answers: Observation):  # type: ignore[no-untyped-def]
    """The change between two answers of any number of steps."""
    matrix = Matrix.of(a.results(tmp_path / "r", {a.CASE: {"3.5.9": a.CALM, "4.3.0": a.EARLIER}}))
    cells = [
        matrix.cells[a.CASE, target.name].model_copy(update={"observation": answer})
        for target, answer in zip(matrix.targets, answers, strict=True)
    ]
    return change(cells[0], matrix.targets[0], cells[1], matrix.targets[1])


def test_a_case_ends_with_the_error_of_its_last_step(tmp_path: Path) -> None:
    first = step(1, batch(0, a.FIRST))
    broke = step(2, error=a.FAILED.steps[0].error)
    found = between(tmp_path, a.seen(first, step(2, batch(1))), a.seen(first, broke))
    assert (found.meaning, found.what) == ("refused", "fails while it runs: SparkException")


def test_two_failures_at_one_stage_differ_only_in_what_came_before(tmp_path: Path) -> None:
    error = a.FAILED.steps[0].error
    answers = [a.seen(step(1, batch(0, a.FIRST, state=(state,)), error=error)) for state in (1, 2)]
    found = between(tmp_path, *answers)
    assert (found.meaning, found.what) == ("metric", "same rows; differs in rows in state")


def test_a_row_in_state_is_later_although_fewer_are_dropped(tmp_path: Path) -> None:
    before = a.seen(step(1, batch(0, a.FIRST, a.SECOND, dropped=1)))
    found = between(tmp_path, before, a.seen(step(1, batch(0, a.FIRST, state=(2,)))))
    assert (found.meaning, found.what) == ("timing", "1 row later: still in state when the case ends")


@pytest.mark.parametrize("stage", ["analysis", "start"])
def test_what_was_refused_says_at_which_stage(tmp_path: Path, stage: str) -> None:
    found = between(tmp_path, a.seen(failed(1, "AnalysisException", stage=stage)), a.CALM)
    assert (found.meaning, found.what) == ("accepted", f"runs; it was refused at {stage} (AnalysisException) before")


def test_the_same_two_answers_are_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The releases of a line mostly give the same answer, and a report compares every two of them."""
    old, new = ("3.0.3", "3.1.3", "3.2.4"), ("4.0.5", "4.1.4", "4.2.1")
    answers = {a.CASE: {**dict.fromkeys(old, a.LOST), **dict.fromkeys(new, a.CALM)}}
    compared: list[str] = []

    def counting(one: Observation, other: Observation, *, instants: bool) -> Divergence | None:
        compared.append(one.case)
        return divergence(one, other, instants=instants)

    monkeypatch.setattr(equivalence, "divergence", counting)
    matrix = Matrix.of(a.results(tmp_path / "r", answers))
    for before in matrix.targets:
        for after in matrix.targets:
            other = (before.spark in old) != (after.spark in old)
            assert [len(changes(matrix, before, after).changes)] == [int(other)]
    assert compared == [a.CASE, a.CASE]
