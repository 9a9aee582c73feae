"""The column that answers cases on watermark policies: the model.

A policy case is ``not-applicable`` on every Spark, and a Spark case in this column; neither counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from conformance.core.case import AnyCase, Case
from conformance.judging.verdict import Status
from conformance.policies.case import TARGET, PolicyCase, check
from reports.results.records import Cell, TargetRecord

MODEL = TargetRecord(name=TARGET, spark=TARGET, runtime=TARGET)


def cells(cases: Iterable[Case], policy_cases: Sequence[PolicyCase], targets: Iterable[str]) -> Iterator[Cell]:
    """Yield every cell of a run except those of Spark cases on Spark, whose targets are named; policy cases are judged here."""
    for case in cases:
        yield _cell(case, TARGET, "not-applicable", "this case runs on Spark")
    for name, policy_case in product(targets, policy_cases):
        why = "this case tests a watermark policy, which Spark does not have"
        yield _cell(policy_case, name, "not-applicable", why)
    for policy_case in policy_cases:
        findings = check(policy_case)
        yield _cell(policy_case, TARGET, "violates" if findings else "conforms", *map(str, findings))


def _cell(case: AnyCase, target: str, status: Status, *notes: str) -> Cell:
    return Cell(case=case.id, family=case.family, case_digest=case.digest, target=target, status=status, notes=notes)
