"""What commands show of policies: tables, JSON, and how a policy behaves in general.

The traces that show how a policy behaves in general are scaled to a delay, so that policies with the same delay can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from conformance.core.case import Case
from conformance.policies.case import PolicyCase, PolicyMismatch
from conformance.policies.catalogue import POLICIES, comparable, delay_of
from conformance.policies.engine_rules import EngineRules
from conformance.policies.from_case import trace_of
from conformance.policies.replay import Replay, ReplayStep, as_expectation, replay
from conformance.policies.trace import Boundary, ClockReading, Event, IdlePoll, Trace, TraceEntry

_STEPS = 20
_ROWS = 20
"""Rows per micro-batch: enough that a quantile ignores one of them."""


def silent_input(rules: EngineRules, delay: int, *, spoke: bool) -> str:
    """What happens to the watermark when one of two inputs is silent, in a short phrase.

    Args:
        rules: of the policy.
        delay: how long the policy waits, in milliseconds.
        spoke: whether the silent input had an event before.
    """
    unit = max(delay, 1)
    base = 1000 * unit
    entries: list[TraceEntry] = [ClockReading(base), Event(base, "on"), Boundary(), IdlePoll("off")]
    if spoke:
        entries.insert(2, Event(base, "off"))
    for step in range(1, _STEPS + 1):
        now = base + step * unit
        entries += [ClockReading(now), Event(now, "on"), Boundary(), IdlePoll("off")]
    replayed = replay(Trace(tuple(entries), ("on", "off")), rules)
    last = replayed.steps[-1]
    if last.downstream >= last.watermarks["on"] - 2 * unit:
        if rules.one_task:
            return "not waited for"
        return "left out" if "off" in last.idle else "follows the clock"
    first = next(step for step in replayed.steps if isinstance(step.entry, IdlePoll))
    if last.watermarks["off"] > first.watermarks["off"]:
        return "waited for, at its last event"
    return "waited for"


def far_future_row(rules: EngineRules, delay: int) -> str:
    """How many rows are late after one row from the far future, if event times otherwise follow the clock.

    Args:
        rules: of the policy.
        delay: how long the policy waits, in milliseconds.
    """
    unit = max(delay, 1)
    base = 1000 * unit
    entries: list[TraceEntry] = []
    for step in range(6):
        now = base + step * unit
        entries.append(ClockReading(now))
        entries += [Event(now - row * unit // (2 * _ROWS)) for row in range(_ROWS)]
        if step == 3:
            entries.append(Event(base + 1_000_000 * unit))
        entries.append(Boundary())
    replayed = replay(Trace(tuple(entries), window=unit), rules)
    after = [step for step in replayed.steps if isinstance(step.entry, Event) and step.now > base + 3 * unit]
    late = sum(bool(step.late) for step in after)
    if not late:
        return "no later row is late"
    return "all later rows are late" if late == len(after) else f"{late} of {len(after)} later rows are late"


def record(replayed: Replay) -> dict[str, Any]:
    """A replay with all its steps, times in the unit of the trace."""
    rules, delay = replayed.rules, delay_of(replayed.rules)
    return {
        "policy": rules.name,
        "engine": rules.engine,
        "parameters": {
            name: value if isinstance(value, int | str) else float(value) for name, value in rules.parameters.items()
        },
        "assumptions": list(replayed.trace.assumptions),
        "moments": [_step(step, replayed) for step in replayed.steps],
        "failure": replayed.failure,
        "late": [step.number for step in replayed.late],
        "windows": {str(end): step.number for end, step in replayed.completions.items()},
        "open": list(replayed.open),
        "inGeneral": {
            "anInputFallsSilent": silent_input(rules, delay, spoke=True),
            "anInputNeverSpeaks": silent_input(rules, delay, spoke=False),
            "oneFarFutureRow": far_future_row(rules, delay),
        },
    }


def record_of(case: PolicyCase, mismatch: PolicyMismatch) -> dict[str, Any]:
    """An expectation that a replay does not meet."""
    return {
        "case": case.id,
        "path": str(case.path),
        "line": mismatch.line,
        "step": mismatch.step,
        "key": mismatch.key,
        "expected": mismatch.expected,
        "read": mismatch.actual,
    }


def record_of_policies() -> list[dict[str, Any]]:
    """Every policy, with its parameters and source."""
    return [
        {
            "policy": name,
            "engine": policy.engine,
            "meaning": policy.meaning,
            "source": policy.source,
            "parameters": {one: parameter.meaning for one, parameter in policy.parameters.items()},
        }
        for name, policy in POLICIES.items()
    ]


def _step(step: ReplayStep, replayed: Replay) -> dict[str, Any]:
    return {
        "number": step.number,
        "entry": replayed.trace.format_entry(step.entry),
        "clock": step.now,
        **{key: list(value) if isinstance(value, tuple) else value for key, value in as_expectation(step).items()},
    }


ALL = "all"

SHOWN = 8
"""How many late events or windows a cell lists before it only counts them."""


@dataclass(frozen=True)
class PolicyView:
    """One trace, replayed under one or several policies."""

    trace: Trace
    replays: Sequence[Replay]

    def renderables(self) -> Iterator[Group | Table | Text]:
        """For a rich console: the steps of the only replay, or a comparison of all, and what was assumed."""
        if len(self.replays) == 1:
            yield steps_table(self.replays[0])
        else:
            yield from comparison_tables(self.replays)
        for assumption in self.trace.assumptions:
            yield Text(assumption, style="dim")


def view(case: Case | PolicyCase, policy: str | None = None) -> PolicyView:
    """Replay a case under watermark policies.

    Args:
        case: a Spark case, whose first watermark defines the trace and the delay, or a policy case.
        policy: a key of ``POLICIES``, or ``all``; by default the case's own policy, ``spark`` for a Spark case. Other policies
            get the same delay as the case's own.

    Raises:
        NoTrace: the case cannot be converted to a trace.
        UnknownPolicy: no policy has that name.
    """
    if isinstance(case, Case):
        converted = trace_of(case)
        trace, delay, own = converted.trace, converted.delay, None
    else:
        own = case.rules()
        trace, delay = case.trace, max(0, delay_of(own))
    wanted = policy or ("spark" if own is None else own.name)
    names = list(POLICIES) if wanted == ALL else [wanted]
    rules = [own if own is not None and name == own.name else comparable(name, delay) for name in names]
    return PolicyView(trace, tuple(replay(trace, one) for one in rules))


def steps_table(replayed: Replay) -> Group:
    """One line per trace entry; clock readings become a column."""
    trace = replayed.trace
    has_clock = any(isinstance(entry, ClockReading) for entry in trace.entries)
    table = Table(box=None, pad_edge=False)
    columns = ["entry", *(["clock"] if has_clock else []), "watermark", "downstream", "late", "windows complete"]
    for name in columns if trace.window else columns[:-1]:
        table.add_column(name, overflow="fold")
    for step in replayed.steps:
        if isinstance(step.entry, ClockReading):
            continue
        cells = [
            f"{step.number} {trace.format_entry(step.entry)}",
            *([trace.format_clock(step.now)] if has_clock else []),
            trace.format_times(step.watermarks) + (f" (idle: {', '.join(step.idle)})" if step.idle else ""),
            _downstream(step, trace),
            "late" if step.late else "",
            ", ".join(f"until {trace.format_time(end)}" for end in step.closed),
        ]
        table.add_row(*(cells if trace.window else cells[:-1]))
    # Not the table's title: rich would wrap that at the width of the columns.
    parts: list[Table | Text] = [Text(f"{replayed.rules}: {replayed.rules.engine}", style="italic"), table]
    if replayed.failure is not None:
        parts.append(Text(f"the engine ends at entry {len(replayed.steps) + 1}: {replayed.failure}", style="red"))
    return Group(*parts)


def comparison_tables(replays: Sequence[Replay]) -> Iterator[Table]:
    """One trace under several policies: the result on this trace, and what each policy does in general."""
    here = Table(title="on this trace", title_justify="left", box=None, pad_edge=False)
    for name in ("policy", "late", "windows complete (at entry)", "final watermark"):
        here.add_column(name, overflow="fold")
    for one in replays:
        here.add_row(
            one.rules.name,
            late_events(one),
            windows(one) if one.trace.window else "no windows",
            one.trace.format_time(one.downstream),
        )
    yield here
    general = Table(title="in general", title_justify="left", box=None, pad_edge=False)
    for name in ("policy", "engine", "input goes silent", "input was always silent", "one far-future row"):
        general.add_column(name, overflow="fold")
    for one in replays:
        rules, delay = one.rules, delay_of(one.rules)
        general.add_row(
            rules.name,
            rules.engine,
            silent_input(rules, delay, spoke=True),
            silent_input(rules, delay, spoke=False),
            far_future_row(rules, delay),
        )
    yield general


def late_events(replayed: Replay) -> str:
    """``2 of 5: 12:01, 12:03``: the late events, in order of arrival."""
    late = [step.entry for step in replayed.late if isinstance(step.entry, Event)]
    events = sum(isinstance(entry, Event) for entry in replayed.trace.entries)
    named = ", ".join(replayed.trace.format_time(event.at) for event in late[:SHOWN])
    more = f" and {len(late) - SHOWN} more" if len(late) > SHOWN else ""
    return f"{len(late)} of {events}{': ' * bool(late)}{named}{more}"


def windows(replayed: Replay) -> str:
    """``until 12:10 (4); open: 12:40``: the windows that have events, by their end, each with the entry that completed it."""
    times = replayed.trace.format_time
    closed = [(step.number, end) for end, step in sorted(replayed.completions.items(), key=lambda pair: pair[1].number)]
    parts = [
        f"until {', '.join(times(end) for _, end in together)} ({number})"
        for number, together in groupby(closed, key=lambda pair: pair[0])
    ]
    if replayed.open:
        parts.append(f"open: {', '.join(times(end) for end in replayed.open)}")
    more = len(parts) - SHOWN
    return "; ".join(parts[:SHOWN]) + (f"; and {more} more" if more > 0 else "")


def policies() -> Table:
    """Every policy."""
    table = Table(box=None, pad_edge=False)
    for name in ("policy", "engine", "parameters", "watermark"):
        table.add_column(name, overflow="fold")
    for name, policy in POLICIES.items():
        table.add_row(name, policy.engine, ", ".join(policy.parameters), policy.meaning)
    return table


def _downstream(step: ReplayStep, trace: Trace) -> str:
    shown = trace.format_time(step.downstream)
    return shown if step.emitted is None else f"→ {shown}"
