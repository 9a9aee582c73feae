"""The result of a soak on a terminal: each invariant, what breaks it, and what became of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from conformance.invariants.verdict import Status
from reports.results.soak import SoakRecord

MARKS: Mapping[Status, tuple[str, str]] = {
    "holds": ("●", "green"),
    "broken": ("✗", "bold red"),
    "silent": ("–", "dim"),
}
"""Status → glyph and style."""

_INSTANTS = frozenset({"window_end", "watermark", "watermark_before", "before", "expected"})
"""Columns of the invariants' violations that are ms since the epoch."""


def show(record: SoakRecord, console: Console) -> None:
    """Print a line for each invariant, with the rows that break it, and what became of the input rows."""
    for invariant in record.invariants:
        glyph, style = MARKS[invariant.status]
        line = f"{glyph} {invariant.sentence}  ({invariant.looked:,} {invariant.what})"
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
        for row in invariant.rows:
            values = ", ".join(f"{name} {_value(name, value)}" for name, value in row.items())
            console.print(f"    {values}", markup=False, highlight=False, soft_wrap=True)
        if invariant.rows:
            console.print(f"    {invariant.source}", style="dim", markup=False, highlight=False, soft_wrap=True)
    totals = record.totals
    sign = "=" if totals.balanced else "≠"
    console.print(
        f"{totals.arrived:,} rows {sign} {totals.counted:,} counted + {totals.late:,} late + {totals.in_state:,} in state",
        style=None if totals.balanced else "bold red",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    console.print(
        f"Spark {record.spark}, seed {record.seed}: {record.rows:,} rows in {record.seconds:.0f} s, "
        f"{record.rows / record.seconds:,.0f} rows per second, {record.kills} of {record.kills_wanted} kills",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _value(column: str, value: Any) -> str:
    if column in _INSTANTS and value is not None:
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return str(value)
