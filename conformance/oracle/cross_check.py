"""The expectations of cases held against the reference model: without an engine, on every version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.judging.verdict import AS_THE_CASE_SAYS, Verdict, not_applicable
from conformance.model.catalogue import Rule, catalogue, other_readings
from conformance.model.errors import Unpredictable
from conformance.model.rules import Rules
from conformance.oracle.prediction import predict, verdict_on

STATE_FUNCTIONS = frozenset({"applyInPandasWithState", "transformWithState"})
"""Operations that run somebody's Python, which no model of Spark predicts."""

AGREEING = AS_THE_CASE_SAYS
"""Statuses of a prediction that is as the case says."""

RULES_OF_AN_ASPECT: Mapping[str, tuple[str, ...]] = {
    "watermark": ("node_watermark_ms", "policies"),
    "kind": ("no_data_batches",),
    "batches": ("no_data_batches",),
    "dropped": ("is_late", "late_watermark"),
    "state": ("is_over", "evicts_in"),
    "rows": ("is_late", "is_over", "append_emits"),
}
"""What a finding is about → the rules to read first, where no other reading of a single rule would settle it."""


@dataclass(frozen=True)
class Disagreement:
    """A cell in which the model says otherwise than the case; ``observed`` in its findings is what the model says."""

    verdict: Verdict
    settled_by: tuple[Rule, ...]
    """Rules of which another version's reading would make model and case agree."""
    look_at: tuple[Rule, ...]
    """The rules that the findings are about."""


@dataclass(frozen=True)
class CrossCheck:
    """How far the model and the cases agree."""

    cases: tuple[Case, ...]
    versions: tuple[SparkVersion, ...]
    cells: int
    """How many were predicted."""
    not_predicted: Mapping[str, tuple[str, ...]]
    """Construct → ids of the cases that the model does not predict because of it."""
    disagreements: tuple[Disagreement, ...]

    @property
    def predicted(self) -> tuple[Case, ...]:
        """The cases that are predicted on every version they apply to."""
        missing = {id for ids in self.not_predicted.values() for id in ids}
        return tuple(case for case in self.cases if case.id not in missing)

    @property
    def without_state_functions(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if not uses_state_functions(case))

    @property
    def share(self) -> float:
        """Of the cases without Python state functions, the share that is predicted: 0 to 1."""
        counted = self.without_state_functions
        ids = {case.id for case in self.predicted}
        return sum(1 for case in counted if case.id in ids) / len(counted) if counted else 1.0

    def by_family(self) -> dict[str, tuple[int, int]]:
        """Family → how many of its cases are predicted, and how many there are."""
        ids = {case.id for case in self.predicted}
        found: dict[str, tuple[int, int]] = {}
        for case in self.cases:
            predicted, of = found.get(case.family, (0, 0))
            found[case.family] = predicted + (case.id in ids), of + 1
        return found


def uses_state_functions(case: Case) -> bool:
    return any(operation.name in STATE_FUNCTIONS for operation in case.operations())


def cross_check(cases: Iterable[Case], versions: Sequence[SparkVersion]) -> CrossCheck:
    """Hold every case's expectations of every version against what the model says."""
    held = tuple(cases)
    cells = 0
    missing: dict[str, dict[str, None]] = {}
    disagreements = []
    for case in held:
        for version in versions:
            if not_applicable(case, version) is not None:
                continue
            try:
                verdict = verdict_on(case, predict(case, version))
            except Unpredictable as unknown:
                missing.setdefault(unknown.construct, {})[case.id] = None
                continue
            cells += 1
            if verdict.status not in AGREEING:
                disagreements.append(Disagreement(verdict, _settling(case, version), tuple(_concerned(verdict))))
    return CrossCheck(
        held, tuple(versions), cells, {name: tuple(ids) for name, ids in missing.items()}, tuple(disagreements)
    )


def _settling(case: Case, version: SparkVersion) -> tuple[Rule, ...]:
    """The rules of which another reading makes them agree, each once."""
    settling = {rule.name: rule for rule, altered in other_readings(version) if _agrees(case, version, altered)}
    return tuple(settling.values())


def _agrees(case: Case, version: SparkVersion, rules: Rules) -> bool:
    try:
        return verdict_on(case, predict(case, version, rules)).status in AGREEING
    except Unpredictable:
        return False


def _concerned(verdict: Verdict) -> Iterable[Rule]:
    aspects = dict.fromkeys(finding.aspect.split(" ")[0].split(".")[0] for finding in verdict.findings)
    names = dict.fromkeys(name for aspect in aspects for name in RULES_OF_AN_ASPECT.get(aspect, ()))
    return (rule for rule in catalogue().values() if rule.name in names)
