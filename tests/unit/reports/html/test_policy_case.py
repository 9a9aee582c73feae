"""The page of a case on a watermark policy, which the model and real engines answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.analysis.report import Report
from reports.html.writer import write
from reports.results.reading import Results
from tests.support import cells as a
from tests.support.whole_suite import whole_suite


@pytest.mark.parametrize(
    ("name", "runtime", "command"),
    [("model", "model", "--spark model"), ("flink-1.20.5", "policy-engine", "--policy-engine all")],
)
def test_a_case_on_a_policy_is_answered_by_the_model_and_by_engines(
    tmp_path: Path, name: str, runtime: str, command: str
) -> None:
    loaded = whole_suite()
    case = loaded.policy_cases[0]
    results = a.results(tmp_path / "r", {case.id: {"3.5.9": a.OUTSIDE}})
    target = results.header.targets[0].model_copy(update={"name": name, "spark": name, "runtime": runtime})
    cells = tuple(
        cell.model_copy(update={"target": name, "status": "conforms", "notes": (), "case_digest": case.digest})
        for cell in results.cells
    )
    header = results.header.model_copy(update={"targets": (target,)})
    write(Report.of(Results(header, cells, results.footer), loaded), tmp_path / "site")
    text = (tmp_path / "site" / "cases" / f"{case.id}.html").read_text()
    assert "This case tests a watermark policy" in text
    assert command in text
    assert "0 Spark versions" in (tmp_path / "site" / "index.html").read_text()
