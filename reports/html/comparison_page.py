"""The comparison of two versions, for its page: changes grouped by kind and reason, and what happens to checkpoints."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias, TypeVar

from conformance.core.case import Case
from conformance.core.spark_types import DataType
from conformance.core.values import NotAValue, canonical, show
from conformance.judging.comparison import MEANINGS, OF_ROWS, Divergence, Meaning, MeaningText
from conformance.judging.verdict import Outcome, Status
from conformance.suite.conditions import Condition
from conformance.suite.features import FEATURES, STATEFUL
from reports.analysis.change import Change, Changes, Reason, Since, find_changes
from reports.analysis.checkpoints import CheckpointGroup, Checkpoints
from reports.analysis.gate import default_rulings
from reports.analysis.matrix import ShownBug
from reports.analysis.report import Report
from reports.analysis.tally import TallyRow, tally_of_cases, tally_of_checkpoints
from reports.html.addresses import SourceLink, pair_name
from reports.html.strip import CellSign
from reports.html.texts import SHOWN_TIME, TimeNotation, cut
from reports.results.checkpoint_status import BUG, NORMAL, Colour, colour_of, mark_of
from reports.results.known_bug import Workaround
from reports.results.records import Cell, DocumentedDifference, TargetRecord
from reports.results.status import Mark

_TIMESTAMP = DataType("timestamp")
_INSTANT = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)"')
_SHOWN = 400


@dataclass(frozen=True)
class ChangedCase:
    case: str
    what: str
    before: CellSign
    after: CellSign
    where: str
    """``step 3, micro-batch 4``; may be empty."""
    aspect: str
    values: tuple[str, str]
    since: tuple[Since, ...]
    """The releases after the first version, up to the second, where the behaviour changes."""
    features: tuple[str, ...]
    condition: Condition


@dataclass(frozen=True)
class ReasonGroup:
    """Changes of one kind with the same reason."""

    reasons: tuple[Reason, ...]
    sources: tuple[SourceLink, ...]
    items: tuple[ChangedCase, ...]

    @property
    def workarounds(self) -> tuple[Workaround, ...]:
        bugs = (reason.bug for reason in self.reasons)
        return tuple(dict.fromkeys(known for bug in bugs if bug is not None and (known := bug.workaround) is not None))


@dataclass(frozen=True)
class MeaningGroup:
    meaning: Meaning
    heading: MeaningText
    entries: tuple[ReasonGroup, ...]

    @property
    def count(self) -> int:
        return sum(len(entry.items) for entry in self.entries)

    @property
    def of_rows(self) -> bool:
        """Whether the rows of a running query can meet it."""
        return self.meaning in OF_ROWS


@dataclass(frozen=True)
class Comparison:
    pair: Changes
    groups: tuple[MeaningGroup, ...]
    """Every kind, worst first, also those of which there are no changes."""
    bugs: tuple[ShownBug, ...]
    features: tuple[str, ...]
    """The features of the compared cases, in display order."""
    compared: tuple[tuple[str, int], ...]
    """The features, separated by ``|``, and how many of the compared cases have exactly these."""
    tally: TallyRow

    @property
    def count(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def reasons(self) -> int:
        """The number of reasons: tickets, and changes without a documented reason."""
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
        report.matrix.bugs_of_both(pair.before, pair.after),
        features=tuple(feature for feature in FEATURES if feature in chain.from_iterable(needs)),
        compared=tuple(sorted(("|".join(features), count) for features, count in needs.items())),
        tally=tally_of_cases(pair, default_rulings(pair, report.condition)),
    )


def _entries(report: Report, pair: Changes, changes: Sequence[Change]) -> Iterator[ReasonGroup]:
    by_reason: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        links = tuple(reason.link or reason.text for reason in change.reasons)
        by_reason.setdefault(links, []).append(change)
    for links, same_reason in sorted(by_reason.items(), key=lambda item: (bool(item[0]), -len(item[1]), item[0])):
        reasons = dict.fromkeys(reason for change in same_reason for reason in change.reasons)
        sources = dict.fromkeys(reason.link for reason in reasons if reason.link)
        items = tuple(_item(report, pair, change) for change in same_reason)
        yield ReasonGroup(tuple(reasons) if links else (), tuple(SourceLink.of(link) for link in sources), items)


def _item(report: Report, pair: Changes, change: Change) -> ChangedCase:
    first, last = report.targets.index(pair.before), report.targets.index(pair.after)
    where = change.where
    bugs = report.matrix.bugs.get(change.case, ())
    return ChangedCase(
        case=change.case,
        what=change.what,
        before=CellSign.of(change.before, pair.before, bugs),
        after=CellSign.of(change.after, pair.after, bugs),
        where=where.place,
        aspect=where.what.replace("_", " "),
        values=readable(where, report.cases.get(change.case)),
        since=tuple(turn.since for turn in report.turns[change.case] if first < turn.place <= last),
        features=report.features.get(change.case, ()),
        condition=report.condition(change),
    )


def readable(where: Divergence, case: Case | None) -> tuple[str, str]:
    """Return both values of a divergence; their instants as the case writes them."""
    shown = [_INSTANT.sub(_instant, value) for value in where.values]
    if any(map(SHOWN_TIME.search, shown)):  # most are counts, and the notation takes a look at every row of the case
        shown = [*map(TimeNotation.of(case).text, shown)]
    a, b = (cut(text, _SHOWN) for text in shown)
    return a, b


def _instant(match: re.Match[str]) -> str:
    try:
        return show(canonical(match[1], _TIMESTAMP))
    except NotAValue:
        return match[0]


Item = TypeVar("Item")
OtherChange: TypeAlias = tuple[str, str, tuple[tuple[bool, str], ...]]
"""A case, what changes, and its reasons, each with whether it is one of the later release."""


@dataclass(frozen=True)
class OtherPairs:
    """Every two releases without a page of their own: patch releases, mostly."""

    changes: tuple[OtherChange, ...]
    texts: tuple[str, ...]
    compared: tuple[Sequence[int | Sequence[int]], ...]
    """What releases show that behave alike: the number of the text about what was compared, then the changes of each kind."""
    pairs: Mapping[str, tuple[int, int, int]]
    """Maps ``3.5.3..4.3.0`` to what it shows, and the texts about its checkpoints and on the pair tried instead."""


def other_pairs(report: Report) -> OtherPairs:
    """Compare the releases of which no page does."""
    matrix, changes, texts = report.every_release, _Numbers[OtherChange](), _Numbers[str]()
    compared: dict[tuple[int, int], Sequence[int | Sequence[int]]] = {}
    numbers, pairs = _Numbers[tuple[int, int]](), {}
    for before, after in report.pairs_without_page:
        ends = matrix.kinds[before.name], matrix.kinds[after.name]
        if ends not in compared:
            pair = find_changes(matrix, before, after)
            groups = ([changes[_other(change, after)] for change in pair.of(meaning)] for meaning in MEANINGS)
            compared[ends] = [texts[pair.basis], *groups]
        known = report.upgrades.between(before, after)
        nearest = pair_name(*known.ran) if known.ran is not None and known.answered_by else ""
        pairs[pair_name(before.name, after.name)] = numbers[ends], texts[known.summary()], texts[nearest]
    return OtherPairs(tuple(changes), tuple(texts), tuple(compared.values()), pairs)


class _Numbers(dict[Item, int]):
    """Numbers from 0, one for each key."""

    def __missing__(self, key: Item) -> int:
        self[key] = len(self)
        return self[key]


def _other(change: Change, after: TargetRecord) -> OtherChange:
    return change.case, change.what, tuple((reason.spark == after.spark, str(reason)) for reason in change.reasons)


_LONGEST = 600


@dataclass(frozen=True)
class CheckpointReason:
    colour: Colour
    mark: Mark
    error: str
    because: str
    source: SourceLink | None
    workaround: str
    cases: Mapping[str, tuple[int, ...]]
    """Maps each case to the steps before which its versions changed."""


@dataclass(frozen=True)
class CheckpointSection:
    """All that is known about the checkpoints of one version on another."""

    known: Checkpoints
    groups: tuple[CheckpointReason, ...]
    """The checkpoints that do not resume normally, worst first."""
    documented: tuple[CheckpointReason, ...]
    """What cases without a result between these versions document for them."""
    tried: tuple[tuple[str, Colour, int], ...]
    """The features of a query, separated by ``|``, what became of tried checkpoints, and of how many with exactly these features."""

    @property
    def kinds(self) -> Iterator[tuple[str, int, int, int]]:
        """Each kind of state, how many tried checkpoints have it, and how many are refused and resume with other results."""
        for kind in STATEFUL:
            own = [(status, count) for features, status, count in self.tried if kind in features.split("|")]
            refused = sum(count for status, count in own if status in ("refused", "unsupported"))
            others = sum(count for status, count in own if status not in NORMAL) - refused
            if own:
                yield kind, sum(count for _, count in own), refused, others

    @property
    def tally(self) -> TallyRow:
        return tally_of_checkpoints(self.known)

    @property
    def abnormal(self) -> int:
        return sum(group.count for group in self.known.groups)


def checkpoint_section(report: Report, origin: TargetRecord, to: TargetRecord) -> CheckpointSection:
    """Return how the checkpoints of one version resume on the other."""
    known = report.upgrades.between(origin, to)
    tried = Counter(
        ("|".join(report.features.get(cell.case, ())), colour_of(cell.status, cell.outcome))
        for cell in known.cells
        if cell.status not in ("not-run", "not-applicable")
    )
    counts = tuple((features, status, count) for (features, status), count in sorted(tried.items()))
    groups, documented = (tuple(map(_reason, own)) for own in (known.groups, known.documented_groups))
    return CheckpointSection(known, groups, documented, counts)


def _reason(group: CheckpointGroup) -> CheckpointReason:
    entry, because = group.entry, group.because
    if entry is not None and entry.bug:
        because = f"{BUG.glyph} known bug: {because}{'' if entry.link else entry.ticket}"
    return CheckpointReason(
        colour_of(group.status, group.outcome),
        mark_of(group.status, group.outcome),
        group.error,
        cut(because, _LONGEST),
        SourceLink.of(entry.link) if entry is not None and entry.link else None,
        (entry.proven_workaround or "") if entry is not None else "",
        group.cases,
    )


@dataclass(frozen=True)
class CaseCheckpoints:
    """Checkpoints of a case that meet the same between several versions."""

    reason: CheckpointReason
    message: str
    """What the refusal says first; empty if the results do not keep it."""
    step: int
    """Before this step the version changes."""
    resumed: Mapping[tuple[str, ...], Sequence[str]]
    """Maps the versions that resumed them to those that wrote them."""


def checkpoints_of_case(report: Report, case: str) -> Iterator[CaseCheckpoints]:
    """Yield what became of the checkpoints of a case, those that did not resume normally first."""
    titles = {target.name: target.title for target in report.every_release.targets}
    places = {name: place for place, name in enumerate(titles)}
    untried = ("not-run", "not-applicable")
    cells = [cell for cell in report.upgrades_of_cases.get(case, ()) if cell.status not in untried]
    cells.sort(key=lambda cell: (cell.status in NORMAL, *(places.get(name, -1) for name in cell.pair)))
    met = [(_met(cell), _refusal(cell), cell) for cell in cells]
    # Not all results keep what a refusal says.
    said = {reason: message for reason, message, _ in reversed(met) if message}
    groups: dict[tuple[_Met, str, int], dict[str, list[str]]] = {}
    for reason, message, cell in met:
        origin, to = (titles.get(name, name.removeprefix("spark-")) for name in cell.pair)
        group = groups.setdefault((reason, message or said.get(reason, ""), cell.cut or 0), {})
        group.setdefault(origin, []).append(to)
    for (reason, message, step), by_origin in groups.items():
        resumed: dict[tuple[str, ...], list[str]] = {}
        for origin, versions in by_origin.items():
            resumed.setdefault(tuple(versions), []).append(origin)
        yield CaseCheckpoints(_reason(CheckpointGroup(*reason, {})), cut(message, _LONGEST), step, resumed)


_Met: TypeAlias = tuple[Status, Outcome | None, str, str, DocumentedDifference | None]
"""The first five fields of a `CheckpointGroup`."""


def _met(cell: Cell) -> _Met:
    because = cell.differs.reason if cell.differs is not None else ""
    return cell.status, cell.outcome, cell.error.name if cell.error is not None else "", because, cell.differs


def _refusal(cell: Cell) -> str:
    """Return what a refusal says first; empty if the results do not keep it."""
    refused = colour_of(cell.status, cell.outcome) == "refused"
    return cell.error.first_line if cell.error is not None and refused else ""
