"""The verdict on a job: whether both versions give the same rows, and whether the checkpoint of one resumes on the other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import zip_longest
from typing import Literal, TypeAlias

from conformance.checkpoints.state import right_rows_prove
from conformance.core.case import Case, Differs
from conformance.core.observation import ErrorSeen, Observation
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.judging.checkpoint_verdict import CheckpointVerdict, with_same_reason
from conformance.judging.comparison import (
    BehaviourChange,
    behaviour_change,
    difference,
    divergences,
    has_behaviour,
    only_keeps_less_state,
)
from conformance.judging.verdict import Outcome as CheckpointOutcome
from conformance.judging.verdict import Status, Verdict
from conformance.own_job.analyzed_plan import CLOCK, not_fixed
from conformance.own_job.changed_default import ANSI
from conformance.own_job.coverage import never_shown
from conformance.own_job.job_run import AS_FROM_THE_START, NO_ROWS_AFTER, CellAnswer, JobRun
from conformance.query.reading import read_calls
from conformance.runner.cases import JudgeCases
from conformance.suite.features import features_of_job
from harness.runtimes.missing import how_to_mend, not_given, what_ended
from harness.scheduling.cell_run import CellRun, CellTask
from reports.results.checkpoint_status import combined, exit_code, severity
from reports.results.records import TargetRecord

JobAnswer: TypeAlias = Literal["same", "differs", "fails", "unknown"]
"""In turn: both versions do the same, or the later one only keeps less state; not the same; the job itself fails; no answer."""
_EXIT_CODES: Mapping[JobAnswer, int] = {"same": 0, "differs": 1, "fails": 2, "unknown": 3}


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
        """Whether every later micro-batch emitted the rows of the earlier version, or those of the later one from the start."""
        return not self.reads_other_bytes and all(verdict.outcome == "resumed" for verdict in self.verdicts)

    def __str__(self) -> str:
        outcomes = Counter(map(_came_out, self.verdicts))
        handoffs = counted(len(self.verdicts), "handoff")
        if self.proven:
            anew = sum(verdict.reason == AS_FROM_THE_START for verdict in self.verdicts)
            note = f", {anew} of them {AS_FROM_THE_START}" if anew else ""
            return f"workaround: {self.setting}; tried: same rows in {len(self.verdicts)} of {handoffs}{note}"
        tried = ", ".join(f"{what} in {count}" for what, count in outcomes.most_common())
        if not self.reads_other_bytes and all(what.startswith(_TRIED["resumed"]) for what in outcomes):
            return f"{self.setting} changes only when rows come; tried in {handoffs}: {tried}"
        why = ": Spark reads the bytes of one type as another" if self.reads_other_bytes else ""
        return f"{self.setting} does not help, do not use it{why}; tried in {handoffs}: {tried}"


def _came_out(verdict: CheckpointVerdict) -> str:
    return f"{_TRIED['resumed']}, {verdict.moved}" if verdict.moved else _TRIED[verdict.outcome]


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
class WholeRun:
    """What one version did with the whole case, and the verdict on it."""

    task: CellTask
    run: CellRun | None
    verdict: Verdict

    @property
    def status(self) -> Status:
        return self.verdict.status

    @property
    def behaviour(self) -> str | None:
        return self.verdict.behaviour

    @property
    def observation(self) -> Observation | None:
        """What its first run showed."""
        return next(iter(self.run.observations), None) if self.run is not None else None

    @property
    def differs(self) -> Differs | None:
        entry = self.verdict.differs
        return entry if isinstance(entry, Differs) else None


@dataclass(frozen=True)
class JobVerdict:
    case: Case
    """It expects what the earlier version did, if that got to the end."""
    started: datetime
    before: TargetRecord
    after: TargetRecord
    conf: Mapping[str, str]
    wholes: tuple[WholeRun, WholeRun]
    """The whole case on the earlier and on the later version."""
    handoffs: tuple[Handoffs, ...]
    """The checkpoints, those that do not resume as after a restart first."""
    answer: JobAnswer
    change: BehaviourChange | None
    failures: tuple[tuple[TargetRecord, str], ...]
    """The versions on which the job fails, or that gave no answer, and why."""
    plan: str = ""
    """The extended plan of a micro-batch; empty if none was seen."""
    planned_by: TargetRecord | None = None
    """The version whose plan it is: the earlier, unless only the later one tells its plan; None if none was seen."""
    columns: tuple[str, ...] = ()
    """Columns that the two versions emit with other names or types: ``column 2: sum double on 3.5.9, sum bigint on 4.3.0``."""
    not_shown: tuple[str, ...] = ()
    """What no micro-batch of the earlier version showed."""
    not_fixed: tuple[str, ...] = ()
    """What does not depend on the rows of the sample alone, by the plan: ``rand(…) in the projection of r``."""
    left_out: tuple[str, ...] = ()
    """The columns of which `not_fixed` is true, which are not compared."""
    reordered: tuple[str, ...] = ()
    """Columns with arrays in an order that Spark does not promise, which the two versions do not have in the same order."""
    by_order: tuple[str, ...] = ()
    """If anything changes, the calls whose result depends on an order that Spark does not promise: ``first(…) in the aggregation of f``."""
    without_handoff: tuple[int, ...] = ()
    """The steps before which the checkpoint was not handed over."""
    digests: bool = False
    """Whether only the number of rows of each micro-batch and their digest were compared."""
    other_default: str = ""
    """The setting whose other default alone causes the change: ``spark.sql.ansi.enabled=false``; empty if none is known."""
    caused_by: str = ""
    """What such a setting has to do with the change, and what to write instead."""
    asked_otherwise: tuple[str, ...] = ()
    """What the program asks for on one version and not on the other: ``output mode: append on 3.5.9, update on 4.3.0``."""

    @property
    def to(self) -> SparkVersion:
        return SparkVersion.parse(self.after.spark)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """What the query uses, by its plan and the settings it ran with; empty if no plan was seen."""
        return features_of_job(self.plan, self.case, self.conf) if self.plan else ()

    @property
    def needs_ansi_off(self) -> bool:
        """Whether nothing changes without ANSI mode, which is on by default on the later version only."""
        return self.other_default.startswith(f"{ANSI}=")

    @property
    def planned_elsewhere(self) -> str:
        """The version whose plan it is, unless that is the earlier; else empty."""
        return self.planned_by.title if self.planned_by not in (None, self.before) else ""

    @property
    def breaks_code(self) -> bool:
        """Whether the author's code runs on the earlier version, and the later one ends it."""
        seen = self.wholes[1].observation
        return self.answer == "differs" and seen is not None and seen.own_code_error is not None

    @property
    def exit_code(self) -> int:
        """0 if nothing changes, 1 if anything differs or a checkpoint does not resume, 2 if the job fails, 3 without an answer."""
        handoffs = (exit_code(group.verdict) for group in self.handoffs)
        return combined([_EXIT_CODES[self.answer], *([1] if self.columns or self.asked_otherwise else []), *handoffs])


