"""Makes the driver's requests from a case, without its expectations: one for each segment, the steps that one process runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from conformance.core.case import (
    Action,
    Add,
    Advance,
    Alter,
    Arrival,
    Backlog,
    Case,
    Idle,
    Partitioned,
    Restart,
    Start,
    Step,
)
from conformance.core.observation import Observation, StepSeen
from conformance.core.operations import Operation, Pipeline, Program
from conformance.core.roles import Role
from conformance.core.spark_types import Schema
from conformance.core.values import to_json_value
from conformance.language.sql_expression import window_called
from harness.engine import protocol
from harness.engine.engine import Engine
from harness.errors import HarnessError


@dataclass(frozen=True)
class Segment:
    """Steps of a case that one process runs."""

    first: int
    """Number of the first step, from 1. A restart by ``kill`` here is its second half: the query starts again."""
    last: int
    """Number of the last step. A restart by ``kill`` here is its first half: the engine is killed in it."""
    killed: bool = False
    """Whether it ends with the engine killed."""


def segments_of(case: Case, first: int = 1, last: int | None = None) -> tuple[Segment, ...]:
    """Some steps of a case, split where an engine is killed; all of them by default."""
    last = last or len(case.steps)
    segments = []
    for step in case.steps[first - 1 : last]:
        if isinstance(step.action, Restart) and step.action.how == "kill" and not (step.number == first > 1):
            segments.append(Segment(first, step.number, killed=True))
            first = step.number
    return (*segments, Segment(first, last))


def kills_its_engine(case: Case) -> bool:
    """Whether the case kills an engine, and with it everything else that runs there."""
    return any(segment.killed for segment in segments_of(case))


def join_segments(observations: Sequence[Observation]) -> Observation:
    """Join the observations of the segments of one run; the halves of a step in which the engine was killed become one step."""
    steps: list[StepSeen] = []
    for observation in observations:
        for step in observation.steps:
            merged: dict[str, object] = {"columns": observation.columns_of(step)}
            if steps and steps[-1].number == step.number:
                before = steps.pop()
                merged["batches"] = (*before.batches, *step.batches)
                merged |= {"wall_ms": before.wall_ms + step.wall_ms, "interrupted": before.interrupted}
            steps.append(step.model_copy(update=merged))
    columns = next((segment.columns for segment in reversed(observations) if segment.columns), ())
    return Observation.of(observations[0].case, columns, tuple(steps))


_NAMES: Mapping[type[Action], Literal["start", "idle", "advance", "add", "backlog", "alter"]] = {
    Start: "start",
    Idle: "idle",
    Advance: "advance",
    Add: "add",
    Backlog: "backlog",
    Alter: "alter",
}


def request_for(
    case: Case,
    directory: str,
    code: tuple[str, ...] | None = None,
    *,
    segment: Segment | None = None,
    conf: Mapping[str, str] | None = None,
    kafka: str | None = None,
    arrived: int | None = None,
    keep: Mapping[int, str] | None = None,
    files: Mapping[int, Mapping[str, str]] | None = None,
) -> protocol.CaseRequest:
    """Make the request for a case.

    Args:
        directory: an absolute path on the engine's file system; it exists only if an earlier segment ran.
        code: folders of the modules that ``call`` names; None forbids calling.
        segment: which of its steps; by default all, if none of them kills the engine.
        conf: Spark settings for every case; the case's own override them.
        kafka: the address of the broker for its topics.
        arrived: if given, the topics are made anew with what arrives up to this step; a case without topics has none of it.
        keep: number of a step → where to copy the directory before it.
        files: number of a step → stream → a file whose rows arrive in place of those of the case.
    """
    segment = segment or Segment(1, len(case.steps))
    query, output_mode, trigger, settings = case.query, case.output_mode, case.trigger, {**(conf or {}), **case.conf}
    for step in case.steps[: segment.first - 1]:
        if isinstance(step.action, Restart):
            change = step.action.change
            query, trigger = change.query or query, change.trigger or trigger
            output_mode, settings = change.output_mode or output_mode, {**settings, **(change.conf or {})}
    steps = [
        _step(step, case).model_copy(
            update={"keep": (keep or {}).get(step.number), "files": (files or {}).get(step.number)}
        )
        for step in case.steps[segment.first - 1 : segment.last]
    ]
    if segment.killed:
        action = case.steps[segment.last - 1].action
        assert isinstance(action, Restart)
        # Before the engine is killed the rows arrive, and the engine continues to the point.
        steps[-1] = protocol.StepRequest(action="kill", batches=_batches(action, case), at=action.at, nth=action.batch)
    return protocol.CaseRequest(
        case=case.id,
        directory=directory,
        streams={name: _stream(name, case) for name in case.streams},
        query=_wire(query),
        output_mode=output_mode,
        trigger=trigger,
        interval=case.interval_ms,
        clock=case.clock_ms(segment.first),
        conf=settings,
        steps=tuple(steps),
        sink=case.sink,
        code=code,
        kafka=kafka if case.topics else None,
        arrived=tuple(batch for step in case.steps[:arrived] for batch in _batches(step.action, case))
        if case.topics and arrived is not None
        else None,
        first=segment.first,
        digests=bool(files),
        tell=segment.killed,
    )


def _wire(query: Pipeline) -> list[dict[str, protocol.Json]]:
    """A query as the driver reads it, whose windows have the name that only Spark 3.4 and newer give them."""
    return query.changed(_with_named_windows).wire()


def _with_named_windows(operation: Operation) -> Operation:
    named = {
        part.name: tuple(f"{text} AS {name}" if (name := window_called(text)) else text for text in value)
        for part, value in operation.values(Role.EXPRESSIONS)
    }
    return operation.with_values(**named)


def broker_for(case: Case, engine: Engine) -> str | None:
    """The broker for the topics of a case, if it has some. Raises ``HarnessError`` if there is none."""
    if not case.topics:
        return None
    if isinstance(engine.kafka, HarnessError):
        raise engine.kafka
    return engine.kafka


def runs_a_sink(case: Case) -> bool:
    """Whether code of the case's author writes: its ``sink``, or the functions of a program."""
    return case.own_sink is not None or any(
        isinstance(call.called, Program) and call.called.sinks for call in case.calls()
    )


