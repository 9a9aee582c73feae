"""The result of a soak on a terminal: each invariant, what breaks it, and what became of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from tools.soak.invariants import InvariantStatus
from tools.soak.record import SoakRecord

MARKS: Mapping[InvariantStatus, tuple[str, str]] = {
    "holds": ("●", "green"),
    "broken": ("✗", "bold red"),
    "silent": ("–", "dim"),
}

_INSTANTS = frozenset({"window_end", "watermark", "watermark_before", "before", "expected"})
"""The columns of the invariants' violations that are ms since the epoch."""


def show(record: SoakRecord, console: Console) -> None:
    """Print a line for each invariant with the rows that break it, and what became of the input rows."""
    for line in _lines(record):
        console.print(line, soft_wrap=True, highlight=False)


def _lines(record: SoakRecord) -> Iterator[Text]:
    for invariant in record.invariants:
        glyph, style = MARKS[invariant.status]
        yield Text(f"{glyph} {invariant.sentence}  ({invariant.looked:,} {invariant.what})", style=style)
        for row in invariant.rows:
            yield Text(f"    {', '.join(f'{name} {_value(name, value)}' for name, value in row.items())}")
        if invariant.rows:
            yield Text(f"    {invariant.source}", style="dim")
    totals = record.totals
    yield Text(
        f"{totals.arrived:,} rows {'=' if totals.balanced else '≠'} {totals.counted:,} counted + {totals.late:,} late + "
        f"{totals.in_state:,} in state",
        style="" if totals.balanced else "bold red",
    )
    yield Text(
        f"Spark {record.spark}, seed {record.seed}: {record.rows:,} rows in {record.seconds:.0f} s, "
        f"{record.rows / record.seconds:,.0f} rows per second, {record.kills} of {record.kills_wanted} kills"
    )


def _value(column: str, value: Any) -> str:
    if column in _INSTANTS and value is not None:
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return str(value)
