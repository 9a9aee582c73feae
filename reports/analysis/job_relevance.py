"""What is published about two versions that the query of a job can meet: known bugs and changes, for its verdict."""

import lzma
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, Self

from pydantic import TypeAdapter

from conformance.core.case import Case, Restart
from conformance.core.data import Json
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.judging.comparison import MOVES_ROWS, BehaviourChange
from conformance.query import read_query
from conformance.query.reading import QueryReading, read_plan
from conformance.suite import discovery
from conformance.suite.conditions import DEFAULTS, WITHOUT_EFFECT, Condition
from conformance.suite.features import ALWAYS, UNSEEN, needs, relevance
from reports.analysis.change import Change, changes
from reports.analysis.matrix import Matrix
from reports.analysis.published_pairs import published_pair
from reports.results.known_bug import BugIdentity, KnownBug, identity
from reports.results.published import BASELINES, NoSuchVersion, find, published_patches
from reports.results.reading import Results
from reports.results.records import TargetRecord
from reports.results.status import Statement

_MOST = 5


@dataclass(frozen=True)
class KnownHere:
    """A known bug that one of the versions has, or both."""

    spark: tuple[str, ...]
    because: str
    bug: KnownBug
    cases: tuple[str, ...]
    """These cases of the suite show it, and the query has all their features."""
    met_by: tuple[str, ...]
    """What of the query meets it: the features of the first of these cases."""

    def lines(self) -> Iterator[str]:
        """Yield the bug on one line and, if it has one, its workaround."""
        what = f"{self.because}{self.bug.ticket}; {self.bug}"
        yield f"{' and '.join(self.spark)}: {what}. Met by: {', '.join(self.met_by)}. See {self.cases[0]}"
        if self.bug.workaround is not None:
            yield f"workaround: {self.bug.workaround}"


@dataclass(frozen=True)
class KnownOfJob:
    before: TargetRecord
    after: TargetRecord
    """Each is the version itself or, if that has no published results, the newest of its line that has."""
    uses: tuple[str, ...]
    """The features of the query; without any, nothing is known of it."""
    planned_by: str
    """The version whose plan shows the features, unless that is the earlier."""
    bugs: tuple[KnownHere, ...]
    changes: tuple[Change, ...]
    """Changes of cases all of whose features the query has, worst first."""
    met_by: Mapping[str, tuple[str, ...]]
    """What of the query meets a change: case → its features."""

    def statements(self) -> Iterator[Statement]:
        """Yield how many bugs and changes the query can meet, with the worst of them; nothing of a query without a plan."""
        if not self.uses:
            return
        between = f"between {self.before.title} and {self.after.title}"
        by = f", by its plan on {self.planned_by}" if self.planned_by else ""
        can_meet = f"that a query with {', '.join(self.uses)} can meet{by}"
        if self.bugs:
            text = f"{counted(len(self.bugs), 'known bug')} {can_meet}"
            yield Statement("bug", "▲", text, tuple(line for bug in self.bugs[:_MOST] for line in bug.lines()))
        if self.changes:
            text = f"{counted(len(self.changes), 'change')} {between} {can_meet}"
            yield Statement("differs", "◆", text, tuple(map(self._line, self.changes[:_MOST])))
        if not self.bugs and not self.changes:
            yield Statement(
                "conforms", "●", f"beside checkpoints, the suite knows no bug or change {between} {can_meet}"
            )

    def reasons(self, change: BehaviourChange) -> tuple[str, ...]:
        """Return what may cause a change: bugs of one version and documented changes whose cases show this effect; of a change of rows,
        then bugs whose cases show another effect on rows."""
        ends = {self.before.spark: self.after.spark, self.after.spark: self.before.spark}
        moved = [known for known in self.changes if known.meaning in MOVES_ROWS]
        same_effect = [known for known in self.changes if known.effect == change.effect] if change.effect else moved

        def bugs(shown: Iterable[Change]) -> Iterator[str]:
            cases = {known.case for known in shown}
            for bug in self.bugs:
                if len(bug.spark) == 1 and cases.intersection(bug.cases):
                    may = f"has a known bug that the query can meet, so {ends[bug.spark[0]]} may be right"
                    yield f"{bug.spark[0]} {may}: {bug.because}{bug.bug.ticket}"

        documented = (self._reason(known) for known in same_effect if known.of_rows or known.reasons)
        others = bugs(moved) if change.meaning in MOVES_ROWS else ()
        return tuple(dict.fromkeys((*bugs(same_effect), *documented, *others)))

    def _reason(self, change: Change) -> str:
        return f"A change that the query can meet: {self._line(change)}"

    def _line(self, change: Change) -> str:
        """Return ``3 rows later: the delay counts once (SPARK-49829). Met by: inner join, append mode. See join-delays/…``"""
        why = "; ".join(f"{reason.text}{reason.ticket}" for reason in change.reasons)
        met_by = ", ".join(self.met_by[change.case])
        return f"{change.what}{f': {why}' if why else ''}. Met by: {met_by}. See {change.case}"

    def record(self) -> dict[str, Json]:
        return {
            "known_bugs": [
                {
                    "spark": list(bug.spark),
                    "because": bug.because,
                    "link": bug.bug.link,
                    "workaround": str(bug.bug.workaround) if bug.bug.workaround else None,
                    "cases": list(bug.cases),
                    "met_by": list(bug.met_by),
                }
                for bug in self.bugs
            ],
            "known_changes": [
                {
                    "case": change.case,
                    "what": change.what,
                    "links": [reason.link for reason in change.reasons if reason.link],
                    "met_by": list(self.met_by[change.case]),
                }
                for change in self.changes
            ],
        }


