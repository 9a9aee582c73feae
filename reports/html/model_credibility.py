"""Case, engine and model, three that know nothing of each other: on how many answers they agree, and on which not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.cross_check import AGREEING
from conformance.oracle.mutation_score import killed
from reports.analysis.equivalence import has_behaviour
from reports.analysis.report import Model, Report
from reports.results.records import Target


@dataclass(frozen=True)
class Answer:
    """What is said of one case on one version."""

    case: str
    target: Target
    engine: bool
    """Whether the engine does as the case says."""
    model: bool | None
    """Whether the model says as the case does; None where the case uses what it does not know."""
    alike: bool = False
    """Whether the model predicts what the engine did to every row, watermark, drop and row of state."""

    @property
    def agreed(self) -> bool:
        return self.engine and self.model is True


@dataclass(frozen=True)
class Voices:
    answers: tuple[Answer, ...]
    killed: int
    """How many models that are wrong on purpose a case of this run tells from the right one, at the least."""
    wrong: int
    """How many such models there are."""

    @property
    def cases(self) -> int:
        """How many cases were answered."""
        return len({answer.case for answer in self.answers})

    @property
    def predicted(self) -> int:
        """How many cases the model predicts on every version that has answered."""
        return self.cases - len({answer.case for answer in self.answers if answer.model is None})

    @property
    def heard(self) -> tuple[Answer, ...]:
        """The answers on which all three speak."""
        return tuple(answer for answer in self.answers if answer.model is not None)

    @property
    def agreed(self) -> int:
        return sum(answer.agreed for answer in self.heard)

    @property
    def same_behaviour(self) -> int:
        return sum(answer.agreed and answer.alike for answer in self.heard)

    @property
    def dissents(self) -> tuple[Answer, ...]:
        return tuple(answer for answer in self.heard if not answer.agreed)


def voices(report: Report) -> Voices | None:
    """What the three say; None where no model was asked or no case is at hand.

    Only answers to cases that are at hand as they were when they ran are counted.
    """
    if report.model is None or not report.cases:
        return None
    return Voices(tuple(_answers(report, report.model)), len(killed(report.cases)), len(WRONG_MODELS))


def _answers(report: Report, model: Model) -> Iterator[Answer]:
    for target in report.versions:
        version = target.version
        for id, case in report.cases.items():
            cell = report.matrix.cells.get((id, target.name))
            if version is None or cell is None or cell.observation is None or not has_behaviour(cell):
                continue
            engine, predicted = cell.status in AGREEING, model(case, version)
            if predicted is None:
                yield Answer(id, target, engine, None)
                continue
            alike = predicted.observation.behaviour_digest == cell.behaviour
            # A model that says the same as an engine that does as the case says, says so too: nothing is to be judged.
            yield Answer(id, target, engine, (alike and engine) or predicted.as_expected, alike)
