"""Lines of a terminal."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from rich.console import Console
from rich.text import Text

Detail = TypeVar("Detail")

MOST_ROWS = 24
"""The rows of a terminal that an answer takes, unless everything is asked for."""


def wrapped(line: Text, width: int) -> list[Text]:
    r"""Break a line into rows; those after the first are indented by two characters more than it. A line end in it is shown as ``\n``."""
    if "\n" in line.plain:
        line = Text(r"\n").join(line.split("\n"))
    if line.cell_len <= width:
        return [line]
    start = len(line.plain) - len(line.plain.lstrip())
    rows = line[start:].wrap(Console(width=width), max(width - start - 2, 1))
    for row in rows:
        row.rstrip()
    return [Text(" " * (start + 2 * (number > 0))).append_text(row) for number, row in enumerate(rows)]


def fitted(
    lines_of: Callable[[Detail], Iterable[Text]], details: Sequence[Detail], width: int, below: int = 0
) -> list[Text]:
    """Return the rows with the first of ``details`` that fits `MOST_ROWS` above ``below`` more rows, else with the last."""
    rows: list[Text] = []
    for detail in details:
        rows = [row for line in lines_of(detail) for row in wrapped(line, width)]
        if len(rows) + below <= MOST_ROWS:
            break
    return rows
