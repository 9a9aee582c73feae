"""The sha256 of the packages that the suite installs itself: every pyspark, and the uv that makes environments."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

FILE = "hashes.txt"
"""Beside this module; ``tools/package_hashes.py`` writes it."""


@cache
def known() -> Mapping[str, str]:
    """Each requirement, such as ``pyspark==3.5.9``, with its line of a requirements file: it and the hashes of its files."""
    lines = (files("harness.environments") / FILE).read_text(encoding="utf-8").splitlines()
    return {line.partition(" ")[0]: line for line in lines if not line.startswith("#")}


def uv() -> str:
    """The requirement of the uv that is installed where there is none: ``uv==0.13.9``."""
    return next(requirement for requirement in known() if requirement.startswith("uv=="))


@contextmanager
def arguments(requirements: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The requirements as arguments of uv or pip; those with known hashes are in a file, which is the only place for hashes."""
    hashed = [known()[requirement] for requirement in requirements if requirement in known()]
    if not hashed:
        yield tuple(requirements)
        return
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        file = Path(folder, "requirements.txt")
        file.write_text("\n".join(hashed) + "\n", encoding="utf-8")
        yield ("-r", str(file), *(requirement for requirement in requirements if requirement not in known()))
