"""A command of ours, typed in some folder, of this tree; and what a folder holds."""

import os
import re
import subprocess
import sys
from pathlib import Path

from conformance.core.wording import counted
from reports.results.reading import Results
from tests.support.foreground import in_the_foreground

ROOT = Path(__file__).parents[2]


def conformance(folder, *words, **variables):
    """``conformance WORDS…``, to its end: the process, with what it printed, in lines that are not broken; with more variables."""
    return subprocess.run(
        [sys.executable, "-m", "conformance.cli.main", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "1000", **variables},
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


def disturbed(folder, disturb, *words, **variables):
    """The same, to its end; ``disturb`` is called after the first case that conforms. Returns its exit code and what it printed."""
    command, shown = start(folder, *words, COLUMNS="1000", **variables), []
    for line in command.stderr:
        shown.append(line)
        if "● conforms" in line and sum("● conforms" in earlier for earlier in shown) == 1:
            disturb()
    return command.wait(), "".join(shown) + command.stdout.read()


def resumed(folder, file, *words, **variables):
    """The same run with ``--resume``, which answers what is ``broken`` in its file and nothing else; what it printed."""
    before = _cells(folder / file)
    kept = {case: cell for case, cell in before.items() if cell[0] != "broken"}
    assert 0 < len(kept) < len(before)
    done = conformance(folder, *words, "--resume", **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"keeps {counted(len(kept), 'answer')} of {file}" in done.stderr
    ran = re.findall(r"^\[ *\d+/(\d+)\] \S+ +\S \S+ +(\S+)", done.stderr, re.MULTILINE)
    assert sorted(ran) == sorted((str(len(before) - len(kept)), case) for case in before.keys() - kept.keys())
    after = _cells(folder / file)
    assert {case: after[case] for case in kept} == kept
    assert {status for status, _ in after.values()} <= {"conforms", "differs"}
    return done.stdout + done.stderr


def _cells(file):
    """Case → its status, and all of its cell as text."""
    return {cell.case: (cell.status, cell.model_dump_json()) for cell in Results.read(file).cells}


def contents(folder):
    """Path → the bytes of each file below, to see that a command left them as they were."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
