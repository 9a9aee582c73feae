"""What changes between two versions, and what it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.analysis.change import Changes, changes
from reports.analysis.matrix import Matrix
from reports.results.known_bug import KnownBug
from tests.support import cells as a
from tests.support.observations import differs


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


def test_the_same_is_no_change(tmp_path: Path) -> None:
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
    assert [one.bug for one in there.reasons] == [KnownBug("SPARK-2", "3.5.4")]
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