def judge_job(run: JobRun) -> JobVerdict:
    """Judge the later version by what the earlier did, and each checkpoint by what its writer does itself, restarted or not."""
    shown, in_no_order, left_out = run, run.in_no_order, run.not_fixed
    run = run.compared
    wholes = _wholes(run)
    before, after = run.sides
    seen, other, digests = before.observation, after.observation, bool(run.files)
    complete = seen is not None and seen.complete
    targets = {target.name: target for target in run.engines}
    a, b = targets[run.before.name], targets[run.after.name]
    plans = {target: text for target, answered in ((a, seen), (b, other)) if (text := _plan(answered))}
    planned_by, plan = next(iter(plans.items()), (None, ""))
    calls = tuple(dict.fromkeys(_not_fixed(*plans.values())))
    emitted = before.emits_rows() or after.emits_rows()
    failures = _failures(((a, wholes[0]), (b, wholes[1])), run.case, calls, emitted=emitted)
    columns = tuple(_other_columns(a, seen, b, other)) if seen is not None and other is not None else ()
    change = _change(*wholes, digests=digests)
    reordered = in_no_order and change != _change(*_wholes(shown.comparable(frozenset())), digests=digests)
    different = change is not None and not only_keeps_less_state(seen, other)
    other_default, caused_by = _cause(run, seen, other) if change is not None else ("", "")
    not_shown = tuple(never_shown(seen, plan, digests=digests)) if seen is not None and complete else ()
    answer = _answer(wholes, emitted=emitted, complete=complete, different=different)
    handoffs: tuple[Handoffs, ...] = ()
    in_code = any(each is not None and each.own_code_error is not None for each in (seen, other))
    if seen is not None and not in_code and all(whole.status != "flaky" for whole in wholes):
        handoffs = _handoffs(run)
    return JobVerdict(
        case=run.case,
        started=run.started,
        before=a,
        after=b,
        conf=run.conf,
        wholes=_as_shown(wholes, _wholes(shown)),
        # That a query which fails on the way fails from each checkpoint, too, says nothing of the checkpoint.
        handoffs=tuple(group for group in handoffs if complete or not group.verdict.fails_anyway),
        without_handoff=run.without_handoff if handoffs else (),
        digests=digests,
        answer=answer,
        change=change,
        failures=failures,
        plan=plan,
        planned_by=planned_by,
        columns=columns,
        not_shown=not_shown,
        not_fixed=calls,
        left_out=tuple(sorted(left_out.intersection(_emitted_columns(seen, other)))),
        reordered=tuple(sorted(in_no_order)) if reordered else (),
        by_order=tuple(dict.fromkeys(_by_order(*plans.values()))) if change is not None else (),
        other_default=other_default,
        caused_by=caused_by,
    )


