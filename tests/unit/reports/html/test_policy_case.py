"""The page of a case on a watermark policy, which the model answers."""

from pathlib import Path

from reports.analysis.report import Report
from reports.html.writer import write
from reports.results.reading import Results
from tests.support import cells as a
from tests.support.whole_suite import whole_suite


def test_a_case_on_a_policy_is_answered_by_the_model(tmp_path: Path) -> None:
    loaded = whole_suite()
    case = loaded.policy_cases[0]
    results = a.results(tmp_path / "r", {case.id: {"3.5.9": a.OUTSIDE}})
    target = results.header.targets[0].model_copy(update={"name": "model", "spark": "model", "runtime": "model"})
    cells = tuple(
        cell.model_copy(update={"target": "model", "status": "conforms", "notes": (), "case_digest": case.digest})
        for cell in results.cells
    )
    header = results.header.model_copy(update={"targets": (target,)})
    write(Report.of(Results(header, cells, results.footer), loaded), tmp_path / "site")
    text = (tmp_path / "site" / "cases" / f"{case.id}.html").read_text()
    assert "This case tests a watermark policy" in text
    assert f"conformance run cases/{case.id}.yaml --spark model" in text
    assert "0 Spark versions" in (tmp_path / "site" / "index.html").read_text()
