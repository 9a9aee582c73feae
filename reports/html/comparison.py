"""Two versions held against each other, as a page shows it: changes of one kind and for one reason together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.core.spark_types import DataType
from conformance.core.values import NotAValue, canonical, show
from conformance.judging.divergence import Divergence
from reports.analysis.change import MEANINGS, Change, Changes, Heading, Meaning, Reason
from reports.analysis.equivalence import has_behaviour, same_behaviour
from reports.analysis.report import Report
from reports.html.features import features
from reports.html.ribbon import Sign
from reports.html.sources import Source
from reports.html.visible import cut
from reports.results.records import Target

_TIMESTAMP = DataType("timestamp")
_INSTANT = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)"')
_SHOWN = 400


@dataclass(frozen=True)
class Item:
    """One case that is answered differently."""

    case: str
    title: str
    what: str
    before: Sign
    after: Sign
    where: str
    """``step 3, micro-batch 4``; empty where there is no such place."""
    aspect: str
    values: tuple[str, str]
    """What the two show there."""
    since: tuple[Target, ...]
    """The versions, after the first and up to the second, at which the answer turns."""
    features: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """Changes of one kind that have one reason."""

    reasons: tuple[Reason, ...]
    """Empty where no case gives any."""
    sources: tuple[Source, ...]
    items: tuple[Item, ...]

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(feature for item in self.items for feature in item.features))


@dataclass(frozen=True)
class Group:
    meaning: Meaning
    heading: Heading
    entries: tuple[Entry, ...]

    @property
    def count(self) -> int:
        return sum(len(entry.items) for entry in self.entries)


@dataclass(frozen=True)
class Comparison:
    """Everything that a page on two versions says."""

    before: Target
    after: Target
    compared: int
    groups: tuple[Group, ...]
    """Of every kind, worst first; without entries where nothing is of that kind."""
    features: tuple[str, ...]
    outside: int
    silent: tuple[tuple[str, str, str], ...]
    """Case, target and status of what has no answer."""

    @property
    def count(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def reasons(self) -> int:
        """How many reasons there are: tickets, and changes that no case explains."""
        return len({entry.sources or entry.reasons or entry.items for group in self.groups for entry in group.entries})


def comparison(report: Report, pair: Changes) -> Comparison:
    groups = tuple(
        Group(meaning, heading, tuple(_entries(report, pair, pair.of(meaning))))
        for meaning, heading in MEANINGS.items()
    )
    used = [feature for group in groups for entry in group.entries for feature in entry.features]
    return Comparison(
        before=pair.before,
        after=pair.after,
        compared=pair.compared,
        groups=groups,
        features=tuple(sorted(set(used))),
        outside=len(pair.outside),
        silent=tuple((one.case, one.target, one.status) for one in pair.silent),
    )


def _entries(report: Report, pair: Changes, changes: Sequence[Change]) -> Iterator[Entry]:
    """What nobody explains first, then the reason that most cases have."""
    by_reason: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        links = tuple(reason.link or reason.text for reason in change.reasons)
        by_reason.setdefault(links, []).append(change)
    for links, alike_changes in sorted(by_reason.items(), key=lambda found: (bool(found[0]), -len(found[1]), found[0])):
        reasons = dict.fromkeys(reason for change in alike_changes for reason in change.reasons)
        sources = dict.fromkeys(reason.link for reason in reasons if reason.link)
        items = tuple(_item(report, pair, change) for change in alike_changes)
        yield Entry(tuple(reasons) if links else (), tuple(Source.of(link) for link in sources), items)


def _item(report: Report, pair: Changes, change: Change) -> Item:
    where = change.where
    case = report.cases.get(change.case)
    return Item(
        case=change.case,
        title=report.title(change.case),
        what=change.what,
        before=Sign.of(change.before, pair.before),
        after=Sign.of(change.after, pair.after),
        where=where.place,
        aspect=where.what.replace("_", " "),
        values=readable(where),
        since=tuple(_since(report, pair, change.case)),
        features=features(case) if case is not None else (),
    )


def _since(report: Report, pair: Changes, case: str) -> Iterator[Target]:
    targets = report.targets
    between = targets[targets.index(pair.before) : targets.index(pair.after) + 1]
    previous = None
    for target in between:
        cell = report.matrix.cells.get((case, target.name))
        if cell is None or not has_behaviour(cell):
            continue
        if previous is not None and not same_behaviour(previous, cell):
            yield target
        previous = cell


def readable(where: Divergence) -> tuple[str, str]:
    """Both values of a divergence; the instants in rows as a case writes them."""
    a, b = (cut(_INSTANT.sub(_instant, value), _SHOWN) for value in where.values)
    return a, b


def _instant(found: re.Match[str]) -> str:
    try:
        micros = canonical(found[1], _TIMESTAMP)
    except NotAValue:
        return found[0]
    return show(micros)
