"""Prediction: what the reference model says a case does on a version, as an ``Observation``, the form in which engines answer.

The model gets the case without its expectations, so the code that judges an engine can judge the model.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import TypeVar, cast

from conformance.core.case import Case, Differs, Expectation, Partitioned
from conformance.core.metrics import metrics, missing_of_operators
from conformance.core.observation import Column, Observation
from conformance.core.versions import SparkVersion
from conformance.judging.finding import ErrorDiffers, Finding, StaleEntry
from conformance.judging.verdict import Verdict, as_documented, judge
from conformance.model.catalogue import rules_of
from conformance.model.errors import ModelDefect, Unpredictable, may_be
from conformance.model.functions import BY_ORDER
from conformance.model.rules import Rules, RulesRead, WatchedRules
from conformance.oracle.simulation import CaseSimulation, StepProgress, without_metrics
from conformance.query import read_query

_E = TypeVar("_E", bound=Expectation)
NOT_PREDICTED = frozenset({"plan"})

_BY_ORDER = BY_ORDER | {"array_agg"}
"""The names of Spark's functions whose result depends on the order of rows; ``array_agg`` is ``collect_list``."""

MAX_PARTITIONS = 4
"""With more partitions there are too many orders to try."""


@dataclass(frozen=True)
class Prediction:
    version: SparkVersion
    observation: Observation
    steps: tuple[StepProgress, ...]
    """Up to the step that fails, if one does."""
    columns: tuple[Column, ...]
    """What the last query of the case emits."""
    read: RulesRead = field(compare=False)
    """The rules that decided it."""
    with_all_metrics: Observation = field(compare=False, repr=False)
    """The observation as a version shows it that reports every metric."""

    def columns_of(self, step: int) -> tuple[Column, ...]:
        run = next((run for run in self.observation.steps if run.number == step), None)
        return self.columns if run is None else self.observation.columns_of(run)


