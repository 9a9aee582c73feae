"""Standard output: whoever reads it, and however little it takes."""

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.cli.console import SafeConsole, SafeStream, print_commands, print_error, safe_streams
from conformance.cli.main import main
from tests.support.runs import written

RUN = [sys.executable, "-m", "conformance"]


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        (["::error::x\n"], "\\::error::x\n"),
        ([" ", ":", ":error"], " :\\:error"),
        (["a\n", ":", ":b"], "a\n:\\:b"),
        (["a", "::b\n::c"], "a::b\n\\::c"),
        (["#", "#", "["], "##\\["),
        (["a\n##", "[error]"], "a\n##\\[error]"),
        (["x", ":", ":b", "\n", "std::x\n"], "x::b\nstd::x\n"),
    ],
)
def test_no_line_is_a_workflow_command_however_it_is_written(parts: list[str], shown: str) -> None:
    under = io.StringIO()
    stream = SafeStream(under)
    for part in parts:
        stream.write(part)
    assert under.getvalue() == shown


def test_commands_of_ours_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    with safe_streams():
        print("::error::x")
        print_commands("::error::ours\n")
        print_error("::error::\x1b[31mx")
    assert capsys.readouterr() == ("\\::error::x\n::error::ours\n", "\\::error::\\x1b[31mx\n")


def test_a_console_shows_what_would_act_on_a_terminal() -> None:
    out = io.StringIO()
    SafeConsole(file=out, width=40, force_terminal=True, color_system=None).print("a\x1b]0;x\u202e", markup=False)
    assert out.getvalue() == "a\\x1b]0;x\\u202e\n"


@pytest.mark.parametrize("changed", [False, True])
def test_a_reader_that_leaves_does_not_change_the_exit_code(tmp_path: Path, changed: bool) -> None:
    written(tmp_path / "r", statuses={("late/a", "spark-4.3.0"): "violates"} if changed else None)
    reading, writing = os.pipe()
    os.close(reading)
    combine = [*RUN, "maintain", "combine", str(tmp_path / "r")]
    done = subprocess.run(combine, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (int(changed), "")


def test_a_full_disk_behind_standard_output_is_one_line(tmp_path: Path) -> None:
    written(tmp_path / "r")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*RUN, "maintain", "combine", str(tmp_path / "r")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (3, "conformance: No space left on device\n")


@pytest.mark.parametrize(
    ("command", "code"), [("maintain combine r", 3), ("maintain combine nothing", 2), ("--debug maintain combine r", 3)]
)
def test_a_full_disk_behind_both_streams_leaves_the_exit_code(command: str, code: int, tmp_path: Path) -> None:
    written(tmp_path / "r")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    with Path("/dev/full").open("w") as full:
        words = [*RUN, *command.split()]
        done = subprocess.run(words, cwd=tmp_path, env=environ, stdout=full, stderr=full, check=False)
    assert done.returncode == code


@pytest.mark.parametrize(
    ("closed", "command", "code"),
    [
        (">&-", "maintain combine r", 0),
        ("<&- >&- 2>&-", "maintain combine r -o again", 0),
        ("2>&-", "maintain combine nothing", 2),
    ],
)
def test_a_closed_stream_does_not_change_the_exit_code(closed: str, command: str, code: int, tmp_path: Path) -> None:
    written(tmp_path / "r")
    words = shlex.join([*RUN, *command.split()])
    # In the folder of the results, this tree is still the one that is tested.
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    done = subprocess.run(
        ["sh", "-c", f"{words} {closed}"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (code, "")
    if "-o" in command:
        assert (tmp_path / "again").read_text() == (tmp_path / "r").read_text()


def test_an_ascii_terminal_without_a_width(tmp_path: Path) -> None:
    written(tmp_path / "r")
    environ = {**os.environ, "COLUMNS": "0", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    command = [*RUN, "maintain", "combine", str(tmp_path / "r")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\u25cf conforms 4" in done.stdout
    assert r"2 cases \xd7 2 versions: 4 conform; 0 violate" in done.stdout


@pytest.mark.parametrize("debug", [False, True])
def test_a_defect_is_one_line_and_its_place_is_shown_with_debug(
    debug: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "r")

    def broken(*_: object, **__: object) -> None:
        raise KeyError("a\n::error::b")

    monkeypatch.setattr("conformance.cli.combine.lines", broken)
    with pytest.raises(SystemExit) as stopped:
        main([*(["--debug"] if debug else []), "maintain", "combine", str(tmp_path / "r")])
    said = capsys.readouterr().err
    assert stopped.value.code == 3
    assert said.splitlines()[-1].startswith("conformance: a defect of this program: KeyError: 'a\\n::error::b'; `conf")
    assert ("Traceback" in said, said.count("\n") == 1) == (debug, not debug)
