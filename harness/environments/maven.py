"""Jars from Maven repositories, fetched once for all processes by the Ivy that every Spark ships."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from filelock import FileLock

from conformance.core.child_process import OUTSIDE, run
from harness.environments.cache_directory import cache_dir
from harness.environments.environment import Environment
from harness.environments.java import NotAJava, candidates, inspect
from harness.errors import HarnessError
from harness.progress import ProgressCallback

_SECONDS = 900
_UNREACHABLE = ("server access error", "unknown host", "unknownhost", "timed out", "connection refused", "bad gateway")
_MISSING = re.compile(r"(?:module not found: |:: )(\S+#\S+?)(?:: not found)?$")
_LEFT_OUT = "".join(f'<exclude org="{organisation}"/>' for organisation in ("org.apache.hadoop", "org.scala-lang"))


@dataclass(frozen=True)
class Coordinate:
    """A module of a Maven repository."""

    group: str
    artifact: str
    version: str
    """``3.5.9``, or a range of Ivy: ``[3.5.0,3.5.9]`` is the newest in it."""

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


class JarsNotFetched(HarnessError):
    """A module, or one that it needs, cannot be had.

    Attributes:
        unreachable: whether the repository did not answer; if not, it lacks the module.
    """

    def __init__(self, wanted: Coordinate, why: str, *, unreachable: bool) -> None:
        super().__init__(f"cannot fetch {wanted} from Maven: {why}")
        self.unreachable = unreachable


def fetch(
    wanted: Coordinate,
    name: str,
    environment: Environment,
    *,
    shipped: bool = False,
    on_progress: ProgressCallback,
    environ: Mapping[str, str] = os.environ,
) -> tuple[Path, ...]:
    """The jars of a module and of all that it needs, from the cache or from the repository.

    Args:
        wanted: the module.
        name: of the folder in the cache.
        environment: whose Ivy is used, and whose Java if this machine has none of its own.
        shipped: whether Hadoop and Scala are left out, which Spark ships.
        environ: the host's variables, by default this process's.

    Raises:
        JarsNotFetched: the repository lacks a module, or cannot be reached.
    """
    folder = cache_dir(environ) / "jars" / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.is_dir():
                on_progress(f"fetching {wanted}")
                java = _java(environment, environ)
                _retrieve(wanted, folder, environment, java, _LEFT_OUT if shipped else "")
    return tuple(sorted(folder.glob("*.jar")))


def _java(environment: Environment, environ: Mapping[str, str]) -> Path:
    """A Java of this machine, which trusts the certificates that the machine trusts; one from PyPI knows only its own."""
    for _, binary in candidates(environ):
        try:
            inspect(binary)
        except NotAJava:
            continue
        return binary
    return environment.java_home / "bin" / "java"


def _retrieve(wanted: Coordinate, folder: Path, environment: Environment, java: Path, left_out: str) -> None:
    ivy = next((environment.spark_home / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        raise JarsNotFetched(wanted, f"{environment.spark_home} has no Ivy among its jars", unreachable=False)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as scratch:
        module, jars = Path(scratch, "ivy.xml"), Path(scratch, "jars")
        module.write_text(_module(wanted, left_out), encoding="utf-8")
        # A cache of its own: Ivy's usual one is not safe when several processes use it.
        command = [str(java), "-cp", str(ivy), "org.apache.ivy.Main"]
        command += ["-ivy", str(module), "-cache", f"{scratch}/cache", "-confs", "default"]
        command += ["-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"]
        _run(command, wanted, environment)
        if not any(jars.glob("*.jar")):
            raise JarsNotFetched(wanted, "it has no jars", unreachable=False)
        shutil.move(jars, folder)


def _module(wanted: Coordinate, left_out: str) -> str:
    names = f"org={quoteattr(wanted.group)} name={quoteattr(wanted.artifact)} rev={quoteattr(wanted.version)}"
    return (
        '<ivy-module version="2.0"><info organisation="conformance" module="jars"/>'
        f'<dependencies><dependency {names} conf="default"/>{left_out}</dependencies></ivy-module>\n'
    )


def _run(command: Sequence[str], wanted: Coordinate, environment: Environment) -> None:
    try:
        done = run(command, cwd=OUTSIDE, environ=environment.environ(), timeout=_SECONDS, merged=True)
    except subprocess.TimeoutExpired:
        raise JarsNotFetched(wanted, f"no answer within {_SECONDS} s", unreachable=True) from None
    except OSError as error:
        raise JarsNotFetched(wanted, f"Java does not start: {error.strerror}", unreachable=False) from None
    if done.returncode or "UNRESOLVED DEPENDENCIES" in done.stdout or "FAILED DOWNLOADS" in done.stdout:
        lines = [line.strip() for line in done.stdout.splitlines()]
        failed = next((line for line in lines if any(sign in line.lower() for sign in _UNREACHABLE)), None)
        missing = next((found[1] for line in lines if (found := _MISSING.search(line))), None)
        why = failed or (f"there is no {missing}" if missing else (lines or ["no output"])[-1])
        raise JarsNotFetched(wanted, why, unreachable=failed is not None)
