"""What a suite requires of expected errors: that no unrelated error matches them."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.core.error_classes import GENERIC
from conformance.language.node import Entries, Items, Node, Scalar, child, entries_of, items_of
from conformance.language.problem import Report


def check_errors(case: Node, report: Report) -> None:
    """Every expected error must name a class of one kind of error, or a part of its message."""
    for entry in items_of(child(case, "differs")):
        if isinstance(entry, Entries) and entry.get("unsupported") is not None and entry.get("error") is None:
            report.add(
                entry, "`error` is missing: a suite names the error by which these versions show that they lack it"
            )
    for error in _errors(case):
        if child(error, "message") is not None or not report.is_valid(error):
            continue
        classes = _classes(child(error, "class"))
        general = [one.value for one in classes if one.value in GENERIC]
        if general or not classes:
            what = f"{', '.join(map(str, general))} alone" if general else "an error without `class` and `message`"
            report.add(error, f"{what} matches unrelated errors: add `message`, a part of the text of this one")


def _errors(case: Node) -> Iterator[Node]:
    """Every mapping that describes an expected error."""
    for step in items_of(child(case, "steps")):
        yield from _of_expectation(child(step, "expect"))
    for entry in items_of(child(case, "differs")):
        yield from _if_mapping(child(entry, "error"))
        yield from _of_expectation(child(entry, "expect"))
        yield from _of_changes(child(entry, "steps"))
    for entry in items_of(child(case, "upgrades")):
        yield from _if_mapping(child(entry, "refused"))
        yield from _of_changes(child(entry, "steps"))


def _of_changes(steps: Node | None) -> Iterator[Node]:
    for change in entries_of(steps):
        yield from _of_expectation(change.value)


def _of_expectation(expectation: Node | None) -> Iterator[Node]:
    yield from _if_mapping(child(expectation, "error"))


def _if_mapping(node: Node | None) -> Iterator[Node]:
    """``error: null`` expects none."""
    if isinstance(node, Entries):
        yield node


def _classes(node: Node | None) -> list[Scalar]:
    if isinstance(node, Scalar):
        return [node]
    return [item for item in node.items if isinstance(item, Scalar)] if isinstance(node, Items) else []
