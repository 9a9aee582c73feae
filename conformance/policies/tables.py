"""Readings as tables for a terminal: one policy entry by entry, or several side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Group
from rich.table import Table
from rich.text import Text

from conformance.policies import notation
from conformance.policies.catalogue import POLICIES, delay_of
from conformance.policies.probes import far_future_row, silent_input
from conformance.policies.reading import Moment, Reading
from conformance.policies.trace import Clock, Event

SHOWN = 8
"""How many late events or windows a cell names before it only counts."""


def one(reading: Reading) -> Group:
    """A reading, an entry of the trace a line; lines of the clock are left out, what it shows stands beside the others."""
    trace = reading.trace
    clocked = any(isinstance(entry, Clock) for entry in trace.entries)
    table = Table(box=None, pad_edge=False)
    columns = ["entry", *(["clock"] if clocked else []), "watermark", "operators have", "late", "windows complete"]
    for name in columns if trace.window else columns[:-1]:
        table.add_column(name, overflow="fold")
    for moment in reading.moments:
        if isinstance(moment.entry, Clock):
            continue
        cells = [
            f"{moment.number} {notation.entry(moment.entry, trace)}",
            *([_clock(moment, reading)] if clocked else []),
            notation.times(moment.watermarks, trace) + _idle(moment),
            _downstream(moment, reading),
            "late" if moment.late else "",
            ", ".join(f"until {notation.time(end, trace)}" for end in moment.closed),
        ]
        table.add_row(*(cells if trace.window else cells[:-1]))
    # Beside the table and not its title, which would be broken at the width of its columns.
    return Group(Text(f"{reading.rules}: {reading.rules.engine}", style="italic"), table)


def beside(readings: Sequence[Reading]) -> Iterator[Table]:
    """Readings of one trace under several policies: what each makes of it, and what each does in general."""
    here = Table(title="on this trace", title_justify="left", box=None, pad_edge=False)
    for name in ("policy", "late", "windows complete (at entry)", "watermark at the end"):
        here.add_column(name, overflow="fold")
    for reading in readings:
        here.add_row(
            reading.rules.name,
            late_events(reading),
            windows(reading) if reading.trace.window else "no windows",
            notation.time(reading.downstream, reading.trace),
        )
    yield here
    general = Table(title="in general", title_justify="left", box=None, pad_edge=False)
    for name in ("policy", "engine", "an input falls silent", "an input never speaks", "one far-future row"):
        general.add_column(name, overflow="fold")
    for reading in readings:
        rules, delay = reading.rules, delay_of(reading.rules)
        general.add_row(
            rules.name,
            rules.engine,
            silent_input(rules, delay, spoke=True),
            silent_input(rules, delay, spoke=False),
            far_future_row(rules, delay),
        )
    yield general


def late_events(reading: Reading) -> str:
    """``2 of 5: 12:01, 12:03``: the events that are late, in order of arrival."""
    late = [moment.entry for moment in reading.late if isinstance(moment.entry, Event)]
    events = sum(isinstance(entry, Event) for entry in reading.trace.entries)
    named = ", ".join(notation.time(event.at, reading.trace) for event in late[:SHOWN])
    more = f" and {len(late) - SHOWN} more" if len(late) > SHOWN else ""
    return f"{len(late)} of {events}{': ' * bool(late)}{named}{more}"


def windows(reading: Reading) -> str:
    """``until 12:10 (4), until 12:40 open``: the windows with events, by their end, each with the entry that completed it."""
    closed = [(moment.number, end) for end, moment in sorted(reading.closings.items(), key=lambda pair: pair[1].number)]
    parts = [
        f"until {', '.join(notation.time(end, reading.trace) for _, end in together)} ({number})"
        for number, together in groupby(closed, key=lambda pair: pair[0])
    ]
    if reading.open:
        parts.append(f"open: {', '.join(notation.time(end, reading.trace) for end in reading.open)}")
    more = len(parts) - SHOWN
    return "; ".join(parts[:SHOWN]) + (f"; and {more} more" if more > 0 else "")


def policies() -> Table:
    """The policies there are."""
    table = Table(box=None, pad_edge=False)
    for name in ("policy", "engine", "parameters", "what it does"):
        table.add_column(name, overflow="fold")
    for name, known in POLICIES.items():
        table.add_row(name, known.engine, ", ".join(known.parameters), known.meaning)
    return table


def _clock(moment: Moment, reading: Reading) -> str:
    return notation.entry(Clock(moment.now), reading.trace).removeprefix("clock ")


def _idle(moment: Moment) -> str:
    return f" (idle: {', '.join(moment.idle)})" if moment.idle else ""


def _downstream(moment: Moment, reading: Reading) -> str:
    shown = notation.time(moment.downstream, reading.trace)
    return shown if moment.emitted is None else f"→ {shown}"
