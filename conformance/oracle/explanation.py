"""A prediction as text and JSON: for each micro-batch its input, watermark, late rows, closed windows, output and state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from conformance.core.case import Case, Restart
from conformance.core.observation import Column
from conformance.core.spark_types import DataType, parse_type
from conformance.core.values import show
from conformance.core.wording import counted
from conformance.judging.finding import cell
from conformance.judging.rows import as_written
from conformance.model.columns import Value
from conformance.model.progress import BatchProgress, ComparedRow, OperatorProgress
from conformance.model.watermark import InputAdvance, WatermarkAdvance
from conformance.oracle.prediction import Prediction
from conformance.oracle.simulation import StepProgress, wire
from conformance.oracle.version_divergence import VersionDivergence

Json: TypeAlias = Any
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
    """A line of text, without its line end."""

    text: str
    tone: Tone = "plain"
    depth: int = 0

    def __str__(self) -> str:
        mark = MARKS.get(self.tone)
        return "  " * self.depth + (f"{mark} " if mark else "") + self.text


def explanation_lines(case: Case, prediction: Prediction) -> Iterator[ExplanationLine]:
    """The explanation of a whole case on one version."""
    yield ExplanationLine(f"{case.id} on Spark {prediction.version}", "head")
    yield ExplanationLine(case.title, "plain")
    for step in prediction.steps:
        yield ExplanationLine("")
        yield from step_lines(case, step, prediction.columns_of(step.step.number))


def step_lines(case: Case, step: StepProgress, columns: Sequence[Column]) -> Iterator[ExplanationLine]:
    """A step: its micro-batches and its error, if any."""
    name = f" “{step.step.name}”" if step.step.name else ""
    yield ExplanationLine(f"step {step.step.number}{name}", "step")
    if isinstance(step.step.action, Restart):
        yield ExplanationLine(f"the query stops ({step.step.action.how}) and restarts from its checkpoint", "dim", 1)
    for batch in step.batches:
        yield from batch_lines(case, batch, columns)
    if step.error is not None:
        classes = " < ".join(step.error.classes)
        yield ExplanationLine(f"fails at {step.error.stage}: {classes}: {step.error.message}", "error", 1)
    elif not step.batches:
        yield ExplanationLine("no micro-batch runs", "dim", 1)


def batch_lines(case: Case, batch: BatchProgress, columns: Sequence[Column]) -> Iterator[ExplanationLine]:
    yield ExplanationLine(f"micro-batch {batch.id} ({batch.kind}), watermark {instant(batch.watermark_ms)}", "plain", 1)
    for stream, rows in batch.read:
        types = [field.type for field in case.streams[stream].fields]
        yield ExplanationLine(f"{stream}: {_rows(rows, types) or 'no rows'}", "arrives", 2)
    for operator in batch.operators:
        yield from _operator_lines(operator, alone=len(batch.operators) == 1)
    if batch.emitted:
        types = [parse_type(column.type) for column in columns]
        yield ExplanationLine(f"emits {_rows(batch.emitted, types)}", "emits", 2)
    else:
        yield ExplanationLine("emits nothing", "emits", 2)
    yield from _advance_lines(batch.advance)


def _operator_lines(operator: OperatorProgress, *, alone: bool) -> Iterator[ExplanationLine]:
    depth = 2
    if not alone:
        yield ExplanationLine(operator.title, "plain", 2)
        depth = 3
    late, over = instant(operator.late_ms), instant(operator.eviction_ms)
    if late != over or not alone:
        closes = "windows ending by {} close" if "window" in operator.title else "state up to {} is removed"
        yield ExplanationLine(f"Rows up to {late} are late; {closes.format(over)}", "dim", depth)
    for one in operator.late[:MOST]:
        by = "" if one.time_us is None else f": {show(one.time_us)} ≤ watermark {instant(one.watermark_ms)}"
        many = f" ({one.rows} rows)" if one.rows > 1 else ""
        yield ExplanationLine(f"late: {row_text(one)}{many}{by}", "late", depth)
    yield from _rest(operator.late, "late", depth)
    if operator.duplicates:
        yield ExplanationLine(f"{counted(operator.duplicates, 'duplicate')} dropped", "plain", depth)
    for one in operator.evicted[:MOST]:
        by = "" if one.time_us is None else f": {show(one.time_us)} ≤ watermark {instant(one.watermark_ms)}"
        yield ExplanationLine(f"closed: {row_text(one)}{by}", "closed", depth)
    yield from _rest(operator.evicted, "closed", depth)
    contents = " ".join(f"[{row_text(one)}]" for one in operator.state[:MOST])
    more = f" … ({operator.state_rows} in all)" if len(operator.state) > MOST else ""
    title = operator.title if alone else "it"
    yield ExplanationLine(
        f"{title} keeps {operator.state_rows or 'nothing'}{f': {contents}{more}' if contents else ''}", "kept", depth
    )


def _rest(ones: Sequence[ComparedRow], tone: Tone, depth: int) -> Iterator[ExplanationLine]:
    if len(ones) > MOST:
        yield ExplanationLine(f"… {len(ones) - MOST} more", tone, depth)


def _advance_lines(advance: WatermarkAdvance) -> Iterator[ExplanationLine]:
    if not advance.nodes:
        return
    moves = advance.after_ms != advance.before_ms
    before, after = instant(advance.before_ms), instant(advance.after_ms)
    if len(advance.nodes) == 1:
        (node,) = advance.nodes
        if node.computed_ms is None:
            yield ExplanationLine(f"watermark: no rows, stays at {before}", "moves", 2)
        elif moves:
            yield ExplanationLine(f"watermark: {_sum(node)}, advances from {before}", "moves", 2)
        else:
            yield ExplanationLine(f"watermark: {_sum(node)}, stays at {before}", "moves", 2)
        return
    for node in advance.nodes:
        if node.computed_ms is None:
            known = "no rows yet, counts as" if node.before_ms is None else "no rows, stays at"
            yield ExplanationLine(f"{node.column}: {known} {instant(node.after_ms or 0)}", "moves", 2)
        elif node.after_ms == node.computed_ms:
            yield ExplanationLine(f"{node.column}: {_sum(node)}", "moves", 2)
        else:
            yield ExplanationLine(f"{node.column}: {_sum(node)}, stays at {instant(node.after_ms or 0)}", "moves", 2)
    verdict = f"{after}, advances from {before}" if moves else f"stays at {before}"
    yield ExplanationLine(f"watermark: {advance.policy} of {len(advance.nodes)} inputs: {verdict}", "moves", 2)


def _sum(node: InputAdvance) -> str:
    """``max 12:30 − 25 min = 12:05``."""
    return f"max {instant(node.highest_ms or 0)} − {duration(node.delay_ms)} = {instant(node.computed_ms or 0)}"


def divergence_lines(
    case: Case, here: Prediction, there: Prediction, found: VersionDivergence | None
) -> Iterator[ExplanationLine]:
    """The first difference between two versions, and the rules that explain it."""
    yield ExplanationLine(f"{case.id}: Spark {here.version} and {there.version}", "head")
    if found is None:
        yield ExplanationLine("no difference: both versions run the same micro-batches")
        return
    place = f", micro-batch {found.batch}" if found.batch is not None else ""
    name = case.steps[found.step - 1].name
    yield ExplanationLine(f"first difference: step {found.step}{f' “{name}”' if name else ''}{place}", "step")
    for prediction, one in ((here, found.here), (there, found.there)):
        yield ExplanationLine("")
        yield ExplanationLine(f"Spark {prediction.version}", "plain", 1)
        if isinstance(one, BatchProgress):
            yield from (
                ExplanationLine(line.text, line.tone, line.depth + 1)
                for line in batch_lines(case, one, prediction.columns_of(found.step))
            )
        elif one is None:
            yield ExplanationLine("does not run this micro-batch", "dim", 2)
        else:
            yield ExplanationLine(f"fails at {one.stage}: {' < '.join(one.classes)}: {one.message}", "error", 2)
    yield ExplanationLine("")
    if not found.rules:
        yield ExplanationLine("no single rule explains the difference", "step")
    for rule in found.rules:
        yield ExplanationLine(f"rule that differs: {rule.name} ({rule.source})", "step")
        yield ExplanationLine(f"{here.version}: {rule.here}", "plain", 1)
        yield ExplanationLine(f"{there.version}: {rule.there}", "plain", 1)


def instant(millis: int) -> str:
    """A watermark as the case language writes instants: ``12:05``."""
    return show(millis * 1000)


def duration(millis: int) -> str:
    """``25 min``, ``1 h 30 min``, ``1.5 s``."""
    hours, rest = divmod(millis, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes)
    if rest or not parts:
        parts.append(f"{rest / 1000:g} s")
    return " ".join(parts)


def row_text(one: ComparedRow) -> str:
    """The values of a row: ``window 12:00–12:10, id a``."""
    return ", ".join(f"{name} {_shown(value, type_)}" for name, type_, value in one.what) or "all rows"


def _shown(value: Value, type_: DataType) -> str:
    if value is not None and [field.name for field in type_.fields] == ["start", "end"]:
        return f"{show(value[0])}–{show(value[1])}"
    return cell(as_written(wire(value, type_), type_))


def _rows(rows: Sequence[Sequence[Value]], types: Sequence[DataType]) -> str:
    shown = [
        f"[{', '.join(_shown(value, type_) for value, type_ in zip(row, types, strict=True))}]" for row in rows[:MOST]
    ]
    more = f" … ({len(rows)} in all)" if len(rows) > MOST else ""
    return " ".join(shown) + more


def record(case: Case, prediction: Prediction) -> dict[str, Json]:
    """The explanation as JSON; instants in the notation of the case language."""
    return {
        "case": case.id,
        "spark": str(prediction.version),
        "columns": [column.name for column in prediction.columns],
        "steps": [_step(case, step, prediction.columns_of(step.step.number)) for step in prediction.steps],
    }


def divergence_record(
    here: Prediction, there: Prediction, found: VersionDivergence | None, case: Case
) -> dict[str, Json]:
    """The first difference between two versions as JSON; ``parting`` is null if there is none."""
    difference = None
    if found is not None:
        difference = {
            "step": found.step,
            "batch": found.batch,
            "here": _batch_or_error(case, found.here, here.columns_of(found.step)),
            "there": _batch_or_error(case, found.there, there.columns_of(found.step)),
            "rules": [
                {"name": rule.name, "source": rule.source, "here": rule.here, "there": rule.there}
                for rule in found.rules
            ],
        }
    return {"case": case.id, "spark": str(here.version), "against": str(there.version), "parting": difference}


def _batch_or_error(case: Case, one: object, columns: Sequence[Column]) -> Json:
    if isinstance(one, BatchProgress):
        return _batch(case, one, columns)
    return None if one is None else {"error": str(one)}


def _step(case: Case, step: StepProgress, columns: Sequence[Column]) -> dict[str, Json]:
    error = None
    if step.error is not None:
        error = {"stage": step.error.stage, "classes": list(step.error.classes), "message": step.error.message}
    batches = [_batch(case, batch, columns) for batch in step.batches]
    return {"number": step.step.number, "name": step.step.name, "batches": batches, "error": error}


def _batch(case: Case, batch: BatchProgress, columns: Sequence[Column]) -> dict[str, Json]:
    types = [parse_type(column.type) for column in columns]
    return {
        "id": batch.id,
        "kind": batch.kind,
        "watermark": instant(batch.watermark_ms),
        "read": {
            stream: _cells(rows, [field.type for field in case.streams[stream].fields]) for stream, rows in batch.read
        },
        "operators": [_operator(operator) for operator in batch.operators],
        "emitted": _cells(batch.emitted, types),
        "inputs": [
            {
                "column": node.column,
                "delay": duration(node.delay_ms),
                "max": None if node.highest_ms is None else instant(node.highest_ms),
                "watermark": None if node.after_ms is None else instant(node.after_ms),
            }
            for node in batch.advance.nodes
        ],
        "next_watermark": instant(batch.advance.after_ms),
    }


def _operator(operator: OperatorProgress) -> dict[str, Json]:
    return {
        "operator": operator.operator,
        "title": operator.title,
        "late_watermark": instant(operator.late_ms),
        "eviction_watermark": instant(operator.eviction_ms),
        "late": [_compared(one) for one in operator.late],
        "over": [_compared(one) for one in operator.evicted],
        "dropped": operator.dropped,
        "held": operator.state_rows,
        "state": [_compared(one)["row"] for one in operator.state],
    }


def _compared(one: ComparedRow) -> dict[str, Json]:
    return {
        "row": {name: as_written(wire(value, type_), type_) for name, type_, value in one.what},
        "time": None if one.time_us is None else show(one.time_us),
        "watermark": instant(one.watermark_ms),
        "rows": one.rows,
    }


def _cells(rows: Sequence[Sequence[Value]], types: Sequence[DataType]) -> list[list[Json]]:
    return [[as_written(wire(value, type_), type_) for value, type_ in zip(row, types, strict=True)] for row in rows]
