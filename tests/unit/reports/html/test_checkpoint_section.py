"""What pages say about checkpoints of one version on another."""

import re
from dataclasses import replace
from pathlib import Path

from conformance.core.observation import ErrorSeen
from conformance.suite.discovery import Suite
from reports.analysis.report import Report
from reports.html.writer import write
from reports.results.reading import Results
from tests.support import cells as a
from tests.support.pages import whole_page
from tests.unit.reports.html.test_site import HOSTILE, Page


def report(tmp_path: Path, *met_by_each: str) -> Report:
    results = a.results(tmp_path / "r", {"f/a": {"3.5.9": a.CALM, "4.3.0": a.CALM}})
    upgrades = tuple(
        a.handoff_cell(f"f/{number}", met, notes=(HOSTILE,) if met == "violates" else ())
        for number, met in enumerate(met_by_each)
    )
    return Report.of(Results(results.header, results.cells, results.footer, (), upgrades), Suite(()))


def text(tmp_path: Path, *met_by_each: str) -> str:
    write(report(tmp_path, *met_by_each), tmp_path / "site")
    Page((tmp_path / "site" / "index.html").read_text())
    return (tmp_path / "site" / "index.html").read_text()


def test_what_becomes_of_them_is_told_worst_first(tmp_path: Path) -> None:
    told = text(tmp_path, "resumed", "refused", "violates")
    plain = " ".join(re.sub("<[^>]+>", "", told.replace("<li>", " ")).split())
    assert "Checkpoints of 3.5.9 on 4.3.0: of 3 tried checkpoints, 1 is refused, 1 is not as expected." in plain
    assert "no case can change your rows or fail. Of 3 tried checkpoints, 1 is refused, 1 is not as expected." in plain
    assert told.index("<span>f/2</span>") < told.index("<span>f/1</span>")
    assert "another schema" in told
    assert "issues.apache.org/jira/browse/SPARK-9" in told


def test_none_were_handed_over(tmp_path: Path) -> None:
    told = "3.5.9 → 4.3.0 was not run, nor any other pair of the lines 3.5 and 4.3"
    assert re.sub("<[^>]+>", "", text(tmp_path)).count(told) == 3


def test_the_page_of_the_case_has_what_a_refusal_says(tmp_path: Path) -> None:
    found = report(tmp_path, "refused", "resumed")
    error = ErrorSeen(stage="run", classes=("Incompatible",), message="Check the <fields>.\nMore")
    upgrades = tuple(one.model_copy(update={"case": "f/a", "error": error}) for one in found.results.upgrades)
    write(Report.of(replace(found.results, upgrades=upgrades), Suite(())), tmp_path / "site")
    assert whole_page(tmp_path / "site/cases/f/a.html").count("“Check the &lt;fields&gt;.”") == 1


def test_checkpoints_of_a_case_that_meet_the_same_share_an_item(tmp_path: Path) -> None:
    pairs = (("3.5.9", "4.2.1"), ("3.5.9", "4.3.0"), ("2.4.8", "4.3.0"))
    same = [a.handoff_cell("f/a", "resumed", *(f"spark-{version}" for version in pair)) for pair in pairs]
    said = (ErrorSeen(stage="run", classes=("Gone",), message=message) for message in ("", "The state is gone."))
    origins = ("spark-4.3.0", "spark-4.2.1")
    others = [
        a.handoff_cell("f/a", "refused", origin, "spark-3.5.9", error=error)
        for origin, error in zip(origins, said, strict=True)
    ]
    found = report(tmp_path)
    write(Report.of(replace(found.results, upgrades=(*same, *others)), Suite(())), tmp_path / "site")
    items = whole_page(tmp_path / "site/cases/f/a.html").split("<li data-checkpoint>")[1:]
    refused, resumed = (" ".join(re.sub("<[^>]+>", "", item).split()) for item in items)
    assert refused.startswith("⊘ refused, as documented")
    assert "“The state is gone.”" in refused
    assert "4.2.1, 4.3.0 →to 3.5.9" in refused
    assert resumed.startswith("● resumed 2.4.8 →to 4.3.0")
    assert "3.5.9 →to 4.2.1, 4.3.0" in resumed
    assert "The version changes before step 2." in resumed
