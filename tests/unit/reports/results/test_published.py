"""Published patch releases: read when asked for, compared in the cases that have an answer, and shown with their dates."""

import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.cli import main
from conformance.core.case import Differs
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.suite.discovery import Suite
from reports.analysis import published_pairs
from reports.analysis.releases import LineRelease, release_lines
from reports.analysis.report import Report
from reports.html.overview_pages import bugs_page
from reports.results import published
from reports.results.compression import plain_end
from reports.results.errors import UnusableResults
from reports.results.published import BASELINES, NoSuchVersion, find
from reports.results.reading import Results
from reports.results.records import RECORD, Footer
from tests.support import cells as a
from tests.support.runs import forged

Answers = dict[str, dict[str, Observation | str]]
LINES: Answers = {"f/a": {"3.4.4": a.CALM, "3.5.9": a.CALM, "4.0.5": a.LOST}, "f/new": {"3.4.4": a.CALM}}
PATCHES: Answers = {
    "f/a": {"3.5.3": a.LOST, "3.5.4": a.LOST, "3.5.8": a.CALM},
    "f/new": dict.fromkeys(["3.5.3"], a.NOT_RUN),
}
BUG = {"f/a": tuple(a.bug(spark, link="SPARK-9") for spark in (">=3.5,<3.5.5", ">=4.0"))}


@pytest.fixture(autouse=True)
def baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(published, "BASELINES", tmp_path)
    monkeypatch.setattr(published, "UPGRADES", tmp_path / "upgrades")
    monkeypatch.setattr(published, "PATCHES", tmp_path / "patches")
    monkeypatch.setattr(published_pairs, "PAIRS", tmp_path / "pairs.xz")
    a.results(tmp_path / "lines.jsonl.xz", LINES)
    a.results(tmp_path / "patches" / "3.jsonl.xz", PATCHES)
    published.published_patches.cache_clear()
    yield tmp_path
    published.published_patches.cache_clear()


def titles(*releases: str) -> list[str]:
    return [target.title for target in published.published_results(releases).header.targets]


def test_a_patch_release_is_read_only_when_it_is_asked_for(baselines: Path) -> None:
    assert titles() == ["3.4.4", "3.5.9", "4.0.5"]
    assert titles("3.5.3", "4.0") == ["3.4.4", "3.5.9", "4.0.5", "3.5.3"]
    (baselines / "patches" / "3.jsonl.xz").write_bytes(b"")
    assert titles("3.4.4", "4.0.5", "3.2.1", "4.0.2") == ["3.4.4", "3.5.9", "4.0.5"]


def test_a_line_of_which_only_patch_releases_are_published_means_its_newest(baselines: Path) -> None:
    a.results(baselines / "patches" / "3.jsonl.xz", {"f/a": {"2.4.7": a.LOST, "2.4.8": a.CALM}, "f/new": {}})
    published.published_patches.cache_clear()
    assert titles("2.4") == ["3.4.4", "3.5.9", "4.0.5", "2.4.8"]
    assert titles("3.5") == ["3.4.4", "3.5.9", "4.0.5"]
    assert find(published.published_results(["2.4"]), "2.4").spark == "2.4.8"


def test_only_cases_with_an_answer_are_compared_and_the_others_are_named() -> None:
    found = published.published_results(["3.5.3"])
    assert found.header.cases == ("f/a",)
    assert published.left_out(found) == ("f/new",)
    assert published.left_out(published.published_results()) == ()


def test_an_answer_to_another_case_does_not_count(baselines: Path) -> None:
    text = (baselines / "patches" / "3.jsonl.xz").read_bytes()
    plain = lzma.decompress(text).decode().splitlines()
    old = Results.read(baselines / "lines.jsonl.xz").cells[0].case_digest
    changed = [line.replace(old, "1" * 64) if '"spark-3.5.4"' in line else line for line in plain]
    (baselines / "patches" / "3.jsonl.xz").write_bytes(lzma.compress(forged(list(map(json.loads, changed))).encode()))
    assert published.published_results(["3.5.8"]).header.cases == ("f/a", "f/new")
    assert published.published_results(["3.5.4"]).header.cases == ()


