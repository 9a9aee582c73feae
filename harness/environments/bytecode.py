"""The bytecode of an environment: of what engines import, which is a third of its files."""

from __future__ import annotations

import os
from pathlib import Path

from conformance.core.child_process import OUTSIDE, run

_NEVER_IMPORTED = r"[/\\](.*[/\\])?(tests|examples|pyspark[/\\](pandas|ml|mllib))[/\\]"
"""Below the packages: a regular expression."""
_PROGRAM = """\
import compileall, re, sys, sysconfig
root = sysconfig.get_paths()["purelib"]
compileall.compile_dir(root, quiet=2, workers=0, rx=re.compile(re.escape(root) + sys.argv[1]))
"""


def compile_imported(python: Path) -> str | None:
    """Compile what engines import, in all cores. Other modules work too; they are compiled each time they are imported.

    Engines do not write bytecode, and importing pandas and pyspark takes a Python worker 4 s from source and 1 s from bytecode, of the
    10 s that Spark waits for it.

    Args:
        python: the interpreter of the environment.

    Returns:
        Why it failed, None if it did not. Files that are not valid in this Python are skipped.
    """
    command = [str(python), "-I", "-c", _PROGRAM, _NEVER_IMPORTED]
    ended = run(command, cwd=OUTSIDE, environ=os.environ)
    return (ended.stderr.strip().splitlines() or ["no message"])[-1] if ended.returncode else None
