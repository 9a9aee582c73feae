"""The picture of the matrix: the families and cases asked for, and nothing that changes from run to run."""

from pathlib import Path

from reports.results.reading import Results
from tests.support.runs import written
from tools.matrix_picture import picture


def test_the_picture_has_the_rows_of_the_families_and_cases_asked_for(tmp_path: Path) -> None:
    cases = ("late/one", "late/two", "joins/three")
    results = Results.read(written(tmp_path / "r", cases, ("spark-3.5.9",), {}))
    drawn = picture(results, ["late"])
    assert "one" in drawn
    assert "two" in drawn
    assert "three" not in drawn
    assert drawn == picture(results, ["late"])
    assert "two" not in picture(results, ["joins", "late/one"])
    assert "url(http" not in drawn
