"""What a suite requires of its cases beyond the language: behaviours, links, and ids that are in its catalogues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from conformance.language.node import Entries, Node, child, items_of, text_of
from conformance.language.problem import Report
from conformance.language.suggest import nearest

if TYPE_CHECKING:
    from conformance.language.catalogue import Catalogue


def check_catalogue_ids(case: Node, report: Report, catalogue: Catalogue) -> None:
    if not isinstance(case, Entries):
        return
    if case.get("behaviour") is None:
        report.add(case, "`behaviour` is missing: a case of a suite names the behaviours it pins, from behaviours.yaml")
    _check_links(case, report)
    for number, entry in enumerate(items_of(child(case, "differs")), 1):
        if isinstance(entry, Entries) and entry.get("link") is None and entry.get("bug") is None:
            missing = f"entry {number} of `differs` needs a `link` or a `bug`"
            report.add(entry, f"{missing}: in a suite, every difference is documented or a known bug")
    _check_ids(child(case, "behaviour"), "behaviour", catalogue.behaviours, "behaviours.yaml", report)
    _check_tags_and_mirrors(case, report, catalogue)


def check_policy_catalogue_ids(case: Node, report: Report, catalogue: Catalogue) -> None:
    """The same for a policy case, which names no behaviours, since those are Spark's."""
    if isinstance(case, Entries):
        _check_links(case, report)
        _check_tags_and_mirrors(case, report, catalogue)


def _check_links(case: Entries, report: Report) -> None:
    if case.get("links") is None and text_of(child(case, "strength")) != "observed":
        advice = "add `links` that document it, or write `strength: observed`"
        report.add(case.key("strength"), f"`links` is missing for strength `documented`: {advice}")


def _check_tags_and_mirrors(case: Entries, report: Report, catalogue: Catalogue) -> None:
    _check_ids(child(case, "tags"), "tag", catalogue.tags, "tags.yaml", report)
    seen: set[str | None] = set()
    for mirror in items_of(child(case, "mirrors")):
        named = child(mirror, "test") or mirror
        id = text_of(named) or ""
        if id in seen:
            report.add(named, f"duplicate {id!r}: a case mirrors a test once")
        seen.add(id)
        if id.startswith("S"):
            _check_id(named, "mirror", catalogue.statements, "statements.yaml", report)
        elif not catalogue.tests_of_group(id):
            _check_id(named, "mirror", catalogue.spark_tests, "spark-tests.yaml", report)


def _check_ids(node: Node | None, what: str, known: Mapping[str, Any] | None, file: str, report: Report) -> None:
    for item in items_of(node):
        _check_id(item, what, known, file, report)


def _check_id(node: Node, what: str, known: Mapping[str, Any] | None, file: str, report: Report) -> None:
    """Whether the id is in the catalogue; without a catalogue, every id is allowed."""
    id = text_of(node)
    if known is None or id is None or id in known or not report.is_valid(node):
        return
    near = nearest(id, known) if what != "mirror" else None  # similar numbers mean nothing
    hint = f"did you mean {near!r}?" if near else f"not in {file}"
    report.add(node, f"unknown {what} {id!r}: {hint}")
