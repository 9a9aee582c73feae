"""The verdict on a job: whether both versions give the same rows, whether the checkpoint of one resumes on the other, and why.

What it says is a list of statements: for a terminal, for a page, and as one record for programs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, TypeAlias

from conformance.checkpoints.awaiting import AwaitingChange, reasons
from conformance.checkpoints.awaiting import changes as awaiting_changes
from conformance.checkpoints.state_difference import right_rows_prove, state_differences
from conformance.core.case import Action, Alter, Case, Restart
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.judging.checkpoint_verdict import CheckpointVerdict, resumed_at
from conformance.judging.verdict import Outcome as CheckpointOutcome
from conformance.judging.verdict import Verdict, why_incoherent
from conformance.own_job.coverage import never_shown
from conformance.own_job.job_run import JobRun, Outcome, emits, with_expectations
from conformance.query.reading import QueryReading, read_calls, read_plan, read_query
from conformance.runner.cases import JudgeCases, cell_record
from conformance.suite import discovery
from harness.runtimes.tables import how_to_load
from reports.analysis.change import MEANINGS, Change, change, changes
from reports.analysis.equivalence import has_behaviour, same_behaviour
from reports.analysis.features import ALWAYS, UNSEEN, features_of_job, needs, relevance
from reports.analysis.gate import NoSuchVersion, find
from reports.analysis.matrix import Matrix
from reports.results.checkpoint_status import combined, exit_code, phrase, severity, statement
from reports.results.known_bug import KnownBug
from reports.results.reading import Results
from reports.results.records import Cell, Header, Target
from reports.results.status import Statement
from reports.results.writing import ResultsWriter

Answer: TypeAlias = Literal["same", "differs", "fails", "unknown"]
"""In turn: both versions do the same; not the same; the job itself fails; no answer."""
_EXIT_CODES: Mapping[Answer, int] = {"same": 0, "differs": 1, "fails": 2, "unknown": 3}


@dataclass(frozen=True)
class TriedWorkaround:
    """A setting with which refused checkpoints were handed over again."""

    setting: str
    """``spark.sql.ansi.enabled=false``"""
    verdicts: tuple[CheckpointVerdict, ...]
    """The verdicts on handoffs after which rows came, each compared with what the version that wrote it does."""
    reads_other_bytes: bool = False
    """Whether Spark then reads the bytes of one type as another, so that right rows prove nothing."""

    @property
    def proven(self) -> bool:
        """Whether every later micro-batch emitted the rows that it emits without the change of version."""
        return not self.reads_other_bytes and all(verdict.outcome == "resumed" for verdict in self.verdicts)

    def __str__(self) -> str:
        outcomes = Counter(verdict.outcome for verdict in self.verdicts)
        of = counted(len(self.verdicts), "handoff")
        if self.proven:
            return f"workaround: {self.setting}; tried: same rows in {outcomes['resumed']} of {of}"
        seen = ", ".join(f"{_TRIED[outcome]} in {count}" for outcome, count in outcomes.most_common())
        why = ": Spark reads the bytes of one type as another" if self.reads_other_bytes else ""
        return f"{self.setting} is no workaround, do not use it{why}; tried in {of}: {seen}"


_TRIED: Mapping[CheckpointOutcome, str] = {
    "resumed": "same rows",
    "other rows": "wrong rows",
    "refused": "refused again",
    "fails later": "an error later",
    "unclear": "an error that does not say what is wrong",
    "no answer": "no answer",
}


@dataclass(frozen=True)
class Handoffs:
    """Checkpoints of a job with the same verdict, handed over before these steps."""

    steps: tuple[int, ...]
    verdict: CheckpointVerdict
    """The verdict on the first of them, compared with what the version that wrote it does, without a restart or after one."""
    tried: tuple[TriedWorkaround, ...] = ()

    @property
    def workaround(self) -> TriedWorkaround | None:
        """A setting with which each of them resumed with the same rows."""
        return next((tried for tried in self.tried if tried.proven), None)


@dataclass(frozen=True)
class JobVerdict:
    case: Case
    """It expects what the earlier version did, if that got to the end."""
    header: Header
    before: Target
    after: Target
    cells: tuple[Cell, Cell]
    """The cells of the earlier and of the later version."""
    handoffs: tuple[Handoffs, ...]
    """The checkpoints, those that do not resume as after a restart first."""
    answer: Answer
    change: Change | None
    failures: tuple[tuple[Target, str], ...]
    """The versions on which the job fails, or that gave no answer, and why."""
    features: tuple[str, ...]
    """What the query uses, by its plan and the settings it ran with; empty if no plan was seen."""
    plan: str = ""
    """The extended plan of a micro-batch; empty if none was seen."""
    planned_by: Target | None = None
    """The version whose plan it is: the earlier, unless only the later one tells its plan; None if none was seen."""
    columns: tuple[str, ...] = ()
    """Columns that the two versions emit with other names or types: ``column 2: sum double on 3.5.9, sum bigint on 4.3.0``."""
    not_shown: tuple[str, ...] = ()
    """What no micro-batch of the earlier version showed."""
    not_fixed: tuple[str, ...] = ()
    """What does not depend on the rows of the sample alone, by the plan: ``rand(…) in the projection of r``."""
    without_handoff: tuple[int, ...] = ()
    """The steps before which the checkpoint was not handed over."""
    digests: bool = False
    """Whether only the number of rows of each micro-batch and their digest were compared."""

    @property
    def to(self) -> SparkVersion:
        return SparkVersion.parse(self.after.spark)

    @property
    def exit_code(self) -> int:
        """0 if nothing changes, 1 if rows or columns differ or a checkpoint does not resume, 2 if the job fails, 3 without an answer."""
        handoffs = (exit_code(group.verdict) for group in self.handoffs)
        return combined([_EXIT_CODES[self.answer], *([1] if self.columns else []), *handoffs])

    def write(self, path: Path) -> None:
        """Write a results file, for ``conformance report``, ``export`` and ``diff``; see `conformance.core.output_file` for errors."""
        with ResultsWriter(path, self.header) as writer:
            for cell in self.cells:
                writer.write(cell)


def judge_job(run: JobRun, folder: Path, command: str) -> JobVerdict:
    """Judge a job: what the earlier version did is what is expected of the later one, and of every checkpoint what it did itself,
    without a restart or after one.

    Args:
        folder: where the case of the job is; its file gets these expectations.
    """
    before, after = run.on(run.before), run.on(run.after)
    seen = before.observation
    complete = seen is not None and bool(seen.steps) and seen.error is None
    told = seen is not None and complete and not run.files
    case = with_expectations(run.case, folder, seen) if seen is not None and told else run.case
    cells = _cell(before, case), _cell(after, case)
    targets = {target.name: target for target in run.engines}
    a, b = targets[run.before.name], targets[run.after.name]
    plans = {target: text for target, of in ((a, seen), (b, after.observation)) if (text := _plan(of))}
    planned_by, plan = next(iter(plans.items()), (None, ""))
    not_fixed = tuple(dict.fromkeys(_not_fixed(*plans.values())))
    both = ((a, cells[0]), (b, cells[1]))
    failures = tuple(
        (target, why)
        for target, cell in both
        if (why := _failure(cell, case, SparkVersion.parse(target.spark), not_fixed))
    )
    if not failures and not any(_emitted(cell.observation) for cell in cells):
        failures = tuple((target, NO_ROWS) for target in (a, b))
    flaky = any(cell.status == "flaky" for cell in cells)
    different = all(has_behaviour(cell) for cell in cells) and not same_behaviour(*cells)
    handoffs = _handoffs(run, case) if seen is not None and seen.own_code_error is None and not flaky else ()
    return JobVerdict(
        case=case,
        header=Header(suite=case.digest, cases=(case.id,), targets=run.engines, started=run.started, command=command),
        before=a,
        after=b,
        cells=cells,
        # That a query which fails on the way fails from each checkpoint, too, says nothing of the checkpoint.
        handoffs=tuple(group for group in handoffs if complete or not group.verdict.fails_anyway),
        without_handoff=run.without_handoff if handoffs else (),
        digests=bool(run.files),
        answer=_answer(cells, complete=complete, different=different),
        change=_change_of_rows(cells, a, b, digests=bool(run.files)) if different else None,
        failures=failures,
        features=features_of_job(plan, case, run.conf) if plan else (),
        plan=plan,
        planned_by=planned_by,
        columns=tuple(_other_columns(a, seen, b, after.observation)) if seen is not None and after.observation else (),
        not_shown=tuple(never_shown(seen, plan, digests=bool(run.files))) if seen is not None and complete else (),
        not_fixed=not_fixed,
    )


def _change_of_rows(cells: tuple[Cell, Cell], a: Target, b: Target, *, digests: bool) -> Change:
    """What changes; ``digests``: whether the rows of a micro-batch are only known by their number and digest."""
    found = change(cells[0], a, cells[1], b)
    return replace(found, what="other rows, by their digest") if digests and found.where.what == "rows" else found


_CHANCE = frozenset({"rand", "randn", "randstr", "random", "shuffle", "uniform", "uuid"})
_CLOCK = "current_batch_timestamp"
"""What a plan shows of each function that asks the clock."""


def _plan(seen: Observation | None) -> str:
    return next((step.plan for step in seen.steps if step.plan), "") if seen is not None else ""


def _not_fixed(plan: str = "", other: str = "") -> Iterator[str]:
    """The calls that ask chance or the clock, by the plans that are told; a seed that both versions show is one of the author's."""
    seeded = {call.text for call in read_calls(plan)} & {call.text for call in read_calls(other)}
    unless_seeded = "" if other else ", unless your code gives its seed"
    for call in read_calls(plan):
        if call.function == _CLOCK:
            yield f"the clock in {call.place}"
        elif call.function in _CHANCE and call.text not in seeded:
            yield f"{call.function}(…) in {call.place}{unless_seeded}"


