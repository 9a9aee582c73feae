"""Whether a target can run on this machine, found out without installing anything."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.environments import java as javas
from harness.environments import provision, pythons, uv_program
from harness.environments.environment import Environment
from harness.environments.installer import Uv
from harness.environments.java import Java, NoSuchJava
from harness.environments.pythons import Python
from harness.errors import HarnessError
from harness.targets.target import Target


class CannotRunHere(HarnessError):
    """This machine cannot run a target that was chosen by name."""

    def __init__(self, target: Target) -> None:
        major = target.java.majors[-1]
        super().__init__(
            f"{target} needs {target.java}, and this machine has none that fits: install a JDK {major} (a package such as"
            f" openjdk-{major}-jdk, or sdkman) and set JAVA_HOME_{major} to its folder,"
            f" or use an image: --runtime container --image {target.version.line}=IMAGE"
        )
        self.target = target


@dataclass(frozen=True)
class Readiness:
    """What a target uses, or would use, on this machine."""

    target: Target
    prepared: Environment | None
    """Its environment; None if it has to be made first."""
    python: Python | None
    """The interpreter for a new environment; None if uv would download one, or if the environment exists."""
    java: Java | None
    """The Java of this machine that it uses; None if there is none."""
    embedded: str | None
    """The JDK from PyPI that it uses instead; None if it needs none, or if there is none."""
    obstacle: str | None
    """Why it cannot run here; None if it can."""


def check(target: Target, environ: Mapping[str, str] = os.environ) -> Readiness:
    """Find out, without changing anything."""
    environment = provision.prepared(target, environ=environ)
    java, embedded, obstacle = _java(target, environ)
    python = None if environment else pythons.newest(_pythons(environ), target.python)
    return Readiness(target, environment, python, java, embedded, obstacle)


def obstacle(target: Target) -> str | None:
    """Why the target cannot run on this machine; None if it can.

    A missing Python does not matter, since uv downloads it. A missing Java is one, unless a JDK from PyPI replaces it.
    """
    return _java(target, os.environ)[2]


def check_those_by_name(targets: Iterable[Target]) -> None:
    """Before anything runs: few machines can run a target that is chosen by name.

    Raises:
        CannotRunHere: this one cannot.
    """
    for target in targets:
        if target.by_name and obstacle(target) is not None:
            raise CannotRunHere(target)


def _java(target: Target, environ: Mapping[str, str]) -> tuple[Java | None, str | None, str | None]:
    try:
        return javas.find(target.java, environ), None, None
    except NoSuchJava as error:
        return (None, target.java.embedded, None) if provision.embeddable(target) else (None, None, str(error))


def _pythons(environ: Mapping[str, str]) -> tuple[Python, ...]:
    uv = uv_program.find(environ)
    return () if uv is None else Uv(uv, environ).pythons()
