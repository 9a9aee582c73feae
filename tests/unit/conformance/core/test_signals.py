"""A signal that stops a command leaves no temporary files, and a signal that is ignored stays ignored."""

import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.core import errors

ROOT = Path(__file__).parents[4]
STOPPING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]
STOPPED_WHILE_IT_WRITES = """
import os, signal, sys
from pathlib import Path
from conformance.cli import combine
from conformance.cli.main import main
from conformance.core.output_file import FileKind, OutputFile, any_content

def stopped(files):
    with OutputFile(Path(sys.argv[1]), FileKind("a file", any_content)) as file:
        file.write("half of it")
        os.kill(os.getpid(), int(sys.argv[2]))
        file.write("the other half")

combine.Results.read_all = stopped
main(["maintain", "combine", "results.jsonl"])
"""
STOPPED_RUN = """
import os, sys, tempfile
from conformance.runner.resources import RunInterrupted, interruptible
try:
    with interruptible(lambda: "nothing is left"), tempfile.TemporaryDirectory(dir=sys.argv[1]):
        os.kill(os.getpid(), int(sys.argv[2]))
except RunInterrupted as error:
    sys.exit(str(error))
"""

STOPPED_WHILE_IT_MAKES_A_CLASS = """
import os, sys
from conformance.cli import combine
from conformance.cli.main import main

class Field:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), int(sys.argv[1]))

combine.Results.read_all = lambda files: type("Row", (), {"field": Field()})
main(["maintain", "combine", "results.jsonl"])
"""
SWALLOWED = """
import os, sys, time
from conformance.core.errors import on_stop

class Freed:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))

try:
    with on_stop():
        freed = Freed()
        del freed
        time.sleep(20)
except KeyboardInterrupt:
    sys.exit(130)
"""


def run(program: str, *arguments: object, ignored: bool = False) -> subprocess.CompletedProcess[str]:
    handler = signal.SIG_IGN if ignored else signal.SIG_DFL

    def as_from_a_terminal() -> None:
        for number in STOPPING:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else handler)

    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=as_from_a_terminal)


@pytest.mark.parametrize("number", STOPPING, ids=lambda number: number.name)
def test_a_command_that_is_stopped_leaves_what_was_there(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "file").write_text("old")
    done = run(STOPPED_WHILE_IT_WRITES, tmp_path / "file", int(number))
    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"file": "old"}


def test_a_run_that_is_stopped_removes_its_working_folder(tmp_path: Path) -> None:
    done = run(STOPPED_RUN, tmp_path, int(signal.SIGHUP))
    assert done.stderr.strip() == "interrupted: nothing is left; no engine is left running"
    assert not any(tmp_path.iterdir())


def test_a_command_under_nohup_goes_on(tmp_path: Path) -> None:
    done = run(STOPPED_WHILE_IT_WRITES, tmp_path / "file", int(signal.SIGHUP), ignored=True)
    assert "Traceback" not in done.stderr
    assert (tmp_path / "file").read_text() == "half of itthe other half"


def test_ctrl_c_while_the_program_is_imported_is_no_traceback() -> None:
    """Python itself sends the signal, in the middle of the imports of what `pyproject.toml` names as the program."""
    module, _, function = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][
        "conformance"
    ].partition(":")
    script = f"""\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal, even if these tests run in the background
class CtrlC:
    def find_spec(self, name, *_):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, CtrlC())
from {module} import {function}
{function}()
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_a_signal_in_a_callback_that_swallows_its_exception_stops_the_command_all_the_same() -> None:
    done = run(SWALLOWED, int(signal.SIGTERM))
    assert (done.returncode, done.stderr) == (130, "")


def test_a_signal_that_comes_again_while_its_timer_is_being_started_comes_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[errors.Timer] = []

    class Interrupted(errors.Timer):
        def start(self) -> None:
            started.append(self)
            if len(started) == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(errors, "Timer", Interrupted)
    with errors.on_stop():
        sys.unraisablehook(SimpleNamespace(exc_type=KeyboardInterrupt))
    assert len(started) == 2


def test_a_command_that_is_stopped_while_it_makes_a_class_says_nothing_of_a_defect() -> None:
    done = run(STOPPED_WHILE_IT_MAKES_A_CLASS, int(signal.SIGQUIT))
    assert (done.returncode, "defect" in done.stderr) == (130, False), done.stderr
