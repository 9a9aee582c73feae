"""Parts of a suite: the smoke cases, the cases with a tag, a shard for a machine, the cases that changed; how long each takes."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self, TypeVar

from conformance.core.case import Add, Backlog, Case, Restart, Step
from conformance.core.child_process import run, which
from conformance.core.errors import WrongUsage
from conformance.policies.case import PolicyCase

_RESTART = 3
"""Stopping a query and starting it again takes about as long as this many micro-batches."""


def estimated_batches(case: Case | PolicyCase) -> int:
    """The duration of a case, estimated as a number of micro-batches; none run for a policy case."""
    if not isinstance(case, Case):
        return 0

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
    def parse(cls, text: str) -> Self:
        """Read ``N/M`` with N from 1 to M; raise `WrongUsage` for any other text."""
        match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text.strip())
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise WrongUsage(f"{text!r} is not a shard; write 2/5 for the second of five parts")
        return cls(int(match[1]), int(match[2]))

    def among(self, cases: Sequence[C]) -> tuple[C, ...]:
        """The cases of this part, in their order. The parts take about equally long, and every case is in exactly one part."""
        mine = {case.id for case in sorted(cases, key=estimated_batches, reverse=True)[self.number - 1 :: self.of]}
        return tuple(case for case in cases if case.id in mine)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def affected_since(revision: str, cases: Sequence[C], code: Iterable[Path] = ()) -> tuple[C, ...]:
    """The cases affected by changes since a revision, committed or not.

    A change of its file or of a file whose rows it reads affects a case, and so does a link in the repository through which it reaches
    them, and a file that git does not compare. A case that runs code of its author is affected by every change that is not of a case, and
    by a file of ``code`` that git does not compare: the code may read any file. All cases are affected by a change of the driver, the
    targets or the engine settings, if these are in a repository with history (those of an installed suite do not change), of the user's
    ``pyproject.toml``, and of how git writes files. Changes outside the repository of the cases are not seen. Raises `WrongUsage` if git is
    not installed, the cases are not in a repository, or the revision names no single commit.
    """
    changed: set[Path] = set()
    compared: set[Path] = set()
    tops = {_top(case.path.parent.resolve(), revision) for case in cases}
    for top in sorted(tops):
        changed |= _changed(top, revision)
        # The others are those that git was asked not to look at. Source: git-ls-files, `-v`.
        compared |= {top / line[2:] for line in _listed(top, revision, "ls-files", "-v", "-z") if line.startswith("H ")}
    if any(_affects_all(path) for path in changed):
        return tuple(cases)

    def links_to(path: Path) -> frozenset[Path]:
        above = links(path.parent) if path != path.parent else frozenset()
        if not path.is_symlink():
            return above
        link = path.parent.resolve() / path.name
        within = {link} if any(link.is_relative_to(top) for top in tops) else set()
        return above | within | links(path.parent / path.readlink())

    links: Callable[[Path], frozenset[Path]] = cache(links_to)

    def reached(path: Path) -> set[Path]:
        return {path.resolve(), *links(path.absolute())}

    of_no_case = changed.difference(*(reached(case.path) for case in cases))
    any_code = bool(of_no_case or set(code) - compared)

    def is_affected(case: Case | PolicyCase) -> bool:
        files = reached(case.path)
        if isinstance(case, Case):
            if case.needs_code and any_code:
                return True
            files.update(*map(reached, case.row_files))
        return bool(files & changed or files - compared)

    return tuple(case for case in cases if is_affected(case))


def _affects_all(path: Path) -> bool:
    """Whether a changed file says how every case runs, or what git writes into every file."""
    settings = path.name == "pyproject.toml" and Path.cwd().is_relative_to(path.parent)
    return settings or path.name == ".gitattributes" or any(path.is_relative_to(part) for part in _AFFECTS_ALL)


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
    untracked = _listed(top, revision, "ls-files", "--others", "--exclude-standard", "-z")
    return {top / name for name in (*_listed(top, revision, "diff", *options, commit, "--"), *untracked)}


def _listed(top: Path, revision: str, *arguments: str) -> list[str]:
    return [line for line in _git(top, revision, *arguments).split("\0") if line]


def _git(folder: Path, revision: str, *arguments: str) -> str:
    if (program := which("git", os.environ)) is None:
        raise _no_history(revision, folder, "git is not on the PATH")
    # Git takes no other repository, tree, index or objects than those that stand here: not those of a hook that runs us, nor of an outer
    # folder, nor `core.worktree` or `git replace`.
    ours = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | ours
    command = [program, "-C", str(folder), f"--work-tree={folder}", "--literal-pathspecs", *_HARMLESS, *arguments]
    done = run(command, cwd=folder, environ=environ, errors="surrogateescape")
    if done.returncode != 0:
        raise _no_history(revision, folder, done.stderr.strip() or "no such revision")
    return done.stdout


def _no_history(revision: str, folder: Path, why: str) -> WrongUsage:
    return WrongUsage(f"git cannot list the changes in {folder} since {revision!r}: {why}")
