"""Traces: what arrives, in which steps, and what else happens. Times are drawn relative to the watermark that the trace so far implies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from conformance.core.values import show
from conformance.strategies.clock import MILLISECOND_US, Clock
from conformance.strategies.delays import delay_lengths, length, scales
from conformance.strategies.draft import Draft, Json, Stream
from conformance.strategies.operations import chance
from conformance.strategies.schemas import NAMES

MOST_STEPS = 6
_NOON_US = 12 * 3600 * 1_000_000
_YEAR_US = 365 * 86_400 * 1_000_000
_WHERE = st.sampled_from(("ahead", "ahead", "ahead", "turn", "turn", "turn", "turn", "again", "odd"))
_KEYS = st.sampled_from(("a", "a", "a", "b", "b", "c", None))
_VALUES = st.sampled_from((1, 1, 2, 3, None))
_COUNTS = st.sampled_from((1, 1, 1, 2, 2, 3, 0))


@dataclass(frozen=True)
class Terms:
    """What a trace goes by, besides the pipeline."""

    trigger: str = "default"
    highest_counts: bool = False
    """Whether the policy for several watermarks is ``max``."""
    restarts: bool = False
    """Whether the query is stopped and started again."""
    kills: bool = False
    """Whether its engine is killed."""
    start_us: int = _NOON_US
    changes: Sequence[Mapping[str, Json]] = field(default=())
    """What a restart may change."""


def starts() -> st.SearchStrategy[int]:
    """Where a trace begins, in µs: at noon, seldom around the epoch or long after."""
    return st.sampled_from((_NOON_US, _NOON_US, _NOON_US, _NOON_US, _NOON_US, 0, 0, 50 * _YEAR_US))


def clock_of(draft: Draft, terms: Terms, steps: Sequence[Mapping[str, Json]] = ()) -> Clock:
    """The clock after these steps."""
    lengths = [span.us for span in draft.spans]
    clock = Clock(draft.streams, lengths, draft.scale, terms.start_us, highest_counts=terms.highest_counts)
    for step in steps:
        _pass(clock, step)
    return clock


def _pass(clock: Clock, step: Mapping[str, Json]) -> None:
    for arrival in arrivals_of(step):
        clock.see(arrival)
        clock.rest()


def arrivals_of(step: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """What arrives in a step, micro-batch by micro-batch."""
    if "add" in step:
        yield step["add"]
    elif "backlog" in step:
        yield from step["backlog"]
    elif isinstance(step.get("restart"), Mapping) and "add" in step["restart"]:
        yield step["restart"]["add"]


def instant(draw: st.DrawFn, clock: Clock, stream: str, scale_us: int) -> int | None:
    """A time for a row: ahead, at or beside what turns, the same again, or none."""
    kind = draw(_WHERE)
    if kind == "ahead" or (kind == "again" and not clock.used):
        return draw(st.sampled_from(clock.ahead(stream)))
    if kind == "again":
        return draw(st.sampled_from(clock.used))
    if kind == "turn":
        beside = (0, 0, 0, 0, -1, 1, -MILLISECOND_US, MILLISECOND_US, -scale_us, scale_us)
        return draw(st.sampled_from(clock.anchors(stream))) + draw(st.sampled_from(beside))
    return draw(st.sampled_from((None, None, 0, -scale_us, -1, 1)))


def row(draw: st.DrawFn, clock: Clock, name: str, draft: Draft) -> list[Json]:
    """A row of a stream, as the YAML has it."""
    stream = draft.streams[name]
    return [_value(draw, clock, name, column, stream, draft) for column in stream.columns]


def _value(draw: st.DrawFn, clock: Clock, name: str, column: str, stream: Stream, draft: Draft) -> Json:
    match stream.columns[column]:
        case "TIMESTAMP":
            at = instant(draw, clock, name, draft.scale.us)
            return None if at is None else show(at)
        case "STRING":
            return draw(_KEYS)
        case _:
            return draw(_VALUES)


def _rows(draw: st.DrawFn, clock: Clock, name: str, draft: Draft) -> Json:
    count = draw(_COUNTS)
    rows = [row(draw, clock, name, draft) for _ in range(count)]
    if count and chance(draw, 15):
        cut = draw(st.integers(0, count))
        return {"partitions": [rows[:cut], rows[cut:]]}
    return rows


def _arrival(draw: st.DrawFn, clock: Clock, draft: Draft) -> dict[str, Json]:
    """Rows of one stream or several; the others have nothing new."""
    names = list(draft.streams)
    if len(names) > 1:
        some = [name for name in names if not chance(draw, 3)]
        names = some or [draw(st.sampled_from(names))]
    return {name: _rows(draw, clock, name, draft) for name in names}


def step(draw: st.DrawFn, clock: Clock, draft: Draft, terms: Terms, trigger: str, *, ran: bool) -> dict[str, Json]:
    """A step, and the clock after it.

    Args:
        trigger: the one in force.
        ran: whether rows have arrived before, so that there is something to replay.
    """
    actions = ["add"] * 8 + ["idle"]
    actions += ["backlog"] * 2 if trigger != "once" else []
    actions += ["restart"] * 5 if terms.restarts else []
    actions += ["kill"] * 5 if terms.kills else []
    found: dict[str, Json]
    match draw(st.sampled_from(actions)):
        case "add":
            found = {"add": _arrival(draw, clock, draft)}
        case "backlog":
            found = {"backlog": [_arrival(draw, clock, draft) for _ in range(draw(st.integers(2, 4)))]}
        case "idle":
            found = {"idle": {}}
        case "kill":
            found = {"restart": _kill(draw, clock, draft)}
        case _:
            found = {"restart": _restart(draw, terms, ran=ran)}
    _pass(clock, found)
    return found


def _restart(draw: st.DrawFn, terms: Terms, *, ran: bool) -> Json:
    how = draw(st.sampled_from(("graceful", "crash-before-commit"))) if ran else "graceful"
    if terms.changes and chance(draw, 3):
        return {"how": how, "change": dict(draw(st.sampled_from(terms.changes)))}
    if ran and chance(draw, 10):
        parts = (
            ("gone", "commit"),
            ("gone", "metadata"),
            ("gone", "delta"),
            ("empty", "offsets"),
            ("truncated", "commit"),
        )
        damage, part = draw(st.sampled_from(parts))
        return {"how": "graceful", "damage": {damage: part}}
    return how


def _kill(draw: st.DrawFn, clock: Clock, draft: Draft) -> Json:
    at = draw(st.sampled_from(("rest", "planned", "running", "emitted", "committed")))
    if at == "rest":
        return "kill"
    return {"how": "kill", "at": at, "add": _arrival(draw, clock, draft)}


def steps(draw: st.DrawFn, draft: Draft, terms: Terms, before: Sequence[Mapping[str, Json]] = ()) -> list[Json]:
    """The steps of a case: those before, and some more."""
    clock = clock_of(draft, terms, before)
    found: list[Json] = [dict(one) for one in before]
    trigger = terms.trigger
    for _ in range(draw(st.integers(1 if before else 2, max(1, MOST_STEPS - len(before))))):
        ran = any(True for one in found for _ in arrivals_of(one))
        found.append(step(draw, clock, draft, terms, trigger_after(found, trigger), ran=ran))
    return found


def trigger_after(found: Sequence[Mapping[str, Json]], trigger: str) -> str:
    """The trigger in force after these steps."""
    for one in found:
        if isinstance(one.get("restart"), Mapping):
            trigger = one["restart"].get("change", {}).get("trigger", trigger)
    return trigger


@st.composite
def traces(draw: st.DrawFn, delay_us: int | None = None) -> list[Json]:
    """Steps over the one stream ``events`` (``event_time TIMESTAMP, key STRING, value INT``), in the shape of the YAML.

    Args:
        delay_us: of its watermark; drawn where it is None.
    """
    scale = draw(scales())
    us = delay_us if delay_us is not None else draw(delay_lengths(scale)).us
    stream = Stream({"event_time": "TIMESTAMP", "key": "STRING", "value": "INT"}, "event_time", us)
    draft = Draft(({"from": NAMES[0]},), {}, {NAMES[0]: stream}, scale, spans=(length(10, scale),))
    return steps(draw, draft, Terms(start_us=draw(starts())))
