"""What a change touches: the cases whose files are not what they were at a revision, or all where the engine's program is not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from conformance.core.case import Case
from conformance.policies.case import PolicyCase

C = TypeVar("C", Case, PolicyCase)

_HARNESS = Path(__file__).parents[2] / "harness"
_TOUCHES_ALL = (
    _HARNESS / "driver",
    _HARNESS / "targets" / "tuning.yaml",
    _HARNESS / "targets" / "targets.yaml",
    _HARNESS.parent / "conformance" / "core" / "state_stores.yaml",
)


class NoHistory(ValueError):
    """Git does not tell what has changed."""

    exit_code = 2

    def __init__(self, revision: str, folder: Path, why: str) -> None:
        super().__init__(f"git does not tell what has changed in {folder} since {revision!r}: {why}")
        self.revision = revision
        self.folder = folder


def touched_since(revision: str, cases: Sequence[C]) -> tuple[C, ...]:
    """The cases that what has changed since a revision touches, committed or not.

    A case is touched by a change of its file, and every case by one of the driver, of targets or of engine settings, where these lie
    in a repository with history: those of an installed suite do not change.

    Args:
        revision: whatever git takes: ``main``, ``HEAD~3``, a tag.
        cases: what would run.

    Raises:
        NoHistory: there is no git, no repository around the cases, or no such revision in it.
    """
    changed: set[Path] = set()
    for top in sorted({_top(case.path.parent, revision) for case in cases}):
        changed |= _changed(top, revision)
    if any(path.is_relative_to(part) for path in changed for part in _TOUCHES_ALL):
        return tuple(cases)
    return tuple(case for case in cases if case.path.resolve() in changed)


def _top(folder: Path, revision: str) -> Path:
    return Path(_git(folder, revision, "rev-parse", "--show-toplevel").strip()).resolve()


def _changed(top: Path, revision: str) -> set[Path]:
    _git(top, revision, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    listed = _git(top, revision, "diff", "--name-only", "-z", revision, "--")
    listed += _git(top, revision, "ls-files", "--others", "--exclude-standard", "-z")
    return {top / name for name in listed.split("\0") if name}


def _git(folder: Path, revision: str, *arguments: str) -> str:
    program = shutil.which("git")
    if program is None:
        raise NoHistory(revision, folder, "there is no git on the PATH")
    done = subprocess.run([program, "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoHistory(revision, folder, done.stderr.strip() or "there is no such revision")
    return done.stdout
