"""Whether two answers to one case are the same, and where they first differ.

This is the only comparison of two answers: engine with engine, engine with model, version with version. It compares
``Observation.behaviour`` field by field, with these rules:

- A micro-batch without ``dropped`` says nothing about it: versions before 3.1 have no such metric.
- Rows are compared as a multiset, by value: ``1.0`` and ``1.00`` are the same DECIMAL.
- The watermark after a step that failed is not compared, since no micro-batch can run with it.
- Watermarks are not compared at all if the event time is the engine's clock (``instants=False``).
- Errors are the same if their stage and their class are; only their stage counts if one of the answers is a model's, which does not
  predict every class of an error (``error_classes=False``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.core.observation import BatchBehaviour, BatchSeen, Observation, StepBehaviour, StepSeen
from conformance.core.values import show
from conformance.judging.step_comparison import OutputSchema

Aspect: TypeAlias = Literal[
    "id",
    "kind",
    "watermark",
    "dropped",
    "rows",
    "state",
    "next_watermark",
    "error",
    "micro-batches",
    "watermark after the step",
    "steps",
    "status",
]
"""What differs: a field of a micro-batch, then of a step, then of the whole answer, in the order of comparison."""
Value: TypeAlias = int | str | tuple[int, ...] | tuple[str, ...] | None
Schemas: TypeAlias = tuple[OutputSchema, OutputSchema]

_OF_A_BATCH: tuple[Aspect, ...] = ("id", "kind", "watermark", "dropped", "rows", "state", "next_watermark")
"""Every field of ``BatchBehaviour``, causes before effects."""
_ROWS_SHOWN = 5


@dataclass(frozen=True)
class Divergence:
    step: int | None
    """None if one of the two has no answer (``status``)."""
    batch: int | None
    """None if the whole step differs."""
    what: Aspect
    a: Value
    """For ``rows``, the rows that only this answer has."""
    b: Value

    @property
    def place(self) -> str:
        """``step 1, micro-batch 2``; empty without a step."""
        step = "" if self.step is None else f"step {self.step}"
        return step if self.batch is None else f"{step}, micro-batch {self.batch}"

    @property
    def values(self) -> tuple[str, str]:
        return self._text(self.a), self._text(self.b)

    def __str__(self) -> str:
        a, b = self.values
        return f"{self.place}: {self.what} {a} | {b}" if self.place else f"{self.what} {a} | {b}"

    def _text(self, value: Value) -> str:
        if self.what == "rows" and isinstance(value, tuple):
            shown = ", ".join(json.dumps(json.loads(str(row)), ensure_ascii=False) for row in value[:_ROWS_SHOWN])
            more = f" and {len(value) - _ROWS_SHOWN} more" if len(value) > _ROWS_SHOWN else ""
            return f"only here: {shown}{more}" if value else "nothing else"
        if "watermark" in self.what and isinstance(value, int):
            return show(value * 1000)
        return value if isinstance(value, str) else json.dumps(value)


def divergence(
    a: Observation, b: Observation, *, upto: int | None = None, instants: bool = True, error_classes: bool = True
) -> Divergence | None:
    """The first place where two answers differ; None if they are equivalent.

    Args:
        a, b: answers to the same case.
        upto: the last step to compare; None for all.
        instants: whether watermarks are compared.
        error_classes: whether errors are compared by their class too.
    """
    return next(divergences(a, b, upto=upto, instants=instants, error_classes=error_classes), None)


def equivalent(
    a: Observation, b: Observation, *, upto: int | None = None, instants: bool = True, error_classes: bool = True
) -> bool:
    return divergence(a, b, upto=upto, instants=instants, error_classes=error_classes) is None


def divergences(
    a: Observation, b: Observation, *, upto: int | None = None, instants: bool = True, error_classes: bool = True
) -> Iterator[Divergence]:
    steps = [[step for step in answer.steps if upto is None or step.number <= upto] for answer in (a, b)]
    for one, other in zip(*steps, strict=False):
        behaviours = [step.behaviour if instants else step.behaviour.without_instants() for step in (one, other)]
        schemas = OutputSchema.of(a.columns_of(one)), OutputSchema.of(b.columns_of(other))
        yield from _of_steps(one.number, behaviours[0], behaviours[1], schemas, error_classes=error_classes)
    if len(steps[0]) != len(steps[1]):
        yield Divergence(min(map(len, steps)) + 1, None, "steps", len(steps[0]), len(steps[1]))


def batches_equivalent(a: BatchSeen, b: BatchSeen, schemas: Schemas) -> bool:
    return next(_of_batches(0, a.behaviour, b.behaviour, schemas), None) is None


def steps_equivalent(a: StepSeen, b: StepSeen, schemas: Schemas, *, error_classes: bool = True) -> bool:
    return next(_of_steps(a.number, a.behaviour, b.behaviour, schemas, error_classes=error_classes), None) is None


def different_rows(a: Iterable[str], b: Iterable[str], schemas: Schemas) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rows that only one of two multisets has, sorted; rows are JSON, as in ``BatchBehaviour``."""
    left, right = Counter(a), Counter(b)
    only_a, only_b = left - right, right - left
    if only_a and only_b:  # perhaps the same values, written in two ways
        values = [
            Counter(map(repr, (_value(row, schema) for row in rows.elements())))
            for rows, schema in zip((only_a, only_b), schemas, strict=True)
        ]
        common = values[0] & values[1]
        only_a, only_b = _without(only_a, common, schemas[0]), _without(only_b, common, schemas[1])
    return tuple(sorted(only_a.elements())), tuple(sorted(only_b.elements()))


def _value(row: str, schema: OutputSchema) -> Hashable:
    return schema.comparable(tuple(json.loads(row)))


def _without(rows: Counter[str], common: Counter[str], schema: OutputSchema) -> Counter[str]:
    left, kept = Counter(common), Counter[str]()
    for row in sorted(rows.elements()):
        value = repr(_value(row, schema))
        kept[row] += not left[value]
        left[value] -= left[value] > 0
    return kept


def _of_steps(
    step: int, a: StepBehaviour, b: StepBehaviour, schemas: Schemas, *, error_classes: bool = True
) -> Iterator[Divergence]:
    for batch, other in zip(a.batches, b.batches, strict=False):
        yield from _of_batches(step, batch, other, schemas)
    errors = [side.error if side.error is None or error_classes else side.error._replace(name="") for side in (a, b)]
    if errors[0] != errors[1]:
        yield Divergence(step, None, "error", *(str(side.error) if side.error else "none" for side in (a, b)))
    if len(a.batches) != len(b.batches):
        yield Divergence(step, None, "micro-batches", len(a.batches), len(b.batches))
    if a.watermark != b.watermark and a.error is None and b.error is None:
        yield Divergence(step, None, "watermark after the step", a.watermark, b.watermark)


def _of_batches(step: int, a: BatchBehaviour, b: BatchBehaviour, schemas: Schemas) -> Iterator[Divergence]:
    for field in _OF_A_BATCH:
        value, other = getattr(a, field), getattr(b, field)
        if value == other or (field == "dropped" and None in (value, other)):
            continue
        if field == "rows":
            value, other = different_rows(value, other, schemas)
            if not value and not other:
                continue
        yield Divergence(step, a.id, field, value, other)
