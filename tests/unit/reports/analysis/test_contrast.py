"""Known bugs that follow each other, two versions set against each other, and features that did not exist."""

from pathlib import Path

import pytest

from conformance.core.versions import SparkVersion
from reports.analysis.matrix import Matrix
from tests.support import cells as a


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
        entries = tuple(
            a.bug(versions.split(" or "), link=link) for versions, link in ((first, "SPARK-1"), (second, "SPARK-2"))
        )
        answers = {version: a.LOST for version in self.LINES if self.covers(entries, version)}
        answers |= {"3.5.9": a.LOST if self.covers(entries, "3.5.9") else a.CALM}
        matrix = Matrix.of(
            a.results(tmp_path / "r", {a.CASE: {**answers, "4.3.0": self.newest(second)}}, {a.CASE: entries})
        )
        assert str(matrix.known_bug(a.CASE, matrix.targets[0])) == told

    @staticmethod
    def covers(entries, version: str) -> bool:
        return any(SparkVersion.parse(version) in entry.spark for entry in entries)

    @staticmethod
    def newest(second: str):
        return a.LOST if second.endswith((">=3.5.4", ">=4.0")) else a.CALM
