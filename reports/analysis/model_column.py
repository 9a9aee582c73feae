"""The column of the reference model, which runs the cases that test watermark policies.

A policy case is ``not-applicable`` on every Spark, and a Spark case on the model; neither counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from conformance.core.case import Case
from conformance.judging.verdict import Status
from conformance.policies.case import TARGET, PolicyCase, check
from reports.results.records import Cell, Target

MODEL = Target(name=TARGET, spark=TARGET, runtime=TARGET)


def cells(cases: Iterable[Case], policy_cases: Sequence[PolicyCase], targets: Iterable[str]) -> Iterator[Cell]:
    """Every cell of a run except those of Spark cases on Spark; policy cases are checked here. ``targets``: names of Spark's."""
    for case in cases:
        yield _cell(case, TARGET, "not-applicable", "this case runs on Spark")
    for name in targets:
        for policy_case in policy_cases:
            yield _cell(
                policy_case, name, "not-applicable", "this case tests a watermark policy, which Spark does not have"
            )
    for policy_case in policy_cases:
        found = check(policy_case)
        yield _cell(policy_case, TARGET, "violates" if found else "conforms", *map(str, found))


def _cell(case: Case | PolicyCase, target: str, status: Status, *notes: str) -> Cell:
    return Cell(case=case.id, family=case.family, case_digest=case.digest, target=target, status=status, notes=notes)