NOT_COMPARABLE = (
    "not comparable: the job ran twice on this version and did not do the same; what depends on the clock, on chance or on an order "
    "that is not fixed cannot be compared"
)
NOT_FIXED = "the sample does not fix this; it did the same in two runs, which proves nothing of others:"
NO_ROWS = (
    "no micro-batch emitted a row, so there is nothing to compare: add rows to the sample that the query lets through"
)


def _other_columns(a: Target, seen: Observation, b: Target, other: Observation) -> Iterator[str]:
    """The columns that differ, of queries that ran on both versions."""
    if seen.columns and other.columns:
        for place, (column, two) in enumerate(zip_longest(seen.columns, other.columns), 1):
            if column != two:
                sides = ((a, column), (b, two))
                shown = (
                    f"{side.name} {side.type} on {on.title}" if side else f"missing on {on.title}" for on, side in sides
                )
                yield f"column {place}: {', '.join(shown)}"


def _handoffs(run: JobRun, case: Case) -> tuple[Handoffs, ...]:
    written = run.on(run.before)
    restarted = run.resumed(run.before)
    whole = run.on(run.after).observation

    def judged(outcome: Outcome) -> tuple[int, CheckpointVerdict]:
        cut = outcome.task.cut
        assert cut is not None
        return cut, _resumed(case, cut, restarted.get(cut, written), outcome, whole)

    tried: dict[tuple[str, str], dict[int, CheckpointVerdict]] = {}
    for outcome in run.tried:
        (setting,) = outcome.task.workaround.items()
        cut, verdict = judged(outcome)
        if verdict.reason != NO_ROWS_AFTER:
            tried.setdefault(setting, {})[cut] = verdict

    def of_group(group: Handoffs) -> Iterator[TriedWorkaround]:
        differences = state_differences(group.verdict.error.message) if group.verdict.error is not None else ()
        for (key, value), by_cut in tried.items():
            if verdicts := tuple(by_cut[cut] for cut in group.steps if cut in by_cut):
                proves = right_rows_prove(key, differences)
                yield TriedWorkaround(f"{key}={value}", verdicts, reads_other_bytes=not proves)

    groups = grouped(map(judged, run.resumed(run.after).values()))
    return tuple(replace(group, tried=tuple(of_group(group))) for group in groups)


