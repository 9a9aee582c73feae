"""The account of a case as text and JSON: for each micro-batch its input, watermark, late rows, closed windows, output and state.

By the reference model it says which rows and windows these are, and by an engine's answer alone how many: also for code that no model
predicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from conformance.account.account import BatchAccount, StepAccount, account, instant, is_window
from conformance.core.case import Case
from conformance.core.data import Json
from conformance.core.observation import DROPPED_ROWS, BatchSeen, ErrorSeen, Observation
from conformance.core.spark_types import DataType
from conformance.core.values import show
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted, duration
from conformance.judging.finding import cell
from conformance.judging.step_comparison import OutputSchema, as_written
from conformance.model.catalogue import catalogue
from conformance.model.columns import Value
from conformance.model.operators import BatchProgress, ComparedRow, OperatorProgress
from conformance.model.watermark import InputAdvance, WatermarkAdvance
from conformance.oracle.prediction import Prediction
from conformance.oracle.simulation import wire
from conformance.oracle.version_divergence import VersionDivergence

Tone: TypeAlias = Literal[
    "head", "step", "plain", "arrives", "moves", "late", "closed", "emits", "kept", "error", "dim"
]

MOST = 8
"""How many rows of one kind are listed before the rest is counted."""

MARKS: Mapping[Tone, str] = {
    "arrives": "→",
    "moves": "◷",
    "late": "✗",
    "closed": "▣",
    "emits": "←",
    "kept": "·",
    "error": "✗",
}
"""The prefix of a line, so that the text does not depend on colour."""


@dataclass(frozen=True)
class ExplanationLine:
    text: str
    tone: Tone = "plain"
    depth: int = 0

    def __str__(self) -> str:
        mark = MARKS.get(self.tone)
        return "  " * self.depth + (f"{mark} " if mark else "") + self.text


def explanation_lines(case: Case, prediction: Prediction) -> Iterator[ExplanationLine]:
    """The explanation of what the model predicts for a whole case."""
    steps = account(case, prediction.version, prediction.observation, prediction)
    return _lines(case, f"{case.id} on Spark {prediction.version}", steps)


def observed_lines(case: Case, version: SparkVersion, observation: Observation) -> Iterator[ExplanationLine]:
    """The explanation of what an engine did with a whole case, by its answer alone."""
    return _lines(case, f"{case.id} on Spark {version}, as it ran", account(case, version, observation), version)


def _lines(
    case: Case, head: str, steps: Sequence[StepAccount], observed: SparkVersion | None = None
) -> Iterator[ExplanationLine]:
    """The lines of an account; ``observed``: the version of the engine, if it is told by the engine's answer alone."""
    yield ExplanationLine(case.title, "head")
    yield ExplanationLine(head, "dim")
    for step in steps:
        yield ExplanationLine("")
        yield ExplanationLine(f"step {step.seen.number}{f' “{step.name}”' if step.name else ''}", "step")
        if step.restarted is not None:
            yield ExplanationLine(f"the query stops ({step.restarted}) and restarts from its checkpoint", "dim", 1)
        for batch in step.batches:
            if batch.model is not None:
                yield from batch_lines(case, batch.model, step.schema)
            elif observed is not None:
                yield from _observed_batch(observed, batch, step)
        if step.seen.error is not None:
            yield from _error_lines(step.seen.error, observed)
        elif not step.batches:
            yield ExplanationLine("no micro-batch runs", "dim", 1)


def _error_lines(error: ErrorSeen, observed: SparkVersion | None) -> Iterator[ExplanationLine]:
    if error.own_code is not None:
        yield ExplanationLine(str(error.own_code), "error", 1)
        yield from (ExplanationLine(line, "plain", 2) for line in error.own_code.evidence())
        return
    what = f"{' < '.join(error.classes)}: {error.message}"
    if observed is not None:  # after its first line Spark appends the plan
        what = f"{error.name or 'an error'}: {error.first_line}"
    yield ExplanationLine(f"fails at {error.stage}: {what}", "error", 1)


def batch_lines(case: Case, batch: BatchProgress, schema: OutputSchema) -> Iterator[ExplanationLine]:
    yield ExplanationLine(f"micro-batch {batch.id} ({batch.kind}), watermark {instant(batch.watermark_ms)}", "plain", 1)
    for stream, rows in batch.read:
        types = [field.type for field in case.streams[stream].fields]
        yield ExplanationLine(f"{stream}: {_rows(rows, types) or 'no rows'}", "arrives", 2)
    for operator in batch.operators:
        yield from _operator_lines(operator, alone=len(batch.operators) == 1)
    yield ExplanationLine(f"emits {_rows(batch.emitted, schema.types) or 'nothing'}", "emits", 2)
    yield from _advance_lines(batch.advance)