def _cause(run: JobRun, before: Observation | None, after: Observation | None) -> tuple[str, str]:
    """Return the setting of another default with which the later version does what the earlier one does, and what to say of it."""
    if before is None or after is None:
        return "", ""
    for default, seen in run.with_earlier_defaults:
        if next(divergences(before, seen), None) is None:
            error = f"{after.error.name}: {after.error.message}" if after.error is not None else ""
            return default.setting, default.cause(run.after.version, error)
    return "", ""


def _change(a: WholeRun, b: WholeRun, *, digests: bool) -> BehaviourChange | None:
    """What changes; ``digests``: whether the rows of a micro-batch are only known by their number and digest."""
    comparable = has_behaviour(a) and (has_behaviour(b) or _breaks_code(a, b))
    where = difference(a, b) if comparable else None
    if where is None or where.what == "columns":  # told apart: the rows are the same
        return None
    change = behaviour_change(a, b, where)
    return replace(change, what="other rows, by their digest") if digests and where.what == "rows" else change


def _breaks_code(a: WholeRun, b: WholeRun) -> bool:
    """Whether the author's code runs on the earlier version and fails on the later one, which lacks nothing that an option gives."""
    seen, other = a.observation, b.observation
    error = other.own_code_error if other is not None else None
    if b.status == "flaky" or seen is None or error is None:
        return False
    return seen.complete and error.missing_module is None and not_given(error, b.task.target.version) is None


def _plan(seen: Observation | None) -> str:
    return next((step.plan for step in seen.steps if step.plan and step.error is None), "") if seen is not None else ""


def _not_fixed(plan: str = "", other: str = "") -> Iterator[str]:
    """What the calls are that ask chance or the clock, by the plans that are known."""
    unless_seeded = "" if other else ", unless your code gives its seed"
    for call in not_fixed(plan, other):
        yield (
            f"the clock in {call.place}"
            if call.function == CLOCK
            else f"{call.function}(…) in {call.place}{unless_seeded}"
        )


_ORDER = {
    *("any_value", "array_agg", "collect_list", "collect_set", "first", "last", "listagg", "max_by", "min_by"),
    "spark_partition_id",
}
"""The functions that Spark's documentation calls non-deterministic because of the order or the partition of rows after a shuffle."""


def _by_order(*plans: str) -> Iterator[str]:
    calls = (call for plan in plans for call in read_calls(plan) if call.function in _ORDER)
    return (f"{call.function}(…) in {call.place}" for call in calls)


NOT_COMPARABLE = (
    "not comparable: the job ran twice on this version and did not do the same; what depends on the clock, on chance or on an order "
    "that is not fixed cannot be compared"
)
NO_ROWS = (
    "no micro-batch emitted a row, so there is nothing to compare: add rows to the sample that the query lets through"
)


def _other_columns(a: TargetRecord, seen: Observation, b: TargetRecord, other: Observation) -> Iterator[str]:
    if seen.columns and other.columns:
        for place, (column, two) in enumerate(zip_longest(seen.columns, other.columns), 1):
            if column != two:
                sides = ((a, column), (b, two))
                shown = (
                    f"{side.name} {side.type} on {on.title}" if side else f"missing on {on.title}" for on, side in sides
                )
                yield f"column {place}: {', '.join(shown)}"


def _handoffs(run: JobRun) -> tuple[Handoffs, ...]:
    """Put the checkpoints together that met the same, with what was tried for them."""
    workarounds = run.workarounds

    def tried(steps: tuple[int, ...], verdict: CheckpointVerdict) -> Iterator[TriedWorkaround]:
        for (key, value), by_cut in workarounds.items():
            if of_steps := tuple(by_cut[cut] for cut in steps if cut in by_cut):
                proves = right_rows_prove(key, verdict.differences)
                yield TriedWorkaround(f"{key}={value}", of_steps, reads_other_bytes=not proves)

    together = with_same_reason(run.verdicts)
    if len(together) > 1:
        together = {steps: verdict for steps, verdict in together.items() if verdict.reason != NO_ROWS_AFTER}
    groups = (Handoffs(steps, verdict, tuple(tried(steps, verdict))) for steps, verdict in together.items())
    return tuple(sorted(groups, key=lambda group: severity(group.verdict)))


