"""Traces: steps with arriving rows, restarts and kills. Event times are drawn relative to the watermark of the trace so far.

That watermark need not be exact: it only selects interesting instants and never becomes an expectation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from hypothesis import strategies as st

from conformance.core.data import Json
from conformance.core.spark_types import DataType
from conformance.core.values import canonical, show
from conformance.strategies.draft import NAMES, Draft, Stream, delay_lengths, length, scales
from conformance.strategies.pipelines import chance

MILLISECOND_US = 1_000
_TIMESTAMP = DataType("timestamp")


class Clock:
    """Event times and watermarks of a trace, in µs."""

    def __init__(self, draft: Draft, options: TraceOptions) -> None:
        self._streams = draft.streams
        self._spans_us = tuple(dict.fromkeys(span.us for span in draft.spans))
        self._scale_us = draft.scale.us
        self._start_us = options.start_us
        self._policy = max if options.max_policy else min
        self._highest: dict[str, int] = {}
        self._used: dict[int, None] = {}
        self.before_us = self.watermark_us = 0

    def add(self, arrival: Mapping[str, Json]) -> None:
        for name, rows in arrival.items():
            stream = self._streams[name]
            place = list(stream.columns).index(stream.time)
            for row in rows_of(rows):
                if row[place] is not None:
                    at = int(canonical(row[place], _TIMESTAMP))
                    self._used[at] = None
                    self._highest[name] = max(at, self._highest.get(name, at))

    def finish_batch(self) -> None:
        inputs = [
            (self._highest[name] - stream.delay_us) // MILLISECOND_US * MILLISECOND_US if name in self._highest else 0
            for name, stream in self._streams.items()
            if stream.delay_us is not None
        ]
        if inputs:
            self.before_us, self.watermark_us = self.watermark_us, max(self.watermark_us, self._policy(inputs))

    def anchors(self, stream: str) -> Iterator[int]:
        """Yield instants at which behaviour may change, some more than once, the most likely first."""
        yield self.watermark_us or self._start_us
        for span in self._spans_us:
            # The window that contains the watermark, and times near the boundaries of windows that just closed.
            yield self.watermark_us // span * span
            yield self.watermark_us // span * span + span
            yield self.watermark_us - span
            yield self.watermark_us + span
        yield self.before_us or self._start_us
        own = self._streams[stream]
        if stream in self._highest and own.delay_us is not None:
            yield self._highest[stream] - own.delay_us
        for at in [*self._used][-4:]:
            yield at
            for span in self._spans_us:
                yield at + span
                yield at - span

    def ahead(self, stream: str) -> list[int]:
        """Instants that advance the watermark, usually past a boundary."""
        own = self._streams[stream]
        highest = max(self._highest.values(), default=self._start_us)
        delay = own.delay_us or 0
        steps = [self._scale_us, *self._spans_us, delay + self._scale_us, *(span + delay for span in self._spans_us)]
        return [self._start_us, *(highest + step for step in dict.fromkeys(steps))]

    @property
    def used(self) -> list[int]:
        return list(self._used)


def rows_of(arriving: Json) -> Iterator[list[Json]]:
    return chain.from_iterable(arriving["partitions"]) if isinstance(arriving, Mapping) else iter(arriving)


MOST_STEPS = 6
_NOON_US = 12 * 3600 * 1_000_000
_YEAR_US = 365 * 86_400 * 1_000_000
_WHERE = st.sampled_from(("ahead", "ahead", "ahead", "boundary", "boundary", "boundary", "boundary", "again", "odd"))
_KEYS = st.sampled_from(("a", "a", "a", "b", "b", "c", None))
_VALUES = st.sampled_from((1, 1, 2, 3, None))
_COUNTS = st.sampled_from((1, 1, 1, 2, 2, 3, 0))


@dataclass(frozen=True)
class TraceOptions:
    trigger: str = "default"
    max_policy: bool = False
    restarts: bool = False
    kills: bool = False
    start_us: int = _NOON_US
    changes: Sequence[Mapping[str, Json]] = field(default=())
    """What a restart may change."""


def starts() -> st.SearchStrategy[int]:
    """Start times of a trace in µs: usually noon, sometimes the epoch or long after it."""
    return st.sampled_from((_NOON_US, _NOON_US, _NOON_US, _NOON_US, _NOON_US, 0, 0, 50 * _YEAR_US))


def clock_of(draft: Draft, options: TraceOptions, steps: Sequence[Mapping[str, Json]] = ()) -> Clock:
    clock = Clock(draft, options)
    for step in steps:
        _apply(clock, step)
    return clock


def _apply(clock: Clock, step: Mapping[str, Json]) -> None:
    for arrival in arrivals_of(step):
        clock.add(arrival)
        clock.finish_batch()


def arrivals_of(step: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    if "add" in step:
        yield step["add"]
    elif "backlog" in step:
        yield from step["backlog"]
    elif isinstance(step.get("restart"), Mapping) and "add" in step["restart"]:
        yield step["restart"]["add"]


def instant(draw: st.DrawFn, clock: Clock, stream: str, scale_us: int) -> int | None:
    """A time for a row: ahead of the others, at or near a boundary, a repeated one, or null."""
    kind = draw(_WHERE)
    if kind == "ahead" or (kind == "again" and not clock.used):
        return draw(st.sampled_from(clock.ahead(stream)))
    if kind == "again":
        return draw(st.sampled_from(clock.used))
    if kind == "boundary":
        offsets = (0, 0, 0, 0, -1, 1, -MILLISECOND_US, MILLISECOND_US, -scale_us, scale_us)
        return draw(st.sampled_from([*dict.fromkeys(clock.anchors(stream))])) + draw(st.sampled_from(offsets))
    return draw(st.sampled_from((None, None, 0, -scale_us, -1, 1)))


def row(draw: st.DrawFn, clock: Clock, name: str, draft: Draft) -> list[Json]:
    values: list[Json] = []
    for type_ in draft.streams[name].columns.values():
        if type_ == "TIMESTAMP":
            at = instant(draw, clock, name, draft.scale.us)
            values.append(None if at is None else show(at))
        else:
            values.append(draw(_KEYS if type_ == "STRING" else _VALUES))
    return values


def _rows(draw: st.DrawFn, clock: Clock, name: str, draft: Draft) -> Json:
    count = draw(_COUNTS)
    rows = [row(draw, clock, name, draft) for _ in range(count)]
    if count and chance(draw, 15):
        cut = draw(st.integers(0, count))
        return {"partitions": [rows[:cut], rows[cut:]]}
    return rows


def _arrival(draw: st.DrawFn, clock: Clock, draft: Draft) -> dict[str, Json]:
    """Rows of one or several streams; the others have nothing new."""
    names = list(draft.streams)
    if len(names) > 1:
        some = [name for name in names if not chance(draw, 3)]
        names = some or [draw(st.sampled_from(names))]
    return {name: _rows(draw, clock, name, draft) for name in names}


def step(
    draw: st.DrawFn, clock: Clock, draft: Draft, options: TraceOptions, trigger: str, *, ran: bool
) -> dict[str, Json]:
    """A step; the clock is advanced accordingly. ``ran``: whether rows have arrived before, so that a batch can be replayed."""
    actions = ["add"] * 8 + ["idle"]
    actions += ["backlog"] * 2 if trigger != "once" else []
    actions += ["restart"] * 5 if options.restarts else []
    actions += ["kill"] * 5 if options.kills else []
    drawn: dict[str, Json]
    match draw(st.sampled_from(actions)):
        case "add":
            drawn = {"add": _arrival(draw, clock, draft)}
        case "backlog":
            drawn = {"backlog": [_arrival(draw, clock, draft) for _ in range(draw(st.integers(2, 4)))]}
        case "idle":
            drawn = {"idle": {}}
        case "kill":
            drawn = {"restart": _kill(draw, clock, draft)}
        case _:
            drawn = {"restart": _restart(draw, options, ran=ran)}
    _apply(clock, drawn)
    return drawn


def _restart(draw: st.DrawFn, options: TraceOptions, *, ran: bool) -> Json:
    how = draw(st.sampled_from(("graceful", "crash-before-commit"))) if ran else "graceful"
    if options.changes and chance(draw, 3):
        return {"how": how, "change": dict(draw(st.sampled_from(options.changes)))}
    if ran and chance(draw, 10):
        gone = (("gone", "commit"), ("gone", "metadata"), ("gone", "delta"))
        damage, part = draw(st.sampled_from((*gone, ("empty", "offsets"), ("truncated", "commit"))))
        return {"how": "graceful", "damage": {damage: part}}
    return how


def _kill(draw: st.DrawFn, clock: Clock, draft: Draft) -> Json:
    at = draw(st.sampled_from(("rest", "planned", "running", "emitted", "committed")))
    if at == "rest":
        return "kill"
    return {"how": "kill", "at": at, "add": _arrival(draw, clock, draft)}


def steps(
    draw: st.DrawFn, draft: Draft, options: TraceOptions, before: Sequence[Mapping[str, Json]] = ()
) -> list[Json]:
    clock = clock_of(draft, options, before)
    made: list[Json] = [dict(step) for step in before]
    trigger = options.trigger
    for _ in range(draw(st.integers(1 if before else 2, max(1, MOST_STEPS - len(before))))):
        ran = any(True for step in made for _ in arrivals_of(step))
        made.append(step(draw, clock, draft, options, trigger_after(made, trigger), ran=ran))
    return made


def trigger_after(before: Sequence[Mapping[str, Json]], trigger: str) -> str:
    for step in before:
        if isinstance(step.get("restart"), Mapping):
            trigger = step["restart"].get("change", {}).get("trigger", trigger)
    return trigger


@st.composite
def traces(draw: st.DrawFn, delay_us: int | None = None) -> list[Json]:
    """Steps for the stream ``events`` (``event_time TIMESTAMP, key STRING, value INT``), structured like the YAML.

    Args:
        delay_us: of its watermark; drawn if None.
    """
    scale = draw(scales())
    us = delay_us if delay_us is not None else draw(delay_lengths(scale)).us
    stream = Stream({"event_time": "TIMESTAMP", "key": "STRING", "value": "INT"}, "event_time", us)
    draft = Draft(({"from": NAMES[0]},), {}, {NAMES[0]: stream}, scale, spans=(length(10, scale),))
    return steps(draw, draft, TraceOptions(start_us=draw(starts())))
