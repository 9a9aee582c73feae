"""Each command writes for the width that it has: no line is longer, and no word is left out. Files in ``golden`` show the answers."""

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text
from typer.testing import CliRunner

from conformance.cli import check, explain, fuzz
from conformance.cli.console import print_answer, print_tables, width
from conformance.cli.job_options import statement_lines
from conformance.cli.main import app
from conformance.core.wrapping import MOST_ROWS
from conformance.fuzzing.campaign import FuzzOutcome, Tally
from conformance.own_job import program as programs
from conformance.own_job.job_case import own_function
from conformance.own_job.resumption import statements
from conformance.own_job.trial import Trial
from conformance.runner.resources import EngineUse
from conformance.suite.discovery import shipped
from harness.engine.protocol import ProgramSeen
from harness.scheduling.kept_engines import KeptEngines
from reports.results.crash import CrashRecords
from reports.results.reading import Results
from reports.terminal import checkpoint, upgrades
from tests.support.checkpoints import written_by
from tests.support.commands import answer_of
from tests.support.goldens import compare_with_golden
from tests.support.miniature.two_versions import NEW, OLD, TwoVersions
from tests.support.runs import cell
from tests.unit.conformance.cli.test_run import Here
from tests.unit.conformance.cli.test_targets import Run, run
from tests.unit.conformance.own_job.test_explained_job import DATA, explained
from tests.unit.conformance.own_job.test_job_run import sample_in
from tests.unit.conformance.own_job.test_program import CLICKS, ORDERS
from tests.unit.conformance.own_job.test_resumption import RAN, failed, resumption
from tests.unit.conformance.own_job.test_trial import Listener, Published
from tests.unit.conformance.runner.test_upgrade import REFUSED, case_with, handed_over, results_of
from tests.unit.conformance.suite.test_record_expectations import BARE
from tests.unit.reports.analysis.test_difference import SPARK, write
from tests.unit.reports.results.test_crash import HEADER, record

