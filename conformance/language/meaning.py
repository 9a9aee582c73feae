"""What shapes cannot say: whether the parts of a case fit each other. Each check looks only at parts in shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.language.differ_checks import check_differs
from conformance.language.membership import check_membership
from conformance.language.node import Node
from conformance.language.problem import Report
from conformance.language.step_checks import check_steps
from conformance.language.stream_checks import check_streams
from conformance.language.upgrading import check_upgrades
from conformance.language.width_checks import check_widths

if TYPE_CHECKING:
    from conformance.language.catalogue import Catalogue


def check_meaning(node: Node, report: Report, catalogue: Catalogue | None) -> None:
    """Report all that does not fit, in the whole case."""
    check_streams(node, report)
    check_steps(node, report)
    check_widths(node, report)
    check_differs(node, report)
    check_upgrades(node, report)
    if catalogue is not None:
        check_membership(node, report, catalogue)
