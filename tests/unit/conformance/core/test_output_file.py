"""Output files: complete or as they were, and one writer at a time."""

import errno
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.core.output_file import (
    BeingWritten,
    CannotWriteFile,
    FileKind,
    OtherContent,
    OutputFile,
    any_content,
    write_file,
)

LETTER = FileKind("a letter", lambda start: start.startswith(b"Dear"))


def test_a_file_takes_its_place_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "letter"
    with OutputFile(path, LETTER) as file:
        file.write("Dear ")
        assert not path.exists()
        file.write("reader")
    assert path.read_text() == "Dear reader"
    assert [each.name for each in path.parent.iterdir()] == ["letter"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "letter"
    path.write_text("Dear all")

    def interrupted() -> None:
        with OutputFile(path, LETTER) as file:
            file.write("Dear nobody")
            raise error

    with pytest.raises(error):
        interrupted()
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"letter": "Dear all"}


def test_a_killed_writer_leaves_what_was_there_and_the_next_one_writes(tmp_path: Path) -> None:
    path = tmp_path / "letter"
    path.write_text("Dear all")
    program = (
        "import os, signal, sys; from pathlib import Path; from conformance.core.output_file import *\n"
        "file = OutputFile(Path(sys.argv[1]), FileKind('a letter', any_content)); file.write('Dear n')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert path.read_text() == "Dear all"
    assert (tmp_path / "letter.part").read_text() == "Dear n"
    write_file(path, "Dear reader", LETTER)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"letter": "Dear reader"}


def test_two_writers_never_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "letter"
    with OutputFile(path, LETTER) as first:
        with pytest.raises(BeingWritten, match=r"another run is writing .*letter; wait for it") as found:
            OutputFile(path, LETTER)
        first.write("Dear reader")
    assert found.value.exit_code == 2
    assert path.read_text() == "Dear reader"
    write_file(path, "Dear all", LETTER)
    assert path.read_text() == "Dear all"


def test_a_writer_that_waited_for_the_lock_does_not_write_over_the_file_that_took_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first completes between the second's opening of the file beside the place and its lock."""
    path = tmp_path / "letter"
    first = OutputFile(path, LETTER)
    first.write("Dear reader")
    opened = os.open

    def open_then_complete(*arguments: object) -> int:
        descriptor = opened(*arguments)  # type: ignore[arg-type]
        if not first.closed:
            first.complete()
        return descriptor

    monkeypatch.setattr(os, "open", open_then_complete)
    second = OutputFile(path, LETTER)
    assert path.read_text() == "Dear reader"
    second.discard()
    assert path.read_text() == "Dear reader"


@pytest.mark.parametrize("there", ["letter", "letter.part"])
def test_a_file_of_another_kind_is_not_replaced(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("title: a case")
    with pytest.raises(OtherContent, match=f"{there} exists and is not a letter; choose another name"):
        write_file(tmp_path / "letter", "Dear all", LETTER)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {there: "title: a case"}


def test_an_empty_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "letter").touch()
    write_file(tmp_path / "letter", "Dear all", LETTER)
    assert (tmp_path / "letter").read_text() == "Dear all"


def test_a_link_stays_a_link_and_a_mode_a_mode(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("Dear all")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_file(tmp_path / "link", "Dear reader", LETTER)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "Dear reader"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640


def test_a_link_that_somebody_planted_beside_the_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("Dear victim")
    (tmp_path / "letter.part").symlink_to(tmp_path / "victim")
    with pytest.raises(CannotWriteFile):
        write_file(tmp_path / "letter", "Dear all", LETTER)
    assert (tmp_path / "victim").read_text() == "Dear victim"


def test_a_device_is_written_in_place(tmp_path: Path) -> None:
    write_file(Path(os.devnull), "Dear all", LETTER)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "Dear all", LETTER)
    assert os.read(reader, 100) == b"Dear all"
    os.close(reader)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("letter", "cannot write .*letter: nobody reads this pipe; start its reader first"),
        ("letter.part", "cannot write .*letter: .*letter.part is not a regular file; remove it"),
    ],
)
def test_a_pipe_that_nobody_reads_is_not_waited_for(tmp_path: Path, place: str, why: str) -> None:
    os.mkfifo(tmp_path / place)
    program = (
        "import sys; from pathlib import Path; from conformance.core.output_file import *\n"
        "try: write_file(Path(sys.argv[1]), 'Dear all', FileKind('a letter', any_content))\n"
        "except CannotWriteFile as error: print(error); sys.exit(error.exit_code)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "letter")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, re.search(why, done.stdout) is not None) == (2, True), done.stdout


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, 3), (errno.EIO, 3), (errno.EROFS, 2), (errno.EACCES, 2), (errno.ENOENT, 2)]
)
def test_the_exit_code_says_whether_another_path_would_help(number: int, code: int) -> None:
    error = CannotWriteFile(Path("x"), OSError(number, os.strerror(number)))
    assert (error.exit_code, str(error)) == (code, f"cannot write x: {os.strerror(number)}")


def test_a_disk_that_fills_up_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "letter"
    path.write_text("Dear all")

    def fill() -> None:
        with OutputFile(path, FileKind("any", any_content)) as file:
            full = os.open("/dev/full", os.O_WRONLY)
            os.dup2(full, file.file.fileno())
            os.close(full)
            file.write("Dear reader")

    with pytest.raises(CannotWriteFile) as found:
        fill()
    assert (found.value.exit_code, path.read_text()) == (3, "Dear all")
    assert [each.name for each in tmp_path.iterdir()] == ["letter"]
