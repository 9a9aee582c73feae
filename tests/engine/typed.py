"""A command of ours, typed in some folder, of this tree."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def conformance(folder, *words):
    """``conformance WORDS…``, to its end: the process, with what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "conformance.cli.main", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
