"""What an engine did with a case, batch by batch, with the rules of the model that it shows: also for code that no model predicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from conformance.core.case import Add, Arrival, Backlog, Case, Partitioned, Restart, Row
from conformance.core.observation import DROPPED_ROWS, BatchSeen, Observation, StepSeen
from conformance.core.spark_types import Schema
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.judging.finding import cell
from conformance.judging.rows import OutputSchema
from conformance.model.catalogue import catalogue
from conformance.oracle.explanation import MOST, ExplanationLine, instant

Json: TypeAlias = Any


def observed_lines(case: Case, version: SparkVersion, observation: Observation) -> Iterator[ExplanationLine]:
    """The explanation of what a version did with a whole case."""
    yield ExplanationLine(f"{case.id} on Spark {version}, as it ran", "head")
    yield ExplanationLine(case.title, "plain")
    before: BatchSeen | None = None
    for seen in observation.steps:
        yield ExplanationLine("")
        yield from _step(case, seen)
        schema = OutputSchema.of(observation.columns_of(seen))
        arrivals = _arrivals(case, seen)
        for batch in seen.batches:
            yield from _batch(case, version, batch, before, schema, next(arrivals, {}) if batch.kind == "data" else {})
            before = batch
        if seen.error is not None:
            yield from _error(seen)
        elif not seen.batches:
            yield ExplanationLine("no micro-batch runs", "dim", 1)


def observed_record(case: Case, version: SparkVersion, observation: Observation) -> dict[str, Json]:
    """The same as JSON; instants in the notation of the case language."""
    steps = []
    for seen in observation.steps:
        schema = OutputSchema.of(observation.columns_of(seen))
        batches = [
            {
                "id": batch.id,
                "kind": batch.kind,
                "watermark": None if batch.watermark is None else instant(batch.watermark),
                "read": {source.stream: source.rows for source in batch.sources},
                "operators": [
                    {"operator": name, "state": state, "late": late} for name, state, late in _operators(batch)
                ],
                "dropped": batch.dropped,
                "emitted": [schema.as_written(row) for row in batch.rows],
                "next_watermark": None if batch.next_watermark is None else instant(batch.next_watermark),
            }
            for batch in seen.batches
        ]
        error = None if seen.error is None else seen.error.model_dump(mode="json")
        steps.append(
            {"number": seen.number, "name": case.steps[seen.number - 1].name, "batches": batches, "error": error}
        )
    return {"case": case.id, "spark": str(version), "steps": steps}


def _step(case: Case, seen: StepSeen) -> Iterator[ExplanationLine]:
    step = case.steps[seen.number - 1]
    yield ExplanationLine(f"step {seen.number}{f' “{step.name}”' if step.name else ''}", "step")
    if isinstance(step.action, Restart):
        yield ExplanationLine(f"the query stops ({step.action.how}) and restarts from its checkpoint", "dim", 1)


def _batch(
    case: Case,
    version: SparkVersion,
    batch: BatchSeen,
    before: BatchSeen | None,
    schema: OutputSchema,
    arrival: Arrival,
) -> Iterator[ExplanationLine]:
    at = f", watermark {instant(batch.watermark)}" if batch.watermark is not None else ""
    yield ExplanationLine(f"micro-batch {batch.id} ({batch.kind}){at}", "plain", 1)
    for source in batch.sources:
        placed = arrival.get(source.stream)
        if placed is not None or source.moved:
            shown = _given(placed, case.streams.get(source.stream)) if placed is not None else ""
            yield ExplanationLine(f"{source.stream}: {shown or counted(source.rows, 'row')}", "arrives", 2)
    if batch.dropped:
        yield from _late(version, batch, before)
    for name, state, late in _operators(batch):
        behind = f", drops {counted(late, 'late row')}" if late else ""
        yield ExplanationLine(f"{name} keeps {counted(state, 'row') if state else 'nothing'}{behind}", "kept", 2)
    rows = " ".join(f"[{', '.join(map(cell, schema.as_written(row)))}]" for row in batch.rows[:MOST])
    more = f" … ({len(batch.rows)} in all)" if len(batch.rows) > MOST else ""
    yield ExplanationLine(f"emits {rows or 'nothing'}{more}", "emits", 2)
    yield from _watermark(batch)


def _late(version: SparkVersion, batch: BatchSeen, before: BatchSeen | None) -> Iterator[ExplanationLine]:
    """How many rows are late, by which watermark, and the rules that say so."""
    deciding = catalogue()["late_watermark"].at(version)
    of = batch if deciding.value == "own batch" else before
    watermark = of.watermark if of is not None else 0
    by = f" of watermark {instant(watermark)}" if watermark is not None else ""
    yield ExplanationLine(
        f"{counted(batch.dropped or 0, 'row')} late, at or before the time{by}, and dropped", "late", 2
    )
    yield ExplanationLine(f"rule: {deciding.says} ({catalogue()['late_watermark'].source})", "dim", 3)


def _watermark(batch: BatchSeen) -> Iterator[ExplanationLine]:
    if batch.watermark is None:
        return
    times = batch.event_time
    seen = f"event times {instant(times.min)} to {instant(times.max)}; " if times is not None else ""
    if batch.next_watermark is None:
        moved = "the micro-batch was not committed"
    elif batch.next_watermark != batch.watermark:
        moved = f"advances from {instant(batch.watermark)} to {instant(batch.next_watermark)}"
    else:
        moved = f"stays at {instant(batch.watermark)}"
    yield ExplanationLine(f"watermark: {seen}{moved}", "moves", 2)


def _error(seen: StepSeen) -> Iterator[ExplanationLine]:
    assert seen.error is not None
    own = seen.error.own_code
    if own is not None:
        yield ExplanationLine(str(own), "error", 1)
        yield from (ExplanationLine(line, "plain", 2) for line in own.evidence())
        return
    first = next(iter(seen.error.message.splitlines()), "")
    yield ExplanationLine(f"fails at {seen.error.stage}: {seen.error.name or 'an error'}: {first}", "error", 1)


def _operators(batch: BatchSeen) -> list[tuple[str, int, int | None]]:
    """Of each stateful operator its name, the rows that it keeps and those that it dropped; None if the version does not count them."""
    told: Sequence[Mapping[str, Json]] = batch.progress.get("stateOperators", ())
    if len(told) != len(batch.state):
        return [(f"operator {number}", state, None) for number, state in enumerate(batch.state, 1)]
    return [
        (str(one.get("operatorName") or f"operator {number}"), state, one.get(DROPPED_ROWS))
        for number, (one, state) in enumerate(zip(told, batch.state, strict=True), 1)
    ]


def _arrivals(case: Case, seen: StepSeen) -> Iterator[Arrival]:
    """The rows of each data batch of a step, in order; nothing where a restart may have replayed others."""
    match case.steps[seen.number - 1].action:
        case Add(streams=arrival):
            yield arrival
        case Backlog(entries=entries):
            yield from entries


def _given(placed: Partitioned, schema: Schema | None) -> str:
    rows = [row for partition in placed.partitions for row in partition]
    if schema is None:
        return ""
    shown = " ".join(f"[{', '.join(_values(row, schema))}]" for row in rows[:MOST])
    return (shown + (f" … ({len(rows)} in all)" if len(rows) > MOST else "")) or "no rows"


def _values(row: Row, schema: Schema) -> Iterator[str]:
    """The values as the case writes them."""
    for index, field in enumerate(schema.fields):
        yield cell(row.get(field.name) if isinstance(row, Mapping) else row[index])
