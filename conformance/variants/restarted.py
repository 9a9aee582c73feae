"""A graceful restart before a step: a query goes on from its checkpoint as if it had never stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from conformance.core.case import Case, Restart, Start, Step
from conformance.core.observation import Observation, StepSeen
from conformance.core.versions import releases
from conformance.variants.variant import VariantOutput


@dataclass(frozen=True)
class Restarted:
    """Before each step but the first, and those that restart or follow a start.

    Where the case itself says in ``upgrades`` that even the same version does not simply go on there, nothing is to be seen.
    """

    name: str = "restart"

    def of(self, case: Case) -> Iterator[VariantOutput]:
        for before, step in zip(case.steps, case.steps[1:], strict=False):
            if any(isinstance(one.action, Restart | Start) for one in (before, step)):
                continue
            if not _goes_on_otherwise(case, step.number):
                yield VariantOutput(
                    f"{self.name}-{step.number}", _restarted(case, step.number), partial(_as_if_never, step.number)
                )


def _goes_on_otherwise(case: Case, at: int) -> bool:
    return any(case.upgrade_between(version, version, at) is not None for version in releases())


def _restarted(case: Case, at: int) -> Case:
    head, tail = case.steps[: at - 1], case.steps[at - 1 :]
    stop = Step(number=at, action=Restart(how="graceful"))
    later = tuple(step.model_copy(update={"number": step.number + 1}) for step in tail)
    return case.model_copy(update={"steps": (*head, stop, *later)})


def _as_if_never(at: int, observation: Observation) -> Observation:
    """The restart taken out; what ran in it, or failed, is told with the step behind it."""
    steps: list[StepSeen] = []
    stopped: StepSeen | None = None
    for step in observation.steps:
        if step.number == at:
            stopped = step
        elif step.number > at:
            ran = stopped.batches if stopped is not None else ()
            steps.append(step.model_copy(update={"number": step.number - 1, "batches": (*ran, *step.batches)}))
            stopped = None
        else:
            steps.append(step)
    if stopped is not None:
        steps.append(stopped)
    return observation.model_copy(update={"steps": tuple(steps)})