def test_results_that_are_gone_or_damaged_are_named(baselines: Path) -> None:
    lines = baselines / "lines.jsonl.xz"
    content = lines.read_bytes()
    for damaged in (b"", content[:-40], content[:80] + b"\xff" + content[81:]):
        lines.write_bytes(damaged)
        with pytest.raises(UnusableResults, match=re.escape(str(lines))):
            published.published_results()
    lines.unlink()
    with pytest.raises(UnusableResults, match="there are no published results; install the suite again"):
        published.published_results()


def test_the_releases_between_two() -> None:
    assert published.between("3.5.3", "4.0.5") == ("3.5.3", "3.5.4", "3.5.8", "4.0.5")
    assert published.between("3.5.8", "3.5.9") == ("3.5.8", "3.5.9")
    assert published.between("3.5", "4.0") == ("3.5", "4.0")


def test_a_release_without_results_says_how_to_run_it_and_what_there_is() -> None:
    with pytest.raises(NoSuchVersion) as problem:
        find(published.published_results(["3.5.5"]), "3.5.5")
    assert "run it yourself: conformance run --all --spark 3.5.5" in str(problem.value)
    assert "(available: 3.4.4, 3.5.3, 3.5.4, 3.5.8, 3.5.9, 4.0.5)" in str(problem.value)


