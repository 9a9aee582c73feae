"""A child process that is let to end by itself."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.engine.transport import SubprocessTransport

AT_REST = "import sys; sys.stdin.read()"
CHILD_WRITES_LATER = """
import subprocess, sys
child = "import pathlib, sys; sys.stdin.read(); pathlib.Path(sys.argv[1]).write_text('written')"
subprocess.Popen([sys.executable, "-c", child, sys.argv[1]])
"""
DEAF = "import threading; threading.Event().wait()"


def started(program: str, *arguments: str) -> SubprocessTransport:
    transport = SubprocessTransport([sys.executable, "-c", program, *arguments])
    for read in (transport.answers, transport.log):
        threading.Thread(target=lambda read=read: [*read()], daemon=True).start()
    return transport


def test_it_is_awaited_with_what_it_started(tmp_path: Path) -> None:
    file = tmp_path / "file"
    transport = started(CHILD_WRITES_LATER, str(file))
    assert transport.finish(60)
    assert file.read_text() == "written"
    transport.close()


def test_one_that_does_not_end_is_not_awaited_for_ever() -> None:
    transport = started(DEAF)
    assert not transport.finish(0.01)
    transport.close()
    assert transport.ending() == "signal SIGTERM"


def test_it_may_be_closed_already() -> None:
    transport = started(AT_REST)
    transport.close()
    assert transport.finish(60)


def test_a_read_that_fails_ends_it_and_is_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Iterator[str]:
        raise OSError(5, "Input/output error")
        yield

    monkeypatch.setattr("harness.engine.transport.bounded_lines", fails)
    transport = SubprocessTransport([sys.executable, "-c", DEAF])
    assert [*transport.answers()] == []
    assert transport.ending() == "a read of its answers that failed (Input/output error)"
    transport.close()


class EndsAfterHalfAMinute:
    """A process of a gigabyte on a busy machine."""

    pid, returncode = 0, -9

    def wait(self, timeout: float) -> int:
        if timeout < 30:
            raise subprocess.TimeoutExpired("java", timeout)
        return self.returncode


def test_one_that_takes_its_time_to_end_was_killed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = started(AT_REST)
    with monkeypatch.context() as patched:
        patched.setattr(transport, "_process", EndsAfterHalfAMinute())
        patched.setattr("harness.engine.transport.os.killpg", lambda group, signal: None)
        transport.kill()
        assert transport.ending() == "signal SIGKILL"
    transport.close()