def _operator_lines(operator: OperatorProgress, *, alone: bool) -> Iterator[ExplanationLine]:
    depth = 2 if alone else 3
    if not alone:
        yield ExplanationLine(operator.title, "plain", 2)
    late, over = instant(operator.late_ms), instant(operator.eviction_ms)
    if late != over or not alone:
        of = "of windows ending by" if operator.by_window else "up to"
        closes = f"windows ending by {over} close" if operator.by_window else f"state up to {over} is removed"
        yield ExplanationLine(f"Rows {of} {late} are late; {closes}", "dim", depth)
    yield from _listed_rows("late", operator.late, depth)
    if operator.duplicates:
        yield ExplanationLine(f"{counted(operator.duplicates, 'duplicate')} dropped", "plain", depth)
    yield from _listed_rows("closed", operator.evicted, depth)
    shown = _listed([*map(row_text, operator.shown)], operator.state_rows)
    keeps = f"{operator.title if alone else 'it'} keeps {operator.state_rows or 'nothing'}"
    yield ExplanationLine(f"{keeps}: {shown}" if shown else keeps, "kept", depth)


def _listed_rows(tone: Literal["late", "closed"], rows: Sequence[ComparedRow], depth: int) -> Iterator[ExplanationLine]:
    for row in rows[:MOST]:
        by = "" if row.time_us is None else f": {show(row.time_us)} ≤ watermark {instant(row.watermark_ms)}"
        many = f" ({row.rows} rows)" if row.rows > 1 else ""
        yield ExplanationLine(f"{tone}: {row_text(row)}{many}{by}", tone, depth)
    if len(rows) > MOST:
        yield ExplanationLine(f"… {len(rows) - MOST} more", tone, depth)


def _advance_lines(advance: WatermarkAdvance) -> Iterator[ExplanationLine]:
    if not advance.nodes:
        return
    before, after = instant(advance.before_ms), instant(advance.after_ms)
    moved = f"advances from {before}" if advance.after_ms != advance.before_ms else f"stays at {before}"
    if len(advance.nodes) == 1:
        (node,) = advance.nodes
        computed = f"no rows, stays at {before}" if node.computed_ms is None else f"{_sum(node)}, {moved}"
        yield ExplanationLine(f"watermark: {computed}", "moves", 2)
        return
    for node in advance.nodes:
        now = instant(node.after_ms or 0)
        if node.computed_ms is None:
            known = f"no rows yet, counts as {now}" if node.before_ms is None else f"no rows, stays at {now}"
        else:
            known = _sum(node) if node.after_ms == node.computed_ms else f"{_sum(node)}, stays at {now}"
        yield ExplanationLine(f"{node.column}: {known}", "moves", 2)
    verdict = moved if advance.after_ms == advance.before_ms else f"{after}, {moved}"
    yield ExplanationLine(f"watermark: {advance.policy} of {len(advance.nodes)} inputs: {verdict}", "moves", 2)


def _sum(node: InputAdvance) -> str:
    """``max 12:30 − 25 min = 12:05``."""
    return f"max {instant(node.highest_ms or 0)} − {duration(node.delay_ms, 5)} = {instant(node.computed_ms or 0)}"