def _answer(wholes: tuple[WholeRun, WholeRun], *, emitted: bool, complete: bool, different: bool) -> JobAnswer:
    if any(whole.observation is not None and whole.observation.own_code_error for whole in wholes):
        return "differs" if different else "fails"
    if not all(map(has_behaviour, wholes)):
        return "unknown"
    if not emitted:
        refused = all(whole.observation is not None and whole.observation.error is not None for whole in wholes)
        return "fails" if refused else "unknown"
    if different:
        return "differs"
    return "same" if complete else "fails"


def _emitted_columns(*seen: Observation | None) -> set[str]:
    """The names of the columns that the queries emit."""
    return {column.name for answer in seen if answer is not None for column in answer.columns}


def _as_shown(judged: tuple[WholeRun, WholeRun], shown: tuple[WholeRun, WholeRun]) -> tuple[WholeRun, WholeRun]:
    """What the engines showed, with the verdicts on what is compared of it."""
    return replace(shown[0], verdict=judged[0].verdict), replace(shown[1], verdict=judged[1].verdict)


def _wholes(run: JobRun) -> tuple[WholeRun, WholeRun]:
    before, after = run.sides
    return _whole(before, run.case), _whole(after, run.case)


def _whole(answer: CellAnswer, case: Case) -> WholeRun:
    task = replace(answer.task, case=case)
    if answer.run is None:
        verdict = JudgeCases().without_run(task, answer.lacking)
        assert verdict is not None
        return WholeRun(task, None, verdict)
    run = replace(answer.run, task=task)
    return WholeRun(task, run, JudgeCases().verdict(run))


def _failures(
    sides: tuple[tuple[TargetRecord, WholeRun], ...], case: Case, not_fixed: tuple[str, ...], *, emitted: bool
) -> tuple[tuple[TargetRecord, str], ...]:
    """The versions without an answer, or with an error that ends the job, and why; both if neither emitted a row."""
    failures = tuple(
        (target, why)
        for target, whole in sides
        if (why := _failure(whole, case, SparkVersion.parse(target.spark), not_fixed))
    )
    if not failures and not emitted:
        return tuple((target, NO_ROWS) for target, _ in sides)
    return failures


def _failure(whole: WholeRun, case: Case, version: SparkVersion, not_fixed: Iterable[str]) -> str | None:
    """Say why a version has no answer, or with which error the job ends; None if it has one."""
    seen = whole.observation
    if seen is not None and seen.own_code_error is not None:
        return what_ended(seen.own_code_error, version)
    if whole.status == "flaky":
        return "\n".join([NOT_COMPARABLE, *not_fixed])
    if not has_behaviour(whole):
        return "; ".join(whole.verdict.notes) or whole.status
    if seen is None or seen.error is None:
        return None
    error = seen.error
    line = error.first_line
    # Java says only in the error's class what its message is about.
    if (missing := how_to_mend(error.message, version) or how_to_mend(f"{error.name}: {line}", version)) is not None:
        return missing
    if error.stage == "analysis" and (of_sample := _type_in_the_sample(error, case)) is not None:
        return of_sample
    step = case.steps[seen.steps[-1].number - 1]
    return f"step {step.number}{f' ({step.name})' if step.name else ''} ends with {error.name or 'an error'} at {error.stage}: {line}"


def _type_in_the_sample(error: ErrorSeen, case: Case) -> str | None:
    """Say that a column which is no TIMESTAMP, as the query wants, has its type from the sample; None of another error."""
    said = f"{error.name} {error.first_line}"
    for stream, schema in case.streams.items() if "timestamp" in said.lower() else ():
        for field in schema.fields:
            if re.search(rf"\b{re.escape(field.name)}\b.*\b{field.type.name}\b", said, re.IGNORECASE):
                columns = ", ".join(
                    f"`{each.name}` {'timestamp' if each == field else each.type}" for each in schema.fields
                )
                return (
                    f"{field.name} is {field.type.name} in the sample of {stream}, and the query wants a TIMESTAMP ({error.name}): "
                    f"if your stream has a TIMESTAMP there, add --schema '{stream}={columns}'; if the sample does not write it as "
                    f"2026-03-01 12:05, say how it does: --event-time '{stream}={field.name} as dd.MM.yyyy HH:mm', or 'as ms'"
                )
    return None


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
        seen = self.verdict.wholes[0].observation
        return seen is not None and seen.error is not None

    @property
    def only_warns(self) -> bool:
        """Whether it shows what rows would do that the sample does not have and ANSI mode refuses."""
        return self.name == "unfit_rows" and self.verdict.needs_ansi_off


def combined_exit_code(verdict: JobVerdict, stresses: Iterable[Stress]) -> int:
    """The exit code of a job, with that of each stress but those that only warn, or that the earlier version itself does not survive."""
    count = (stress.verdict.exit_code for stress in stresses if not stress.fails_before and not stress.only_warns)
    return combined([verdict.exit_code, *count])
