"""A file of a suite: a case for Spark, or one on a policy. The top-level keys tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.case import Case
from conformance.language.case_file import case_of
from conformance.language.policy_file import is_policy_case, policy_case_of
from conformance.language.problem import Report
from conformance.language.source import read_yaml
from conformance.policies.case import PolicyCase

if TYPE_CHECKING:
    from conformance.catalogue import Catalogue


def read_any(path: Path, id: str, catalogue: Catalogue | None = None) -> Case | PolicyCase:
    """Read the case in a file, whatever it is a case of; as ``read_case``.

    Raises:
        InvalidCase: with every problem there is.
    """
    report = Report(path)
    node = read_yaml(path, report)
    if node is not None and is_policy_case(node):
        return policy_case_of(node, report, id, catalogue)
    return case_of(node, report, id, catalogue)
