"""A case on a policy held against the reading of its trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conformance.policies.case import PolicyCase
from conformance.policies.int64 import MIN
from conformance.policies.reading import Moment, Reading, read


@dataclass(frozen=True)
class Disagreement:
    """One thing that a case expects otherwise than the reading has it."""

    step: int
    """From 1."""
    key: str
    """``late``."""
    expected: Any
    read: Any
    """As it would have to be written in the case."""
    line: int
    """Where the expectation stands in the file, from 1."""

    def __str__(self) -> str:
        return f"step {self.step}: {self.key} is expected to be {_shown(self.expected)} and is {_shown(self.read)}"


def check(case: PolicyCase) -> tuple[Disagreement, ...]:
    """All that the case expects otherwise than its reading has it, step by step; empty where they agree."""
    return tuple(disagreements(case, read(case.trace, case.rules())))


def disagreements(case: PolicyCase, reading: Reading) -> Iterator[Disagreement]:
    for step, moment in zip(case.steps, reading.moments, strict=True):
        if step.expect is None:
            continue
        found = seen(moment)
        for key in found:
            if key not in step.expect.model_fields_set:
                continue
            expected, actual = getattr(step.expect, key), found[key]
            if key == "watermark" and not isinstance(expected, dict):
                (actual,) = actual.values()
            if expected != actual:
                place = f"trace.{step.number}"
                line = case.lines.get(f"{place}.expect.{key}", case.lines[place])
                yield Disagreement(step.number, key, expected, actual, line)


def seen(moment: Moment) -> dict[str, Any]:
    """What a moment has, under the keys and in the notation of an expectation."""
    return {
        "watermark": {name: written(watermark) for name, watermark in moment.watermarks.items()},
        "emitted": moment.emitted,
        "downstream": written(moment.downstream),
        "late": moment.late,
        "closed": moment.closed,
        "idle": moment.idle,
    }


def written(watermark: int) -> int | None:
    """A watermark as cases write it: null where there is none yet."""
    return None if watermark == MIN else watermark


def _shown(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case tuple():
            return f"[{', '.join(map(str, value))}]"
        case dict():
            return f"{{{', '.join(f'{name}: {_shown(one)}' for name, one in value.items())}}}"
    return str(value)
