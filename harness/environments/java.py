"""The Java a target needs, and the Javas a machine has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from harness.errors import HarnessError
from harness.targets.java_need import JavaNeed

_SECONDS_TO_ANSWER = 60
_INSTALLED_UNDER = (
    "/usr/lib/jvm/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.asdf/installs/java/*",
)


@dataclass(frozen=True)
class Java:
    """A Java that was asked and answered."""

    home: Path
    version: str
    """As it says itself: ``17.0.15``, ``1.8.0_392``."""
    modules: frozenset[str] = field(repr=False)
    """Empty for Java 8, which knows no modules."""

    @property
    def major(self) -> int:
        """8, 11, 17 …"""
        first, *rest = re.split(r"[._-]", self.version)
        return int(rest[0] if first == "1" and rest else first)

    def shortcoming(self, need: JavaNeed) -> str | None:
        """Why it does not serve the need, None where it does."""
        if self.major not in need.majors:
            return f"is Java {self.version}"
        if missing := [module for module in need.modules if module not in self.modules]:
            return f"is Java {self.version} without the module {', '.join(missing)}"
        return None


class NoSuchJava(HarnessError):
    """No Java of this machine serves the need.

    Attributes:
        need: what was looked for.
        found: each place that was looked at, and why it does not serve.
    """

    def __init__(self, need: JavaNeed, found: Mapping[str, str]) -> None:
        places = [f"  {place} {why}" for place, why in found.items()] or ["  no Java at all"]
        super().__init__(
            "\n".join(
                [
                    f"{need} is needed. Looked in JAVA_HOME, on PATH and where Javas are usually installed, and found:",
                    *places,
                    f"Install a full JDK {need.majors[-1]} and point JAVA_HOME at it.",
                ]
            )
        )
        self.need = need
        self.found = dict(found)


class DoesNotRun(Exception):
    """A file that should be a Java is none; the text says why: ``fails with exit code 1: …``."""


def find(need: JavaNeed, environ: Mapping[str, str] | None = None) -> Java:
    """The first Java of this machine that serves: JAVA_HOME, then PATH, then the usual places.

    Raises:
        NoSuchJava: none does.
    """
    found: dict[str, str] = {}
    for place, binary in candidates(os.environ if environ is None else environ):
        try:
            java = ask(binary)
        except DoesNotRun as error:
            found[place] = str(error)
            continue
        why = java.shortcoming(need)
        if why is None:
            return java
        found[place] = why
    raise NoSuchJava(need, found)


def candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Where a Java may be, as what to call the place and the binary there; each binary once."""
    seen: set[Path] = set()
    for place, binary in _places(environ):
        real = binary.resolve()
        if real not in seen:
            seen.add(real)
            yield place, binary


def _places(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield f"JAVA_HOME={home}", Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield on_path, Path(on_path)
    for pattern in _INSTALLED_UNDER:
        for home_found in _matching(pattern, environ):
            if (home_found / "bin" / "java").exists():
                yield str(home_found), home_found / "bin" / "java"


def _matching(pattern: str, environ: Mapping[str, str]) -> Iterable[Path]:
    if pattern.startswith("~/"):
        if not (home := environ.get("HOME")):
            return ()
        return sorted(Path(home).glob(pattern.removeprefix("~/")))
    return sorted(Path("/").glob(pattern.removeprefix("/")))


def ask(binary: Path) -> Java:
    """Run a Java and hear its home, version and modules. Each is run once a process.

    Raises:
        DoesNotRun: it is not there, fails, or does not answer like a Java.
    """
    heard = _heard(binary)
    if isinstance(heard, DoesNotRun):
        raise heard
    return heard


@cache
def _heard(binary: Path) -> Java | DoesNotRun:
    try:
        return _run(binary)
    except DoesNotRun as error:
        return error


def _run(binary: Path) -> Java:
    settings = _output(binary, "-XshowSettings:properties", "-version")
    said = dict(re.findall(r"^\s+(java\.home|java\.version) = (.+?)\s*$", settings, re.MULTILINE))
    if said.keys() != {"java.home", "java.version"}:
        raise DoesNotRun(f"does not answer like a Java: {_tail(settings)}")
    java = Java(Path(said["java.home"]), said["java.version"], frozenset())
    if java.major < 9:
        return java
    modules = frozenset(line.split("@")[0] for line in _output(binary, "--list-modules").split())
    return Java(java.home, java.version, modules)


def _output(binary: Path, *arguments: str) -> str:
    try:
        answer = subprocess.run(
            [str(binary), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS_TO_ANSWER,
            check=False,
        )
    except FileNotFoundError:
        raise DoesNotRun(f"has no {binary}") from None
    except subprocess.TimeoutExpired:
        raise DoesNotRun(f"did not answer within {_SECONDS_TO_ANSWER} s") from None
    except OSError as error:
        raise DoesNotRun(f"does not start: {error.strerror}") from None
    if answer.returncode:
        raise DoesNotRun(f"fails with exit code {answer.returncode}: {_tail(answer.stdout)}")
    return answer.stdout


def _tail(text: str) -> str:
    return (text.strip().splitlines() or ["it says nothing"])[-1].strip()
