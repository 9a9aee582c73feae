"""A command of ours, typed in some folder, of this tree; and what a folder holds."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.foreground import in_the_foreground

ROOT = Path(__file__).parents[2]


def conformance(folder, *words):
    """``conformance WORDS…``, to its end: the process, with what it printed, in lines that are not broken."""
    return subprocess.run(
        [sys.executable, "-m", "conformance.cli.main", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "1000"},
        capture_output=True,
        text=True,
    )


def start(folder, *words, **variables):
    """The same, let go on, as from a terminal; with more variables."""
    return subprocess.Popen(
        [sys.executable, "-m", "conformance.cli.main", *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=in_the_foreground,
    )


def contents(folder):
    """Path → the bytes of each file below, to see that a command left them as they were."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
