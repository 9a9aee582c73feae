"""Coverage: what of a suite's catalogues some case pins, and the holes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from conformance.core.case import Case
from conformance.language.catalogue import Catalogue
from conformance.policies.case import PolicyCase


@dataclass(frozen=True)
class Category:
    """One catalogue, held against the cases."""

    name: str
    """``behaviours``, ``founding statements``, ``Spark's own tests``."""
    entries: Mapping[str, str]
    """Every id that a case can pin → what it is, in a sentence."""
    pinned: Mapping[str, tuple[str, ...]]
    """Id → the cases that pin it, for those that any does."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Id → why no case pins it, for those of the holes whose entry gives a ``reason``."""

    @property
    def holes(self) -> tuple[str, ...]:
        """The ids that no case pins."""
        return tuple(id for id in self.entries if id not in self.pinned)

    def __str__(self) -> str:
        return f"{self.name} {len(self.pinned)} of {len(self.entries)}"


def coverage(cases: Iterable[Case | PolicyCase], catalogue: Catalogue) -> tuple[Category, ...]:
    """What the cases pin of each catalogue that the suite has.

    A case that no runtime can carry out yet pins nothing, and what no case can pin is not asked for.
    """
    counting = [case for case in cases if not any(case.not_yet_runnable())]
    behaviours = [(id, case.id) for case in counting for id in case.behaviour]
    mirrors = [(id, case.id) for case in counting for id in case.mirrors]
    found = [_category("behaviours", catalogue.behaviours, catalogue.reachable_behaviours(), behaviours)]
    if catalogue.statements is not None:
        known = catalogue.statements
        found.append(_category("founding statements", known, frozenset(known), mirrors))
    if catalogue.spark_tests is not None:
        found.append(_category("Spark's own tests", catalogue.spark_tests, catalogue.reachable_spark_tests(), mirrors))
    return tuple(found)


def _category(
    name: str,
    known: Mapping[str, Mapping[str, object]],
    wanted: frozenset[str],
    pairs: list[tuple[str, str]],
) -> Category:
    entries = {id: _sentence(entry) for id, entry in known.items() if id in wanted}
    pinned = {id: tuple(sorted({case for one, case in pairs if one == id})) for id in entries}
    pinned = {id: cases for id, cases in pinned.items() if cases}
    reasons = {id: str(known[id]["reason"]) for id in entries if id not in pinned and "reason" in known[id]}
    return Category(name, entries, pinned, reasons)


def _sentence(entry: Mapping[str, object]) -> str:
    if "test" in entry:
        return f"{entry.get('suite')}: {entry['test']}"
    return str(entry.get("sentence") or entry.get("statement") or "")