class CasePredictions:
    """The predictions for one case, version after version. The model runs again only where a version may do otherwise."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._comparable = comparable(case)
        self._partitioned = _comes_in_partitions(case)
        self._made: list[Prediction] = []
        self._shown: dict[tuple[int, frozenset[str]], Observation] = {}
        """What versions with other metrics show of a run of the model, by the ``id`` of its observation and what they lack."""
        self._refused: list[tuple[SparkVersion, RulesRead, Unpredictable]] = []
        self._verdicts: dict[tuple[int, int | None, frozenset[str]], Verdict] = {}

    def on(self, version: SparkVersion) -> Prediction:
        """As ``predict``, also in what it raises."""
        for made in self._made:
            if self._is_same_run(made.version, version, made.read):
                return self._with_metrics_of(version, made)
        for there, read, unknown in self._refused:
            if self._is_same_run(there, version, read):
                raise unknown
        read = RulesRead()
        try:
            self._made.append(predict(self.case, version, read=read))
        except Unpredictable as unknown:
            self._refused.append((version, read, unknown))
            raise
        return self._made[-1]

    def verdict_on(self, prediction: Prediction) -> Verdict:
        """As ``verdict_on``. Versions that the case says the same about, and that do the same, share the judgement."""
        version, observation = prediction.version, prediction.observation
        differs = self.case.differs_on(version)
        entry = None if differs is None else self.case.differs.index(differs)
        # Predictions of several versions share the observation, which is kept here.
        key = id(observation), entry, frozenset(metric.path for metric in metrics() if version < metric.since)
        if key not in self._verdicts:
            self._verdicts[key] = _judged(self._comparable, version, observation)
        return replace(self._verdicts[key], version=version)

    def _is_same_run(self, here: SparkVersion, there: SparkVersion, read: RulesRead) -> bool:
        """Whether the model does the same on two versions, if it has read these of the rules of the first."""
        # Orders of partitions are compared by what a version shows, so its metrics decide what is predicted.
        if self._partitioned and missing_of_operators(there) != missing_of_operators(here):
            return False
        return not read.tell_apart(rules_of(here), rules_of(there))

    def _with_metrics_of(self, version: SparkVersion, made: Prediction) -> Prediction:
        missing = missing_of_operators(version)
        if missing == missing_of_operators(made.version):
            return replace(made, version=version)
        key = id(made.with_all_metrics), missing
        if key not in self._shown:
            self._shown[key] = without_metrics(made.with_all_metrics, missing)
        return replace(made, version=version, observation=self._shown[key])


def predict(case: Case, version: SparkVersion, rules: Rules | None = None, read: RulesRead | None = None) -> Prediction:
    """Predict what a case does, whatever it expects, by the rules of the version or by others.

    ``read`` is filled with the rules that the model reads, also if it cannot predict the case. Raises Unpredictable: the case uses
    something that the model does not know; ModelDefect: the model failed on the case.
    """
    try:
        return _predicted_case(case, version, rules or rules_of(version), RulesRead() if read is None else read)
    except Unpredictable:
        raise
    except Exception as defect:
        # Cases come from anyone. What the model cannot read is a gap of the model, and never ends a run.
        raise ModelDefect(defect) from defect


def _predicted_case(case: Case, version: SparkVersion, rules: Rules, read: RulesRead) -> Prediction:
    in_partitions = _comes_in_partitions(case)
    readings = [read_query(query, case.streams) for query in case.pipelines()] if in_partitions else []
    if any(reading.limits for reading in readings):
        raise Unpredictable("a limit over several partitions")
    rules = cast(Rules, WatchedRules(rules, read))
    prediction = _simulated(case, version, rules, read)
    if not in_partitions:
        return prediction
    digest = prediction.observation.behaviour_digest
    # Where an operation takes some of several rows, the order of partitions may matter.
    if any(query.deduplications or query.functions & _BY_ORDER or query.unread for query in readings) and any(
        _simulated(case, version, rules, read, order).observation.behaviour_digest != digest for order in _orders(case)
    ):
        raise Unpredictable("a choice among rows of several partitions")
    if rules.session_counts_late == "times":
        by_row = _simulated(case, version, rules.altered(session_counts_late="rows"), read)
        if by_row.observation.behaviour_digest != digest:
            raise Unpredictable("late rows of one session and one time in several partitions")
    return prediction


def _simulated(
    case: Case, version: SparkVersion, rules: Rules, read: RulesRead, order: tuple[int, ...] = ()
) -> Prediction:
    simulation = CaseSimulation(case, rules, order)
    steps = tuple(simulation.run())
    observation = simulation.observation
    shown = without_metrics(observation, missing_of_operators(version))
    return Prediction(version, shown, steps, simulation.columns, read, observation)


def verdict_on(case: Case, prediction: Prediction) -> Verdict:
    """The prediction judged by the expectations of the case, like the answer of an engine."""
    return _judged(comparable(case), prediction.version, prediction.observation)


def _judged(case: Case, version: SparkVersion, observation: Observation) -> Verdict:
    """The verdict without findings on how a version words an error, and on entries about that, which the model does not know."""
    verdict = judge(case, version, observation)
    if not any(map(_is_wording, verdict.findings)):
        return verdict
    rest = tuple(one for one in verdict.findings if not (_is_wording(one) or isinstance(one, StaleEntry)))
    return replace(verdict, status=verdict.status if rest else as_documented(verdict.differs), findings=rest)


def _is_wording(finding: Finding) -> bool:
    """Whether an error is the expected one but for its text, and for classes that it may have besides those that the model knows."""
    if not isinstance(finding, ErrorDiffers) or finding.expected is None or finding.observed is None:
        return False
    seen, wrong = finding.observed, finding.mismatches
    possible = "class" not in wrong or any(may_be(seen.stage, seen.classes, name) for name in finding.expected.classes)
    return possible and "stage" not in wrong


def comparable(case: Case) -> Case:
    """The case without expectations that the model does not predict."""
    steps = tuple(step.model_copy(update={"expect": step.expect and _predicted(step.expect)}) for step in case.steps)
    return case.model_copy(update={"steps": steps, "differs": tuple(filter(None, map(_predicted_entry, case.differs)))})


def _predicted(expectation: _E) -> _E:
    if not expectation.model_fields_set & NOT_PREDICTED:
        return expectation
    kept = expectation.model_fields_set - NOT_PREDICTED
    return type(expectation)(**{name: getattr(expectation, name) for name in kept})


def _predicted_entry(entry: Differs) -> Differs | None:
    """The entry without what the model does not predict; None if nothing is left of it."""
    if not any(change.model_fields_set & NOT_PREDICTED for change in entry.steps.values()):
        return entry
    changes = {number: _predicted(change) for number, change in entry.steps.items()}
    steps = {number: change for number, change in changes.items() if change.model_fields_set}
    return entry.model_copy(update={"steps": steps}) if steps else None


def _comes_in_partitions(case: Case) -> bool:
    return any(sum(map(bool, placed.partitions)) > 1 for placed in _placed(case))


def _placed(case: Case) -> Iterator[Partitioned]:
    return (placed for step in case.steps for arrival in step.arrivals() for placed in arrival.values())


def _orders(case: Case) -> Iterator[tuple[int, ...]]:
    """Every order in which the partitions of a micro-batch may be read."""
    count = max(len(placed.partitions) for placed in _placed(case))
    if count > MAX_PARTITIONS:
        raise Unpredictable("a choice among rows of many partitions")
    return permutations(range(count))