def arrivals_of(action: Action, streams: Iterable[str]) -> tuple[Arrival, ...]:
    """What arrives in each micro-batch of an action; in a backlog on every one of the streams, so that entries stay aligned."""
    match action:
        case Add(streams=arrival):
            return (arrival,)
        case Restart(add=arrival) if arrival:
            return (arrival,)
        case Backlog(entries=entries):
            nothing = Partitioned(partitions=((),))
            return tuple({name: entry.get(name, nothing) for name in streams} for entry in entries)
        case _:
            return ()


def _stream(name: str, case: Case) -> protocol.StreamRequest:
    of_topic = None
    if topic := case.topics.get(name):
        # https://spark.apache.org/docs/latest/structured-streaming-kafka-integration.html
        options = topic.options(but={"partitions", "timestamp", "starting_offsets"})
        # The driver, which names the topic, makes Spark's notation of a list of offsets.
        start = topic.starting_offsets
        options["startingOffsets"] = start if isinstance(start, str) else json.dumps(start)
        of_topic = protocol.TopicRequest(partitions=topic.partitions, timestamp=topic.timestamp, options=options)
    arrivals = [arrival for step in case.steps for arrival in arrivals_of(step.action, case.streams)]
    files = max((len(arrival[name].partitions) for arrival in arrivals if name in arrival), default=1) or 1
    return protocol.StreamRequest(
        ddl=case.streams[name].ddl,
        files=files,
        options=case.files[name].options() if name in case.files else case.table_options.get(name),
        topic=of_topic,
        in_memory=name in case.in_memory,
        table=case.tables.get(name),
    )


def _step(step: Step, case: Case) -> protocol.StepRequest:
    action, plan = step.action, _plan_wanted(step, case)
    if not isinstance(action, Restart):
        alter = _altered(action.columns) if isinstance(action, Alter) else {}
        advance = action.ms if isinstance(action, Advance) else 0
        batches = _batches(action, case)
        return protocol.StepRequest(
            action=_NAMES[type(action)], batches=batches, advance=advance, alter=alter, plan=plan
        )
    change = action.change
    return protocol.StepRequest(
        action="restart",
        how=action.how,
        change=protocol.ChangeRequest(
            conf=dict(change.conf) if change.conf else None,
            output_mode=change.output_mode,
            trigger=change.trigger,
            query=_wire(change.query) if change.query else None,
            partitions=dict(change.partitions) or None,
        ),
        damage=dict(action.damage) or None,
        repartition=action.repartition,
        aged_out=action.aged_out,
        rewritten=action.rewritten,
        recreated=_rows_of(action.recreated, case),
        alter=_altered(action.alter),
        checkpoint=action.checkpoint,
        plan=plan,
    )


def _altered(columns: Mapping[str, Schema]) -> dict[str, str]:
    return {stream: schema.ddl for stream, schema in columns.items()}


def _batches(action: Action, case: Case) -> tuple[dict[str, protocol.Partitions], ...]:
    return tuple(_rows_of(arrival, case) for arrival in arrivals_of(action, case.streams))


def _rows_of(arrival: Arrival, case: Case) -> dict[str, protocol.Partitions]:
    return {
        name: tuple(tuple(to_json_value(row, case.streams[name].struct) for row in rows) for rows in placed.partitions)
        for name, placed in arrival.items()
    }


def looks_at_plans(case: Case) -> bool:
    """Whether some step of the case expects something of a plan."""
    return any(_plan_wanted(step, case) for step in case.steps)


def _plan_wanted(step: Step, case: Case) -> bool:
    expectations = [step.expect, *(entry.steps.get(step.number) for entry in case.differs)]
    if step.number == 1:
        expectations += [entry.expect for entry in case.differs]
    return any(expectation is not None and expectation.plan is not None for expectation in expectations)
