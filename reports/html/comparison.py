"""The comparison of two versions, for its page: changes grouped by kind and reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.core.case import Case
from conformance.core.spark_types import DataType
from conformance.core.values import NotAValue, canonical, show
from conformance.judging.divergence import Divergence
from reports.analysis.change import MEANINGS, Change, Changes, Meaning, MeaningText, Reason, Since
from reports.analysis.features import FEATURES
from reports.analysis.gate import standing_bugs
from reports.analysis.report import Report
from reports.html.addresses import SourceLink
from reports.html.ribbon import CellSign
from reports.html.texts import TimeNotation, cut
from reports.results.known_bug import Workaround

_TIMESTAMP = DataType("timestamp")
_INSTANT = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)"')
_SHOWN = 400


@dataclass(frozen=True)
class ChangedCase:
    """One case that behaves differently."""

    case: str
    title: str
    what: str
    before: CellSign
    after: CellSign
    where: str
    """``step 3, micro-batch 4``; may be empty."""
    aspect: str
    values: tuple[str, str]
    """The two values there."""
    since: tuple[Since, ...]
    """The releases after the first version, up to the second, where the behaviour changes."""
    features: tuple[str, ...]


@dataclass(frozen=True)
class ReasonGroup:
    """Changes of one kind with the same reason."""

    reasons: tuple[Reason, ...]
    """Empty if no case documents one."""
    sources: tuple[SourceLink, ...]
    items: tuple[ChangedCase, ...]

    @property
    def workarounds(self) -> tuple[Workaround, ...]:
        """Those of the bugs among the reasons, as far as they are known."""
        bugs = (reason.bug for reason in self.reasons)
        return tuple(dict.fromkeys(one for bug in bugs if bug is not None and (one := bug.workaround) is not None))


@dataclass(frozen=True)
class MeaningGroup:
    meaning: Meaning
    heading: MeaningText
    entries: tuple[ReasonGroup, ...]

    @property
    def count(self) -> int:
        return sum(len(entry.items) for entry in self.entries)


@dataclass(frozen=True)
class SharedBug:
    """A known bug that both versions have."""

    case: str
    title: str
    because: str
    until: str
    """``known bug, fixed in 4.2.0``"""
    source: SourceLink | None
    ticket: str
    workaround: Workaround | None
    """None if none is known."""


@dataclass(frozen=True)
class Comparison:
    """Everything on the page of two versions."""

    pair: Changes
    groups: tuple[MeaningGroup, ...]
    """Every kind, worst first; without entries if there are no such changes."""
    bugs: tuple[SharedBug, ...]
    """Known bugs of cases that behave the same on both."""
    features: tuple[str, ...]
    """Those of the compared cases, in display order."""
    compared: tuple[tuple[str, int], ...]
    """Features, separated by ``|``, and how many of the compared cases have exactly these."""

    @property
    def count(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def reasons(self) -> int:
        """How many reasons there are: tickets, and changes without a documented reason."""
        return len({entry.sources or entry.reasons or entry.items for group in self.groups for entry in group.entries})


def comparison(report: Report, pair: Changes) -> Comparison:
    groups = tuple(
        MeaningGroup(meaning, heading, tuple(_entries(report, pair, pair.of(meaning))))
        for meaning, heading in MEANINGS.items()
    )
    both = (*pair.same, *(change.case for change in pair.changes))
    needs = Counter(report.features.get(case, ()) for case in both)
    return Comparison(
        pair,
        groups,
        tuple(_shared_bugs(report, pair)),
        features=tuple(feature for feature in FEATURES if any(feature in each for each in needs)),
        compared=tuple(sorted(("|".join(each), count) for each, count in needs.items())),
    )


def _shared_bugs(report: Report, pair: Changes) -> Iterator[SharedBug]:
    for one in standing_bugs(report.matrix, pair):
        source = SourceLink.of(one.bug.link) if one.bug.link else None
        yield SharedBug(
            one.case, report.title(one.case), one.because, str(one.bug), source, one.bug.ticket, one.bug.workaround
        )


def _entries(report: Report, pair: Changes, changes: Sequence[Change]) -> Iterator[ReasonGroup]:
    """Changes without a reason first, then the reason with the most cases."""
    places = report.targets.index(pair.before), report.targets.index(pair.after)
    by_reason: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        links = tuple(reason.link or reason.text for reason in change.reasons)
        by_reason.setdefault(links, []).append(change)
    for links, same_reason in sorted(by_reason.items(), key=lambda found: (bool(found[0]), -len(found[1]), found[0])):
        reasons = dict.fromkeys(reason for change in same_reason for reason in change.reasons)
        sources = dict.fromkeys(reason.link for reason in reasons if reason.link)
        items = tuple(_item(report, pair, places, change) for change in same_reason)
        yield ReasonGroup(tuple(reasons) if links else (), tuple(SourceLink.of(link) for link in sources), items)


def _item(report: Report, pair: Changes, places: tuple[int, int], change: Change) -> ChangedCase:
    where = change.where
    bugs = report.matrix.bugs.get(change.case, ())
    return ChangedCase(
        case=change.case,
        title=report.title(change.case),
        what=change.what,
        before=CellSign.of(change.before, pair.before, bugs),
        after=CellSign.of(change.after, pair.after, bugs),
        where=where.place,
        aspect=where.what.replace("_", " "),
        values=readable(where, report.cases.get(change.case)),
        since=tuple(turn.since for turn in report.turns[change.case] if places[0] < turn.place <= places[1]),
        features=report.features.get(change.case, ()),
    )


def readable(where: Divergence, case: Case | None) -> tuple[str, str]:
    """Both values of a divergence; their instants as the case writes them."""
    notation = TimeNotation.of(case)
    a, b = (cut(notation.text(_INSTANT.sub(_instant, value)), _SHOWN) for value in where.values)
    return a, b


def _instant(found: re.Match[str]) -> str:
    try:
        micros = canonical(found[1], _TIMESTAMP)
    except NotAValue:
        return found[0]
    return show(micros)
