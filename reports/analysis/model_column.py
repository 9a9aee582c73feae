"""The column of the matrix that is no Spark: cases on watermark policies, whose target is the model.

What is not for a column is ``not-applicable`` there, and never counts: a case on a policy on every Spark, a case for Spark on the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from conformance.core.case import Case
from conformance.judging.verdict import Status
from conformance.policies.case import TARGET, PolicyCase, check
from reports.results.records import Cell, Target

MODEL = Target(name=TARGET, spark=TARGET, runtime=TARGET)


def cells(cases: Iterable[Case], policy_cases: Sequence[PolicyCase], targets: Iterable[str]) -> Iterator[Cell]:
    """Every cell that a run has besides those of cases for Spark on Spark.

    Args:
        cases: those for Spark.
        policy_cases: those on policies, held against their readings here.
        targets: names of the Spark targets.
    """
    for case in cases:
        yield _cell(case, TARGET, "not-applicable", "a case for Spark")
    for name in targets:
        for policy_case in policy_cases:
            yield _cell(policy_case, name, "not-applicable", "a case on a watermark policy, which no Spark has")
    for policy_case in policy_cases:
        found = check(policy_case)
        yield _cell(policy_case, TARGET, "violates" if found else "conforms", *map(str, found))


def _cell(case: Case | PolicyCase, target: str, status: Status, *notes: str) -> Cell:
    return Cell(case=case.id, family=case.family, case_digest=case.digest, target=target, status=status, notes=notes)
