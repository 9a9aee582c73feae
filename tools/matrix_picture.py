"""Draws the matrix of the README: ``python -m tools.matrix_picture RESULTS PICTURE FAMILY …``."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from conformance.core.output_file import FileKind, write_file
from reports.analysis.matrix import Matrix
from reports.results.reading import Results
from reports.terminal.matrix import draw

PICTURE = FileKind("a picture", lambda start: start.startswith(b"<svg"))


def picture(results: Results, families: Collection[str]) -> str:
    """The rows of these families as an SVG; equal results give equal bytes."""
    matrix = Matrix.of(results)
    chosen = tuple(case for family in families for case in matrix.families[family])
    console = Console(record=True, width=116, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    draw(replace(matrix, cases=chosen), console)
    drawn = console.export_svg(title="conformance run --all --spark lines", unique_id="matrix")
    # Every system has a monospaced font; the picture must not download one.
    return re.sub(r"@font-face\s*\{.*?\}\s*", "", drawn, flags=re.DOTALL)


if __name__ == "__main__":
    given, out, *wanted = sys.argv[1:]
    write_file(Path(out), picture(Results.read(Path(given)), wanted), PICTURE)