WIDTHS = (60, 80, 100, 160)
TESTS = Path(__file__).parents[3]
SAMPLE = TESTS / "browser" / "sample"
GOLDEN = Path(__file__).parent / "golden"
LATE = "late-drops/window-still-open"
FLOWING = {
    "inspect": "checkpoint inspect outer_join-rocksdb --to 4.1",
    "explain-case": f"explain {LATE}",
    "explain-two-versions": "explain late-drops/late-by-the-watermark-of-the-batch-before --from 2.4.8 --to 3.5.9",
    "policies": "maintain policies",
    "diff": "maintain diff a b",
    "columns": "maintain columns",
}
"""Of these every word is there at each width, if everything is asked for; those below have tables, or say more where there is room."""
TABLES = {
    "explain-progress": "explain --progress idle-source.jsonl",
    "targets": "targets",
    "gate": "gate results.jsonl --from 3.3.4 --to 4.3.0 --cases cases",
    "policies-of-a-case": f"maintain policies {LATE}",
    "explain-policies": f"explain {LATE} --policy all",
    "run-policies": "run policies --spark model -o policies.jsonl",
    "combine": "maintain combine results.jsonl",
    "combine-verbose": "maintain combine results.jsonl --verbose",
    "inspect-verbose": "checkpoint inspect outer_join-rocksdb --verbose",
    "eviction": "eviction a>b --left a\\ 1\\ hour --right b\\ 1\\ day",
    "coverage": "case validate --coverage",
}
CHANGING = {"targets"}
"""Depends on the machine."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("widths")
    written_by("3.5.9", "outer_join-rocksdb", made)
    shutil.copy(SAMPLE / "results.jsonl", made)
    shutil.copy(TESTS / "unit/conformance/query_progress/data/4.3.0/idle-source.jsonl", made)
    shutil.copytree(SAMPLE / "cases", made / "cases")
    shutil.copytree(shipped() / "policies", made / "policies")
    for name, status in (("a", "conforms"), ("b", "violates")):
        write(made / name, [cell("late/a", SPARK), cell("late/b", SPARK, status)])
    return made


def outputs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, printed: Callable[[], str | None], name: str
) -> None:
    """Compare what is printed on terminals of these widths, and into a file, with the file of it."""
    written = {}
    for columns in (*WIDTHS, None):
        if columns is None:
            monkeypatch.delenv("COLUMNS")
        else:
            monkeypatch.setenv("COLUMNS", str(columns))
        out = printed() or capsys.readouterr().out
        assert out.strip()
        assert [line for line in out.splitlines() if cell_len(line.rstrip()) > (columns or 100)] == []
        assert "\x1b" not in out
        assert columns != 100 or name.endswith("verbose") or len(out.splitlines()) <= MOST_ROWS
        written[f"{columns} columns"] = out
    # A file gets the width of 100 columns.
    piped = written.pop("None columns")
    assert name in CHANGING or piped == written["100 columns"]
    if name not in CHANGING:
        compare_with_golden(GOLDEN / f"{name}.txt", written)


class Later(datetime):
    """The clock that tells how long ago the query of the checkpoint ran."""

    @classmethod
    def now(cls, tz=None):
        return datetime(2026, 12, 1, tzinfo=tz)


@pytest.mark.parametrize("name", [*FLOWING, *TABLES])
def test_a_command_writes_for_the_width_that_it_has(name, folder, capsys, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("conformance.cli.checkpoint.datetime", Later)
    command = {**FLOWING, **TABLES}[name]
    words = [word.replace("\0", " ") for word in command.replace("\\ ", "\0").split()]
    outputs(capsys, monkeypatch, lambda: answer_of(capsys, *words)[1], name)
    if name in FLOWING:
        everything = set()
        for columns in WIDTHS:
            monkeypatch.setenv("COLUMNS", str(columns))
            everything.add("".join(answer_of(capsys, *words, "--verbose")[1].split()))
        assert len(everything) == 1


def of_a_checkpoint(folder: Path, _: pytest.MonkeyPatch) -> Callable[[], None]:
    """As `checkpoint resume` prints: one checkpoint that goes on, and one that is refused."""
    refused = resumption(failed(1, "A_" + "LONG_" * 20 + "NAME"))
    said = [*statements(resumption(RAN)), *statements(refused)]
    return lambda: print_answer(statement_lines(said), {}, as_json=False)


def of_a_job(folder: Path, _: pytest.MonkeyPatch) -> Callable[[], None]:
    """As `check` prints, of two engines of which the later keeps late rows."""
    with closing(KeptEngines(TwoVersions(folder, {NEW.name: "keeps-late-rows"}))) as kept:
        trial = Trial(OLD, NEW, EngineUse(kept=kept), 3, True, True, "files", lambda _: Published(), Listener())
        answer = trial.answer(own_function("jobs:build"), [sample_in(folder)], Path("check"), "conformance check")
    return lambda: print_answer(check._lines(answer, alone=True), {}, as_json=False)


def of_the_rows_of_a_job(_: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """As `explain` prints, of what Spark 4.3.0 answered."""
    _, answer = explained(DATA / "future-row-4.3.0.json", monkeypatch)
    return lambda: explain._show(answer.lines, {}, None, (), as_json=False)


def of_a_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    Here(folder, monkeypatch)
    return lambda: CliRunner().invoke(app, ["run", "cases", "--spark", "3.5.9", "--fresh"]).stdout


def of_upgrades(folder: Path, _: pytest.MonkeyPatch) -> Callable[[], None]:
    seen, _ = handed_over(folder, case_with(folder, REFUSED), new="refuses-to-resume", each=False)
    results = Results.read(results_of(folder, seen))
    return lambda: print_answer(upgrades.lines(results, width()))


def of_crashes(_: Path, __: pytest.MonkeyPatch) -> Callable[[], None]:
    records = (record(), record("unclear", "EOFException", "Stream ended prematurely " * 5, fault="torn"))
    return lambda: print_tables(checkpoint.tables(CrashRecords(HEADER, records)))


def of_made_up_samples(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    (folder / "job.py").write_text("")
    seen = ProgramSeen(kind="program", case="job.py", sources=(ORDERS, CLICKS), queries=())
    monkeypatch.setattr(programs.Survey, "made", lambda *_, **__: seen)
    return lambda: CliRunner().invoke(app, ["sample", "job.py", "--from", "3.5"]).stdout


def of_a_new_case(folder: Path, _: pytest.MonkeyPatch) -> Callable[[], str]:
    def written() -> str:
        (folder / "late.yaml").unlink(missing_ok=True)
        return CliRunner().invoke(app, ["case", "new", "late.yaml"]).stdout

    return written


def of_a_recorded_case(folder: Path, _: pytest.MonkeyPatch) -> Callable[[], str]:
    case = folder / "cases" / "late-drops" / "window-still-open.yaml"
    case.parent.mkdir(parents=True)
    arguments = ["case", "record", f"{case.relative_to(folder)}", "--spark", "4.3", "--replace"]

    def recorded() -> str:
        case.write_text(BARE)
        return CliRunner().invoke(app, [*arguments, "--results", str(SAMPLE / "results.jsonl")]).stdout

    return recorded


def of_a_search(_: Path, __: pytest.MonkeyPatch) -> Callable[[], None]:
    """As `maintain fuzz` prints: cases, differences that are known, constructs that the model does not predict."""
    constructs = {f"the function sum_{number}": number for number in range(1, 30)}
    tally = Tally(200, known=Counter({(("late_watermark", "SPARK-40925"),): 7}), not_predicted=Counter(constructs))
    return lambda: print_answer(map(Text, fuzz._lines(FuzzOutcome(tally, 60.0, interrupted=False, asked=400), 3)))


ENGINES = {
    "sample": of_made_up_samples,
    "case-new": of_a_new_case,
    "case-record": of_a_recorded_case,
    "fuzz": of_a_search,
    "resume": of_a_checkpoint,
    "check": of_a_job,
    "explain-job": of_the_rows_of_a_job,
    "run": of_a_run,
    "upgrade": of_upgrades,
    "crash": of_crashes,
}


__all__ = ["run"]
"""The machine of the tests of targets, as a fixture."""


def test_the_targets_of_a_machine_have_it_too(run: Run, capsys, monkeypatch) -> None:
    outputs(capsys, monkeypatch, lambda: run().stdout, "targets-of-a-machine")


@pytest.mark.parametrize("name", ENGINES)
def test_an_answer_of_engines_has_it_too(name, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    outputs(capsys, monkeypatch, ENGINES[name](tmp_path, monkeypatch), name)
