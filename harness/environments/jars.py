"""Jars from Maven repositories, fetched once for all processes of a machine, and compared by SHA-256 each time they are used.

``fetch_with_dependencies`` resolves jars of which the coordinates are known, and all that they need, with the Ivy that every Spark ships.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from xml.sax.saxutils import quoteattr

from conformance.core.child_process import OUTSIDE, run
from conformance.core.temporary_folder import temporary_folder
from harness.environments.cache_directory import cache_dir, make_once
from harness.environments.environment import Environment
from harness.environments.java import NotAJava, candidates, inspect
from harness.errors import HarnessError
from harness.progress import ProgressCallback

CENTRAL = "https://repo1.maven.org/maven2"
_SECONDS = 900
_UNREACHABLE = ("server access error", "unknown host", "unknownhost", "timed out", "connection refused", "bad gateway")
_DAMAGED = ("invalid sha1", "invalid md5")
"""Ivy compares each file with the checksum that stands beside it in the repository, if one does."""
_MISSING = re.compile(r"(?:module not found: |:: )(\S+#\S+?)(?:: not found)?$")
_LEFT_OUT = "".join(f'<exclude org="{organisation}"/>' for organisation in ("org.apache.hadoop", "org.scala-lang"))
_JAR = re.compile(r"(.+?)-\d[^/]*\.jar")
_LISTED = "complete.txt"
"""The file of a folder of jars that lists the SHA-256 and the name of each, as ``sha256sum`` does, written when all were there."""


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
    """A module, or one that it needs, cannot be had. ``unreachable``: the repository fails, so that no other version is worth a try."""

    def __init__(self, wanted: Coordinate, why: str, *, unreachable: bool) -> None:
        super().__init__(f"cannot fetch {wanted} from Maven: {why}")
        self.unreachable = unreachable


def fetch_with_dependencies(
    wanted: Coordinate,
    name: str,
    environment: Environment,
    *,
    known: Mapping[str, str] = MappingProxyType({}),
    shipped: bool = False,
    on_progress: ProgressCallback,
    environ: Mapping[str, str] = os.environ,
) -> tuple[Path, ...]:
    """The jars of a module and of all that it needs, from the cache, in which ``name`` is their folder, or from the repository.

    Args:
        environment: whose Ivy is used, and whose Java if this machine has none of its own.
        known: the SHA-256 of jars by name. If that of the module is among them, no other jar is taken. Of the others, what was fetched
            first counts.
        shipped: whether Hadoop and Scala are left out, which Spark ships.

    Raises:
        JarsNotFetched: the repository lacks a module, has another file than the known one, or cannot be reached.
    """
    folder = cache_dir(environ) / "jars" / name

    def intact() -> Path | None:
        with suppress(OSError, ValueError):
            listed = _listed(folder)
            if (folder / _LISTED).read_text(encoding="utf-8") == listed and not _others(listed, wanted, known):
                return folder
        return None

    def retrieve() -> Path:
        if folder.exists():
            on_progress(f"the jars in {folder} are not those that were fetched")
        on_progress(f"fetching {wanted}")
        java, left_out = _java(environment, environ), _LEFT_OUT if shipped else ""
        return _retrieve(wanted, folder, environment, java, left_out, known)

    make_once(folder, intact, retrieve, on_progress)
    return tuple(sorted(folder.glob("*.jar")))


def known_jars(package: str, file: str) -> Mapping[str, str]:
    """The SHA-256 of jars by name, as a file of a package of this project has them."""
    return _by_name((files(package) / file).read_text(encoding="utf-8"))


def _by_name(listed: str) -> dict[str, str]:
    return {name: sha256 for sha256, _, name in (line.partition("  ") for line in listed.splitlines())}


def not_shipped(jars: Iterable[Path], environment: Environment) -> tuple[Path, ...]:
    """Those of the jars that the Spark of an environment does not have, whatever their version."""
    shipped = {_artifact(jar.name) for jar in (environment.spark_home / "jars").glob("*.jar")}
    return tuple(jar for jar in jars if _artifact(jar.name) not in shipped)


def _artifact(name: str) -> str:
    return jar[1] if (jar := _JAR.fullmatch(name)) else name


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _listed(folder: Path) -> str:
    return "".join(f"{_sha256(jar)}  {jar.name}\n" for jar in sorted(folder.glob("*.jar")))


def _others(listed: str, wanted: Coordinate, known: Mapping[str, str]) -> list[str]:
    """The jars that are not the known ones."""
    jars = _by_name(listed)
    all_known = any(name.startswith(f"{wanted.artifact}-") for name in jars.keys() & known.keys())
    return [name for name, sha256 in jars.items() if known.get(name, "" if all_known else sha256) != sha256]


def _java(environment: Environment, environ: Mapping[str, str]) -> Path:
    """A Java of this machine, which trusts the certificates that the machine trusts; one from PyPI knows only its own."""
    for _, binary in candidates(environ):
        with suppress(NotAJava):
            inspect(binary)
            return binary
    return environment.java_home / "bin" / "java"


def _retrieve(
    wanted: Coordinate, folder: Path, environment: Environment, java: Path, left_out: str, known: Mapping[str, str]
) -> Path:
    ivy = next((environment.spark_home / "jars").glob("ivy-*.jar"), None)
    if ivy is None:
        raise JarsNotFetched(wanted, f"{environment.spark_home} has no Ivy among its jars", unreachable=False)
    with temporary_folder(folder.parent) as scratch:
        module, jars = scratch / "ivy.xml", scratch / "jars"
        names = f"org={quoteattr(wanted.group)} name={quoteattr(wanted.artifact)} rev={quoteattr(wanted.version)}"
        module.write_text(
            '<ivy-module version="2.0"><info organisation="conformance" module="jars"/>'
            f'<dependencies><dependency {names} conf="default"/>{left_out}</dependencies></ivy-module>\n',
            encoding="utf-8",
        )
        # A cache of its own: Ivy's usual one is not safe when several processes use it.
        command = [str(java), "-cp", str(ivy), "org.apache.ivy.Main"]
        command += ["-ivy", str(module), "-cache", f"{scratch}/cache", "-confs", "default"]
        command += ["-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"]
        _run(command, wanted, environment)
        if not any(jars.glob("*.jar")):
            raise JarsNotFetched(wanted, "it has no jars", unreachable=False)
        listed = _listed(jars)
        if others := _others(listed, wanted, known):
            why = f"the repository has others than Maven Central had, which were not kept: {', '.join(others)}"
            raise JarsNotFetched(wanted, why, unreachable=True)
        (jars / _LISTED).write_text(listed, encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        return jars.rename(folder)


def _run(command: Sequence[str], wanted: Coordinate, environment: Environment) -> None:
    try:
        done = run(command, cwd=OUTSIDE, environ=environment.environ(), timeout=_SECONDS, merged=True)
    except subprocess.TimeoutExpired:
        raise JarsNotFetched(wanted, f"no answer within {_SECONDS} s", unreachable=True) from None
    except OSError as error:
        raise JarsNotFetched(wanted, f"Java does not start: {error.strerror}", unreachable=False) from None
    if done.returncode or "UNRESOLVED DEPENDENCIES" in done.stdout or "FAILED DOWNLOADS" in done.stdout:
        lines = [line.strip() for line in done.stdout.splitlines()]
        failed = next((line for line in lines if any(sign in line.lower() for sign in _UNREACHABLE + _DAMAGED)), None)
        missing = next((match[1] for line in lines if (match := _MISSING.search(line))), None)
        why = failed or (f"there is no {missing}" if missing else (lines or ["no output"])[-1])
        raise JarsNotFetched(wanted, why, unreachable=failed is not None)
