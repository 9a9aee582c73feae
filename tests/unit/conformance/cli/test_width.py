"""Each command writes for the width that it has: no line is longer, and no word is left out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from rich.cells import cell_len

from conformance.cli.console import SafeConsole, print_answer
from conformance.cli.job_options import statement_lines
from conformance.own_job.resumption import statements
from conformance.suite.discovery import shipped
from reports.results.crash import CrashRecords
from reports.results.published import upgrade_files
from reports.results.reading import Results
from reports.terminal.crashes import show as show_crashes
from reports.terminal.upgrades import show as show_upgrades
from tests.support.checkpoints import written_by
from tests.support.commands import answer_of
from tests.support.runs import cell
from tests.unit.conformance.own_job.test_resumption import RAN, failed, resumption
from tests.unit.reports.analysis.test_difference import SPARK, write
from tests.unit.reports.results.test_crash import HEADER, record

WIDTHS = (60, 80, 100, 160)
SAMPLE = Path(__file__).parents[3] / "browser" / "sample"
LATE = "late-drops/window-still-open"
FLOWING = [
    "checkpoint inspect outer_join-rocksdb --to 4.1",
    f"explain {LATE}",
    "explain late-drops/late-by-the-watermark-of-the-batch-before --from 2.4.8 --to 3.5.9",
    "eviction a>b --left a\\ 1\\ hour --right b\\ 1\\ day",
    "maintain diff a b",
]
"""Of these every word is there at each width; those below have tables, or say more where there is room."""
TABLES = [
    "targets",
    "gate --from 3.5.9 --to 4.3.0",
    "maintain policies",
    f"maintain policies {LATE}",
    f"explain {LATE} --policy all",
    "run policies --spark model",
    "maintain combine results.jsonl",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("widths")
    written_by("3.5.9", "outer_join-rocksdb", made)
    shutil.copy(SAMPLE / "results.jsonl", made)
    shutil.copytree(shipped() / "policies", made / "policies")
    for name, status in (("a", "conforms"), ("b", "violates")):
        write(made / name, [cell("late/a", SPARK), cell("late/b", SPARK, status)])
    return made


def outputs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, printed) -> list[str]:
    """What is printed on terminals of these widths, and into a file."""
    written = []
    for width in (*WIDTHS, None):
        if width is None:
            monkeypatch.delenv("COLUMNS")
        else:
            monkeypatch.setenv("COLUMNS", str(width))
        out = printed() or capsys.readouterr().out
        assert out.strip()
        assert [line for line in out.splitlines() if cell_len(line.rstrip()) > (width or 100)] == []
        assert "\x1b" not in out
        written.append(out)
    return written


@pytest.mark.parametrize("command", [*FLOWING, *TABLES])
def test_a_command_writes_for_the_width_that_it_has(command, folder, capsys, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    words = [word.replace("\0", " ") for word in command.replace("\\ ", "\0").split()]
    written = outputs(capsys, monkeypatch, lambda: answer_of(capsys, *words)[1])
    assert len({"".join(out.split()) for out in written}) == 1 or command in TABLES


def of_a_job() -> None:
    """As `check` and `checkpoint resume` print theirs."""
    refused = resumption(failed(1, "A_" + "LONG_" * 20 + "NAME"))
    print_answer(statement_lines([*statements(resumption(RAN)), *statements(refused)]), {}, as_json=False)


def of_upgrades() -> None:
    show_upgrades(Results.read(upgrade_files()["3.5"], condensed=True), SafeConsole())


def of_crashes() -> None:
    records = (record(), record("unclear", "EOFException", "Stream ended prematurely " * 5, fault="torn"))
    show_crashes(CrashRecords(HEADER, records), SafeConsole())


@pytest.mark.parametrize("printed", [of_a_job, of_upgrades, of_crashes])
def test_an_answer_of_engines_has_it_too(printed, capsys, monkeypatch) -> None:
    outputs(capsys, monkeypatch, printed)
