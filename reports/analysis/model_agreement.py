"""What the reference model predicts for the cases of a report, and how far case, engine and model agree.

Computed once, when the report is made; pages only show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, get_args

from conformance.account.account import BatchAccount, account, batches_of
from conformance.account.explanation import explanation_lines
from conformance.core.case import Case, OutputMode
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.judging.consistency import reads_the_clock
from conformance.judging.divergence import equivalent
from conformance.model.errors import Unpredictable
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.cross_check import AGREEING, detected
from conformance.oracle.prediction import CasePredictions, Prediction, verdict_on
from reports.analysis.divided_work import divide
from reports.analysis.equivalence import has_behaviour
from reports.results.records import Cell, Target

_FEW_CASES = 20
"""About so many the model is asked in one process."""


@dataclass(frozen=True)
class Predicted:
    """What the model predicts for a case on a version."""

    case: Case
    prediction: Prediction

    @property
    def observation(self) -> Observation:
        return self.prediction.observation

    def shown(self, observation: Observation) -> ModelPrediction:
        """The prediction for a page, with the account of what an engine showed."""
        explanation = tuple((line.tone, str(line)) for line in explanation_lines(self.case, self.prediction))
        batches = batches_of(account(self.case, self.prediction.version, observation, self.prediction))
        return ModelPrediction(self.observation, explanation, batches)

    @property
    def as_expected(self) -> bool:
        """Whether the prediction is what the case expects of the version."""
        return verdict_on(self.case, self.prediction).status in AGREEING


Predictor: TypeAlias = Callable[[Case, SparkVersion], Predicted | None]
"""None if the case uses something the model does not support."""


@dataclass(frozen=True)
class ModelPrediction:
    """A prediction that a page shows."""

    observation: Observation
    explanation: tuple[tuple[str, str], ...]
    """What happens and why, line by line, each with its tone."""
    account: tuple[BatchAccount, ...]
    """Of the engine's answer, with what the model knows of it."""


@dataclass(frozen=True)
class ThreeAnswers:
    """Case, engine and model on one version."""

    case: str
    target: Target
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
    """How far case, engine and model agree."""

    answers: tuple[ThreeAnswers, ...]
    predictions: Mapping[tuple[str, str], ModelPrediction]
    """Those that pages show, by case id and target name."""
    detected: int
    """How many wrong models the cases of this run detect; a lower bound, since only the named case of each is tried."""
    wrong_models: int

    @property
    def cases(self) -> int:
        """How many cases have an answer."""
        return len({answer.case for answer in self.answers})

    @property
    def predicted_cases(self) -> int:
        """How many cases the model predicts on every version that has answered."""
        return self.cases - len({answer.case for answer in self.answers if answer.model is None})

    @property
    def predicted(self) -> tuple[ThreeAnswers, ...]:
        """The answers that the model predicts."""
        return tuple(answer for answer in self.answers if answer.model is not None)

    @property
    def agreed(self) -> int:
        return sum(answer.agree for answer in self.predicted)

    @property
    def equivalent(self) -> int:
        """How many of the agreed answers the model predicts completely."""
        return sum(answer.agree and answer.equivalent for answer in self.predicted)

    @property
    def disagreements(self) -> tuple[ThreeAnswers, ...]:
        return tuple(answer for answer in self.predicted if not answer.agree)


def model_agreement(
    cases: Mapping[str, Case],
    cells: Mapping[tuple[str, str], Cell],
    targets: Sequence[Target],
    shown: frozenset[tuple[str, str]],
    predictor: Predictor,
    first: Callable[[], object] | None = None,
) -> ModelAgreement:
    """Ask the model about every answer.

    Args:
        cases: id → the case as it was when it ran; cells of other cases are left out.
        cells: by case id and target name.
        targets: of released versions.
        shown: the cells whose prediction a page shows.
        first: what this process may do while others ask.
    """
    places = {target.name: place for place, target in enumerate(targets)}
    # All about one case in one process: where versions do the same, the model runs once.
    asked = [
        [
            _Question(case, target, version, cell)
            for target in targets
            if (version := target.version) is not None
            and (cell := cells.get((id, target.name))) is not None
            and has_behaviour(cell)
        ]
        for id, case in cases.items()
    ]
    parts = divide(asked, partial(_answers, shown=shown, predictor=predictor), few=_FEW_CASES, first=first)
    found = sorted((one for part in parts for one in part), key=lambda one: places[one[0].target.name])
    return ModelAgreement(
        answers=tuple(answer for answer, _ in found),
        predictions={(answer.case, answer.target.name): one for answer, one in found if one is not None},
        detected=len(detected(cases)),
        wrong_models=len(WRONG_MODELS),
    )


@dataclass(frozen=True)
class _Question:
    """What the model is asked: about a case on a version, whose answer is known."""

    case: Case
    target: Target
    version: SparkVersion
    cell: Cell


def _answers(
    asked: Iterable[Iterable[_Question]], *, shown: frozenset[tuple[str, str]], predictor: Predictor
) -> list[tuple[ThreeAnswers, ModelPrediction | None]]:
    """Of each question the three answers, and the prediction if a page shows it; none where the engine gave no answer."""
    return [
        _answer(one, observation, predictor, is_shown=(one.cell.case, one.target.name) in shown)
        for about_case in asked
        for one in about_case
        if (observation := one.cell.observation) is not None
    ]


def _answer(
    asked: _Question, observation: Observation, predictor: Predictor, *, is_shown: bool
) -> tuple[ThreeAnswers, ModelPrediction | None]:
    cell = asked.cell
    engine, predicted = cell.status in AGREEING, predictor(asked.case, asked.version)
    if predicted is None:
        return ThreeAnswers(cell.case, asked.target, engine, None), None
    instants = not reads_the_clock(asked.case)
    same = equivalent(predicted.observation, observation, instants=instants, error_classes=False)
    # A model that agrees with an engine that does what the case expects needs no verdict of its own.
    answer = ThreeAnswers(cell.case, asked.target, engine, (same and engine) or predicted.as_expected, same)
    return answer, predicted.shown(observation) if is_shown else None


class ReferenceModel:
    """The reference model as a ``Predictor``; it remembers the case that it was asked about last."""

    def __init__(self) -> None:
        self._last: CasePredictions | None = None

    def __call__(self, case: Case, version: SparkVersion) -> Predicted | None:
        if self._last is None or self._last.case is not case:
            self._last = CasePredictions(case)
        try:
            return Predicted(case, self._last.on(version))
        except Unpredictable:
            return None


reference_model = ReferenceModel()


def in_each_mode(case: Case, version: SparkVersion) -> Iterator[tuple[Case, ModelPrediction]]:
    """The case in append, update and complete mode, with what happens; without the modes that the model does not support."""
    for mode in get_args(OutputMode):
        changed = case.model_copy(update={"output_mode": mode})
        predicted = reference_model(changed, version)
        if predicted is not None:
            yield changed, predicted.shown(predicted.observation)
