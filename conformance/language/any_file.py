"""A file of a suite: a case for Spark, or one on a policy, or several that a ``matrix`` makes. The top-level keys tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.core.case import Case
from conformance.language.case_file import case_of
from conformance.language.expansion import Expansion, expansions, has_matrix
from conformance.language.node import Entries
from conformance.language.policy_file import is_policy_case, policy_case_of
from conformance.language.problem import InvalidCase, Problem, Report
from conformance.language.source import read_yaml
from conformance.policies.case import PolicyCase

if TYPE_CHECKING:
    from conformance.language.catalogue import Catalogue


def read_any(path: Path, id: str, catalogue: Catalogue | None = None) -> tuple[Case | PolicyCase, ...]:
    """Read the cases in a file, whatever they are cases of; as ``read_case``.

    One, or where the file has a ``matrix`` one for each combination of its values, with ids such as ``id.left-outer``.

    Raises:
        InvalidCase: with every problem there is.
    """
    report = Report(path)
    node = read_yaml(path, report)
    if node is not None and is_policy_case(node):
        return (policy_case_of(node, report, id, catalogue),)
    if isinstance(node, Entries) and has_matrix(node):
        return _of_matrix(node, report, id, catalogue)
    return (case_of(node, report, id, catalogue),)


def _of_matrix(node: Entries, report: Report, id: str, catalogue: Catalogue | None) -> tuple[Case, ...]:
    made = expansions(node, report)
    if report.problems:
        raise InvalidCase(report.problems)
    cases: list[Case] = []
    wrong: dict[Problem, list[str]] = {}
    for one in made:
        try:
            cases.append(_case(one, report.path, id, catalogue))
        except InvalidCase as invalid:
            for problem in invalid.problems:
                wrong.setdefault(problem, []).append(one.name)
    if wrong:
        raise InvalidCase(_told(problem, names, len(made)) for problem, names in wrong.items())
    return tuple(cases)


def _case(one: Expansion, path: Path, id: str, catalogue: Catalogue | None) -> Case:
    found = case_of(one.document, Report(path), f"{id}.{one.name}", catalogue)
    return found.model_copy(update={"expansion": one.name})


def _told(problem: Problem, names: list[str], of: int) -> Problem:
    """What only some combinations have wrong says which."""
    if len(names) == of:
        return problem
    return Problem(problem.path, problem.line, problem.column, f"{problem.message} (in {', '.join(names)})")