def _observed_batch(version: SparkVersion, batch: BatchAccount, step: StepAccount) -> Iterator[ExplanationLine]:
    seen, ran_with = batch.seen, batch.facts.get("ran with")
    at = f", watermark {ran_with}" if ran_with is not None else ""
    yield ExplanationLine(f"micro-batch {seen.id} ({batch.facts['kind']}){at}", "plain", 1)
    for source in seen.sources:
        if source.stream in batch.streams or source.moved:
            given = [row.text for row in batch.rows if row.stream == source.stream]
            # A replay may find that the records are gone.
            is_given = source.stream in batch.streams and (source.rows or not given)
            shown = (_listed(given) or "no rows") if is_given else counted(source.rows, "row")
            yield ExplanationLine(f"{source.stream}: {shown}", "arrives", 2)
    if seen.dropped:
        rule = catalogue()["late_watermark"]
        by = f" by watermark {instant(batch.late_ms)}" if batch.late_ms is not None else ""
        rows = [row.text for row in batch.rows if row.treatment == "late"]
        decided = {row.treatment for row in batch.rows if row.behind} == {"taken"}
        which = _listed(rows) or ("no row from all of its windows" if decided else "which rows is not known")
        yield ExplanationLine(f"late{by}, and dropped: {which}", "late", 2)
        if seen.dropped != len(rows):
            yield ExplanationLine(f"Spark counts {seen.dropped}: an aggregation counts groups, not rows", "dim", 3)
        yield ExplanationLine(f"rule: {rule.at(version).says} ({rule.source})", "dim", 3)
    for name, state, dropped in _operators(seen):
        behind = f", counts {dropped} as late" if dropped else ""
        yield ExplanationLine(f"{name} keeps {counted(state, 'row') if state else 'nothing'}{behind}", "kept", 2)
    yield ExplanationLine(f"emits {_listed([*map(step.row, seen.rows)]) or 'nothing'}", "emits", 2)
    if seen.watermark is not None:
        times = seen.event_time
        between = f"event times {instant(times.min)} to {instant(times.max)}; " if times is not None else ""
        moved = f"stays at {ran_with}"
        if seen.next_watermark is None:
            moved = "the micro-batch was not committed"
        elif seen.next_watermark != seen.watermark:
            moved = f"advances from {ran_with} to {instant(seen.next_watermark)}"
        yield ExplanationLine(f"watermark: {between}{moved}", "moves", 2)


def _operators(batch: BatchSeen) -> list[tuple[str, int, int | None]]:
    """Of each stateful operator its name, the rows that it keeps and those that it dropped; None if the version does not count them."""
    progress: Sequence[Mapping[str, Any]] = batch.progress.get("stateOperators", ())
    known = progress if len(progress) == len(batch.state) else [{}] * len(batch.state)
    return [
        (str(operator.get("operatorName") or f"operator {number}"), state, operator.get(DROPPED_ROWS))
        for number, (operator, state) in enumerate(zip(known, batch.state, strict=True), 1)
    ]


def _observed(account: BatchAccount, schema: OutputSchema) -> dict[str, Json]:
    batch, following = account.seen, account.seen.next_watermark
    ran = {"id": batch.id, "kind": batch.kind, "watermark": account.facts.get("ran with")}
    read = {source.stream: source.rows for source in batch.sources}
    operators = [{"operator": name, "state": state, "late": late} for name, state, late in _operators(batch)]
    made = {"dropped": batch.dropped, "emitted": [schema.as_written(row) for row in batch.rows]}
    next_watermark = None if following is None else instant(following)
    return {**ran, "read": read, "operators": operators, **made, "next_watermark": next_watermark}


def divergence_lines(
    case: Case, here: Prediction, there: Prediction, parting: VersionDivergence | None
) -> Iterator[ExplanationLine]:
    """The first difference between two versions, and the rules that explain it."""
    yield ExplanationLine(f"{case.id}: Spark {here.version} and {there.version}", "head")
    if parting is None:
        yield ExplanationLine("no difference: both versions run the same micro-batches")
        return
    place = f", micro-batch {parting.batch}" if parting.batch is not None else ""
    name = case.steps[parting.step - 1].name
    yield ExplanationLine(f"first difference: step {parting.step}{f' “{name}”' if name else ''}{place}", "step")
    for prediction, progress in ((here, parting.here), (there, parting.there)):
        yield ExplanationLine("")
        yield ExplanationLine(f"Spark {prediction.version}", "plain", 1)
        if isinstance(progress, BatchProgress):
            of_batch = batch_lines(case, progress, OutputSchema.of(prediction.columns_of(parting.step)))
            yield from (replace(line, depth=line.depth + 1) for line in of_batch)
        elif progress is None:
            yield ExplanationLine("does not run this micro-batch", "dim", 2)
        else:
            what = f"{' < '.join(progress.classes)}: {progress.message}"
            yield ExplanationLine(f"fails at {progress.stage}: {what}", "error", 2)
    yield ExplanationLine("")
    if not parting.rules:
        yield ExplanationLine("no single rule explains the difference", "step")
    for rule in parting.rules:
        yield ExplanationLine(f"rule that differs: {rule.name} ({rule.source})", "step")
        yield ExplanationLine(f"{here.version}: {rule.here}", "plain", 1)
        yield ExplanationLine(f"{there.version}: {rule.there}", "plain", 1)


def row_text(row: ComparedRow) -> str:
    """The values of a row: ``window 12:00–12:10, id a``."""
    return ", ".join(f"{name} {_shown(value, type_)}" for name, type_, value in row.what) or "all rows"