def _resumed(case: Case, cut: int, before: Outcome, after: Outcome, whole: Observation | None) -> CheckpointVerdict:
    """The verdict on one checkpoint; without rows after it there is nothing that would tell."""
    for outcome in (before, after):
        seen = outcome.observation
        reason = outcome.lacking if seen is None else why_incoherent(case, seen)
        if reason is not None:
            return resumed_at(cut, None, reason=reason)
    verdict = resumed_at(cut, after.observation, before.observation, whole=whole)
    if verdict.outcome == "resumed" and not _emitted(before.observation, cut):
        return resumed_at(cut, None, reason=NO_ROWS_AFTER)
    return verdict


NO_ROWS_AFTER = "no row was emitted after it, so there is nothing to compare"


def _emitted(seen: Observation | None, first: int = 1) -> bool:
    """Whether a micro-batch emitted a row, from this step on."""
    return seen is not None and emits(seen, first)


def grouped(handoffs: Iterable[tuple[int, CheckpointVerdict]]) -> tuple[Handoffs, ...]:
    """Handoffs with the same outcome, error and reason together, worst first.

    Those without rows after them are left out if others show something: most queries emit nothing in some of the last steps.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[tuple[int, CheckpointVerdict]]] = {}
    for cut, verdict in handoffs:
        differences = () if verdict.error is None else tuple(map(str, state_differences(verdict.error.message)))
        about = (verdict.error.title, *differences) if verdict.error is not None else (verdict.reason,)
        groups.setdefault((phrase(verdict), about), []).append((cut, verdict))
    if len(groups) > 1:
        groups.pop((phrase(CheckpointVerdict("no answer")), (NO_ROWS_AFTER,)), None)
    together = [Handoffs(tuple(cut for cut, _ in same), same[0][1]) for same in groups.values()]
    return tuple(sorted(together, key=lambda group: severity(group.verdict)))


def _answer(cells: tuple[Cell, Cell], *, complete: bool, different: bool) -> Answer:
    if any(cell.observation is not None and cell.observation.own_code_error for cell in cells):
        return "fails"
    if not all(has_behaviour(cell) for cell in cells) or not any(_emitted(cell.observation) for cell in cells):
        return "unknown"
    if different:
        return "differs"
    return "same" if complete else "fails"


def _cell(outcome: Outcome, case: Case) -> Cell:
    task = replace(outcome.task, case=case)
    if outcome.run is None:
        verdict: Verdict | None = JudgeCases().without_run(task, outcome.lacking)
        assert verdict is not None
        return cell_record(task, verdict, None)
    run = replace(outcome.run, task=task)
    return cell_record(task, JudgeCases().verdict(run), run)


def _failure(cell: Cell, case: Case, version: SparkVersion, not_fixed: Iterable[str]) -> str | None:
    """Says why a version has no answer, or with which error the job ends; None if it has one."""
    seen = cell.observation
    if seen is not None and seen.own_code_error is not None:
        missing = how_to_load(seen.own_code_error.raised, version)
        return missing or "\n".join(seen.own_code_error.lines())
    if cell.status == "flaky":
        return "\n".join([NOT_COMPARABLE, *not_fixed])
    if not has_behaviour(cell):
        return "; ".join(cell.notes) or cell.status
    if seen is None or seen.error is None:
        return None
    error = seen.error
    if (missing := how_to_load(error.message, version)) is not None:
        return missing
    line = error.first_line
    step = case.steps[seen.steps[-1].number - 1]
    return f"step {step.number}{f' ({step.name})' if step.name else ''} ends with {error.name or 'an error'} at {error.stage}: {line}"


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


@dataclass(frozen=True)
class Known:
    """What is published about both versions."""

    before: Target
    after: Target
    """Each is the version itself or, if that has no published results, the newest of its line that has."""
    bugs: tuple[KnownHere, ...]
    changes: tuple[Change, ...]
    """Changes of cases all of whose features the query has, worst first."""
    met_by: Mapping[str, tuple[str, ...]]
    """What of the query meets a change: case → its features."""


@dataclass(frozen=True)
class Published:
    """What is published about two versions, and the cases that show a known bug of one of them, or a change between them."""

    before: Target
    after: Target
    """Each is the version itself or, if that has no published results, the newest of its line that has."""
    matrix: Matrix
    cases: tuple[Case, ...]

    @classmethod
    def about(cls, results: Results, before: SparkVersion, after: SparkVersion) -> Published | None:
        """Reads the cases from the suite, and no others, since that takes seconds; None if a line has no published results."""
        a, b = _published(results, before), _published(results, after)
        if a is None or b is None:
            return None
        matrix = Matrix.of(results)
        bugs = {case for cells in matrix.known_bugs((a, b)).values() for case, _ in cells}
        changed = {change.case for change in _changes(matrix, a, b)}
        return cls(a, b, matrix, discovery.some(bugs | changed))

    def known(self, uses: tuple[str, ...], conf: Mapping[str, str] | None = None, plan: str = "") -> Known:
        """The known bugs and changes that a query with these features, settings and plan can meet, by the cases of the suite."""
        met_by = concerned(self.cases, frozenset(uses), conf or {}, read_plan(plan))
        matrix = replace(self.matrix, cases=tuple(sorted(met_by)))
        met = tuple(change for change in _changes(matrix, self.before, self.after) if change.met_by_running_queries)
        bugs = tuple(_bugs(matrix, (self.before, self.after), met_by))
        return Known(self.before, self.after, bugs, met, met_by)


def _changes(matrix: Matrix, before: Target, after: Target) -> tuple[Change, ...]:
    return () if before == after else changes(matrix, before, after).changes


def _published(results: Results, version: SparkVersion) -> Target | None:
    for asked in (str(version), version.line):
        with suppress(NoSuchVersion):
            return find(results, asked)
    return None


def concerned(
    cases: Iterable[Case], uses: frozenset[str], conf: Mapping[str, str], job: QueryReading
) -> dict[str, tuple[str, ...]]:
    """The cases that the query of a job can meet, as it has their features, their settings and what triggers them, with these features;
    of a query without a plan nothing is known.
    """
    possible = (
        case
        for case in cases
        if uses
        and all(_has(key, value, conf) for key, value in case.conf.items())
        and not any(_is_a_change_of_the_job(step.action) for step in case.steps)
        and all(_triggers(read_query(pipeline, case.streams), case, job) for pipeline in case.pipelines())
    )
    return {
        case: tuple(feature for feature in features if feature not in (*ALWAYS, *UNSEEN))
        for case, features in needs(possible).items()
        if relevance(set(features).difference(UNSEEN), uses) == "all"
    }


def _is_a_change_of_the_job(action: Action) -> bool:
    """Whether the query or the checkpoint is no longer the same, which no other version does to them."""
    match action:
        case Alter():
            return True
        case Restart():
            return action != Restart(how=action.how, at=action.at, add=action.add, batch=action.batch)
    return False


def _triggers(query: QueryReading, case: Case, job: QueryReading) -> bool:
    """Whether a job has what the features of a case do not say: its kind of watermark, join condition and deduplication."""
    fields = {field.name for schema in case.streams.values() for field in schema.fields}
    marked = {mark.column for mark in job.watermarks}
    for column in (mark.column for mark in query.watermarks):
        # Every version refuses a watermark on a nested field.
        if (column == "window" and column not in marked) or ("." in column and column.partition(".")[0] in fields):
            return False
    if query.joins and len(query.watermarks) < len(query.sources) and all(join.watermarked for join in job.joins):
        return False
    if any(_peculiar(join.on) - set().union(*(_peculiar(of.on) for of in job.joins)) for join in query.joins):
        return False
    return "dedup-projection-bug" not in case.behaviour or not all(of.sees_time for of in job.deduplications)


def _peculiar(condition: str) -> set[str]:
    """What of a join condition changes how long Spark keeps rows: a cast, and equal terms in a comparison."""
    numbers = (re.findall(r"\d+", part) for part in re.split(r"\bAND\b", condition, flags=re.IGNORECASE))
    equal = any(len(set(each)) < len(each) for each in numbers)
    cast = re.search(r"\bcast\(", condition, re.IGNORECASE) is not None
    return {name for name, has in (("equal terms", equal), ("cast", cast)) if has}


_WITHOUT_EFFECT = frozenset(
    {"spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.sql.legacy.interval.enabled"}
)
"""Settings that cases make for the sake of their rows, and that no behaviour of theirs depends on."""
_DEFAULTS = {
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}
"""Settings that cases write out although every version has this default."""


def _has(key: str, value: str, conf: Mapping[str, str]) -> bool:
    """Whether a query with these settings runs with the setting of a case."""
    return key in _WITHOUT_EFFECT or conf.get(key, _DEFAULTS.get(key)) == value or "RocksDB" in value


def _bugs(matrix: Matrix, targets: tuple[Target, Target], met_by: Mapping[str, tuple[str, ...]]) -> Iterator[KnownHere]:
    """The known bugs that cases of the matrix show on these versions, as every page counts them."""
    by_name = {target.name: target for target in targets}
    for cells in matrix.known_bugs(by_name.values()).values():
        case, shown_on = [*cells][-1]
        bug, differs = matrix.known_bug(case, by_name[shown_on]), cells[case, shown_on].differs
        if bug is not None and differs is not None:
            versions = tuple(dict.fromkeys(by_name[name].spark for _, name in cells))
            shown_by = tuple(dict.fromkeys(case for case, _ in cells))
            yield KnownHere(versions, differs.because or "", bug, shown_by, met_by[shown_by[0]])


_MOST = 5
"""At most this many known bugs and changes are listed."""


def summary(verdict: JobVerdict) -> str:
    """One line: ``3.5.9 → 4.1.4: same rows; the checkpoint is refused``."""
    rows = {
        "same": "same digests of rows" if verdict.digests else "same rows",
        "differs": verdict.change.what if verdict.change is not None else "",
        "fails": "the job fails",
        "unknown": "no answer",
    }
    columns = ["other columns"] if verdict.columns else []
    worst = [phrase(group.verdict) for group in verdict.handoffs[:1]]
    return f"{verdict.before.title} → {verdict.after.title}: {'; '.join([rows[verdict.answer], *columns, *worst])}"


@dataclass(frozen=True)
class Stress:
    """What the job does under a condition that the sample as it is does not have."""

    name: str
    """``repeated_rows``: as in the record."""
    condition: str
    """``with repeated rows``"""
    verdict: JobVerdict

    @property
    def fails_before(self) -> bool:
        """Whether the earlier version does not survive it, so that the upgrade changes nothing."""
        seen = self.verdict.cells[0].observation
        return seen is not None and seen.error is not None

    def statement(self, sample: JobVerdict) -> Statement:
        """What it shows beside the answer for the sample as it is."""
        verdict = self.verdict
        text = f"{self.condition}: {summary(verdict).partition(': ')[2]}"
        if verdict.exit_code == 0:
            return Statement("conforms", "●", f"also {text}")
        if _found(verdict) <= _found(sample):
            return Statement("conforms", "●", f"{self.condition}: no other change")
        said = set(_details(sample))
        lines = tuple(line for line in _details(verdict) if line not in said)
        if self.fails_before:
            note = f"{verdict.before.title} itself fails there, so this is no change of the upgrade"
            return Statement("bug", "▲", text, (note, *lines))
        return Statement("violates", "✗", text, lines)


def _found(verdict: JobVerdict) -> set[tuple[str, str]]:
    """What changes, however often: the rows, the columns, and what became of checkpoints."""
    rows = {
        (verdict.answer, verdict.change.what if verdict.change is not None else ""),
        *(("columns", each) for each in verdict.columns),
    }
    rows.discard(("same", ""))
    errors = ((group.verdict, group.verdict.error) for group in verdict.handoffs if group.verdict.outcome != "resumed")
    return rows | {(phrase(of), error.title if error is not None else of.reason) for of, error in errors}


def _details(verdict: JobVerdict) -> Iterator[str]:
    for each in (*_rows(verdict), *(_handoff(group, verdict) for group in verdict.handoffs)):
        yield f"{each.glyph} {each.text}"
        yield from each.details


def combined_exit_code(verdict: JobVerdict, stresses: Iterable[Stress] = ()) -> int:
    """The exit code of a job, with that of each stress but those that the earlier version itself does not survive."""
    return combined([verdict.exit_code, *(each.verdict.exit_code for each in stresses if not each.fails_before)])


def statements(verdict: JobVerdict, about: Known | None) -> Iterator[Statement]:
    """What the verdict says, the answer to the question first; ``about``: what is published about both versions, None if nothing is."""
    for target, why in verdict.failures:
        first, *more = why.splitlines()
        yield Statement("broken", "!", f"on {target.title}: {first}", tuple(more))
    yield from _rows(verdict)
    if verdict.columns:
        yield Statement("violates", "✗", "the query emits other columns", verdict.columns)
    yield from (_handoff(group, verdict) for group in verdict.handoffs)
    if verdict.without_handoff:
        why = "the sample has so many rows" if verdict.digests else "the other checkpoints did alike"
        text = f"not handed over before {_steps(verdict.without_handoff)}, since {why}"
        yield Statement("unsupported", "–", text)
    if verdict.not_fixed and verdict.answer in ("same", "differs"):
        yield Statement("unsupported", "–", NOT_FIXED, verdict.not_fixed)
    if verdict.not_shown:
        yield Statement("unsupported", "–", "not covered, because this sample never showed it:", verdict.not_shown)
    if about is not None and verdict.features:
        yield from _known(verdict, about)


def _rows(verdict: JobVerdict) -> Iterator[Statement]:
    if verdict.answer == "same":
        seen = verdict.cells[0].observation
        batches = [batch for step in seen.steps for batch in step.batches] if seen is not None else []
        late = ", late rows" if any(batch.dropped for batch in batches) else ""
        count = "1 micro-batch" if len(batches) == 1 else f"{len(batches)} micro-batches"
        rows = "same number of rows and same digest of them" if verdict.digests else "same rows"
        yield Statement("conforms", "●", f"{rows}, watermarks{late} and state in {count}")
    if verdict.change is not None:
        meaning = MEANINGS[verdict.change.meaning]
        first = f"first difference: {verdict.change.where}"
        yield Statement("violates", meaning.glyph, f"{meaning.title}: {verdict.change.what}", (first,))


def _handoff(group: Handoffs, job: JobVerdict) -> Statement:
    steps, verdict = f", handed over before {_steps(group.steps)}", group.verdict
    details: tuple[str, ...] = ()
    if verdict.outcome == "other rows":
        details = (f"first difference from a restart on {job.before.title}: {verdict.difference}",)
    elif verdict.outcome != "resumed":
        details = (*why(verdict, awaiting_changes(), job.to), *map(str, group.tried))
    return statement(verdict, job.after.title, steps, details)


def _steps(numbers: tuple[int, ...]) -> str:
    """``steps 2, 4–9``; two in a row are named."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = (f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
    return f"{'step' if len(numbers) == 1 else 'steps'} {', '.join(texts)}"


