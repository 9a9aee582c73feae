"""The CPythons of this machine, and the choice of one for a target."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from harness.errors import HarnessError

_SECONDS_TO_ANSWER = 30
# Isolated (-I): a PYTHONPATH or a user's site-packages must not decide whether an interpreter works. `ssl` and `zlib`
# are what a half-built interpreter most often lacks, and what an installation needs.
_QUESTION = """\
import json, platform, ssl, sys, sysconfig, venv, zlib
print(json.dumps({
    "version": platform.python_version(),
    "implementation": sys.implementation.name,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
}))
"""


@dataclass(frozen=True)
class Python:
    """An interpreter that was asked and answered."""

    executable: Path
    version: Version
    implementation: str = "cpython"
    free_threaded: bool = False

    def shortcoming(self, wanted: SpecifierSet) -> str | None:
        """Why it does not serve, None where it does."""
        if self.implementation != "cpython":
            return f"is {self.implementation} {self.version}, not CPython"
        if self.free_threaded:
            return f"is a free-threaded {self.version}"
        if self.version not in wanted:
            return f"is {self.version}"
        return None


class NoSuchPython(HarnessError):
    """No interpreter of this machine is in the range, and none could be downloaded.

    Attributes:
        wanted: the range.
        found: each interpreter that was looked at, and why it does not serve.
    """

    def __init__(self, wanted: SpecifierSet, found: Mapping[Path, str], download: str) -> None:
        super().__init__(
            "\n".join(
                [
                    f"CPython {spelled(wanted)} is needed. Looked on PATH, in pyenv's and uv's interpreters, and found:",
                    *([f"  {path} {why}" for path, why in found.items()] or ["  none"]),
                    f"uv could not download one: {download}",
                    "Install one (with pyenv, your package manager or `uv python install`) and put it on PATH;",
                    "behind a mirror, UV_PYTHON_INSTALL_MIRROR says to uv where to download from.",
                ]
            )
        )
        self.wanted = wanted
        self.found = dict(found)


@dataclass(frozen=True)
class Search:
    """What a search for an interpreter found."""

    wanted: SpecifierSet
    best: Python | None
    """The newest in the range."""
    unfit: tuple[tuple[Path, str], ...]
    """Every other place, and why it does not serve."""


def spelled(wanted: SpecifierSet) -> str:
    """A range as people write it: ``>=3.8,<3.12``, the lower end first."""
    return ",".join(str(one) for one in sorted(wanted, key=lambda one: Version(one.version.removesuffix(".*"))))


def search(wanted: SpecifierSet, environ: Mapping[str, str] | None = None, managed: Iterable[Path] = ()) -> Search:
    """Ask every interpreter this machine has, and choose the newest in the range.

    Args:
        managed: further interpreters, such as those uv has downloaded.
    """
    paths = tuple(dict.fromkeys((*candidates(os.environ if environ is None else environ), *managed)))
    fit: list[Python] = []
    unfit: list[tuple[Path, str]] = []
    with ThreadPoolExecutor(max_workers=4) as several:
        for path, answer in zip(paths, several.map(ask, paths), strict=True):
            why = answer if isinstance(answer, str) else answer.shortcoming(wanted)
            if why is None and isinstance(answer, Python):
                fit.append(answer)
            elif why is not None:
                unfit.append((path, why))
    # max keeps the first of equals: the order of PATH decides among builds of the same version.
    return Search(wanted, max(fit, key=lambda python: python.version, default=None), tuple(unfit))


def candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    """Files that may be interpreters: this process's own, PATH, pyenv's. Some twice, under several names."""
    yield Path(sys.executable)
    for folder in environ.get("PATH", "").split(os.pathsep):
        # pyenv's shims answer only for the versions a project has chosen; the ones behind them are asked instead.
        if folder and not folder.rstrip("/").endswith("/shims"):
            yield from _interpreters(Path(folder))
    for root in (environ.get("PYENV_ROOT"), environ.get("HOME") and f"{environ['HOME']}/.pyenv"):
        if root:
            for version in sorted(Path(root, "versions").glob("*")):
                yield from _interpreters(version / "bin")


def _interpreters(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(
            entry.name for entry in folder.iterdir() if re.fullmatch(r"python(3(\.\d+)?)?(\.exe)?", entry.name)
        )
    except OSError:
        return
    seen: set[Path] = set()
    for name in names:
        real = (folder / name).resolve()
        if real not in seen:
            seen.add(real)
            yield folder / name


@cache
def ask(executable: Path) -> Python | str:
    """Run an interpreter and hear its version; a text says why it is none. Each is run once a process."""
    try:
        answer = subprocess.run(
            [str(executable), "-I", "-c", _QUESTION],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS_TO_ANSWER,
            check=False,
        )
        if answer.returncode:
            return f"fails: {(answer.stderr.strip().splitlines() or ['it says nothing'])[-1].strip()}"
        said = json.loads(answer.stdout)
        return Python(executable, Version(said["version"]), said["implementation"], said["free_threaded"])
    except subprocess.TimeoutExpired:
        return f"did not answer within {_SECONDS_TO_ANSWER} s"
    except OSError as error:
        return f"does not start: {error.strerror}"
    except (ValueError, KeyError, TypeError):
        return "does not answer like a Python"
