"""Old results, judged by the cases and the entries of today."""

from itertools import islice
from pathlib import Path

import pytest

from conformance.core.case import Case
from conformance.core.versions import SparkVersion, VersionRange
from conformance.suite.discovery import Suite
from reports.results.compression import open_results
from reports.results.published import upgrade_files
from reports.results.reading import Results
from reports.results.records import Cell, Header
from tests.support import cells as a
from tests.support.observations import case, expect
from tests.support.whole_suite import whole_suite
from tests.unit.tools.test_publish_upgrades import FOOTER, REFUSAL, cell, header, of, run
from tools.judge_again import NOT_KEPT, cell_again, changed, joined, judged, main
from tools.publish_upgrades import slim

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


def test_new_cells_join_those_of_the_targets_that_the_results_have(tmp_path: Path) -> None:
    before = a.results(tmp_path / "run.jsonl", {"f/b": {"3.5.9": a.CALM}, "f/c": {"3.5.9": a.CALM}})
    new = a.results(
        tmp_path / "new.jsonl", {"f/a": {"3.5.9": a.CALM, "4.3.0": a.CALM}, "f/b": {"3.5.9": a.LOST, "4.3.0": a.CALM}}
    )
    both = joined(before, [new])
    assert [*changed(before, both)] == ["f/a · spark-3.5.9: new → conforms", "f/b · spark-3.5.9: conforms → violates"]
    both.write(tmp_path / "joined.jsonl")
    again = Results.read(tmp_path / "joined.jsonl")
    assert (again.header.cases, again.header.targets) == (("f/a", "f/b", "f/c"), before.header.targets)


def test_a_checkpoint_is_judged_by_the_entries_of_today(tmp_path: Path) -> None:
    before = run(tmp_path / "upgrades.jsonl", cell(of("f/a")), cell(of("f/gone")))
    after = judged(before, Suite((of("f/a", REFUSAL).model_copy(update={"digest": "1" * 64}),)))
    assert [(one.status, one.outcome, one.case_digest) for one in after.upgrades] == [("differs", "refused", "1" * 64)]
    after.write(tmp_path / "judged.jsonl")
    assert [one.outcome for one in Results.read(tmp_path / "judged.jsonl").upgrades] == ["refused"]


def test_the_published_upgrades_are_judged_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upgrades of five cases: what was observed is not published."""
    monkeypatch.setattr("tools.judge_again.discovery.load", whole_suite)
    suite = {case.id: case.digest for case in whole_suite().cases}
    with open_results(upgrade_files()["3.5"]) as lines:
        whole = Header.model_validate_json(next(lines))
        stored = [Cell.model_validate_json(line) for line in islice(lines, 2_000)]
    ids = [id for id in whole.cuts if any((one.case, one.case_digest) == (id, suite.get(id)) for one in stored)][:5]
    cells = [one for one in stored if one.case in ids]
    sampled = whole.model_copy(update={"cuts": {id: whole.cuts[id] for id in ids}})
    file = tmp_path / "upgrades.jsonl.xz"
    Results(sampled, (), FOOTER, upgrades=tuple(cells)).write(file)
    assert main([str(file), str(tmp_path / "today")]) == 0
    assert f"0 of {len(cells)} cells changed" in capsys.readouterr().out
    again = Results.read(tmp_path / "today" / "upgrades.jsonl.xz", condensed=True)
    assert {"conforms", "not-applicable"} <= {cell.status for cell in again.upgrades}


@pytest.mark.parametrize(
    ("today", "status"),
    [
        (of("f/a", REFUSAL), "differs"),
        (of("f/a", REFUSAL).model_copy(update={"digest": "1" * 64}), "not-run"),
        (of("f/a"), "not-run"),
        (of("f/a").model_copy(update={"spark": VersionRange.parse("<4.0")}), "not-applicable"),
    ],
)
def test_a_status_without_what_was_observed_is_of_the_case_and_the_entry_that_it_was_judged_by(
    today: Case, status: str
) -> None:
    bare = slim(cell(of("f/a", REFUSAL)))
    (found,) = judged(Results(header(bare), (), FOOTER, upgrades=(bare,)), Suite((today,))).upgrades
    assert found.status == status


@pytest.mark.parametrize(("digest", "status"), [("0" * 64, "flaky"), ("1" * 64, None)])
def test_one_of_several_answers_is_judged_by_the_case_that_ran_alone(
    tmp_path: Path, digest: str, status: str | None
) -> None:
    (ran,) = a.results(tmp_path / "run.jsonl", {"f/a": {"3.5.9": a.CALM}}).cells
    flaky = Cell.model_validate(ran.model_dump() | {"status": "flaky", "case_digest": "0" * 64})
    case_of_today = today("f/a").model_copy(update={"digest": digest})
    again = cell_again(flaky, case_of_today, SparkVersion.parse("3.5.9"))
    assert (None if again is None else again.status) == status
