"""What is published about two versions that the query of a job can meet: known bugs and changes, for its verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from conformance.core.case import Case, Restart
from conformance.core.data import Json
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.query import read_query
from conformance.query.reading import QueryReading, read_plan
from conformance.suite import discovery
from conformance.suite.conditions import DEFAULTS, WITHOUT_EFFECT, Condition
from conformance.suite.features import ALWAYS, UNSEEN, needs, relevance
from reports.analysis.change import Change, changes
from reports.analysis.matrix import Matrix
from reports.results.known_bug import KnownBug
from reports.results.lookup import NoSuchVersion, find
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

    def reasons(self, what: str) -> tuple[str, ...]:
        """Return why the two versions may differ: documented changes to the state or the watermark alone that are ``what`` differs, bugs
        that one of them has, then documented changes of rows."""
        ends = {self.before.spark: self.after.spark, self.after.spark: self.before.spark}
        bugs = (
            f"{bug.spark[0]} has a known bug that the query can meet, so {ends[bug.spark[0]]} may be right: {bug.because}{bug.bug.ticket}"
            for bug in self.bugs
            if len(bug.spark) == 1
        )
        of_metrics = (change for change in self.changes if change.what == what and change.reasons)
        of_rows = (change for change in self.changes if change.of_rows)
        return (*map(self._reason, of_metrics), *bugs, *map(self._reason, of_rows))

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
class Published:
    """What is published about two versions, and the cases that show a known bug of one of them, or a change between them."""

    before: TargetRecord
    after: TargetRecord
    """Each is the version itself or, if that has no published results, the newest of its line that has."""
    matrix: Matrix
    cases: tuple[Case, ...]

    @classmethod
    def about(cls, results: Results, before: SparkVersion, after: SparkVersion) -> Published | None:
        """Read the cases from the suite, and no others, since that takes seconds; None if a line has no published results."""
        a, b = _published(results, before), _published(results, after)
        if a is None or b is None:
            return None
        matrix = Matrix.of(results)
        bugs = {case for cells in matrix.known_bugs((a, b)).values() for case, _ in cells}
        changed = {change.case for change in changes(matrix, a, b).changes}
        return cls(a, b, matrix, discovery.some(bugs | changed))

    def known(
        self, uses: tuple[str, ...], conf: Mapping[str, str] | None = None, plan: str = "", planned_by: str = ""
    ) -> KnownOfJob:
        """Find the known bugs and changes that a query with these features, settings and plan can meet, by the cases of the suite."""
        met_by = concerned(self.cases, frozenset(uses), conf or {}, read_plan(plan))
        matrix = replace(self.matrix, cases=tuple(sorted(met_by)))
        changed = changes(matrix, self.before, self.after).changes
        met = tuple(change for change in changed if change.met_by_running_queries)
        bugs = tuple(_bugs(matrix, (self.before, self.after), met_by))
        return KnownOfJob(self.before, self.after, uses, planned_by, bugs, met, met_by)


def _published(results: Results, version: SparkVersion) -> TargetRecord | None:
    for asked in (str(version), version.line):
        with suppress(NoSuchVersion):
            return find(results, asked)
    return None


def concerned(
    cases: Iterable[Case], uses: frozenset[str], conf: Mapping[str, str], job: QueryReading
) -> dict[str, tuple[str, ...]]:
    """Return the cases that the query of a job can meet, as it has their features, settings and triggers, each with these features.

    Of a query without a plan nothing is known.
    """
    possible = (
        case
        for case in cases
        if uses
        and all(_has(key, value, conf) for key, value in case.conf.items())
        # No other version changes the query, its settings or its checkpoint.
        and Condition.of(case).kind != "edits"
        and not any(isinstance(step.action, Restart) and step.action.change.conf for step in case.steps)
        and all(_triggers(read_query(pipeline, case.streams), case, job) for pipeline in case.pipelines())
    )
    return {
        case: tuple(feature for feature in features if feature not in (*ALWAYS, *UNSEEN))
        for case, features in needs(possible).items()
        if relevance(set(features).difference(UNSEEN), uses) == "all"
    }


def _triggers(query: QueryReading, case: Case, job: QueryReading) -> bool:
    """Tell whether a job has what the features of a case do not say: its kind of watermark, join condition and deduplication."""
    fields = {field.name for schema in case.streams.values() for field in schema.fields}
    marked = {mark.column for mark in job.watermarks}
    for column in (mark.column for mark in query.watermarks):
        # Every version refuses a watermark on a nested field.
        if (column == "window" and column not in marked) or ("." in column and column.partition(".")[0] in fields):
            return False
    if query.joins and len(query.watermarks) < len(query.sources) and all(join.watermarked for join in job.joins):
        return False
    if any(_peculiar(join.on) - set().union(*(_peculiar(other.on) for other in job.joins)) for join in query.joins):
        return False
    return "dedup-projection-bug" not in case.behaviour or not all(other.sees_time for other in job.deduplications)


def _peculiar(condition: str) -> set[str]:
    """Return what of a join condition changes how long Spark keeps rows: a cast, and equal terms in a comparison."""
    numbers = (re.findall(r"\d+", part) for part in re.split(r"\bAND\b", condition, flags=re.IGNORECASE))
    equal = any(len(set(terms)) < len(terms) for terms in numbers)
    cast = re.search(r"\bcast\(", condition, re.IGNORECASE) is not None
    return {name for name, has in (("equal terms", equal), ("cast", cast)) if has}


def _has(key: str, value: str, conf: Mapping[str, str]) -> bool:
    """Tell whether a query with these settings runs with the setting of a case."""
    return key in WITHOUT_EFFECT or conf.get(key, DEFAULTS.get(key)) == value or "RocksDB" in value


def _bugs(
    matrix: Matrix, targets: tuple[TargetRecord, TargetRecord], met_by: Mapping[str, tuple[str, ...]]
) -> Iterator[KnownHere]:
    """Yield the known bugs that cases of the matrix show on these versions, as every page counts them."""
    by_name = {target.name: target for target in targets}
    for cells in matrix.known_bugs(by_name.values()).values():
        case, shown_on = [*cells][-1]
        bug, differs = matrix.known_bug(case, by_name[shown_on]), cells[case, shown_on].differs
        if bug is not None and differs is not None:
            versions = tuple(dict.fromkeys(by_name[name].spark for _, name in cells))
            shown_by = tuple(dict.fromkeys(case for case, _ in cells))
            yield KnownHere(versions, differs.because or "", bug, shown_by, met_by[shown_by[0]])
