"""A graceful restart before a step: a query resumes its checkpoint as if it had never stopped."""

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
    """A restart before each step except the first, restarts, and steps after a start or restart.

    Also not before a step where, according to ``upgrades`` of the case, even the same version does not simply resume.
    """

    name: str = "restart"

    def of(self, case: Case) -> Iterator[VariantOutput]:
        for before, step in zip(case.steps, case.steps[1:], strict=False):
            if any(isinstance(one.action, Restart | Start) for one in (before, step)):
                continue
            if not _resumes_differently(case, step.number):
                yield VariantOutput(
                    f"{self.name}-{step.number}", _restarted(case, step.number), partial(_without_restart, step.number)
                )


def _resumes_differently(case: Case, at: int) -> bool:
    return any(case.upgrade_between(version, version, at) is not None for version in releases())


def _restarted(case: Case, at: int) -> Case:
    head, tail = case.steps[: at - 1], case.steps[at - 1 :]
    stop = Step(number=at, action=Restart(how="graceful"))
    later = tuple(step.model_copy(update={"number": step.number + 1}) for step in tail)
    return case.model_copy(update={"steps": (*head, stop, *later)})


def _without_restart(at: int, observation: Observation) -> Observation:
    """The observation without the restart; its micro-batches, or its error, move to the following step."""
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
