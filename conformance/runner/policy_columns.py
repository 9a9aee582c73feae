"""The columns that answer cases on watermark policies: the model, and real engines.

A policy case is ``not-applicable`` on every Spark, and a Spark case in these columns; neither counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.core.case import AnyCase, Case
from conformance.core.wording import counted
from conformance.judging.verdict import Status
from conformance.policies.case import REAL_ENGINE, TARGET, PolicyCase, check, compared, expectations, mismatches
from conformance.policies.replay import PolicyAnswer
from reports.results.records import Cell, Target

MODEL = Target(name=TARGET, spark=TARGET, runtime=TARGET)


@dataclass(frozen=True)
class PolicyColumn:
    target: Target
    title: str
    decides: str
    """What of a trace its classes decide, in words."""
    answers: Mapping[str, PolicyAnswer] = field(default_factory=dict)
    """By case id; there is none for a policy that the engine does not have."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Maps a case to why there is no answer."""
    absent: str | None = None


def engine_target(name: str, java: str | None = None) -> Target:
    return Target(name=name, spark=name, java=java, runtime=REAL_ENGINE)


def cells(
    cases: Iterable[Case],
    policy_cases: Sequence[PolicyCase],
    targets: Iterable[str],
    *,
    model: bool = True,
    columns: Sequence[PolicyColumn] = (),
) -> Iterator[Cell]:
    """Yields every cell of a run except those of Spark cases on Spark, whose targets are named; policy cases are judged here.

    ``model``: whether the model has a column; ``columns``: what real engines answered.
    """
    names = [*([TARGET] if model else []), *(column.target.name for column in columns)]
    for case in cases:
        for name in names:
            yield _cell(case, name, "not-applicable", "this case runs on Spark")
    for name in targets:
        for policy_case in policy_cases:
            yield _cell(
                policy_case, name, "not-applicable", "this case tests a watermark policy, which Spark does not have"
            )
    for policy_case in policy_cases:
        if model:
            findings = check(policy_case)
            yield _cell(policy_case, TARGET, "violates" if findings else "conforms", *map(str, findings))
        for column in columns:
            yield _answered(policy_case, column)


def _answered(case: PolicyCase, column: PolicyColumn) -> Cell:
    name = column.target.name
    if column.absent is not None:
        return _cell(case, name, "not-applicable", f"{column.title} is not on this machine: {column.absent}")
    if case.id in column.broken:
        return _cell(case, name, "broken", column.broken[case.id])
    if case.id not in column.answers:
        return _cell(case, name, "not-applicable", f"{column.title} does not have this policy")
    answer = column.answers[case.id]
    decided, of = compared(case, answer), expectations(case)
    if findings := mismatches(case, answer):
        return _cell(case, name, "violates", *map(str, findings))
    if not decided:
        return _cell(case, name, "not-applicable", f"what the engine's classes decide: {column.decides}")
    some = [f"{decided} of {counted(of, 'expectation')} compared: {column.decides}"] if decided < of else []
    return _cell(case, name, "conforms", *some)


def _cell(case: AnyCase, target: str, status: Status, *notes: str) -> Cell:
    return Cell(case=case.id, family=case.family, case_digest=case.digest, target=target, status=status, notes=notes)