def _shown(value: Value, type_: DataType) -> str:
    if value is not None and is_window(type_):
        return f"{show(value[0])}–{show(value[1])}"
    return cell(as_written(wire(value, type_), type_))


def _rows(rows: Sequence[Sequence[Value]], types: Sequence[DataType]) -> str:
    return _listed([", ".join(map(_shown, row, types)) for row in rows])


def _listed(rows: Sequence[str], count: int | None = None) -> str:
    more = f" … ({count or len(rows)} in all)" if len(rows) > MOST else ""
    return " ".join(f"[{row}]" for row in rows[:MOST]) + more


def record(case: Case, prediction: Prediction) -> dict[str, Json]:
    """The explanation as JSON; instants in the notation of the case language."""
    columns = [column.name for column in prediction.columns]
    steps = []
    for step in account(case, prediction.version, prediction.observation, prediction):
        batches = [_batch(case, batch.model, step.schema) for batch in step.batches if batch.model is not None]
        steps.append(_step_record(step, batches, {"stage", "classes", "message"}))
    return {"case": case.id, "spark": str(prediction.version), "columns": columns, "steps": steps}


def observed_record(case: Case, version: SparkVersion, observation: Observation) -> dict[str, Json]:
    """What an engine did, by its answer alone, as JSON; instants in the notation of the case language."""
    steps = account(case, version, observation)
    records = [_step_record(step, [_observed(batch, step.schema) for batch in step.batches]) for step in steps]
    return {"case": case.id, "spark": str(version), "steps": records}


def _step_record(step: StepAccount, batches: list[Json], of_error: set[str] | None = None) -> dict[str, Json]:
    error = step.seen.error and step.seen.error.model_dump(mode="json", include=of_error)
    return {"number": step.seen.number, "name": step.name, "batches": batches, "error": error}


def divergence_record(
    here: Prediction, there: Prediction, parting: VersionDivergence | None, case: Case
) -> dict[str, Json]:
    """The first difference between two versions as JSON; ``parting`` is null if there is none."""
    difference: Json = None
    if parting is not None:
        difference = {"step": parting.step, "batch": parting.batch}
        for name, prediction, progress in (("here", here, parting.here), ("there", there, parting.there)):
            schema = OutputSchema.of(prediction.columns_of(parting.step))
            error = None if progress is None else {"error": str(progress)}
            difference[name] = _batch(case, progress, schema) if isinstance(progress, BatchProgress) else error
        difference["rules"] = [asdict(rule) for rule in parting.rules]
    return {"case": case.id, "spark": str(here.version), "against": str(there.version), "parting": difference}


def _batch(case: Case, batch: BatchProgress, schema: OutputSchema) -> dict[str, Json]:
    types = {stream: [field.type for field in schema.fields] for stream, schema in case.streams.items()}
    return {
        "id": batch.id,
        "kind": batch.kind,
        "watermark": instant(batch.watermark_ms),
        "read": {stream: _cells(rows, types[stream]) for stream, rows in batch.read},
        "operators": [*map(_operator, batch.operators)],
        "emitted": _cells(batch.emitted, schema.types),
        "inputs": [*map(_input, batch.advance.nodes)],
        "next_watermark": instant(batch.advance.after_ms),
    }


def _operator(operator: OperatorProgress) -> dict[str, Json]:
    late, over = [*map(_compared, operator.late)], [*map(_compared, operator.evicted)]
    watermarks = {"late_watermark": instant(operator.late_ms), "eviction_watermark": instant(operator.eviction_ms)}
    state: list[Json] = [_compared(row)["row"] for row in operator.shown]
    counts = {"late": late, "over": over, "dropped": operator.dropped, "held": operator.state_rows}
    return {"operator": operator.operator, "title": operator.title, **watermarks, **counts, "state": state}


def _input(node: InputAdvance) -> dict[str, Json]:
    highest, after = (None if ms is None else instant(ms) for ms in (node.highest_ms, node.after_ms))
    return {"column": node.column, "delay": duration(node.delay_ms, 5), "max": highest, "watermark": after}


def _compared(row: ComparedRow) -> dict[str, Json]:
    values = {name: as_written(wire(value, type_), type_) for name, type_, value in row.what}
    time = None if row.time_us is None else show(row.time_us)
    return {"row": values, "time": time, "watermark": instant(row.watermark_ms), "rows": row.rows}


def _cells(rows: Sequence[Sequence[Value]], types: Sequence[DataType]) -> list[list[Json]]:
    return [[as_written(wire(value, type_), type_) for value, type_ in zip(row, types, strict=True)] for row in rows]
