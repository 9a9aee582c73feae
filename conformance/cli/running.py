"""What every command that runs engines does alike: it is interrupted in one way, and an engine becomes a record in one way."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console

from conformance.observation import Identity
from harness.engine import Place
from harness.target import Target
from reports.records import Target as TargetRecord

INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C has ended."""


@contextmanager
def said_when_interrupted(missing: Callable[[], int], results: Path, errors: Console) -> Iterator[None]:
    """Let SIGTERM end the engines as Ctrl-C does, and say how many cells are missing then.

    Raises:
        typer.Exit: it was interrupted.
    """
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    except KeyboardInterrupt:
        errors.print(
            f"interrupted: {results} lacks {missing()} cells and its footer; no engine is left running", markup=False
        )
        raise typer.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def introduced(target: Target, identity: Identity, place: Place) -> TargetRecord:
    """The record of an engine that has introduced itself."""
    return TargetRecord(
        name=target.name,
        spark=identity.spark,
        java=identity.java,
        python=identity.python,
        scala=identity.scala,
        os=identity.os,
        runtime=place.runtime,
        image=place.image,
        image_digest=place.image_digest,
    )


def _interrupt(*_: object) -> None:
    # Not by raising SIGINT: a process that a shell put in the background ignores that one.
    raise KeyboardInterrupt