def why(verdict: CheckpointVerdict, among: Iterable[AwaitingChange], to: SparkVersion) -> tuple[str, ...]:
    """Why a checkpoint did not resume on a version: the author's own code, else documented reasons that the error shows, else the error."""
    error = verdict.error
    if error is not None and error.own_code is not None:
        return error.own_code.evidence()
    shown = reasons(error, among, to) if error is not None else ()
    return shown or tuple(verdict.reason.splitlines() or ([verdict.why] if verdict.why else []))


def _known(verdict: JobVerdict, about: Known) -> Iterator[Statement]:
    uses = ", ".join(verdict.features)
    between = f"between {about.before.title} and {about.after.title}"
    by = f", by its plan on {verdict.planned_by.title}" if verdict.planned_by not in (None, verdict.before) else ""
    if about.bugs:
        text = f"{counted(len(about.bugs), 'known bug')} that a query with {uses} can meet{by}"
        yield Statement("bug", "▲", text, tuple(line for bug in about.bugs[:_MOST] for line in _bug(bug)))
    if about.changes:
        text = f"{counted(len(about.changes), 'change')} {between} that a query with {uses} can meet{by}"
        yield Statement("differs", "◆", text, tuple(_change(change, about) for change in about.changes[:_MOST]))
    if not about.bugs and not about.changes:
        yield Statement(
            "conforms", "●", f"the suite knows no bug or change {between} that a query with {uses} can meet{by}"
        )


