"""Checks the expectations of cases against the reference model on every version, without an engine, and says which of both is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from conformance.core.case import Case
from conformance.core.observation import Observation, StepSeen
from conformance.core.values import show
from conformance.core.versions import SparkVersion
from conformance.judging.comparison import divergence
from conformance.judging.finding import cell
from conformance.judging.step_comparison import OutputSchema
from conformance.judging.verdict import AS_THE_CASE_SAYS, Verdict, not_applicable
from conformance.model.catalogue import Rule, WrongModel, catalogue, other_readings, rules_of
from conformance.model.errors import Unpredictable
from conformance.model.rules import Rules
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.prediction import CasePredictions, Prediction, predict, verdict_on

RULES_OF_AN_ASPECT: Mapping[str, tuple[str, ...]] = {
    "watermark": ("node_watermark_ms", "policies"),
    "kind": ("no_data_batches",),
    "batches": ("no_data_batches",),
    "dropped": ("is_late", "late_watermark"),
    "state": ("is_over", "evicts_in"),
    "rows": ("is_late", "is_over", "append_emits"),
}
"""Aspect of a finding → the rules to check first if no single rule explains the disagreement."""


@dataclass(frozen=True)
class ModelDisagreement:
    """A case whose expectations the model does not meet, in the same way on one or several versions."""

    verdict: Verdict
    """On the first of the versions; ``observed`` in its findings is the prediction."""
    versions: tuple[SparkVersion, ...]
    settled_by: tuple[Rule, ...]
    """Rules that would resolve the disagreement if they had another version's value."""
    look_at: tuple[Rule, ...]

    def is_like(self, other: ModelDisagreement) -> bool:
        return (
            (self.verdict.case, self.verdict.status) == (other.verdict.case, other.verdict.status)
            and self.verdict.findings == other.verdict.findings
            and (self.settled_by, self.look_at) == (other.settled_by, other.look_at)
        )


@dataclass(frozen=True)
class CrossCheck:
    cases: tuple[Case, ...]
    versions: tuple[SparkVersion, ...]
    cells: int
    not_predicted: Mapping[str, tuple[str, ...]]
    """Construct → ids of the cases that the model does not predict because of it."""
    disagreements: tuple[ModelDisagreement, ...]

    @property
    def predicted(self) -> tuple[Case, ...]:
        """The cases that are predicted on every version they apply to."""
        missing = {id for ids in self.not_predicted.values() for id in ids}
        return tuple(case for case in self.cases if case.id not in missing)

    @property
    def share(self) -> float:
        return len(self.predicted) / len(self.cases) if self.cases else 1.0

    def by_family(self) -> dict[str, tuple[int, int]]:
        predicted = Counter(case.family for case in self.predicted)
        return {
            family: (predicted[family], total) for family, total in Counter(case.family for case in self.cases).items()
        }

    def ranges(self, versions: Sequence[SparkVersion]) -> str:
        """``3.0.3 – 3.3.4, 4.0.5``: some of the checked versions, consecutive ones as a range."""
        runs = [[*run] for named, run in groupby(self.versions, key=lambda version: version in versions) if named]
        return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} – {run[-1]}" for run in runs)


def cross_check(cases: Iterable[Case], versions: Iterable[SparkVersion]) -> CrossCheck:
    """Check the expectations of every case on every version against the model."""
    checked, ascending = tuple(cases), tuple(sorted(versions))
    cells = 0
    missing: dict[str, dict[str, None]] = {}
    disagreements = []
    for case in checked:
        answers = []
        predictions = CasePredictions(case)
        for version in ascending:
            if not_applicable(case, version) is not None:
                continue
            try:
                prediction = predictions.on(version)
            except Unpredictable as unknown:
                missing.setdefault(unknown.construct, {})[case.id] = None
            else:
                answers.append((prediction, predictions.verdict_on(prediction)))
        cells += len(answers)
        disagreements += _grouped(
            _disagreement(case, *answer) for answer in answers if answer[1].status not in AS_THE_CASE_SAYS
        )
    not_predicted = {name: tuple(ids) for name, ids in missing.items()}
    return CrossCheck(checked, ascending, cells, not_predicted, tuple(disagreements))


def _grouped(disagreements: Iterable[ModelDisagreement]) -> list[ModelDisagreement]:
    """Equal disagreements as one, with the versions of all of them."""
    groups: list[ModelDisagreement] = []
    for disagreement in disagreements:
        like = next((place for place, group in enumerate(groups) if group.is_like(disagreement)), None)
        if like is None:
            groups.append(disagreement)
        else:
            groups[like] = replace(groups[like], versions=(*groups[like].versions, *disagreement.versions))
    return groups


