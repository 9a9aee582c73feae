"""Coverage: which entries of a suite's catalogues its cases cover, which of Spark's tests they carry in part, and which none covers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from conformance.core.case import Case
from conformance.language.catalogue import Catalogue
from conformance.policies.case import PolicyCase


@dataclass(frozen=True)
class Cover:
    id: str
    case: str
    lost: str | None = None
    """What of the entry no case carries."""


@dataclass(frozen=True)
class Apart:
    """A test of Spark that no case can carry, and that is therefore not counted."""

    id: str
    sentence: str
    why: str
    cases: tuple[str, ...]
    """The cases that come closest."""


@dataclass(frozen=True)
class Category:
    name: str
    """The title of the catalogue: ``behaviours``, ``founding statements``, ``Spark's own tests``."""
    entries: Mapping[str, str]
    """Every id that a case can cover → its sentence."""
    cases: Mapping[str, tuple[str, ...]]
    """Id → the cases that cover it, for those that have any."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Id → why no case covers it, for those whose entry gives a ``reason``."""
    lost: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Id → what of it no case carries, for entries that cases cover in part."""
    apart: tuple[Apart, ...] = ()
    of_scala: frozenset[str] = frozenset()
    """The tests of an API that only Scala has, which cases carry through its counterpart in PySpark."""
    in_part: bool = False
    """Whether a case may cover an entry in part: only Spark's tests, which assert several things."""

    @property
    def untested(self) -> tuple[str, ...]:
        return tuple(id for id in self.entries if id not in self.cases)

    @property
    def whole(self) -> tuple[str, ...]:
        """The ids that cases cover, without anything lost."""
        return tuple(id for id in self.cases if id not in self.lost)

    @property
    def counterparts(self) -> tuple[str, ...]:
        """The tests of an API of Scala among ``whole``."""
        return tuple(id for id in self.whole if id in self.of_scala)

    def __str__(self) -> str:
        if not self.in_part:
            return f"{self.name} {len(self.cases)} of {len(self.entries)}"
        scala = f" ({len(self.counterparts)} of a Scala API, through PySpark's)" if self.counterparts else ""
        counts = f"{len(self.whole)} faithful{scala}, {len(self.lost)} partly, {len(self.untested)} not"
        apart = f"; {len(self.apart)} apart" if self.apart else ""
        return f"{self.name} {counts}, of {len(self.entries)}{apart}"


def coverage(cases: Iterable[Case | PolicyCase], catalogue: Catalogue) -> tuple[Category, ...]:
    """What the cases cover of each catalogue, of what can be covered; a test is faithful if no case that mirrors it loses anything."""
    all_cases = tuple(cases)
    behaviours = [Cover(id, case.id) for case in all_cases for id in case.behaviour]
    mirrors = [Cover(mirror.id, case.id, mirror.partly) for case in all_cases for mirror in case.mirrors]
    mirrors += _of_groups(mirrors, catalogue)
    categories = [_category("behaviours", catalogue.behaviours, catalogue.reachable_behaviours(), behaviours)]
    if catalogue.statements is not None:
        statements = catalogue.statements
        categories.append(_category("founding statements", statements, frozenset(statements), mirrors))
    if catalogue.spark_tests is not None:
        tests = catalogue.spark_tests
        category = _category("Spark's own tests", tests, catalogue.reachable_spark_tests(), mirrors)
        of_scala = frozenset(id for id, entry in tests.items() if entry.get("api") == "scala")
        apart = tuple(
            Apart(id, _sentence(tests[id]), why, tuple(sorted({cover.case for cover in mirrors if cover.id == id})))
            for id, why in catalogue.tests_apart().items()
        )
        categories.append(replace(category, apart=apart, of_scala=of_scala, in_part=True))
    return tuple(categories)


def _of_groups(mirrors: list[Cover], catalogue: Catalogue) -> list[Cover]:
    """A case that names a group of tests says of none of them that it carries it; a case that names the test decides."""
    named = {cover.id for cover in mirrors}
    return [
        Cover(test, cover.case, f"a case names {cover.id}, a group, and not this test")
        for cover in mirrors
        for test in catalogue.tests_of_group(cover.id)
        if test not in named
    ]


def _category(
    name: str, known: Mapping[str, Mapping[str, object]], reachable: frozenset[str], covers: list[Cover]
) -> Category:
    entries = {id: _sentence(entry) for id, entry in known.items() if id in reachable}
    covered: dict[str, set[str]] = {}
    lost: dict[str, list[str]] = {}
    for cover in covers:
        covered.setdefault(cover.id, set()).add(cover.case)
        if cover.lost is not None and cover.lost not in lost.get(cover.id, ()):
            lost.setdefault(cover.id, []).append(cover.lost)
    return Category(
        name,
        entries,
        {id: tuple(sorted(covered[id])) for id in entries if id in covered},
        {id: str(known[id]["reason"]) for id in entries if id not in covered and "reason" in known[id]},
        {id: tuple(lost[id]) for id in entries if id in lost},
    )


def _sentence(entry: Mapping[str, object]) -> str:
    if "test" in entry:
        return f"{entry.get('suite')}: {entry['test']}"
    return str(entry.get("sentence") or entry.get("statement") or "")
