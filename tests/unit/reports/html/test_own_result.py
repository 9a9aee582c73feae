"""The results of one version: what is not as expected, and the published results beside it."""

import re
from collections import Counter
from pathlib import Path

import pytest

from conformance.cli.main import main
from conformance.suite.discovery import Suite
from reports.analysis.report import Report
from reports.html.writer import write
from reports.results.published import NOT_PUBLISHED, beside, published
from reports.results.reading import Results
from tests.support import cells as a


def test_one_version(tmp_path: Path) -> None:
    found = a.results(tmp_path / "r", {"f/a": {"4.3.0": a.CALM}, "f/b": {"4.3.0": a.LOST}, "f/c": {"4.3.0": a.BROKEN}})
    write(Report.of(found, Suite(())), tmp_path / "site")
    text = (tmp_path / "site" / "index.html").read_text()
    assert "Your results: 4.3.0" in text
    assert "1 of 3 cases that apply: as expected" in text
    assert "✗ 2 not as expected or without a result" in text
    assert re.findall(r"class=title href=cases/f/(.).html", text) == ["b", "c"]
    assert "None of these cases is among the published results" in text


def test_one_version_beside_published_ones(tmp_path: Path) -> None:
    own = a.results(tmp_path / "own", {"f/a": {"4.3.0": a.LOST}, "f/new": {"4.3.0": a.CALM}})
    released = a.results(tmp_path / "published", {"f/a": dict.fromkeys(("3.5.9", "4.2.1", "4.3.0"), a.CALM)})
    found = beside(own, released)
    assert [target.title for target in found.header.targets] == ["4.3.0", "3.5.9", "4.2.1"]
    write(Report.of(found, Suite(()), background=frozenset({"spark-3.5.9", "spark-4.2.1"})), tmp_path / "site")
    text = (tmp_path / "site" / "index.html").read_text()
    assert "Your results: 4.3.0" in text
    assert "Beside the published results" in text
    assert "From <b>4.2.1</b> to <b>4.3.0</b>" in text
    assert "1 of 1 cases with a result on both versions changes its rows or fails" in re.sub("<[^>]+>", "", text)
    assert "have no result" not in text
    assert NOT_PUBLISHED in (tmp_path / "site" / "cases" / "f" / "new.html").read_text()


def test_results_of_one_version_are_compared_with_the_published_ones(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    everything = Results.read_all(published())
    newest = everything.header.targets[-1]
    cells = tuple(cell for cell in everything.cells if cell.target == newest.name)[:5]
    cases = tuple(cell.case for cell in cells)
    header = everything.header.model_copy(update={"cases": cases, "targets": (newest,), "pairs": (), "cuts": {}})
    footer = everything.footer.model_copy(update={"counts": Counter(cell.status for cell in cells)})
    Results(header, cells, footer).write(tmp_path / "own.jsonl")
    with pytest.raises(SystemExit) as stopped:
        main(["report", "own.jsonl"])
    assert stopped.value.code == 0
    text = Path("site/index.html").read_text()
    assert f"Your results: {newest.title}" in text
    assert f"to <b>{newest.title}</b>" in text
    assert len(list(Path("site/compare").iterdir())) > len(everything.header.targets)


def test_an_own_build_stands_beside_apaches_release_of_the_same_version(tmp_path: Path) -> None:
    ran = a.results(tmp_path / "own", {"f/a": {"4.2.1": a.LOST}})
    target = ran.header.targets[0].model_copy(update={"name": "spark-4.2.1-ours"})
    own = Results(
        ran.header.model_copy(update={"targets": (target,)}),
        tuple(cell.model_copy(update={"target": target.name}) for cell in ran.cells),
        ran.footer,
    )
    released = a.results(tmp_path / "published", {"f/a": dict.fromkeys(("3.5.9", "4.2.1", "4.3.0"), a.CALM)})
    found = beside(own, released)
    names = frozenset(one.name for one in released.header.targets)
    report = Report.of(found, Suite(()), background=names)
    assert report.front_pair is not None
    assert (report.front_pair.before.title, report.front_pair.after.title) == ("4.2.1", "4.2.1-ours")
    assert [change.case for change in report.front_pair.changes] == ["f/a"]
