"""Reads cases: from a file, which holds a Spark case, a policy case or several cases (``matrix``), or from a mapping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

from conformance.core.case import Case
from conformance.core.data import Json
from conformance.language import source as nodes
from conformance.language.case_file import case_of
from conformance.language.catalogue import Catalogue
from conformance.language.matrix import KEY, expansions
from conformance.language.policy_file import is_policy_case, policy_case_of
from conformance.language.source import Entries, InvalidCase, Problem, ProblemReport, changed, node_of, read_yaml
from conformance.language.streams import with_rows
from conformance.policies.case import PolicyCase


def read_any(path: Path, id: str, catalogue: Catalogue | None = None) -> tuple[Case | PolicyCase, ...]:
    """Read all cases in a YAML file, of either kind: one, or one per combination of its ``matrix``, with ids such as ``id.left-outer``.

    Nothing in it is executed. Raises `InvalidCase` with every problem. ``id``: the path of the file under the root of the suite without the
    suffix; ``catalogue``: that of the suite, whose rules the case must then follow; None outside a suite."""
    report = ProblemReport(path)
    node = read_yaml(path, report)
    if node is not None and is_policy_case(node):
        return (policy_case_of(node, report, id, catalogue),)
    if isinstance(node, Entries) and node.get(KEY) is not None:
        return _of_matrix(node, report, id, catalogue)
    return (case_of(node and with_rows(node, report), report, id, catalogue),)


def read_case(path: Path, id: str, catalogue: Catalogue | None = None) -> Case:
    """Read the only Spark case in a file, as ``read_any``."""
    report = ProblemReport(path)
    node = read_yaml(path, report)
    return case_of(node and with_rows(node, report), report, id, catalogue)


def case_from(written: Mapping[str, Json], id: str, *, steps_as_lines: bool = False) -> Case:
    """Return the Spark case that a mapping, structured like the YAML, describes; raise `InvalidCase` with every problem.

    All line numbers are 0; with ``steps_as_lines``, everything in a step has the number of the step, so that a problem says where it is.
    """
    node = node_of(written, nodes.SourceLocation(0, 0))
    if steps_as_lines:
        numbers = count(1)
        node = changed(node, ("steps", "*"), lambda step: node_of(step.plain(), nodes.SourceLocation(next(numbers), 0)))
    return case_of(node, ProblemReport(Path(f"{id}.yaml")), id, None)


def _of_matrix(node: Entries, report: ProblemReport, id: str, catalogue: Catalogue | None) -> tuple[Case, ...]:
    documents = expansions(node, report)
    if report.problems:
        raise InvalidCase(report.problems)
    cases: list[Case] = []
    wrong: dict[Problem, list[str]] = {}
    for name, document in documents.items():
        report = ProblemReport(report.path)
        try:
            case = case_of(with_rows(document, report), report, f"{id}.{name}", catalogue)
            cases.append(case.model_copy(update={"expansion": name}))
        except InvalidCase as invalid:
            for problem in invalid.problems:
                wrong.setdefault(problem, []).append(name)
    if wrong:
        # A problem of only some of the cases names them.
        where = [f" (in {', '.join(names)})" if len(names) < len(documents) else "" for names in wrong.values()]
        named = zip(wrong, where, strict=True)
        raise InvalidCase(replace(problem, message=problem.message + names) for problem, names in named)
    return tuple(cases)
