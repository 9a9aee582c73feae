"""Whole cases (a pipeline, its settings and a trace), and cases derived from others by one change."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from conformance.core.data import Json
from conformance.core.values import show
from conformance.strategies import traces
from conformance.strategies.draft import Draft, delay_lengths
from conformance.strategies.pipelines import chance, chosen, drafts, stateless
from conformance.strategies.traces import TraceOptions, instant, step, steps

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
        case: dict[str, Json] = {
            "title": f"Generated case of the family {self.family}",
            "streams": {name: stream.ddl for name, stream in self.draft.streams.items()},
            "query": list(self.draft.operations),
            "outputMode": self.mode,
        }
        if self.trigger != "default":
            case["trigger"] = self.trigger
        if conf := {**self.draft.conf, **self.conf}:
            case["conf"] = dict(conf)
        return {**case, "steps": list(self.steps)}


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
    changes: list[Mapping[str, Json]] = [
        *({"trigger": trigger} for trigger in ("availableNow", "once", "default")),
        {"conf": {POLICY: draw(st.sampled_from(("min", "max")))}},
        {"outputMode": draw(st.sampled_from(("append", "update")))},
    ]
    first, *others = draft.operations
    # Another column after the source: operators get other rows with the same keys.
    more = {"withColumn": ["more", "0"]}
    queries = [list(stateless(draw, draft).operations), [first, *others], [first, more, *others]]
    text = json.dumps(draft.operations)
    queries += [json.loads(text.replace(constant, "'y'")) for constant in ("'x'", "'l'", "'side'") if constant in text]
    return [*changes, *({"query": query} for query in queries)]


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
        start_us=draw(traces.starts()),
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
    return generated(chosen(families)).map(lambda case: case.written)


@st.composite
def changed(draw: st.DrawFn, known: Sequence[Generated]) -> Generated:
    """One of these cases with one change: of the rest of the trace, a step, a time, a delay, the mode or the settings."""
    case = draw(st.sampled_from(known))
    match draw(st.sampled_from(("tail", "tail", "step", "time", "time", "delay", "mode", "settings", "operation"))):
        case "tail":
            cut = draw(st.integers(0, len(case.steps) - 1))
            return replace(case, steps=tuple(steps(draw, case.draft, case.options, case.steps[:cut])))
        case "step":
            return _with_step(draw, case)
        case "time":
            return _with_time(draw, case)
        case "delay":
            return _with_delay(draw, case)
        case "mode":
            return replace(case, mode=draw(_modes(case.draft)))
        case "settings":
            conf = draw(_confs(case.draft))
            return replace(case, conf=conf, options=replace(case.options, max_policy=conf.get(POLICY) == "max"))
        case _:
            return replace(case, draft=stateless(draw, case.draft))


def _with_step(draw: st.DrawFn, case: Generated) -> Generated:
    place = draw(st.integers(0, len(case.steps)))
    before = case.steps[:place]
    clock = traces.clock_of(case.draft, case.options, before)
    ran = any(True for seen in before for _ in traces.arrivals_of(seen))
    trigger = traces.trigger_after(before, case.trigger)
    new = step(draw, clock, case.draft, case.options, trigger, ran=ran)
    if traces.trigger_after((*before, new), case.trigger) != trigger:
        return case  # the later steps might not be allowed with another trigger
    return replace(case, steps=(*before, new, *case.steps[place:]))


def _with_time(draw: st.DrawFn, case: Generated) -> Generated:
    places = [
        (number, name, place)
        for number, drawn in enumerate(case.steps)
        if "add" in drawn
        for name, rows in drawn["add"].items()
        if isinstance(rows, list)
        for place in range(len(rows))
    ]
    if not places:
        return case
    number, name, place = draw(st.sampled_from(places))
    stream = case.draft.streams[name]
    at = instant(draw, traces.clock_of(case.draft, case.options, case.steps[:number]), name, case.draft.scale.us)
    rows = [list(row) for row in case.steps[number]["add"][name]]
    rows[place][list(stream.columns).index(stream.time)] = None if at is None else show(at)
    new = {"add": {**case.steps[number]["add"], name: rows}}
    return replace(case, steps=(*case.steps[:number], new, *case.steps[number + 1 :]))


def _with_delay(draw: st.DrawFn, case: Generated) -> Generated:
    for place, operation in enumerate(case.draft.operations):
        if "withWatermark" in operation:
            column, _ = operation["withWatermark"]
            delay = draw(delay_lengths(case.draft.scale))
            operations = list(case.draft.operations)
            operations[place] = {"withWatermark": [column, delay.text]}
            streams = {
                name: replace(stream, delay_us=delay.us) if stream.time == column else stream
                for name, stream in case.draft.streams.items()
            }
            return replace(case, draft=replace(case.draft, operations=tuple(operations), streams=streams))
    return case
