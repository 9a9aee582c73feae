"""Coverage: which entries of a suite's catalogues its cases pin, and which none pins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from conformance.core.case import Case
from conformance.language.catalogue import Catalogue
from conformance.policies.case import PolicyCase


@dataclass(frozen=True)
class Category:
    """The coverage of one catalogue."""

    name: str
    """``behaviours``, ``founding statements``, ``Spark's own tests``."""
    entries: Mapping[str, str]
    """Every id that a case can pin → its sentence."""
    pinned: Mapping[str, tuple[str, ...]]
    """Id → the cases that pin it, if any."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Id → why no case pins it, for holes whose entry gives a ``reason``."""

    @property
    def holes(self) -> tuple[str, ...]:
        """The ids that no case pins."""
        return tuple(id for id in self.entries if id not in self.pinned)

    def __str__(self) -> str:
        return f"{self.name} {len(self.pinned)} of {len(self.entries)}"


def coverage(cases: Iterable[Case | PolicyCase], catalogue: Catalogue) -> tuple[Category, ...]:
    """What the cases pin of each catalogue of the suite; entries that no case can pin do not count."""
    all_cases = tuple(cases)
    behaviours = [(id, case.id) for case in all_cases for id in case.behaviour]
    mirrors = [(id, case.id) for case in all_cases for id in case.mirrors]
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
    reachable: frozenset[str],
    pairs: list[tuple[str, str]],
) -> Category:
    entries = {id: _sentence(entry) for id, entry in known.items() if id in reachable}
    pinned = {id: tuple(sorted({case for one, case in pairs if one == id})) for id in entries}
    pinned = {id: cases for id, cases in pinned.items() if cases}
    reasons = {id: str(known[id]["reason"]) for id in entries if id not in pinned and "reason" in known[id]}
    return Category(name, entries, pinned, reasons)


def _sentence(entry: Mapping[str, object]) -> str:
    if "test" in entry:
        return f"{entry.get('suite')}: {entry['test']}"
    return str(entry.get("sentence") or entry.get("statement") or "")
