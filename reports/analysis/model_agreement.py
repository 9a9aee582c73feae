"""What the reference model predicts for the cases of a report, and how far case, engine and model agree.

Computed once, when the report is made; pages only show it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Self, get_args

from conformance.account.account import BatchAccount, account, batches_of
from conformance.account.explanation import explanation_lines
from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.operations import OutputMode
from conformance.core.versions import SparkVersion
from conformance.judging.comparison import divergence, has_behaviour
from conformance.judging.consistency import reads_the_clock
from conformance.judging.verdict import AS_THE_CASE_SAYS
from conformance.model.errors import Unpredictable
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.cross_check import detected
from conformance.oracle.prediction import CasePredictions, Prediction, predict, verdict_on
from reports.analysis.divided_work import divide
from reports.results.errors import CellKey
from reports.results.records import Cell, TargetRecord

_FEW_CASES = 20
"""The number of cases that one process asks the model about before several have begun."""


@dataclass(frozen=True)
class ModelPrediction:
    observation: Observation
    explanation: tuple[tuple[str, str], ...]
    """Each line of what happens and why, with its tone."""
    account: tuple[BatchAccount, ...]
    """The account of the engine's answer, with what the model knows of it."""

    @classmethod
    def of(cls, case: Case, prediction: Prediction, observation: Observation) -> Self:
        explanation = tuple((line.tone, str(line)) for line in explanation_lines(case, prediction))
        batches = batches_of(account(case, prediction.version, observation, prediction))
        return cls(prediction.observation, explanation, batches)


@dataclass(frozen=True)
class ThreeAnswers:
    case: str
    target: TargetRecord
    engine: bool
    """Whether the engine does what the case expects."""
    model: bool | None
    """Whether the model predicts what the case expects; None if it cannot predict the case."""
    equivalent: bool = False
    """Whether the model predicts the engine's whole answer: rows, watermarks, drops and state."""

    @property
    def agree(self) -> bool:
        return self.engine and self.model is True


@dataclass(frozen=True)
class ModelAgreement:
    answers: tuple[ThreeAnswers, ...]
    predictions: Mapping[tuple[str, str], ModelPrediction]
    """The predictions that pages show, by case id and target name."""
    detected: int
    """The number of wrong models that the cases of this run detect; a lower bound, since only the named case of each is tried."""
    wrong_models: int

    @property
    def cases(self) -> int:
        return len({answer.case for answer in self.answers})

    @property
    def predicted_cases(self) -> int:
        """The number of cases that the model predicts on every version that has answered."""
        return self.cases - len({answer.case for answer in self.answers if answer.model is None})

    @property
    def predicted(self) -> tuple[ThreeAnswers, ...]:
        return tuple(answer for answer in self.answers if answer.model is not None)

    @property
    def agreed(self) -> int:
        return sum(answer.agree for answer in self.predicted)

    @property
    def equivalent(self) -> int:
        """The number of agreed answers that the model predicts completely."""
        return sum(answer.agree and answer.equivalent for answer in self.predicted)

    @property
    def disagreements(self) -> tuple[ThreeAnswers, ...]:
        return tuple(answer for answer in self.predicted if not answer.agree)


def model_agreement(
    cases: Mapping[str, Case], cells: Mapping[CellKey, Cell], targets: Sequence[TargetRecord], shown: frozenset[CellKey]
) -> ModelAgreement:
    """Ask the model about every answer of these targets to a case as it was when it ran; ``shown``: whose prediction a page shows."""
    places = {target.name: place for place, target in enumerate(targets)}
    # All about one case in one process: where versions do the same, the model runs once.
    asked = [
        (
            case,
            [
                (target, version, cell)
                for target in targets
                if (version := target.version) is not None
                if (cell := cells.get((id, target.name))) is not None and has_behaviour(cell)
            ],
        )
        for id, case in cases.items()
    ]
    parts = divide(asked, partial(_answers, shown=shown), few=_FEW_CASES)
    answers = sorted(chain.from_iterable(parts), key=lambda answered: places[answered[0].target.name])
    return ModelAgreement(
        answers=tuple(answer for answer, _ in answers),
        predictions={(answer.case, answer.target.name): shown for answer, shown in answers if shown is not None},
        detected=len(detected(cases)),
        wrong_models=len(WRONG_MODELS),
    )


def _answers(
    asked: Iterable[tuple[Case, Iterable[tuple[TargetRecord, SparkVersion, Cell]]]], *, shown: frozenset[CellKey]
) -> list[tuple[ThreeAnswers, ModelPrediction | None]]:
    answers: list[tuple[ThreeAnswers, ModelPrediction | None]] = []
    for case, cells in asked:
        predictions, instants = CasePredictions(case), not reads_the_clock(case)
        digests: dict[int, str] = {}
        for target, version, cell in cells:
            engine = cell.status in AS_THE_CASE_SAYS
            try:
                prediction = predictions.on(version)
            except Unpredictable:
                answers.append((ThreeAnswers(cell.case, target, engine, None), None))
                continue
            predicted = prediction.observation
            # Versions share an observation, which the predictions of the case keep. An answer is read only if its digest is another one.
            if id(predicted) not in digests:
                digests[id(predicted)] = predicted.behaviour_digest
            same = cell.behaviour == digests[id(predicted)] or (
                (answer := cell.observation) is not None
                and divergence(predicted, answer, instants=instants, error_classes=False) is None
            )
            # A model that agrees with an engine that does what the case expects needs no verdict of its own.
            model = (same and engine) or as_expected(case, prediction)
            observed = cell.observation if cell.key in shown else None
            page = ModelPrediction.of(case, prediction, observed) if observed is not None else None
            answers.append((ThreeAnswers(cell.case, target, engine, model, same), page))
    return answers


def as_expected(case: Case, prediction: Prediction) -> bool:
    return verdict_on(case, prediction).status in AS_THE_CASE_SAYS


def in_each_mode(case: Case, version: SparkVersion) -> Iterator[tuple[Case, ModelPrediction]]:
    """Yield the case in append, update and complete mode, with what happens; without the modes that the model does not predict."""
    for mode in get_args(OutputMode):
        changed = case.model_copy(update={"output_mode": mode})
        with suppress(Unpredictable):
            prediction = predict(changed, version)
            yield changed, ModelPrediction.of(changed, prediction, prediction.observation)
