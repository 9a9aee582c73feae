"""Whether a target can be run here, told without installing anything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.environments import java as javas
from harness.environments import provision, pythons
from harness.environments.environment import Environment
from harness.environments.installer import NoUv, Uv
from harness.environments.java import Java, NoSuchJava
from harness.environments.pythons import Python
from harness.targets.target import Target


@dataclass(frozen=True)
class Readiness:
    """What a target has, or would have, to run with on this machine."""

    target: Target
    prepared: Environment | None
    """Its environment, None where one would have to be made first."""
    python: Python | None
    """The interpreter an environment would be made with; None where uv would download one, and where one is prepared."""
    java: Java | None
    """The host's Java that serves, None where none does."""
    embedded: str | None
    """The JDK from PyPI that would stand in for it, None where none needs to, or none can."""
    obstacle: str | None
    """Why it cannot run here, None where it can."""


def of(target: Target, environ: Mapping[str, str] | None = None) -> Readiness:
    """Look, and change nothing."""
    environ = os.environ if environ is None else environ
    environment = provision.prepared(target, environ=environ)
    java, embedded, obstacle = _java(target, environ)
    python = None if environment else pythons.search(target.python, environ, _managed(environ)).best
    return Readiness(target, environment, python, java, embedded, obstacle)


def obstacle(target: Target) -> str | None:
    """Why the target cannot run on this machine, None where it can.

    A missing Python is none: uv downloads it. A missing Java is, unless a JDK from PyPI can stand in for it.
    """
    return _java(target, os.environ)[2]


def _java(target: Target, environ: Mapping[str, str]) -> tuple[Java | None, str | None, str | None]:
    try:
        return javas.find(target.java, environ), None, None
    except NoSuchJava as error:
        return (None, target.java.embedded, None) if provision.embeddable(target) else (None, None, str(error))


def _managed(environ: Mapping[str, str]) -> tuple[Path, ...]:
    try:
        return Uv(environ).managed_pythons()
    except NoUv:
        return ()
