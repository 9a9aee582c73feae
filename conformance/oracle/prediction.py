"""Prediction: what the reference model says a case does on a version, as an ``Observation``, the form in which engines answer.

The model gets the case without its expectations, so the code that judges an engine can judge the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import cast

from conformance.core.case import Add, Backlog, Case, Differs, Expectation, ExpectationChange, Partitioned, Restart
from conformance.core.metrics import missing_of_operators
from conformance.core.observation import Column, Observation
from conformance.core.versions import SparkVersion
from conformance.judging.verdict import Verdict, judge
from conformance.model.aggregates import BY_ORDER
from conformance.model.catalogue import rules_of
from conformance.model.errors import ModelDefect, Unpredictable
from conformance.model.rules import Rules
from conformance.model.rules_read import RulesRead, WatchedRules
from conformance.oracle.simulation import CaseSimulation, StepProgress
from conformance.query.reading import QueryReading, read_query

NOT_PREDICTED = frozenset({"plan"})
"""Keys of expectations that the model does not predict."""

_BY_ORDER = BY_ORDER | {"array_agg"}
"""The names of Spark's functions whose result depends on the order of rows; ``array_agg`` is ``collect_list``."""

MAX_PARTITIONS = 4
"""With more partitions there are too many orders to try."""


@dataclass(frozen=True)
class Prediction:
    """What the model predicts for a case on a version."""

    version: SparkVersion
    observation: Observation
    steps: tuple[StepProgress, ...]
    """Up to the step that fails, if one does."""
    columns: tuple[Column, ...]
    """Of the last query of the case."""
    read: RulesRead = field(compare=False)
    """The rules that decided it."""

    def on(self, version: SparkVersion) -> Prediction | None:
        """The same on another version; None if that may do otherwise.

        Made with the rules of its own version.
        """
        if missing_of_operators(version) != missing_of_operators(self.version):
            return None
        if self.read.tell_apart(rules_of(self.version), rules_of(version)):
            return None
        return replace(self, version=version)

    def columns_of(self, step: int) -> tuple[Column, ...]:
        """What the query of the step with this number emits."""
        return next(
            (self.observation.columns_of(one) for one in self.observation.steps if one.number == step), self.columns
        )


class CasePredictions:
    """The predictions for one case, version after version. The model runs again only where a version may do otherwise."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._made: list[Prediction] = []

    def on(self, version: SparkVersion) -> Prediction:
        """As ``predict``.

        Raises:
            Unpredictable, ModelDefect: as ``predict``.
        """
        known = next((same for made in self._made if (same := made.on(version)) is not None), None)
        if known is not None:
            return known
        self._made.append(predict(self.case, version))
        return self._made[-1]


def predict(case: Case, version: SparkVersion, rules: Rules | None = None) -> Prediction:
    """Predict what a case does.

    Args:
        case: its expectations are ignored.
        version: of Spark.
        rules: the rules of the version by default.

    Raises:
        Unpredictable: the case uses something that the model does not know.
        ModelDefect: the model failed on the case.
    """
    try:
        return _predicted_case(case, version, rules or rules_of(version))
    except Unpredictable:
        raise
    except Exception as defect:
        # Cases come from anyone. What the model cannot read is a gap of the model, and never ends a run.
        raise ModelDefect(defect) from defect


def _predicted_case(case: Case, version: SparkVersion, rules: Rules) -> Prediction:
    in_partitions = _comes_in_partitions(case)
    readings = [read_query(query, case.streams) for query in case.pipelines()] if in_partitions else []
    if any(reading.limits for reading in readings):
        raise Unpredictable("a limit over several partitions")
    read = RulesRead()
    rules = cast(Rules, WatchedRules(rules, read))
    prediction = _simulated(case, version, rules, read)
    digest = prediction.observation.behaviour_digest
    if _depends_on_order(readings) and any(
        _simulated(case, version, rules, read, order).observation.behaviour_digest != digest for order in _orders(case)
    ):
        raise Unpredictable("a choice among rows of several partitions")
    if rules.session_counts_late == "times" and in_partitions:
        by_row = _simulated(case, version, rules.altered(session_counts_late="rows"), read)
        if by_row.observation.behaviour_digest != digest:
            raise Unpredictable("late rows of one session and one time in several partitions")
    return prediction


def _simulated(
    case: Case, version: SparkVersion, rules: Rules, read: RulesRead, order: tuple[int, ...] = ()
) -> Prediction:
    simulation = CaseSimulation(case, version, rules, order)
    steps = tuple(simulation.run())
    return Prediction(version, simulation.observation, steps, simulation.columns, read)


def verdict_on(case: Case, prediction: Prediction) -> Verdict:
    """The prediction judged by the expectations of the case, like the answer of an engine."""
    return judge(comparable(case), prediction.version, prediction.observation)


def comparable(case: Case) -> Case:
    """The case without expectations that the model does not predict."""
    steps = tuple(step.model_copy(update={"expect": _predicted(step.expect)}) for step in case.steps)
    return case.model_copy(update={"steps": steps, "differs": tuple(filter(None, map(_predicted_entry, case.differs)))})


def _predicted(expectation: Expectation | None) -> Expectation | None:
    if expectation is None or not expectation.model_fields_set & NOT_PREDICTED:
        return expectation
    kept = expectation.model_fields_set - NOT_PREDICTED
    return Expectation(**{name: getattr(expectation, name) for name in kept})


def _predicted_entry(entry: Differs) -> Differs | None:
    """The entry without what the model does not predict; None if nothing is left of it."""
    if not any(change.model_fields_set & NOT_PREDICTED for change in entry.steps.values()):
        return entry
    steps = {
        number: ExpectationChange(**{name: getattr(change, name) for name in kept})
        for number, change in entry.steps.items()
        if (kept := change.model_fields_set - NOT_PREDICTED)
    }
    return entry.model_copy(update={"steps": steps}) if steps else None


def _depends_on_order(readings: Sequence[QueryReading]) -> bool:
    """Whether an operation takes some of several rows, so that the order of partitions may matter."""
    return any(of.deduplications or of.functions & _BY_ORDER or of.unread for of in readings)


def _comes_in_partitions(case: Case) -> bool:
    """Whether rows that arrive together are in several partitions."""
    return any(sum(map(bool, placed.partitions)) > 1 for placed in _placed(case))


def _placed(case: Case) -> Iterator[Partitioned]:
    for step in case.steps:
        match step.action:
            case Add(streams=arrival) | Restart(add=arrival):
                yield from arrival.values()
            case Backlog(entries=entries):
                yield from (placed for entry in entries for placed in entry.values())


def _orders(case: Case) -> Iterator[tuple[int, ...]]:
    """Every order in which the partitions of a micro-batch may be read."""
    count = max(len(placed.partitions) for placed in _placed(case))
    if count > MAX_PARTITIONS:
        raise Unpredictable("a choice among rows of many partitions")
    return permutations(range(count))