@dataclass(frozen=True)
class QueryNeeds:
    """What a query must have to meet what a case shows."""

    features: tuple[str, ...]
    conf: Mapping[str, str]
    """The settings of the case."""
    marks_window: bool = False
    """Whether a watermark is on a column ``window``."""
    one_sided: bool = False
    """Whether an input of its joins has no watermark."""
    peculiar: tuple[tuple[str, ...], ...] = ()
    """What is peculiar of each join condition; see `_peculiar`."""
    hides_time: bool = False
    """Whether the bug needs a deduplication that does not see the event time."""

    def met_by(self, uses: frozenset[str], conf: Mapping[str, str], job: QueryReading) -> bool:
        """Tell whether a job has the features, and what these do not say: settings, kind of watermark, join condition, deduplication."""
        return (
            relevance(set(self.features).difference(UNSEEN), uses) == "all"
            and all(_has(key, value, conf) for key, value in self.conf.items())
            and (not self.marks_window or "window" in {mark.column for mark in job.watermarks})
            and not (self.one_sided and all(join.watermarked for join in job.joins))
            and all(set().union(*(_peculiar(other.on) for other in job.joins)).issuperset(on) for on in self.peculiar)
            and not (self.hides_time and all(other.sees_time for other in job.deduplications))
        )


def query_needs(cases: Iterable[Case]) -> dict[str, QueryNeeds]:
    """Map each case that the query of a job can meet to what it needs for that."""
    possible = {
        case.id: case
        for case in cases
        # No other version changes the query, its settings or its checkpoint.
        if Condition.of(case).kind != "edits"
        and not any(isinstance(step.action, Restart) and step.action.change.conf for step in case.steps)
    }
    readings = {id: [read_query(one, case.streams) for one in case.pipelines()] for id, case in possible.items()}
    return {
        id: QueryNeeds(
            features,
            possible[id].conf,
            any(mark.column == "window" for query in readings[id] for mark in query.watermarks),
            any(query.joins and len(query.watermarks) < len(query.sources) for query in readings[id]),
            tuple(tuple(sorted(_peculiar(join.on))) for query in readings[id] for join in query.joins),
            "dedup-projection-bug" in possible[id].behaviour,
        )
        for id, features in needs(possible.values()).items()
        if not any(_is_nested(mark.column, possible[id]) for query in readings[id] for mark in query.watermarks)
    }


def _is_nested(column: str, case: Case) -> bool:
    """Every version refuses a watermark on a nested field."""
    fields = {field.name for schema in case.streams.values() for field in schema.fields}
    return "." in column and column.partition(".")[0] in fields


class BugCell(NamedTuple):
    """A known bug that a case shows on a version."""

    case: str
    target: str
    because: str
    bug: KnownBug
    identity: BugIdentity


def bug_cells(matrix: Matrix, targets: Iterable[TargetRecord]) -> Iterator[BugCell]:
    """Yield the known bugs that cases of the matrix show on these versions, in the order of cases, then of versions."""
    for case, target in product(sorted(matrix.bugs), targets):
        cell = matrix.cell(case, target)
        bug = matrix.known_bug(case, target)
        if cell is not None and cell.differs is not None and bug is not None:
            yield BugCell(case, target.name, cell.differs.because or "", bug, identity(cell.differs))


@dataclass(frozen=True)
class NeedsAndBugs:
    """What the newest release of each line shows, whichever two of them are compared."""

    needs: Mapping[str, QueryNeeds]
    bugs: tuple[BugCell, ...]
    """In the order of cases, then of versions, the earliest first."""


