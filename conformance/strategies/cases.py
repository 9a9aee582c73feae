"""Whole cases (a pipeline, its settings and a trace), and cases derived from others by one change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from conformance.core.data import Json
from conformance.core.values import show
from conformance.strategies.draft import Draft, delay_lengths
from conformance.strategies.pipelines import chance, chosen, drafts, stateless
from conformance.strategies.traces import (
    TraceOptions,
    arrivals_of,
    clock_of,
    instant,
    starts,
    step,
    steps,
    trigger_after,
)

POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
ALLOW_MULTIPLE = "spark.sql.streaming.statefulOperator.allowMultiple"
CHECK_CORRECTNESS = "spark.sql.streaming.statefulOperator.checkCorrectness.enabled"


@dataclass(frozen=True)
class Generated:
    """A case with the parts it was built from, so that it can be changed and remain valid."""

    family: str
    draft: Draft
    mode: str
    trigger: str
    conf: Mapping[str, str]
    options: TraceOptions
    steps: tuple[Json, ...]

    @property
    def written(self) -> dict[str, Json]:
        found: dict[str, Json] = {
            "title": f"Generated case of the family {self.family}",
            "streams": {name: stream.ddl for name, stream in self.draft.streams.items()},
            "query": list(self.draft.operations),
            "outputMode": self.mode,
        }
        if self.trigger != "default":
            found["trigger"] = self.trigger
        if conf := {**self.draft.conf, **self.conf}:
            found["conf"] = dict(conf)
        return {**found, "steps": list(self.steps)}


@st.composite
def _modes(draw: st.DrawFn, draft: Draft) -> str:
    if chance(draw, 25):
        return draw(st.sampled_from(("append", "update", "complete")))
    return draw(st.sampled_from([mode for mode in ("append", "append", "update", "complete") if mode in draft.modes]))


@st.composite
def _confs(draw: st.DrawFn, draft: Draft) -> dict[str, str]:
    conf = {}
    if len(draft.streams) > 1 and chance(draw, 3):
        conf[POLICY] = "max"
    if chance(draw, 12):
        conf[NO_DATA] = "false"
    if chance(draw, 30):
        conf[ALLOW_MULTIPLE] = "false"
    if chance(draw, 12):
        conf[CHECK_CORRECTNESS] = "false"
    return conf


def _changes(draw: st.DrawFn, draft: Draft) -> list[Mapping[str, Json]]:
    found: list[Mapping[str, Json]] = [
        {"trigger": "availableNow"},
        {"trigger": "once"},
        {"trigger": "default"},
        {"conf": {POLICY: draw(st.sampled_from(("min", "max")))}},
        {"outputMode": draw(st.sampled_from(("append", "update")))},
    ]
    first, *others = draft.operations
    # Another column after the source: operators get other rows with the same keys.
    queries = [
        list(stateless(draw, draft).operations),
        [first, *others],
        [first, {"withColumn": ["more", "0"]}, *others],
    ]
    text = json.dumps(draft.operations)
    queries += [json.loads(text.replace(one, "'y'")) for one in ("'x'", "'l'", "'side'") if one in text]
    return [*found, *({"query": query} for query in queries)]


@st.composite
def generated(draw: st.DrawFn, families: Sequence[str]) -> Generated:
    """Generated cases of these families."""
    family = draw(st.sampled_from(families))
    draft: Draft = draw(drafts(family))
    conf = draw(_confs(draft))
    trigger = draw(st.sampled_from((*("default",) * 14, "availableNow", "once")))
    restarts = family in ("recovery", "kills") or chance(draw, 10)
    options = TraceOptions(
        trigger=trigger,
        max_policy=conf.get(POLICY) == "max",
        restarts=restarts,
        kills=family == "kills",
        start_us=draw(starts()),
        changes=tuple(_changes(draw, draft)) if restarts else (),
    )
    return Generated(family, draft, draw(_modes(draft)), trigger, conf, options, tuple(steps(draw, draft, options)))


def cases(families: Sequence[str] = ()) -> st.SearchStrategy[dict[str, Json]]:
    """Whole valid cases, structured like the YAML and without expectations.

    Args:
        families: of ``FAMILIES``; empty means the default ones.

    Raises:
        WrongUsage: one of the names is unknown.
    """
    return generated(chosen(families)).map(lambda one: one.written)


@st.composite
def changed(draw: st.DrawFn, known: Sequence[Generated]) -> Generated:
    """One of these cases with one change: of the rest of the trace, a step, a time, a delay, the mode or the settings."""
    one = draw(st.sampled_from(known))
    match draw(st.sampled_from(("tail", "tail", "step", "time", "time", "delay", "mode", "settings", "operation"))):
        case "tail":
            cut = draw(st.integers(0, len(one.steps) - 1))
            return replace(one, steps=tuple(steps(draw, one.draft, one.options, one.steps[:cut])))
        case "step":
            return _with_step(draw, one)
        case "time":
            return _with_time(draw, one)
        case "delay":
            return _with_delay(draw, one)
        case "mode":
            return replace(one, mode=draw(_modes(one.draft)))
        case "settings":
            conf = draw(_confs(one.draft))
            return replace(one, conf=conf, options=replace(one.options, max_policy=conf.get(POLICY) == "max"))
        case _:
            return replace(one, draft=stateless(draw, one.draft))


def _with_step(draw: st.DrawFn, one: Generated) -> Generated:
    place = draw(st.integers(0, len(one.steps)))
    before = one.steps[:place]
    clock = clock_of(one.draft, one.options, before)
    ran = any(True for seen in before for _ in arrivals_of(seen))
    trigger = trigger_after(before, one.trigger)
    new = step(draw, clock, one.draft, one.options, trigger, ran=ran)
    if trigger_after((*before, new), one.trigger) != trigger:
        return one  # the later steps might not be allowed with another trigger
    return replace(one, steps=(*before, new, *one.steps[place:]))


def _with_time(draw: st.DrawFn, one: Generated) -> Generated:
    places = [
        (number, name, place)
        for number, this in enumerate(one.steps)
        if "add" in this
        for name, rows in this["add"].items()
        if isinstance(rows, list)
        for place in range(len(rows))
    ]
    if not places:
        return one
    number, name, place = draw(st.sampled_from(places))
    stream = one.draft.streams[name]
    at = instant(draw, clock_of(one.draft, one.options, one.steps[:number]), name, one.draft.scale.us)
    rows = [list(row) for row in one.steps[number]["add"][name]]
    rows[place][list(stream.columns).index(stream.time)] = None if at is None else show(at)
    new = {"add": {**one.steps[number]["add"], name: rows}}
    return replace(one, steps=(*one.steps[:number], new, *one.steps[number + 1 :]))


def _with_delay(draw: st.DrawFn, one: Generated) -> Generated:
    for place, operation in enumerate(one.draft.operations):
        if "withWatermark" in operation:
            column, _ = operation["withWatermark"]
            delay = draw(delay_lengths(one.draft.scale))
            operations = list(one.draft.operations)
            operations[place] = {"withWatermark": [column, delay.text]}
            streams = {
                name: replace(stream, delay_us=delay.us) if stream.time == column else stream
                for name, stream in one.draft.streams.items()
            }
            return replace(one, draft=replace(one.draft, operations=tuple(operations), streams=streams))
    return one