def _change(change: Change, about: Known) -> str:
    """``3 rows later: the delay counts once (SPARK-49829). Met by: inner join, append mode. See join-delays/…``"""
    why = "; ".join(f"{reason.text}{reason.ticket}" for reason in change.reasons)
    return (
        f"{change.what}{f': {why}' if why else ''}. Met by: {', '.join(about.met_by[change.case])}. See {change.case}"
    )


def _bug(known: KnownHere) -> Iterator[str]:
    what = f"{known.because}{known.bug.ticket}; {known.bug}"
    yield f"{' and '.join(known.spark)}: {what}. Met by: {', '.join(known.met_by)}. See {known.cases[0]}"
    if known.bug.workaround is not None:
        yield f"workaround: {known.bug.workaround}"


def record(verdict: JobVerdict, about: Known | None) -> dict[str, Any]:
    """The verdict as JSON."""
    change = verdict.change
    return {
        "from": verdict.before.spark,
        "to": verdict.after.spark,
        "summary": summary(verdict),
        "rows": verdict.answer,
        "change": None
        if change is None
        else {"meaning": change.meaning, "what": change.what, "first_difference": str(change.where)},
        "columns": list(verdict.columns),
        "not_covered": list(verdict.not_shown),
        "not_fixed": list(verdict.not_fixed),
        "failures": [{"spark": target.spark, "why": why} for target, why in verdict.failures],
        "checkpoints": [_checkpoint(group, verdict.to) for group in verdict.handoffs],
        "without_handoff": list(verdict.without_handoff),
        "digests": verdict.digests,
        "features": list(verdict.features),
        "planned_by": verdict.planned_by.spark if verdict.planned_by is not None else None,
        "known_bugs": [
            {
                "spark": list(bug.spark),
                "because": bug.because,
                "link": bug.bug.link,
                "workaround": str(bug.bug.workaround) if bug.bug.workaround else None,
                "cases": list(bug.cases),
                "met_by": list(bug.met_by),
            }
            for bug in (about.bugs if about is not None else ())
        ],
        "known_changes": [
            {
                "case": change.case,
                "what": change.what,
                "links": [reason.link for reason in change.reasons if reason.link],
                "met_by": list(about.met_by[change.case]) if about is not None else [],
            }
            for change in (about.changes if about is not None else ())
        ],
        "case": str(verdict.case.path),
    }


def _checkpoint(group: Handoffs, to: SparkVersion) -> dict[str, Any]:
    verdict = group.verdict
    return {
        "outcome": verdict.outcome,
        "fails_anyway": verdict.fails_anyway,
        "before_steps": list(group.steps),
        "error": verdict.error.name if verdict.error is not None else None,
        "because": list(reasons(verdict.error, awaiting_changes(), to)) if verdict.error is not None else [],
        "workaround": group.workaround.setting if group.workaround is not None else None,
        "tried": [
            {
                "setting": tried.setting,
                "outcomes": [each.outcome for each in tried.verdicts],
                "proven": tried.proven,
            }
            for tried in group.tried
        ],
        "first_difference": verdict.difference or None,
        "lacking": verdict.reason or None,
    }
