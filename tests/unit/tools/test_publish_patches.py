"""The published patch releases: judged by the cases of today, small, and open about what no run covers."""

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import VersionRange
from conformance.suite.discovery import Suite
from reports.results.reading import Results
from reports.results.records import Cell
from tests.support import cells as a
from tests.support.observations import batch, case, expect, step, window
from tools.publish_patches import publish, releases

ROWS = [["12:00", "12:10", 1], ["12:10", "12:20", 2]]
LINES = ("spark-3.5.9", "spark-4.0.5")


def of(id: str, rows: list[list[object]] = ROWS, **keys: object) -> Case:
    return case(expect(rows=rows), id=id, **keys)


def published(folder: Path, found: Results, *cases: Case, already: tuple[Results, ...] = ()) -> dict[str, Results]:
    """By major version."""
    paths = publish(releases([*already, found], LINES), Suite(cases), folder)
    return {path.name.removesuffix(".jsonl.xz"): Results.read(path) for path in paths}


def statuses(results: Results) -> dict[tuple[str, str], str]:
    return {cell.key: cell.status for cell in results.cells}


def test_a_file_for_each_major_version_without_the_newest_release_of_a_line(tmp_path: Path) -> None:
    found = a.results(tmp_path / "run.jsonl", {"f/a": dict.fromkeys(["3.5.3", "3.5.9", "4.0.0", "4.0.1"], a.CALM)})
    files = published(tmp_path / "patches", found, of("f/a"))
    assert {line: [target.spark for target in one.header.targets] for line, one in files.items()} == {
        "3": ["3.5.3"],
        "4": ["4.0.0", "4.0.1"],
    }
    assert set(statuses(files["4"]).values()) == {"conforms"}


def test_what_no_run_covers_is_said_to_be_not_run_unless_the_case_does_not_apply(tmp_path: Path) -> None:
    found = a.results(tmp_path / "run.jsonl", {"f/a": {"3.5.3": a.CALM}, "f/gone": {"3.5.3": a.CALM}})
    of_4 = of("f/of-4", spark=VersionRange.parse(">=4.0"))
    files = published(tmp_path / "patches", found, of("f/a"), of("f/later"), of_4)
    assert [*statuses(files["3"]).items()] == [
        (("f/a", "spark-3.5.3"), "conforms"),
        (("f/later", "spark-3.5.3"), "not-run"),
        (("f/of-4", "spark-3.5.3"), "not-applicable"),
    ]


@pytest.mark.parametrize(("rows", "status"), [(ROWS, "conforms"), (ROWS[:1], "not-run")])
def test_an_answer_to_an_earlier_case_counts_if_the_case_of_today_expects_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: list[list[object]], status: str
) -> None:
    found = a.results(tmp_path / "run.jsonl", {"f/a": {"3.5.3": a.CALM}})
    files = published(tmp_path / "patches", found, of("f/a", rows).model_copy(update={"digest": "1" * 64}))
    assert statuses(files["3"])["f/a", "spark-3.5.3"] == status
    assert files["3"].cells[0].case_digest == "1" * 64
    assert ("left out: f/a on 3.5.3" in capsys.readouterr().err) == (status == "not-run")


@pytest.mark.parametrize(("answer", "rows"), [(a.LOST, ROWS), (a.CALM, ROWS[:1])], ids=["it was", "it is found today"])
def test_an_answer_to_the_case_of_today_is_published_whatever_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: Observation, rows: list[list[object]]
) -> None:
    """Entries of ``behaviours.yaml``, and the rules of judging, are not in the digest of a case."""
    found = a.results(tmp_path / "run.jsonl", {"f/a": {"3.5.3": answer}})
    today = of("f/a", rows).model_copy(update={"digest": found.cells[0].case_digest})
    files = published(tmp_path / "patches", found, today)
    assert statuses(files["3"])["f/a", "spark-3.5.3"] == "violates"
    assert "not as the case says: f/a on 3.5.3: violates" in capsys.readouterr().err


@pytest.mark.parametrize(("same", "status"), [(True, "conforms"), (False, "not-run")])
def test_metrics_that_an_earlier_case_was_judged_by_say_nothing_about_the_case_of_today(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], same: bool, status: str
) -> None:
    """Results keep no progress: whether the case of today is right about it is known only if it was the case that ran."""
    found = a.results(tmp_path / "run.jsonl", {"f/a": {"3.5.3": a.CALM}})
    digest = found.cells[0].case_digest if same else "1" * 64
    asks = case(expect(rows=ROWS, progress={"eventTime.avg": 0}), id="f/a").model_copy(update={"digest": digest})
    files = published(tmp_path / "patches", found, asks)
    assert statuses(files["3"])["f/a", "spark-3.5.3"] == status
    assert ("left out: f/a on 3.5.3: too little of it is kept" in capsys.readouterr().err) != same


def test_a_later_run_replaces_answers_but_not_by_silence(tmp_path: Path) -> None:
    first = a.results(tmp_path / "1.jsonl", {"f/a": {"3.5.3": a.CALM}, "f/b": {"3.5.3": a.CALM}})
    then = a.results(tmp_path / "2.jsonl", {"f/a": {"3.5.3": a.BROKEN}, "f/b": {"3.5.3": a.LOST}})
    of_b = of("f/b").model_copy(update={"digest": then.cells[1].case_digest})
    files = published(tmp_path / "patches", then, of("f/a"), of_b, already=(first,))
    assert statuses(files["3"]) == {("f/a", "spark-3.5.3"): "conforms", ("f/b", "spark-3.5.3"): "violates"}


def test_how_long_micro_batches_took_is_left_out_and_what_they_did_is_not(tmp_path: Path) -> None:
    seen = a.seen(step(1, batch(0, window("12:00", "12:10", 1)), batch(1, window("12:10", "12:20", 2), kind="no-data")))
    slow = tuple(one.model_copy(update={"duration_ms": 1234}) for one in seen.steps[0].batches)
    seen = seen.model_copy(update={"steps": (seen.steps[0].model_copy(update={"batches": slow, "wall_ms": 1300}),)})
    found = a.results(tmp_path / "run.jsonl", {"f/a": {"3.5.3": seen}})
    (cell,) = published(tmp_path / "patches", found, of("f/a"))["3"].cells
    assert cell.observation is not None
    assert {one.duration_ms for one in cell.observation.steps[0].batches} == {0}
    assert cell.behaviour == found.cells[0].behaviour


def test_what_is_published_is_published_again_the_same(tmp_path: Path) -> None:
    found = a.results(tmp_path / "run.jsonl", {"f/a": dict.fromkeys(["3.5.3", "3.5.8"], a.CALM)})
    once = published(tmp_path / "patches", found, of("f/a"))["3"]
    before = (tmp_path / "patches" / "3.jsonl.xz").read_bytes()
    list(publish(releases([once], LINES), Suite((of("f/a"),)), tmp_path / "patches"))
    assert (tmp_path / "patches" / "3.jsonl.xz").read_bytes() == before


def test_a_build_that_is_not_apaches_is_no_patch_release(tmp_path: Path) -> None:
    found = a.results(tmp_path / "run.jsonl", {"f/a": {"3.5.3": a.CALM}})
    (target,) = found.header.targets
    vendor = found.header.model_copy(update={"targets": (target.model_copy(update={"spark": "3.5.3-acme-1"}),)})
    assert releases([replace(found, header=vendor)], LINES) == ()
    assert isinstance(found.cells[0], Cell)
