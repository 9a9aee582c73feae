"""A command of ours, and what other users and programs of the machine can see of the processes that it starts."""

import os
import subprocess
import sys
from dataclasses import dataclass, field

import psutil

from tests.engine.typed import ROOT

EVERY_S = 0.05


@dataclass
class Seen:
    """Of every process that the command started."""

    returncode: int = 0
    output: str = ""
    arguments: set[str] = field(default_factory=set)
    """As ``ps`` shows them to everybody."""
    variables: set[str] = field(default_factory=set)
    """Which only their user can read."""


def watched(folder, *words):
    """``conformance WORDS…``, to its end."""
    seen = Seen()
    with (folder / "output.txt").open("w+", encoding="utf-8") as output:
        run = psutil.Popen(
            [sys.executable, "-m", "conformance.cli.main", *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "1000"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        while True:
            try:
                seen.returncode = run.wait(EVERY_S)
                break
            except psutil.TimeoutExpired:
                _look(run, seen)
        output.seek(0)
        seen.output = output.read()
    return seen


def _look(run, seen):
    for process in (run, *run.children(recursive=True)):
        try:
            seen.arguments.add(" ".join(process.cmdline()))
            seen.variables.update(f"{name}={value}" for name, value in process.environ().items())
        except psutil.Error:
            continue
