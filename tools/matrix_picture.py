"""Draws the matrix of the README from the published results: ``python -m tools.matrix_picture PICTURE FAMILY|CASE …``."""

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
from reports.results.published import published_results
from reports.results.reading import Results
from reports.terminal.matrix import drawn

PICTURE = FileKind("a picture", lambda start: start.startswith(b"<svg"))


def picture(results: Results, names: Collection[str]) -> str:
    """The rows of these families and cases as an SVG; equal results give equal bytes."""
    matrix = Matrix.of(results)
    chosen = tuple(case for name in names for case in matrix.families.get(name, (name,)))
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in drawn(replace(matrix, cases=chosen), console.width):
        console.print(line, soft_wrap=True, highlight=False)
    image = console.export_svg(title="conformance run --all --spark lines", unique_id="matrix")
    # Every system has a monospaced font; the picture must not download one.
    return re.sub(r"@font-face\s*\{.*?\}\s*", "", image, flags=re.DOTALL)


if __name__ == "__main__":
    out, *wanted = sys.argv[1:]
    write_file(Path(out), picture(published_results(), wanted), PICTURE)