QUERY_NEEDS = BASELINES / "query-needs.xz"
"""`NeedsAndBugs` as JSON, from ``python -m tools.publish_pairs``."""


@dataclass(frozen=True)
class Published:
    """What is published about two versions: known bugs, changes, and what a query needs to meet them."""

    before: TargetRecord
    after: TargetRecord
    """Each is the version itself or, if that has no published results, the newest of its line that has."""
    changes: tuple[Change, ...]
    bugs: tuple[BugCell, ...]
    needs: Mapping[str, QueryNeeds]

    @classmethod
    def of_pair(cls, before: SparkVersion, after: SparkVersion) -> Self | None:
        """Read it from what is derived when results are published; None unless both are the newest of their lines."""
        pair = published_pair(str(before), str(after)) if {before, after}.isdisjoint(published_patches()) else None
        if pair is None or not QUERY_NEEDS.exists():
            return None
        known = TypeAdapter(NeedsAndBugs).validate_json(lzma.decompress(QUERY_NEEDS.read_bytes()))
        ends = pair.compared.before, pair.compared.after
        bugs = (bug for bug in known.bugs if bug.target in (ends[0].name, ends[1].name))
        return cls(*ends, pair.compared.changes, tuple(bugs), known.needs)

    @classmethod
    def about(cls, results: Results, before: SparkVersion, after: SparkVersion) -> Self | None:
        """Derive it from results and the cases that they name, which takes seconds; None if a line has no published results."""
        a, b = _published(results, before), _published(results, after)
        if a is None or b is None:
            return None
        matrix = Matrix.of(results)
        bugs, changed = tuple(bug_cells(matrix, (a, b))), changes(matrix, a, b).changes
        named = {bug.case for bug in bugs} | {change.case for change in changed}
        return cls(a, b, changed, bugs, query_needs(discovery.some(named)))

    def known(
        self, uses: tuple[str, ...], conf: Mapping[str, str] | None = None, plan: str = "", planned_by: str = ""
    ) -> KnownOfJob:
        """Find the known bugs and changes that a query with these features, settings and plan can meet, by the cases of the suite."""
        met_by = concerned(self.needs, frozenset(uses), conf or {}, read_plan(plan))
        met = tuple(change for change in self.changes if change.case in met_by and change.met_by_running_queries)
        return KnownOfJob(self.before, self.after, uses, planned_by, tuple(self._met(met_by)), met, met_by)

    def _met(self, met_by: Mapping[str, tuple[str, ...]]) -> Iterator[KnownHere]:
        """Yield the known bugs that these cases show, each as the last of its cells documents it."""
        spark = {target.name: target.spark for target in (self.before, self.after)}
        by_bug: dict[BugIdentity, list[BugCell]] = {}
        for cell in self.bugs:
            if cell.case in met_by:
                by_bug.setdefault(cell.identity, []).append(cell)
        for cells in by_bug.values():
            versions = tuple(dict.fromkeys(spark[cell.target] for cell in cells))
            shown_by = tuple(dict.fromkeys(cell.case for cell in cells))
            yield KnownHere(versions, cells[-1].because, cells[-1].bug, shown_by, met_by[shown_by[0]])


def _published(results: Results, version: SparkVersion) -> TargetRecord | None:
    for asked in (str(version), version.line):
        with suppress(NoSuchVersion):
            return find(results, asked)
    return None


def concerned(
    needs: Mapping[str, QueryNeeds], uses: frozenset[str], conf: Mapping[str, str], job: QueryReading
) -> dict[str, tuple[str, ...]]:
    """Return the cases that the query of a job can meet, each with what of its features every query has not.

    Of a query without a plan nothing is known.
    """
    return {
        case: tuple(feature for feature in needed.features if feature not in (*ALWAYS, *UNSEEN))
        for case, needed in needs.items()
        if uses and needed.met_by(uses, conf, job)
    }


def _peculiar(condition: str) -> set[str]:
    """Return what of a join condition changes how long Spark keeps rows: a cast, and equal terms in a comparison."""
    numbers = (re.findall(r"\d+", part) for part in re.split(r"\bAND\b", condition, flags=re.IGNORECASE))
    equal = any(len(set(terms)) < len(terms) for terms in numbers)
    cast = re.search(r"\bcast\(", condition, re.IGNORECASE) is not None
    return {name for name, has in (("equal terms", equal), ("cast", cast)) if has}


def _has(key: str, value: str, conf: Mapping[str, str]) -> bool:
    """Tell whether a query with these settings runs with the setting of a case."""
    return key in WITHOUT_EFFECT or conf.get(key, DEFAULTS.get(key)) == value or "RocksDB" in value
