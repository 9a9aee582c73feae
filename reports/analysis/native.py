"""What an accelerator ran of the cases, by the plans of their micro-batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.core.observation import Observation
from conformance.core.wording import counted
from reports.results.reading import Results
from reports.results.records import TargetRecord

_SHOWN = 6


@dataclass(frozen=True)
class NativeUse:
    target: TargetRecord
    answered: int
    """The number of cases whose queries ran."""
    native: int
    """The number of those in which it ran an operator."""
    stateful: int
    """The number of cases whose queries keep state."""
    native_stateful: int
    operators: Mapping[str, int]
    """Operator → the number of cases in which it ran."""

    def __str__(self) -> str:
        """``comet-spark-spark3.5_2.12 0.12.0 ran operators of 678 of 824 cases, of 600 of the 700 with state: CometProject 678, …``"""
        most = sorted(self.operators, key=lambda name: (-self.operators[name], name))
        names = ", ".join(f"{name} {self.operators[name]}" for name in most[:_SHOWN])
        more = f" and {counted(len(most) - _SHOWN, 'other operator')}" if len(most) > _SHOWN else ""
        cases = f"{self.native} of {counted(self.answered, 'case')}"
        stateful = f"{self.native_stateful} of the {self.stateful} with state"
        ran = f"{self.target.accelerator} ran operators of {cases}, of {stateful}"
        return ran + (f": {names}{more}" if names else "")


def native_uses(results: Results) -> Iterator[NativeUse]:
    """Yield what the accelerator of each column that has one ran."""
    for target in results.header.targets:
        if target.accelerator is None:
            continue
        answers = (cell.observation for cell in results.cells if cell.target == target.name)
        ran = [answer for answer in answers if answer is not None and any(step.batches for step in answer.steps)]
        with_state = [answer for answer in ran if any(batch.state for step in answer.steps for batch in step.batches)]
        operators = Counter(name for answer in ran for name in _operators(answer))
        native, stateful = (sum(bool(_operators(answer)) for answer in some) for some in (ran, with_state))
        yield NativeUse(target, len(ran), native, len(with_state), stateful, operators)


def _operators(answer: Observation) -> frozenset[str]:
    return frozenset(name for step in answer.steps for name in step.native or ())
