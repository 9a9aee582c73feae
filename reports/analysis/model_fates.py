"""What an engine does not tell about a micro-batch, and the reference model does: which rows are late, which windows end.

An engine counts dropped rows and rows of state. Which rows and which windows these are follows from Spark's rules, and the
model knows it. Its word counts for a micro-batch only if it predicted everything that the engine did tell about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from conformance.core.observation import BatchSeen
from conformance.core.spark_types import DataType
from conformance.model.columns import Value
from conformance.model.progress import ComparedRow
from conformance.oracle.prediction import Prediction


@dataclass(frozen=True, order=True)
class Span:
    """A window of event time, in microseconds; the end is exclusive."""

    start: int
    end: int


@dataclass(frozen=True)
class LateRows:
    """A late row, or the late rows of one group."""

    window: Span | None
    values: Mapping[str, Value]
    """Column in lower case → value, as the model computes with them; instants in µs."""
    rows: int


@dataclass(frozen=True)
class BatchFates:
    """The fates of rows and windows in a micro-batch, by the model."""

    step: int
    predicted: BatchSeen
    late: tuple[LateRows, ...]
    evicted: frozenset[Span]
    """Windows whose state is removed because the watermark passed them."""
    kept: frozenset[Span]
    """Windows with state after the micro-batch."""


def batch_fates(prediction: Prediction) -> tuple[BatchFates, ...]:
    """Of every micro-batch that the model predicts, in order."""
    return tuple(
        BatchFates(
            step=seen.number,
            predicted=batch,
            late=tuple(_late_rows(one) for operator in progress.operators for one in operator.late),
            evicted=frozenset(_spans(one for operator in progress.operators for one in operator.evicted)),
            kept=frozenset(_spans(one for operator in progress.operators for one in operator.state)),
        )
        for seen, step in zip(prediction.observation.steps, prediction.steps, strict=True)
        for batch, progress in zip(seen.batches, step.batches, strict=True)
    )


def confirmed(fates: Iterable[BatchFates], engine: Iterable[tuple[int, BatchSeen]]) -> tuple[BatchFates, ...]:
    """The fates up to the first micro-batch, given with its step, that the model predicts otherwise."""
    found = []
    for one, (step, batch) in zip(fates, engine, strict=False):
        if one.step != step or one.predicted.behaviour != batch.behaviour:
            break
        found.append(one)
    return tuple(found)


def _late_rows(one: ComparedRow) -> LateRows:
    values = {name.lower(): value for name, type_, value in one.what if not _is_window(type_)}
    return LateRows(next(_spans([one]), None), values, one.rows)


def _spans(ones: Iterable[ComparedRow]) -> Iterator[Span]:
    for one in ones:
        for _, type_, value in one.what:
            if _is_window(type_) and value is not None and all(isinstance(part, int) for part in value):
                yield Span(*value)


def _is_window(type_: DataType) -> bool:
    return [field.name for field in type_.fields] == ["start", "end"]
