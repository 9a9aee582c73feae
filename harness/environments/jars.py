"""Jars of Maven Central with known content: fetched once for a machine, checked each time, without a Spark.

``maven`` resolves jars of which only the coordinates are known, and all that they need, with the Ivy of a Spark.
"""

from __future__ import annotations

import hashlib
import os
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from harness.environments.cache_directory import cache_dir
from harness.errors import HarnessError
from harness.progress import ProgressCallback, ignore_progress

CENTRAL = "https://repo1.maven.org/maven2"
_SECONDS_WITHOUT_AN_ANSWER = 60


@dataclass(frozen=True)
class Jar:
    """A published jar."""

    coordinates: str
    """``group:artifact:version``."""
    sha256: str

    @property
    def name(self) -> str:
        """``flink-core-1.20.5.jar``."""
        _, artifact, version = self.coordinates.split(":")
        return f"{artifact}-{version}.jar"

    @property
    def address(self) -> str:
        group, artifact, version = self.coordinates.split(":")
        return f"{CENTRAL}/{group.replace('.', '/')}/{artifact}/{version}/{self.name}"


class NoJar(HarnessError):
    """A jar cannot be had.

    Attributes:
        jar: the jar.
        path: where it would lie.
    """

    def __init__(self, jar: Jar, path: Path, why: str) -> None:
        super().__init__(
            f"{jar.address} cannot be had: {why}.\nWithout a connection, put the file at {path}; it must have the SHA-256 {jar.sha256}."
        )
        self.jar = jar
        self.path = path


def fetch(
    jar: Jar, environ: Mapping[str, str] = os.environ, *, on_progress: ProgressCallback = ignore_progress
) -> Path:
    """The path of a jar in the cache directory. One that is missing or damaged is downloaded, by one process at a time.

    Raises:
        NoJar: Maven Central does not answer, or answers with another file.
    """
    path = cache_dir(environ) / "jars" / jar.name
    if _is_complete(jar, path):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        if _is_complete(jar, path):
            return path
        on_progress(f"downloading {jar.name}")
        try:
            with urllib.request.urlopen(jar.address, timeout=_SECONDS_WITHOUT_AN_ANSWER) as answer:
                content = answer.read()
        except OSError as error:
            raise NoJar(jar, path, str(error)) from None
        if (found := hashlib.sha256(content).hexdigest()) != jar.sha256:
            raise NoJar(jar, path, f"what was downloaded has the SHA-256 {found}")
        part = path.with_suffix(".part")
        part.write_bytes(content)
        part.replace(path)
    return path


def _is_complete(jar: Jar, path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except FileNotFoundError:
        return False
