"""Parts of a suite: the smoke cases, the cases with a tag, a shard for a machine, the cases that changed; how long each takes."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from conformance.core.case import Add, Backlog, Case, Restart, Step
from conformance.core.child_process import run, which
from conformance.core.errors import WrongUsage
from conformance.policies.case import PolicyCase

_RESTART = 3
"""Stopping a query and starting it again takes about as long as this many micro-batches."""


def estimated_batches(case: Case) -> int:
    """The duration of a case, estimated as a number of micro-batches."""

    def batches(step: Step) -> int:
        match step.action:
            case Add():
                return 2  # the rows, and a no-data batch if the watermark has advanced
            case Backlog(entries=entries):
                return len(entries) + 1
            case Restart():
                return _RESTART
            case _:
                return 1

    return _RESTART + sum(map(batches, case.steps))


C = TypeVar("C", Case, PolicyCase)

_HARNESS = Path(__file__).parents[2] / "harness"
_AFFECTS_ALL = (
    _HARNESS / "driver",
    _HARNESS / "targets" / "tuning.yaml",
    _HARNESS / "targets" / "targets.yaml",
    _HARNESS.parent / "conformance" / "core" / "state_stores.yaml",
)

_HARMLESS = (
    *("-c", "safe.bareRepository=explicit", "-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}", "-c", "diff.external="),
)
"""No program of a checkout runs because we list its changes. Source: git-config, `safe.bareRepository`, `core.fsmonitor`."""


SMOKE = "smoke"
"""The tag of the cases that a run is about if nothing else is named: each family, and worked examples of the founding documents."""


@dataclass(frozen=True)
class SmokeCases:
    """How many of the cases a run is about, because nothing else was named."""

    cases: int
    of: int
    """How many ``--all`` would run."""

    def __str__(self) -> str:
        """``29 of 711 cases, those tagged smoke; `conformance run --all` runs all of them``."""
        return f"{self.cases} of {self.of} cases, those tagged {SMOKE}; `conformance run --all` runs all of them"


def only_tagged(cases: Sequence[C], tags: Sequence[str]) -> tuple[C, ...]:
    """The cases that have one of the tags; all cases if no tag is given."""
    return tuple(case for case in cases if not tags or set(tags) & set(case.tags))


@dataclass(frozen=True)
class Shard:
    """One of several parts of a suite: ``2/5`` is the second of five."""

    number: int
    """Parts are numbered from 1."""
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``N/M`` with N from 1 to M; raise `WrongUsage` for any other text."""
        match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text.strip())
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise WrongUsage(f"{text!r} is not a shard; write 2/5 for the second of five parts")
        return cls(int(match[1]), int(match[2]))

    def among(self, cases: Sequence[C]) -> tuple[C, ...]:
        """The cases of this part, in their order. The parts take about equally long, and every case is in exactly one part."""
        mine = {case.id for case in sorted(cases, key=_duration, reverse=True)[self.number - 1 :: self.of]}
        return tuple(case for case in cases if case.id in mine)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def affected_since(revision: str, cases: Sequence[C]) -> tuple[C, ...]:
    """The cases affected by changes since a revision, committed or not.

    A change of its file or of a file whose rows it reads affects a case, and so does a file that git does not track. A case that
    runs code of its author is affected by every change that is not of a case: the code may read any file. A change of the
    driver, the targets or the engine settings affects all cases, if these are in a repository with history; those of an
    installed suite do not change. Changes outside the repository of the cases are not seen. Raises `WrongUsage` if git is not installed,
    the cases are not in a repository, or the revision names no single commit.
    """
    changed: set[Path] = set()
    tracked: set[Path] = set()
    for top in sorted({_top(case.path.parent.resolve(), revision) for case in cases}):
        changed |= _changed(top, revision)
        tracked |= _files(top, revision, "ls-files", "-z")
    if any(path.is_relative_to(part) for path in changed for part in _AFFECTS_ALL):
        return tuple(cases)
    of_no_case = changed - {case.path.resolve() for case in cases}

    def is_affected(case: Case | PolicyCase) -> bool:
        files = {case.path.resolve()}
        if isinstance(case, Case):
            if case.needs_code and of_no_case:
                return True
            files |= case.row_files
        return bool(files & changed or files - tracked)

    return tuple(case for case in cases if is_affected(case))


def _duration(case: Case | PolicyCase) -> int:
    return estimated_batches(case) if isinstance(case, Case) else 0


def _top(folder: Path, revision: str) -> Path:
    """The working tree of a folder: the nearest folder above with a ``.git``. Git itself would take a checked-out folder that is shaped
    like a bare repository for one, and obey its ``config``."""
    top = next((candidate for candidate in (folder, *folder.parents) if (candidate / ".git").exists()), None)
    if top is None:
        raise _no_history(revision, folder, "it is not in a git repository")
    return top


def _changed(top: Path, revision: str) -> set[Path]:
    named = _git(top, revision, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    commit = named.strip()
    if not re.fullmatch("[0-9a-f]+", commit):  # for ``^HEAD``, git answers with an exclusion
        raise _no_history(revision, top, "it names no single commit")
    options = ("--no-ext-diff", "--no-textconv", "--no-renames", "--name-only", "-z")
    untracked = _files(top, revision, "ls-files", "--others", "--exclude-standard", "-z")
    return _files(top, revision, "diff", *options, commit, "--") | untracked


def _files(top: Path, revision: str, *arguments: str) -> set[Path]:
    """The files that a command of git lists, separated by zero bytes."""
    return {top / name for name in _git(top, revision, *arguments).split("\0") if name}


def _git(folder: Path, revision: str, *arguments: str) -> str:
    program = which("git", os.environ)
    if program is None:
        raise _no_history(revision, folder, "git is not on the PATH")
    command = [program, "-C", str(folder), "--literal-pathspecs", *_HARMLESS, *arguments]
    done = run(command, cwd=folder, environ=os.environ, errors="surrogateescape")
    if done.returncode != 0:
        raise _no_history(revision, folder, done.stderr.strip() or "no such revision")
    return done.stdout


def _no_history(revision: str, folder: Path, why: str) -> WrongUsage:
    return WrongUsage(f"git cannot list the changes in {folder} since {revision!r}: {why}")
