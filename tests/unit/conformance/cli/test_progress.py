"""What a person sees while a run goes on: on a terminal, and in a log."""

import io

import pytest
from rich.console import Console

from conformance.cli import progress
from conformance.cli.console import SafeConsole, errors_console
from conformance.cli.progress import AnswerLine, Answers, CaseAnswers, EngineLines, FileRead
from conformance.core.observation import Identity
from conformance.judging.verdict import Verdict
from conformance.own_job.sample import read_sample
from harness.engine.engine import EngineLocation
from harness.scheduling.cell_run import CellTask
from tests.support.miniature.target import SPARK_359
from tests.support.observations import case

SPARK = Identity(protocol=1, spark="3.5.9", scala="2.12.18", java="17.0.1", python="3.11.2", os="Linux", apis=())

CELL = CellTask(case(id="late-drops/x"), (SPARK_359,))


def verdict(status):
    return Verdict("late-drops/x", SPARK_359.version, status)


def test_a_terminal_keeps_only_what_somebody_must_see():
    screen = io.StringIO()
    with CaseAnswers(2, Console(file=screen, force_terminal=True, color_system=None, width=120)) as display:
        display.engine_ready(SPARK_359, SPARK, EngineLocation("local"))
        display.judged(CELL, verdict("conforms"), 1.0)
        display.judged(CELL, verdict("violates"), 1.0)
        shown = display.progress.tasks[0]
        assert (shown.completed, shown.total) == (2, 2)
    written = screen.getvalue()
    assert "spark-3.5.9 late-drops/x: violates" in written
    assert "late-drops/x: conforms" not in written
    assert "Spark 3.5.9, Scala 2.12.18, Java 17.0.1, Python 3.11.2, local" in written


def test_a_log_has_a_line_for_every_cell(capsys):
    display = CaseAnswers(12, errors_console())
    display.engine_ready(SPARK_359, SPARK, EngineLocation("container", "registry/spark:3.5.9"))
    display.judged(CELL, verdict("conforms"), 1.25)
    engine, cell = capsys.readouterr().err.splitlines()
    versions = "Spark 3.5.9, Scala 2.12.18, Java 17.0.1, Python 3.11.2"
    assert engine == f"spark-3.5.9: {versions}, {EngineLocation('container', 'registry/spark:3.5.9')}"
    assert cell.startswith("[ 1/12] spark-3.5.9")
    assert cell.endswith("late-drops/x  1.2 s")


def test_a_long_run_counts_its_steps(capsys):
    screen = io.StringIO()
    with Answers("steps", 0, Console(file=screen, force_terminal=True, width=120), _line) as display:
        display.add(2, 30)
        display.step_done()
        display.judged(CELL, verdict("conforms"), 1.0)
        assert (display.progress.tasks[0].completed, display.progress.tasks[0].total) == (1, 30)
    display = Answers("steps", 0, errors_console(), _line)
    display.add(2, 30)
    for _ in range(7):
        display.step_done()
    display.judged(CELL, verdict("conforms"), 1.0)
    assert capsys.readouterr().err.splitlines() == ["3 of 30 steps", "6 of 30 steps", "[1/2] late-drops/x"]


@pytest.mark.parametrize("steps", [0, 3])
def test_cells_may_be_added_to_those_that_run(steps, capsys):
    for console in (Console(file=io.StringIO(), force_terminal=True, width=120), errors_console()):
        with Answers("answers", 0, console, _line) as display:
            for cells in (1, 2):
                display.add(cells, cells * steps)
                display.judged(CELL, verdict("conforms"), 1.0)
            assert display.progress.tasks[0].total == 3 * (steps or 1)
    assert capsys.readouterr().err.splitlines() == ["[1/1] late-drops/x", "[2/3] late-drops/x"]


def _line(task, verdict, seconds):
    return AnswerLine(task.case.id)


def test_a_log_says_that_a_large_file_is_read(tmp_path, monkeypatch, capsys):
    (tmp_path / "x.csv").write_text("a\n1\n")
    FileRead(tmp_path / "x.csv", errors_console())
    monkeypatch.setattr(progress, "_LARGE_FILE", 3)
    FileRead(tmp_path / "x.csv", errors_console())
    assert capsys.readouterr().err == f"reading {tmp_path / 'x.csv'}, 4 bytes\n"


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_bar_shows_how_much_of_a_file_has_been_read(suffix, tmp_path):
    file = tmp_path / f"x.{suffix}"
    match suffix:
        case "csv":
            file.write_text("a\n" + "1\n" * 9)
        case "jsonl":
            file.write_text('{"a": 1}\n' * 9)
        case _:
            parquet = pytest.importorskip("pyarrow.parquet")
            parquet.write_table(pytest.importorskip("pyarrow").table({"a": [1] * 9}), file)
    with FileRead(file, Console(file=io.StringIO(), force_terminal=True, width=120)) as bar:
        assert [row for (row,) in read_sample("x", file, watched=bar.watched).rows] == [1] * 9
        shown = bar.progress.tasks[0]
        assert shown.total == file.stat().st_size
        assert suffix == "parquet" or shown.completed == shown.total


@pytest.mark.parametrize("line", ["starting", "spark-3.5.9: starting"])
def test_a_target_is_named_once(line, capsys):
    EngineLines().engine_says(SPARK_359, line)
    assert capsys.readouterr().err == "spark-3.5.9: starting\n"


@pytest.mark.parametrize("line", ["[red]x", "closed by [/x]", "\x1b[2J"])
def test_what_an_engine_says_is_text(line):
    """On a terminal, brackets are not taken for rich markup, and an unknown tag does not stop the run."""
    screen = io.StringIO()
    with CaseAnswers(2, SafeConsole(file=screen, force_terminal=True, color_system=None, width=120)) as display:
        display.engine_says(SPARK_359, line)
    assert line.replace("\x1b", r"\x1b") in screen.getvalue()
