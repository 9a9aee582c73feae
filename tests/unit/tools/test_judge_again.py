"""Old results, judged by the cases and the entries of today."""

from __future__ import annotations

from pathlib import Path

from conformance.core.case import Case
from conformance.suite.discovery import Suite
from reports.results.reading import Results
from tests.support import cells as a
from tests.support.observations import case, expect
from tests.unit.tools.test_publish_upgrades import REFUSAL, cell, of, run
from tools.judge_again import NOT_KEPT, changed, judged

ROWS = [["12:00", "12:10", 1], ["12:10", "12:20", 2]]


def today(id: str, rows: list[list[object]] = ROWS) -> Case:
    return case(expect(rows=rows), id=id, digest="1" * 64)


def test_an_answer_is_judged_by_the_case_of_today_whatever_comes_out(tmp_path: Path) -> None:
    before = a.results(
        tmp_path / "run.jsonl", {"f/a": {"3.5.9": a.CALM}, "f/b": {"3.5.9": a.LOST}, "f/gone": {"3.5.9": a.CALM}}
    )
    after = judged(before, Suite((today("f/a", ROWS[:1]), today("f/b", ROWS[:1]))))
    assert {one.case: (one.status, one.case_digest) for one in after.cells} == {
        "f/a": ("violates", "1" * 64),
        "f/b": ("conforms", "1" * 64),
    }
    assert [*changed(before, after)] == [
        "f/a · spark-3.5.9: conforms → violates",
        "f/b · spark-3.5.9: violates → conforms",
    ]
    after.write(tmp_path / "judged.jsonl")
    assert Results.read(tmp_path / "judged.jsonl").header.cases == ("f/a", "f/b")


def test_a_cell_without_an_answer_stays_unless_its_case_changed(tmp_path: Path) -> None:
    before = a.results(tmp_path / "run.jsonl", {"f/a": {"3.5.9": a.BROKEN}, "f/b": {"3.5.9": a.BROKEN}})
    as_it_was = case(expect(rows=ROWS), id="f/a")
    kept, lost = judged(before, Suite((as_it_was, today("f/b")))).cells
    assert kept.status == "broken"
    assert (lost.status, lost.notes) == ("not-run", (NOT_KEPT,))


def test_a_checkpoint_is_judged_by_the_entries_of_today(tmp_path: Path) -> None:
    before = run(tmp_path / "upgrades.jsonl", cell(of("f/a")), cell(of("f/gone")))
    after = judged(before, Suite((of("f/a", REFUSAL),)))
    assert [one.status for one in after.upgrades] == ["refused"]
    after.write(tmp_path / "judged.jsonl")
    assert [one.status for one in Results.read(tmp_path / "judged.jsonl").upgrades] == ["refused"]