def _disagreement(case: Case, prediction: Prediction, verdict: Verdict) -> ModelDisagreement:
    aspects = {finding.aspect.split(" ")[0].split(".")[0] for finding in verdict.findings}
    names = {name for aspect in aspects for name in RULES_OF_AN_ASPECT.get(aspect, ())}
    concerned = tuple(rule for rule in catalogue().values() if rule.name in names)
    return ModelDisagreement(verdict, (verdict.version,), _settling(case, prediction), concerned)


def _settling(case: Case, prediction: Prediction) -> tuple[Rule, ...]:
    """The rules that, with another version's value, make the model meet the expectations."""
    version, mine = prediction.version, rules_of(prediction.version)
    settling = (
        rule
        for rule, altered in other_readings(version)
        if prediction.read.tell_apart(mine, altered) and _agrees(case, version, altered)
    )
    return tuple(dict.fromkeys(settling))


def _agrees(case: Case, version: SparkVersion, rules: Rules) -> bool | None:
    """None if the model cannot predict the case with these rules."""
    try:
        return verdict_on(case, predict(case, version, rules)).status in AS_THE_CASE_SAYS
    except Unpredictable:
        return None


def notes_of_the_model(case: Case, verdict: Verdict, observation: Observation) -> tuple[str, ...]:
    """What the model says about a violation: who it agrees with, by which rule that other versions lack, and what it predicts."""
    try:
        prediction = predict(case, verdict.version)
    except Unpredictable as unknown:
        return (f"the reference model cannot predict this case: {unknown}",)
    place = next((finding.place.step for finding in verdict.findings if finding.place.step), None)
    with_case = verdict_on(case, prediction).status in AS_THE_CASE_SAYS
    with_engine = divergence(prediction.observation, observation, upto=place, error_classes=False) is None
    # The expectation may come from the model. Spark's own test is a second source against an engine.
    test = next((mirror.id for mirror in case.mirrors if mirror.id.startswith("T") and mirror.partly is None), None)
    blamed = f"so does Spark's own test {test}; the engine is probably wrong" if test else "which is wrong is not known"
    side = {
        (True, False): f"The model agrees with the expectation and not with the engine; {blamed}.",
        (False, True): "The model agrees with the engine; the expectation is probably wrong.",
        (True, True): "The model agrees with the expectation and, in everything it predicts, with the engine.",
        (False, False): "The model agrees with neither the expectation nor the engine.",
    }[with_case, with_engine]
    if with_engine and not with_case and (rules := _settling(case, prediction)):
        says = (f"{rule.at(verdict.version).says.rstrip('.')} ({rule.source})." for rule in rules)
        side = (
            f"The model agrees with the engine, and the expectation with other versions. On {verdict.version}: "
            f"{' '.join(says)} The case lacks a `differs` entry that says so, with `bug` if it is one."
        )
    step = next((step for step in prediction.observation.steps if step.number == place), None)
    if step is None:
        return (side,)
    schema = OutputSchema.of(prediction.observation.columns_of(step))
    return side, f"The model predicts for step {place}: {'; '.join(_said(step, schema))}"


def _said(step: StepSeen, schema: OutputSchema) -> Iterator[str]:
    if step.error is not None:
        yield f"fails at {step.error.stage}: {' < '.join(step.error.classes)}: {step.error.message}"
        return
    rows = [row for batch in step.batches for row in batch.rows]
    yield f"emits {', '.join(cell(schema.as_written(row)) for row in rows) or 'nothing'}"
    yield f"watermark {show(step.watermark * 1000)}"
    if dropped := [batch.dropped for batch in step.batches if batch.dropped is not None]:
        yield f"dropped {sum(dropped)}"
    if step.batches:
        yield f"state {cell(list(step.batches[-1].state))}"


def detects(case: Case, wrong: WrongModel) -> bool:
    """Whether the expectations of a case contradict a wrong model."""
    version = wrong.version
    return not_applicable(case, version) is None and _agrees(case, version, wrong.of(rules_of(version))) is False


def detected(cases: Mapping[str, Case]) -> tuple[WrongModel, ...]:
    """The wrong models that their named case detects, of these cases by id.

    Other cases may detect more of them, but checking every case against every model takes minutes.
    """
    named = ((wrong, cases.get(wrong.detected_by)) for wrong in WRONG_MODELS)
    return tuple(wrong for wrong, case in named if case is not None and detects(case, wrong))
