"""Cases on watermark policies in the matrix: a column of their own, and nothing that counts elsewhere."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from conformance.core.observation import Observation
from conformance.judging.verdict import Status
from conformance.suite.discovery import Suite, load
from reports.analysis.model_column import MODEL, cells
from reports.results.reading import Results
from reports.results.records import Cell, Header, Target
from reports.results.writing import ResultsWriter
from reports.terminal import matrix

SPARK = Target(name="spark-3.5.9", spark="3.5.9")
POLICY = "title: x\npolicy: {{stream-time: {{grace: 1}}}}\ntrace: [{{event: 5, expect: {{watermark: {watermark}}}}}]\n"
CASE = "title: x\nstreams: {events: at TIMESTAMP}\nquery: [from: events]\nsteps: [idle: {}]\n"


def suite(folder: Path, watermark: int) -> Suite:
    for name, text in (("spark/a", CASE), ("policies/b", POLICY.format(watermark=watermark))):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.yaml").write_text(text)
    return load([folder])


def run(loaded: Suite, path: Path) -> Results:
    everything = [*loaded.cases, *loaded.policy_cases]
    header = Header(
        suite=loaded.digest,
        cases=tuple(case.id for case in everything),
        targets=(SPARK, MODEL),
        started=datetime(2024, 1, 1, tzinfo=UTC),
    )
    with ResultsWriter(path, header) as writer:
        for case in loaded.cases:
            writer.write(
                Cell(
                    case=case.id,
                    family=case.family,
                    case_digest="",
                    target=SPARK.name,
                    status="conforms",
                    observation=Observation(case=case.id, columns=(), steps=()),
                )
            )
        for cell in cells(loaded.cases, loaded.policy_cases, [SPARK.name]):
            writer.write(cell)
        writer.finish()
    return Results.read(path)


@pytest.mark.parametrize(("watermark", "status", "code"), [(4, "conforms", 0), (5, "violates", 1)])
def test_every_cell_is_there(tmp_path: Path, watermark: int, status: Status, code: int) -> None:
    results = run(suite(tmp_path, watermark), tmp_path / "results.jsonl")
    assert {(cell.case, cell.target): cell.status for cell in results.cells} == {
        ("spark/a", "spark-3.5.9"): "conforms",
        ("spark/a", "model"): "not-applicable",
        ("policies/b", "spark-3.5.9"): "not-applicable",
        ("policies/b", "model"): status,
    }
    assert matrix.exit_code(results) == code


def test_the_matrix_shows_what_disagrees(tmp_path: Path) -> None:
    results = run(suite(tmp_path, 5), tmp_path / "results.jsonl")
    out = Console(file=io.StringIO(), width=100)
    matrix.show(results, out)
    said = out.file.getvalue()  # type: ignore[attr-defined]
    assert "policies/b on model: violates" in said
    assert "step 1: expected watermark 5, but it is 4" in said
    assert "1/2" in said, "what is not applicable does not count"
