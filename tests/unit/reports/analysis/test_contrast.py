"""Known bugs that follow each other, two versions set against each other, and features that did not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.core.case import ExpectedError
from conformance.core.versions import SparkVersion
from conformance.judging.comparison import contrast
from reports.analysis.change import changes
from reports.analysis.matrix import Matrix
from tests.support import cells as a
from tests.support.observations import batch, differs, step, window


class TestAnotherBugOfTheCase:
    """What one ticket fixes may leave another bug behind: the release without any is told."""

    LINES = ("3.3.4", "3.4.4", "3.5.9")

    @pytest.mark.parametrize(
        ("first", "second", "told"),
        [
            # SPARK-49829 and SPARK-58904, as the case on an outer join with one watermark has them.
            (
                "<3.4.4 or >=3.5,<3.5.4",
                ">=3.4.4,<3.5 or >=3.5.4",
                "known bug, fixed in 3.4.4, followed by another one in every later release",
            ),
            ("<3.4", ">=3.4,<4.0", "known bug, fixed in 3.4.0, followed by another one up to 4.0.0, which has none"),
            ("<3.4", ">=4.0", "known bug, fixed in 3.4.0"),
        ],
    )
    def test_the_clean_release_is_told(self, tmp_path: Path, first: str, second: str, told: str) -> None:
        steps = {1: {"rows": [["12:00", "12:10", 1]]}}
        entries = tuple(
            differs(versions.split(" or "), because="a bug", link=link, bug=True, steps=steps)
            for versions, link in ((first, "SPARK-1"), (second, "SPARK-2"))
        )
        answers = {version: a.LOST for version in self.LINES if self.covers(entries, version)}
        answers |= {"3.5.9": a.LOST if self.covers(entries, "3.5.9") else a.CALM}
        matrix = Matrix.of(
            a.results(tmp_path / "r", {a.CASE: {**answers, "4.3.0": self.newest(second)}}, {a.CASE: entries})
        )
        assert str(matrix.known_bug(a.CASE, matrix.targets[0])) == told

    def test_the_same_ticket_in_several_entries_is_one_bug(self, tmp_path: Path) -> None:
        entries = tuple(
            differs(versions, because="a bug", link="SPARK-1", bug=True, steps={1: {"rows": [["12:00", "12:10", 1]]}})
            for versions in ("<3.4", ">=3.4,<4.2")
        )
        answers = {"3.3.4": a.LOST, "3.5.9": a.LOST, "4.3.0": a.CALM}
        matrix = Matrix.of(a.results(tmp_path / "r", {a.CASE: answers}, {a.CASE: entries}))
        assert str(matrix.known_bug(a.CASE, matrix.targets[0])) == "known bug, fixed in 4.2.0"

    @staticmethod
    def covers(entries, version: str) -> bool:
        return any(SparkVersion.parse(version) in entry.spark for entry in entries)

    @staticmethod
    def newest(second: str):
        return a.LOST if second.endswith((">=3.5.4", ">=4.0")) else a.CALM


ABSENT = differs(
    "<4",
    unsupported="the API arrived in 4.0",
    link="SPARK-3",
    error=ExpectedError.model_validate({"class": ("AnalysisException",)}),
)


TWO_OTHERS = a.seen(
    step(1, batch(0, window("12:00", "12:10", 5)), batch(1, window("12:10", "12:20", 6), kind="no-data"))
)
STEP_LATER = a.seen(step(1, batch(0, a.FIRST)), step(2, batch(1, a.SECOND, kind="no-data")))
FAILS_AFTER_A_STEP = a.seen(step(1, batch(0, a.FIRST)), a.FAILED.steps[0].model_copy(update={"number": 2}))


class TestContrast:
    """What is said about an old version never reads as if it came after the new one."""

    @pytest.mark.parametrize(
        ("own", "other", "said"),
        [
            (a.FAILED, a.CALM, "here the query fails while it runs: SparkException; on 4.3.0 it runs"),
            (a.CALM, a.REFUSED, "here the query runs; on 4.3.0 it is refused at start: AnalysisException"),
            (
                a.REFUSED,
                a.FAILED_LATER,
                "here the query is refused at start: AnalysisException; on 4.3.0 it starts, then fails while it runs: "
                "SparkException",
            ),
            (
                a.REFUSED,
                a.REFUSED_OTHERWISE,
                "here the query is refused at start: AnalysisException; on 4.3.0 it is refused at start: ParseException",
            ),
            (a.LOST, a.CALM, "1 row emitted only on 4.3.0, 1 more dropped as late here"),
            (a.CALM, a.LOST, "1 row emitted only here, 1 more dropped as late on 4.3.0"),
            (a.HELD, a.CALM, "1 row emitted only on 4.3.0, state at the end: 2 rows here, 1 on 4.3.0"),
            (a.OTHER, a.CALM, "1 row has other values here than on 4.3.0"),
            (a.EARLIER, a.CALM, "1 row earlier, within the same step, compared with 4.3.0"),
            (a.FULLER, a.CALM, "same rows; differs in rows in state"),
            (TWO_OTHERS, a.CALM, "2 rows have other values here than on 4.3.0"),
            (
                a.REFUSED_OTHERWISE,
                a.REFUSED,
                "here the query is refused at start: ParseException; on 4.3.0 it is refused at start: AnalysisException",
            ),
            (STEP_LATER, a.CALM, "1 row later, compared with 4.3.0"),
            (a.CALM, STEP_LATER, "1 row earlier, compared with 4.3.0"),
            (
                FAILS_AFTER_A_STEP,
                a.CALM,
                "here the query starts, then fails while it runs: SparkException; on 4.3.0 it runs",
            ),
        ],
    )
    def test_both_sides_are_named(self, own, other, said) -> None:
        assert contrast(a.cell(a.CASE, "spark-3.5.9", own), a.cell(a.CASE, "spark-4.3.0", other), "4.3.0") == said

    @pytest.mark.parametrize(("own", "other"), [(a.BROKEN, a.CALM), (a.CALM, a.NOT_RUN)])
    def test_one_answer_is_not_enough(self, own, other) -> None:
        sides = a.cell(a.CASE, "spark-3.5.9", own), a.cell(a.CASE, "spark-4.3.0", other)
        assert contrast(*sides, "4.3.0") == "no observation was recorded"

    def test_a_feature_that_is_not_available(self) -> None:
        own = a.cell(a.CASE, "spark-3.5.9", a.REFUSED, (ABSENT,))
        told = "here the query uses a feature that is not available (AnalysisException); on 4.3.0 it runs"
        assert contrast(own, a.cell(a.CASE, "spark-4.3.0", a.CALM), "4.3.0") == told


@pytest.mark.parametrize(
    ("after", "meaning", "what"),
    [
        (a.CALM, "accepted", "runs; not available before (AnalysisException)"),
        (
            a.FAILED_LATER,
            "accepted",
            "starts, then fails while it runs: SparkException; not available before (AnalysisException)",
        ),
        (
            a.REFUSED_OTHERWISE,
            "metric",
            "is refused at start: ParseException; not available before (AnalysisException)",
        ),
    ],
)
def test_a_feature_that_did_not_exist_was_not_refused(tmp_path: Path, after, meaning, what) -> None:
    results = a.results(tmp_path / "r", {a.CASE: {"3.5.9": a.REFUSED, "4.3.0": after}}, {a.CASE: (ABSENT,)})
    matrix = Matrix.of(results)
    (found,) = changes(matrix, *matrix.targets).changes
    assert (found.meaning, found.what) == (meaning, what)
