"""The result of a soak: a record to keep, and the lines that a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from rich.console import Console

from conformance.invariants.catalogue import Invariant
from conformance.invariants.verdict import InvariantVerdict, Status, StreamTotals

MARKS: Mapping[Status, tuple[str, str]] = {
    "holds": ("●", "green"),
    "broken": ("✗", "bold red"),
    "silent": ("–", "dim"),
}
"""Status → glyph and style."""

_INSTANTS = frozenset({"window_end", "watermark", "watermark_before", "before", "expected"})
"""Columns of the laws' answers that hold ms since the epoch."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LawRecord(_Record):
    """What the run says of a law."""

    name: str
    sentence: str
    source: str
    status: Status
    looked: int
    """How much it was held against, counted as ``what`` says."""
    what: str
    rows: tuple[dict[str, Any], ...]
    """The first that break it; instants are ms since the epoch."""

    @classmethod
    def of(cls, verdict: InvariantVerdict) -> LawRecord:
        law: Invariant = verdict.invariant
        return cls(
            name=law.name,
            sentence=law.sentence,
            source=law.source,
            status=verdict.status,
            looked=verdict.checked,
            what=law.checked_unit,
            rows=tuple(dict(row) for row in verdict.violations),
        )


class SoakRecord(_Record):
    """``soak.json``."""

    format: Literal[1] = 1
    command: str
    started: datetime
    target: str
    spark: str
    """The version, as the engine says it."""
    java: str
    master: str | None
    """Of the cluster; None for this machine."""
    rows: int
    seed: int
    kills_wanted: int
    kills: int
    """Engines that were killed in the middle of the query."""
    seconds: float
    """From the first start of the query to its end, with the starts of engines between."""
    arrived: int
    """Rows of the input. The next three are where they went."""
    counted: int
    late: int
    in_state: int
    laws: tuple[LawRecord, ...]

    @property
    def books(self) -> StreamTotals:
        return StreamTotals(self.arrived, self.counted, self.late, self.in_state)

    @property
    def exit_code(self) -> int:
        """0 every law holds; 1 one is broken; 3 fewer engines were killed than was asked for, so less was tried."""
        if not self.books.balanced or any(law.status == "broken" for law in self.laws):
            return 1
        return 0 if self.kills == self.kills_wanted else 3

    def write(self, path: Path) -> None:
        path.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


def show(record: SoakRecord, console: Console) -> None:
    """Print a line for each law, with the rows that break it, and where the rows of the input went."""
    for law in record.laws:
        glyph, style = MARKS[law.status]
        line = f"{glyph} {law.sentence}  ({law.looked:,} {law.what})"
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
        for row in law.rows:
            told = ", ".join(f"{name} {_value(name, value)}" for name, value in row.items())
            console.print(f"    {told}", markup=False, highlight=False, soft_wrap=True)
        if law.rows:
            console.print(f"    {law.source}", style="dim", markup=False, highlight=False, soft_wrap=True)
    books = record.books
    sign = "=" if books.balanced else "≠"
    console.print(
        f"{books.arrived:,} rows {sign} {books.counted:,} counted + {books.late:,} late + {books.in_state:,} in the state",
        style=None if books.balanced else "bold red",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    console.print(
        f"Spark {record.spark}, seed {record.seed}: {record.rows:,} rows in {record.seconds:.0f} s, "
        f"{record.rows / record.seconds:,.0f} rows a second, {record.kills} of {record.kills_wanted} kills",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _value(column: str, value: Any) -> str:
    if column in _INSTANTS and value is not None:
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return str(value)