@pytest.fixture
def gate(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def run(*options: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as done:
            main.main(["gate", *options])
        return int(done.value.code or 0), capsys.readouterr().out

    return run


def test_the_gate_takes_a_patch_release(gate: Callable[..., tuple[int, str]]) -> None:
    code, told = gate("--from", "3.5.3", "--to", "3.5.9")
    assert code == 1
    assert "1 more row than before" in told
    assert "1 case left out: no published answer of 3.5.3 or 3.5.9 to them as they are now" in told
    code, told = gate("--from", "3.5.3", "--to", "3.5.4", "--json")
    assert (code, json.loads(told)["compared"], json.loads(told)["left_out"]) == (0, 1, ["f/new"])


def put(folder: Path, of_lines: Answers, of_patches: Answers, differs: dict[str, tuple[Differs, ...]] | None) -> None:
    """Publish these answers in place of those that are there."""
    for name, answers in (("lines.jsonl.xz", of_lines), ("patches/3.jsonl.xz", of_patches)):
        (folder / name).unlink(missing_ok=True)
        a.results(folder / name, answers, differs)


def lines(differs: dict[str, tuple[Differs, ...]] | None = None, folder: Path | None = None) -> dict[str, LineRelease]:
    if folder is not None:
        put(folder, LINES, PATCHES, differs)
    report = Report.of(published.published_results(), Suite(()), patches=published.patch_results())
    return {str(one.version): one for line in release_lines(report).values() for one in line}


def test_each_release_of_a_line_is_listed_with_its_date_and_what_changes() -> None:
    found = lines()
    assert [name for name in found if name.startswith("3.5")] == [f"3.5.{patch}" for patch in range(9, -1, -1)]
    assert f"{found['3.5.3'].day}" == "2024-09-24"
    assert [name for name, one in found.items() if one.target is not None] == [
        "4.0.5", "3.5.9", "3.5.8", "3.5.4", "3.5.3", "3.4.4",
    ]  # fmt: skip
    changed = {
        name: (one.changed.before.title, [change.what for change in one.changed.changes])
        for name, one in found.items()
        if one.changed
    }
    assert changed == {
        "3.5.4": ("3.5.3", []),
        "3.5.8": ("3.5.4", ["1 more row than before, 1 fewer dropped as late"]),
        "3.5.9": ("3.5.8", []),
    }
    assert {name: one.not_run for name, one in found.items() if one.target} == {
        "4.0.5": 0, "3.5.9": 0, "3.5.8": 0, "3.5.4": 0, "3.5.3": 1, "3.4.4": 0,
    }  # fmt: skip


def test_the_known_bugs_of_each_and_the_release_with_the_fewest(baselines: Path) -> None:
    found = lines(BUG, baselines)
    assert {name: [bug.bug.link for bug in one.bugs] for name, one in found.items() if one.target} == {
        "4.0.5": ["SPARK-9"], "3.5.9": [], "3.5.8": [], "3.5.4": ["SPARK-9"], "3.5.3": ["SPARK-9"], "3.4.4": [],
    }  # fmt: skip
    assert [name for name, one in found.items() if one.best] == ["3.5.9"]


def test_what_no_case_has_asked_of_a_release_is_open_and_the_page_of_bugs_names_the_last_release_of_each_line(
    baselines: Path,
) -> None:
    bugs = tuple(a.bug(spark, link="SPARK-9") for spark in (">=3.4,<3.4.4", ">=3.5,<3.5.5"))
    patches = {"f/a": {"3.4.3": a.LOST, "3.5.3": a.LOST, "3.5.8": a.NOT_RUN}}
    put(baselines, {"f/a": {"3.5.9": a.CALM}}, patches, {"f/a": bugs})
    found = lines()
    counts = {name: (len(one.bugs), one.open_bugs) for name, one in found.items() if one.target is not None}
    assert counts == {"3.5.9": (0, 0), "3.5.8": (0, 1), "3.5.3": (1, 0), "3.4.3": (1, 0)}
    report = Report.of(published.published_results(), Suite(()), patches=published.patch_results())
    page = bugs_page(report)
    assert [target.title for target in page.targets] == ["3.5.9", "3.4.3"]
    (row,) = page.rows
    assert (row.shown, row.until) == ((0, 1), ("3.5.3", ""))
    assert [str(release) for release in row.fixed_in] == ["3.4.4", "3.5.5"]


def test_no_release_is_called_the_best_for_what_was_not_run_on_it(baselines: Path) -> None:
    bug = a.bug(">=3.5.5,<4", link="SPARK-9")
    later = {"f/a": {"3.5.9": a.LOST, "4.0.5": a.CALM}, "f/new": {"3.5.9": a.CALM, "4.0.5": a.CALM}}
    put(baselines, later, {"f/a": {"3.5.3": a.CALM}, "f/new": {}}, {"f/a": (bug,)})
    assert [name for name, one in lines().items() if one.best] == ["3.5.3"]
    (baselines / "patches" / "3.jsonl.xz").unlink()
    a.results(baselines / "patches" / "3.jsonl.xz", {"f/a": {"3.5.3": a.CALM}, "f/new": {"3.5.3": a.NOT_RUN}})
    assert [name for name, one in lines().items() if one.best] == []


def test_since_when_a_version_behaves_as_it_does_is_told_by_its_patch_releases(baselines: Path) -> None:
    a.results(baselines / "patches" / "4.jsonl.xz", {"f/a": {"4.0.0": a.CALM, "4.0.2": a.LOST, "4.0.3": a.LOST}})
    published.published_patches.cache_clear()
    assert SparkVersion(4, 0, 2) in published.published_patches()
    coarse = Report.of(published.published_results(), Suite(()))
    fine = Report.of(published.published_results(), Suite(()), patches=published.patch_results())
    assert [str(turn.since) for turn in coarse.turns["f/a"]] == ["4.0.5"]
    assert [str(turn.since) for turn in fine.turns["f/a"]] == ["4.0.2"]
    assert [turn.place for turn in fine.turns["f/a"]] == [2]


def test_every_published_file_has_the_digest_of_its_cells() -> None:
    files = sorted(BASELINES.rglob("*.jsonl.xz"))
    assert len(files) >= 6
    for file in files:
        footer = RECORD.validate_json(plain_end(file).splitlines()[-1])
        assert isinstance(footer, Footer)
        assert footer.digest is not None, file
