"""Whether two answers to one case show the same, by all that anybody may expect of a case: the model's, an engine's, two engines'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from conformance.core.observation import BatchSeen, Observation, StepSeen
from conformance.judging.rows import OutputSchema

Shown: TypeAlias = tuple[object, ...]


@dataclass(frozen=True)
class Apart:
    """The first place where two answers show different things."""

    step: int
    """From 1."""
    what: str
    """``rows``, ``watermark``, ``dropped``, ``state``, ``kind``, ``batches``, ``error`` or ``end``: one of them goes on."""


_OF_A_BATCH = ("kind", "watermark", "rows", "dropped", "state")


def apart(one: Observation, other: Observation, upto: int | None = None) -> Apart | None:
    """Where they part; None where they show the same.

    Rows dropped as late are not compared in a micro-batch of which one of the two does not know them. Of a step that fails only
    the stage counts: how far its last micro-batch came says nothing.

    Args:
        one, other: answers to the same case.
        upto: the number of the last step that is looked at; None for all.
    """
    schemas = OutputSchema.of(one.columns), OutputSchema.of(other.columns)
    steps = [[step for step in each.steps if upto is None or step.number <= upto] for each in (one, other)]
    for mine, theirs in zip(*steps, strict=False):
        what = _step(mine, theirs, schemas)
        if what is not None:
            return Apart(mine.number, what)
    if len(steps[0]) != len(steps[1]):
        return Apart(min(map(len, steps)) + 1, "end")
    return None


def _step(mine: StepSeen, theirs: StepSeen, schemas: tuple[OutputSchema, OutputSchema]) -> str | None:
    stages = [step.error and step.error.stage for step in (mine, theirs)]
    if stages[0] != stages[1]:
        return "error"
    if stages[0] is not None:
        return None
    if len(mine.batches) != len(theirs.batches):
        return "batches"
    for one, other in zip(mine.batches, theirs.batches, strict=True):
        for what, here, there in zip(_OF_A_BATCH, _batch(one, schemas[0]), _batch(other, schemas[1]), strict=True):
            if here != there and not (what == "dropped" and None in (here, there)):
                return what
    return "watermark" if mine.watermark != theirs.watermark else None


def _batch(batch: BatchSeen, schema: OutputSchema) -> Shown:
    rows = sorted(map(repr, map(schema.comparable, batch.rows)))
    return batch.kind, batch.watermark, rows, batch.dropped, batch.state
