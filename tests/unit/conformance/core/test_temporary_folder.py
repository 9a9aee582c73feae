"""A temporary folder goes with its process, however that ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from conformance.core.temporary_folder import remove_leftovers, temporary_folder

HOLDS_ONE = """
import pathlib, sys
from conformance.core.temporary_folder import temporary_folder
with temporary_folder(pathlib.Path(sys.argv[1])) as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_it_is_removed_at_its_end_or_once_its_process_was_killed(tmp_path: Path) -> None:
    for others in ("conformance-results", "conformance-dir/.lock", "linked/.lock"):
        (tmp_path / others).mkdir(parents=True)
    (tmp_path / "conformance-link").symlink_to(tmp_path / "linked")
    others_there = {*tmp_path.iterdir()}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDS_ONE, tmp_path], stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdout is not None
        held = Path(child.stdout.readline().strip())
        with temporary_folder(tmp_path) as folder:
            assert {*tmp_path.iterdir()} == {held, folder, *others_there}
        assert not folder.exists()
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert [*remove_leftovers(tmp_path)] == [held]
    assert {*tmp_path.iterdir()} == others_there


def test_what_cannot_be_removed_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary_folder(tmp_path) as folder:
        monkeypatch.setattr("os.open", partial(denied, os.open))
    assert folder.exists()


def denied(real: Callable[..., int], path: str | Path, flags: int, *arguments: int, **options: int) -> int:
    """Open files for writing only, which locks need."""
    if not flags & (os.O_WRONLY | os.O_RDWR):
        raise PermissionError(13, "Permission denied", str(path))
    return real(path, flags, *arguments, **options)
