"""The CPythons of this machine, and the choice of one for a target."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version


@dataclass(frozen=True)
class Python:
    """A CPython of this machine."""

    executable: Path
    version: Version


def newest(pythons: Iterable[Python], wanted: SpecifierSet) -> Python | None:
    """The newest in the range, the first of equals; None if there is none."""
    # max keeps the first of equals, so the order of PATH decides among builds of the same version.
    return max(
        (python for python in pythons if python.version in wanted), key=lambda python: python.version, default=None
    )


def specifier(wanted: SpecifierSet) -> str:
    """A range with its lower end first: ``>=3.8,<3.12``."""
    return ",".join(str(one) for one in sorted(wanted, key=lambda one: Version(one.version.removesuffix(".*"))))


def search_path(environ: Mapping[str, str]) -> str:
    """The PATH on which uv looks for interpreters: this process's own first, then the host's, then all of pyenv's.

    pyenv's shims are left out: they only work for the versions that the current project has chosen.
    """
    own = Path(sys.base_prefix) if os.name == "nt" else Path(sys.base_prefix, "bin")
    folders = [str(own)]
    folders += [
        one for one in environ.get("PATH", "").split(os.pathsep) if one and not one.rstrip("/").endswith("/shims")
    ]
    for root in (environ.get("PYENV_ROOT"), environ.get("HOME") and f"{environ['HOME']}/.pyenv"):
        if root:
            folders += map(str, sorted(Path(root, "versions").glob("*/bin")))
    return os.pathsep.join(dict.fromkeys(folders))
