"""A violation that settings of the engine explain says so wherever results are shown, and blames no engine."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from conformance.cli.main import app
from reports.results.reading import Results
from reports.terminal.matrix import lines
from tests.support.runs import written

SETTING = "spark.sql.streaming.noDataMicroBatches.enabled=false"
SAID = f"explained by {SETTING}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two releases, of which the newer violates in one case, explained."""
    targets, violating = ("spark-3.5.9", "spark-4.3.0"), ("late/a", "spark-4.3.0")
    results = Results.read(written(tmp_path / "r.jsonl", ("late/a", "late/b"), targets, {violating: "violates"}))
    explained = {
        "explained_by": (SETTING,),
        "notes": (f"{SAID}: with Spark's default the case conforms, as was tried",),
    }
    cells = [cell.model_copy(update=explained if cell.status == "violates" else {}) for cell in results.cells]
    replace(results, cells=tuple(cells)).write(tmp_path / "x.jsonl")
    return tmp_path / "x.jsonl"


def said(*words: str | Path) -> str:
    done = CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "300"})
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.output


def test_in_a_terminal_and_in_a_pipeline(file: Path) -> None:
    assert SAID in "\n".join(map(str, lines(Results.read(file), 100)))
    assert f'message="violates: {SAID}"' in said("case", "export", "junit", file)
    assert f'"{SAID}: with' in said("case", "export", "json", file)
    assert SAID in said("case", "export", "summary", file)
    assert f"{SAID}; " in said("gate", file, "--from", "3.5.9", "--to", "4.3.0", "--verbose")


def test_on_a_page(file: Path, tmp_path: Path) -> None:
    said("report", file, "--single-file", "-o", tmp_path / "report")
    assert SAID in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")


def test_in_a_column(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = Results.read(file)
    newer = results.header.targets[1].model_copy(
        update={"name": "acme", "java": "17", "settings": (f"{SETTING} (by default true)",), "fixed": ("jar acme.jar",)}
    )
    cells = [cell.model_copy(update={"target": "acme"}) for cell in results.cells if cell.target == "spark-4.3.0"]
    header = results.header.model_copy(update={"targets": (newer,)})
    replace(results, header=header, cells=tuple(cells)).write(tmp_path / "acme.jsonl")
    about = {"title": "Acme", "by": "Acme", "build": "1", "suite": "1.0.0", "covers": "part", "note": "a few cases"}
    (tmp_path / "acme.yaml").write_text(yaml.safe_dump(about), encoding="utf-8")
    monkeypatch.setattr("conformance.cli.columns.analysis.problems_of_submission", lambda *_: ())
    monkeypatch.setattr(
        "conformance.cli.columns.discovery.valid",
        lambda: type("S", (), {"digest": "", "cases": [_Digest(cell.case, cell.case_digest) for cell in cells]}),
    )
    monkeypatch.setattr("conformance.cli.columns.published_results", lambda *_, **__: apache)
    apache = Results.read(written(tmp_path / "apache.jsonl", ("late/a", "late/b"), ("spark-4.3.0",)))
    shown = said("maintain", "columns", tmp_path / "acme.yaml")
    assert f"of its own: {SETTING} (by default true)" in shown
    assert "of its own: jar acme.jar" in shown
    assert f"; {SAID}" in shown
    assert "1 different, 1 explained by its settings" in shown
    (record,) = json.loads(said("maintain", "columns", tmp_path / "acme.yaml", "--json"))
    assert record["explained"] == {"late/a": [SETTING]}


class _Digest:
    def __init__(self, id: str, digest: str) -> None:
        self.id, self.digest = id, digest
