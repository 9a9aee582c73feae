"""Whether a target can be run here, told without installing anything."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from harness import java as javas
from harness import provision, pythons
from harness.installer import NoUv, Uv
from harness.java import NoSuchJava
from harness.target import Target


@dataclass(frozen=True)
class Readiness:
    """What a target would run with on this machine."""

    target: Target
    python: str
    """Which interpreter, and where it was found."""
    java: str | None
    """Which Java, and where it was found; None where none serves."""
    prepared: bool
    """Whether nothing needs to be installed any more."""
    obstacle: str | None
    """Why it cannot run here, None where it can."""


def of(target: Target, environ: Mapping[str, str] | None = None) -> Readiness:
    """Look, and change nothing."""
    environ = os.environ if environ is None else environ
    obstacle = None
    java: str | None = None
    try:
        found = javas.find(target.java, environ)
        java = f"{found.version} ({found.home})"
    except NoSuchJava as error:
        if provision.embeddable(target):
            java = f"embedded ({target.java.embedded})"
        else:
            obstacle = str(error)
    return Readiness(
        target=target,
        python=_python(target, environ),
        java=java,
        prepared=provision.is_prepared(target, environ=environ),
        obstacle=obstacle,
    )


def obstacle(target: Target) -> str | None:
    """Why the target cannot run on this machine, None where it can."""
    return of(target).obstacle


def _python(target: Target, environ: Mapping[str, str]) -> str:
    if target.installed is not None:
        return f"{'.'.join(map(str, sys.version_info[:3]))} ({sys.executable})"
    try:
        managed = Uv(environ).managed_pythons()
    except NoUv:
        managed = ()
    best = pythons.search(target.python, environ, managed).best
    return f"{best.version} ({best.executable})" if best is not None else f"{target.python}, downloaded by uv"
