"""Runs one's own job: its case on both versions, and its checkpoint handed over before some steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from conformance.checkpoints.state import StateDifference, state_differences, state_workarounds
from conformance.core.case import Case, Restart
from conformance.core.observation import Identity, Observation, StepSeen
from conformance.judging.checkpoint_verdict import CheckpointVerdict, cuts, resumed_at
from conformance.judging.comparison import divergences
from conformance.judging.verdict import why_incoherent
from conformance.own_job.analyzed_plan import JobPlan, not_fixed
from conformance.own_job.changed_default import ANSI, ChangedDefault, changed_defaults
from conformance.own_job.job_case import (
    OPTIONS,
    OTHER_PARTITIONS,
    UNFIT,
    first_handoffs,
    is_silent,
    telling_plan,
    with_expectations,
)
from conformance.own_job.sample_arrivals import ENDS_COME_AGAIN
from conformance.runner.execution import CellPlan, Collector, Display, Judge, Sink, execute, target_record, unseen
from conformance.runner.resources import EngineUse
from harness.engine.engine import EngineLocation
from harness.scheduling.cell_run import CellRun, CellTask
from harness.scheduling.scheduler import LaterCells
from harness.targets.targets import Target
from reports.results.records import TargetRecord


@dataclass(frozen=True)
class CellAnswer:
    """The run of a cell, or why there is none."""

    task: CellTask
    run: CellRun | None
    unsupported: str | None = None
    """Says why the runtime cannot run it; None if it ran."""

    @property
    def observation(self) -> Observation | None:
        """What the engines showed, with the workaround if there is one; None without an answer."""
        if self.run is None or self.run.failure is not None:
            return None
        return self.run.observations[-1 if self.task.workaround else 0]

    @property
    def lacking(self) -> str | None:
        """Says why there is no answer; None if there is one."""
        return self.run.failure if self.run is not None else self.unsupported

    def emits_rows(self, first: int = 1) -> bool:
        """Whether a micro-batch emitted a row, from the step of this number on."""
        steps = self.observation.steps if self.observation is not None else ()
        return any(batch.rows for step in steps if step.number >= first for batch in step.batches)

    def comparable(self, in_no_order: frozenset[str], not_fixed: frozenset[str]) -> CellAnswer:
        """The answer with sorted arrays in some columns and null in others."""
        if self.run is None:
            return self
        observations = tuple(observation.comparable(in_no_order, not_fixed) for observation in self.run.observations)
        return replace(self, run=replace(self.run, observations=observations))

    def as_far_as(self, case: Case) -> CellAnswer:
        """The answer without what happened after the last step of this case."""
        task = replace(self.task, case=case)
        if self.run is None:
            return replace(self, task=task)
        observations = (
            observation.model_copy(update={"case": case.id, "steps": observation.steps[: len(case.steps)]})
            for observation in self.run.observations
        )
        return replace(self, task=task, run=replace(self.run, task=task, observations=tuple(observations)))


class KeepAnswers(Judge[CellAnswer]):
    """The judge of a plan whose answers are compared with each other only when all are there: it judges nothing."""

    def without_run(self, task: CellTask, lacking: str | None) -> CellAnswer | None:
        return CellAnswer(task, None, lacking) if lacking is not None else None

    def verdict(self, run: CellRun) -> CellAnswer:
        return CellAnswer(run.task, run)


@dataclass(frozen=True)
class JobRun:
    """Everything that both versions have answered so far."""

    case: Case
    before: Target
    after: Target
    answers: tuple[CellAnswer, ...]
    engines: tuple[TargetRecord, ...]
    """The records of both targets, as their engines introduced themselves if they started."""
    started: datetime
    conf: Mapping[str, str]
    files: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """The files of `rows_in_files`; with any, the engines answer with digests."""

    @classmethod
    def of(
        cls,
        case: Case,
        before: Target,
        after: Target,
        use: EngineUse,
        files: Mapping[int, Mapping[str, str]] | None = None,
    ) -> JobRun:
        engines = tuple(unseen(target, use.runtime.runtime) for target in (before, after))
        return cls(case, before, after, (), engines, datetime.now(UTC), use.runtime.conf, files or {})

    def whole(self, target: Target, keep: Sequence[int] = ()) -> CellTask:
        """The whole case on one version, which tells the plan of the first step except through Connect; ``keep``: as in `CellTask`."""
        case = self.case if target.through_connect else telling_plan(self.case)
        return CellTask(case, (target,), keep=tuple(keep), files=self.files)

    def on(self, target: Target) -> CellAnswer:
        """What one version did with the whole case, however often it ran it."""
        first, *again = (answer for answer in self.wholes if answer.task.target == target)
        if first.run is None or not again:
            return first
        runs = [first.run, *(answer.run for answer in again if answer.run is not None)]
        failure = next((run.failure for run in runs if run.failure is not None), None)
        observations = tuple(observation for run in runs for observation in run.observations)
        return replace(first, run=replace(first.run, observations=observations, failure=failure))

    @property
    def wholes(self) -> tuple[CellAnswer, ...]:
        """What became of the whole case, each time that it ran."""
        return tuple(answer for answer in self.answers if answer.task.cut is None and not answer.task.workaround)

    @cached_property
    def in_no_order(self) -> frozenset[str]:
        """The columns with arrays in an order that Spark does not promise, by the plans."""
        return frozenset().union(*(plan.in_no_order for plan in self._plans))

    @cached_property
    def not_fixed(self) -> frozenset[str]:
        """The columns that the clock or chance makes, by the plans."""
        plans = self._plans
        texts = {
            call.text
            for plan in plans
            for call in not_fixed(plan.text, next((each.text for each in plans if each != plan), ""))
        }
        return frozenset().union(*(plan.columns_by(lambda made: any(text in made for text in texts)) for plan in plans))

    @cached_property
    def _plans(self) -> tuple[JobPlan, ...]:
        """The plans of both versions; none if only digests of the rows are known."""
        seen = () if self.files else (answer.observation for answer in self.wholes)
        return tuple(dict.fromkeys(JobPlan.of(observation) for observation in seen if observation is not None))

    @cached_property
    def compared(self) -> JobRun:
        """The same with what is compared: arrays in no order are sorted, and columns that nothing fixes are null."""
        return self.comparable(self.in_no_order)

    def comparable(self, in_no_order: frozenset[str]) -> JobRun:
        """Return the same with sorted arrays in these columns, and null in the columns that nothing fixes."""
        columns = in_no_order, self.not_fixed
        return (
            replace(self, answers=tuple(answer.comparable(*columns) for answer in self.answers))
            if any(columns)
            else self
        )

    @property
    def with_earlier_defaults(self) -> Iterator[tuple[ChangedDefault, Observation]]:
        """What the later version did with the whole case with each of `changed_defaults` that was tried."""
        by_setting = {tuple(answer.task.workaround): answer for answer in self.answers if answer.task.cut is None}
        for default in self.changed_defaults:
            tried = by_setting.get((default.key,))
            if tried is not None and tried.observation is not None:
                yield default, tried.observation

    @property
    def changed_defaults(self) -> tuple[ChangedDefault, ...]:
        """The settings whose default changed between the versions, which the query may meet and no setting of the run decides."""
        changed = changed_defaults(self.before.version, self.after.version, self.plans)
        return tuple(default for default in changed if default.key not in self.conf)

    @property
    def steps_seen(self) -> Iterator[StepSeen]:
        """The steps of the whole case, each time that it ran."""
        return (step for answer in self.wholes if answer.observation is not None for step in answer.observation.steps)

    @property
    def plans(self) -> tuple[str, ...]:
        """The physical plans that these tell, each once."""
        return tuple(dict.fromkeys(step.plan for step in self.steps_seen if step.plan))

    @property
    def handoffs(self) -> tuple[CellAnswer, ...]:
        """What became of each checkpoint without a workaround, in the order of the steps."""
        handoffs = [answer for answer in self.answers if answer.task.cut is not None and not answer.task.workaround]
        return tuple(sorted(handoffs, key=lambda answer: answer.task.cut or 0))

    @property
    def tried(self) -> tuple[CellAnswer, ...]:
        """What became of refused checkpoints that were handed over again, with the setting of a workaround."""
        return tuple(answer for answer in self.answers if answer.task.workaround and answer.task.cut is not None)

    def resumed(self, target: Target) -> dict[int, CellAnswer]:
        """What this version did with each checkpoint that it resumed, by the step before which it did."""
        return {answer.task.cut: answer for answer in self.handoffs if answer.task.cut and answer.task.target == target}

    def verdict(self, answer: CellAnswer, beside: CellAnswer | None = None) -> CheckpointVerdict:
        """Judge a checkpoint that ``answer`` resumed; without rows after it there is nothing that would tell.

        Args:
            beside: the answer that it is compared with; by default, what the earlier version did with the same checkpoint, or with the
                whole case if it did not resume this one.
        """
        cut = answer.task.cut
        assert cut is not None
        beside = beside or self.resumed(self.before).get(cut, self.on(self.before))
        emitted, whole = beside.emits_rows(cut), self.on(self.after).observation
        for side in (beside, answer):
            seen = side.observation
            reason = side.lacking if seen is None else why_incoherent(self.case, seen)
            if reason is not None:
                return CheckpointVerdict("no answer", reason=reason)
        verdict = resumed_at(cut, answer.observation, beside.observation, whole=whole)
        if verdict.outcome == "resumed" and not emitted:
            verdict = CheckpointVerdict("no answer", reason=NO_ROWS_AFTER)
        return verdict

    @property
    def sides(self) -> tuple[CellAnswer, CellAnswer]:
        """What the earlier and the later version did with the whole case."""
        return self.on(self.before), self.on(self.after)

    @property
    def verdicts(self) -> dict[int, CheckpointVerdict]:
        """The verdict on each checkpoint that the later version resumed, by the step before which it did."""
        return {cut: self.verdict(answer) for cut, answer in self.resumed(self.after).items()}

    @property
    def workarounds(self) -> dict[tuple[str, str], dict[int, CheckpointVerdict]]:
        """The same of those that were handed over again, by the setting."""
        verdicts: dict[tuple[str, str], dict[int, CheckpointVerdict]] = {}
        for answer in self.tried:
            (setting,) = answer.task.workaround.items()
            verdict = self.verdict(answer)
            if verdict.outcome == "other rows":
                # The workaround is not to blame for rows that the later version emits without a checkpoint, too.
                without = self.verdict(answer, self.on(self.after))
                verdict = replace(without, reason=AS_FROM_THE_START) if without.outcome == "resumed" else verdict
            if verdict.reason != NO_ROWS_AFTER and (cut := answer.task.cut) is not None:
                verdicts.setdefault(setting, {})[cut] = verdict
        return verdicts

    @property
    def without_handoff(self) -> tuple[int, ...]:
        """The steps before which the checkpoint could have been handed over, and was not."""
        tried = self.resumed(self.after)
        return tuple(cut for cut in cuts(self.case, each=True) if cut not in tried) if tried else ()

    def as_far_as(self, case: Case) -> JobRun:
        """What the run shows of a case that ends earlier: its steps are the first ones of the case that ran."""
        within = (answer for answer in self.answers if (answer.task.cut or 1) <= len(case.steps))
        return replace(self, case=case, answers=tuple(answer.as_far_as(case) for answer in within))


AS_FROM_THE_START = "as the later version emits them without a checkpoint of the earlier one"
NO_ROWS_AFTER = "no row was emitted after it, so there is nothing to compare: add rows at the end of the sample that the query emits"


def next_cells(run: JobRun) -> tuple[CellTask, ...]:
    """What runs next, from what is known; none if the verdict needs nothing more.

    1. The case on each version, of which the earlier keeps its checkpoints.
    2. Some of these on the later version: before the restart, before the step in which only it fails, and before the last rows, when they
       hold most of the sample. Without rows, only whether they are refused counts. If the job fails before its first row, the run ends
       here.
    3. On the earlier version, the checkpoints after which the later one differed from the whole job, since a restart alone may cause
       that (see `_needs_a_restart`); at the same time, on the later version, those that it refused, with each setting that may help;
       and the checkpoint before rows that arrive again, unless it refused all others.
    4. All other checkpoints, if those that ran did not end alike.

    As soon as anything differs that chance or the clock may explain, the case runs once more on each version, and on the later one with
    each setting of `JobRun.changed_defaults`.
    """
    run = run.compared
    if not run.wholes:
        # Of rows that ANSI mode refuses, only the rows are compared.
        keep = (
            ()
            if run.case.topics or UNFIT in run.case.id or OPTIONS in run.case.id
            else first_handoffs(run.case)
            if run.files
            else cuts(run.case, each=True)
        )
        return run.whole(run.before, keep=keep), run.whole(run.after)
    written, after = run.sides
    seen, other = written.observation, after.observation
    if seen is None or seen.own_code_error is not None:
        return ()
    if not seen.complete and not written.emits_rows() and not after.emits_rows():
        return ()
    # Where the author's code fails, no checkpoint is the reason.
    in_code = other is not None and other.own_code_error is not None
    kept = written.run.kept if written.run is not None and not in_code else {}
    resumed, restarted = run.resumed(run.after), run.resumed(run.before)
    verdicts = run.verdicts

    def cell(cut: int, target: Target, **setting: str) -> CellTask:
        return CellTask(run.case, (run.before, target), cut, before=kept[cut], workaround=setting, files=run.files)

    worth_most = dict.fromkeys((*first_handoffs(run.case), *_before_the_error(run)))
    first = [cut for cut in worth_most if cut in kept and cut not in resumed]
    again = [cut for cut in first if run.case.steps[cut - 1].name == ENDS_COME_AGAIN]
    cells = [cell(cut, run.after) for cut in first if cut not in again]
    if not cells:
        cells = [cell(cut, run.before) for cut in verdicts if cut not in restarted and _needs_a_restart(run, cut)]
        cells += _workarounds(run, verdicts, cell)
        if not verdicts or any(verdict.outcome != "refused" for verdict in verdicts.values()):
            cells += [cell(cut, run.after) for cut in again]
    ends = {
        (verdict.outcome, verdict.error.title if verdict.error is not None else "")
        for verdict in verdicts.values()
        if verdict.reason != NO_ROWS_AFTER
    }
    if not cells and len(ends) > 1:
        cells = [cell(cut, run.after) for cut in kept if cut not in resumed]
    # If silent streams make the earlier version fail, the upgrade changes nothing, so nothing is repeated.
    if len(run.wholes) == 2 and other is not None and not (is_silent(run.case) and seen.error is not None):
        by_chance = any(verdict.outcome in ("other rows", "fails later", "unclear") for verdict in verdicts.values())
        differs = next(divergences(seen, other), None) is not None
        if by_chance or differs:
            cells += [run.whole(target) for target in (run.before, run.after)]
        for default in run.changed_defaults if differs else ():
            setting = {default.key: default.value}
            case = run.case.model_copy(update={"conf": {**run.case.conf, **setting}})
            cells.append(CellTask(case, (run.after,), workaround=setting, files=run.files))
    return tuple(cells)


def _before_the_error(run: JobRun) -> tuple[int, ...]:
    """The step in which only the later version fails: its error comes from a checkpoint before that step, not from those after it."""
    seen, other = (side.observation for side in run.sides)
    if seen is None or other is None or seen.error is not None:
        return ()
    return tuple(step.number for step in other.steps if step.error is not None)


def can_be_stressed(run: JobRun) -> bool:
    """Whether both versions have an answer for the case, so that it makes sense to ask what they do under other conditions."""
    if len({answer.task.target for answer in run.wholes}) < 2:
        return False
    before, after = run.sides
    seen, other = before.observation, after.observation
    return (
        seen is not None
        and other is not None
        and seen.own_code_error is other.own_code_error is None
        and (before.emits_rows() or after.emits_rows())
        and (seen.error is None or other.error is None)
    )


def depends_on_ansi(run: JobRun) -> bool:
    """Whether the query has an expression that ANSI mode lets fail, on a later version that has it on by default."""
    changes = any(default.key == ANSI for default in run.changed_defaults)
    return changes and not run.files and any(map(_MAY_FAIL.search, run.plans))


_MAY_FAIL = re.compile(
    r"\bcast\((?!\d)[^()]* as (?!string|binary)|\b(to_|get|unix_|make_)?(timestamp|date|number)\w*\(|\belement_at\(| [/%] (?!\d)|\w\[",
    re.IGNORECASE,
)
"""A cast, a parse, a division or a look-up, as a plan shows them; a constant fits, as those by which a window is computed."""


def shuffles_itself(run: JobRun) -> bool:
    """Whether the query keeps state and has a shuffle of its author's, without a number of partitions: of SQL too, ``DISTRIBUTE BY``."""
    keeps_state = any(batch.state for step in run.steps_seen for batch in step.batches)
    return keeps_state and any(map(_OWN_SHUFFLE.search, run.plans))


_OWN_SHUFFLE = re.compile(r"\bRepartitionByExpression \[[^\]]+\](?!, \d)")


def _needs_a_restart(run: JobRun, cut: int) -> bool:
    """Whether the later version differed from the earlier version's whole job, so that the earlier must resume this checkpoint, too.

    Where the job itself restarts, its whole run has shown that the earlier version resumes its own checkpoint. One that is refused for the
    same columns needs no other proof, unless the query goes on with other rows with a workaround: a restart alone may cause that.
    """
    resumed, whole = run.resumed(run.after), run.on(run.before).observation
    seen, steps = resumed[cut].observation, run.case.steps
    if seen is None or (seen.error is not None and isinstance(steps[cut - 1].action, Restart)):
        return False
    at_restarts = [answer.observation for at, answer in resumed.items() if isinstance(steps[at - 1].action, Restart)]
    columns = _columns_refused(seen)
    if columns and columns in map(_columns_refused, at_restarts):
        tried = (answer.observation for answer in run.tried if answer.task.cut == cut)
        return any(other is not None and resumed_at(cut, other, whole).outcome != "resumed" for other in tried)
    return resumed_at(cut, seen, whole).outcome != "resumed"


def _columns_refused(seen: Observation | None) -> tuple[StateDifference, ...]:
    """The columns of the state for which a checkpoint was refused; none if it was not, or for another reason."""
    return state_differences(seen.error.message) if seen is not None and seen.error is not None else ()


def _workarounds(
    run: JobRun, verdicts: Mapping[int, CheckpointVerdict], cell: Callable[..., CellTask]
) -> Iterator[CellTask]:
    """Checkpoints that were refused because of the schema of their state, to be handed over again with each setting that may help."""
    done = {(answer.task.cut, *answer.task.workaround) for answer in run.tried}
    for cut, verdict in verdicts.items():
        columns = _columns_refused(run.resumed(run.after)[cut].observation)
        for key, value in state_workarounds(columns, run.before.version, run.after.version):
            if key not in run.conf and (cut, key) not in done and not verdict.fails_anyway:
                yield cell(cut, run.after, **{key: value})


@dataclass
class JobRuns(Sink[CellAnswer]):
    """The runs of a case and, once both versions have an answer for it, of the same job's cases under other conditions.

    What a run needs next is ready as soon as everything that it asked for has an answer.
    """

    runs: list[JobRun]
    on_ready: Callable[[Sequence[CellTask]], None] = lambda _: None
    _asked: Counter[str] = field(default_factory=Counter)
    """Case id → cells without an answer."""

    def complete(self, options: EngineUse, display: Display[CellAnswer]) -> list[JobRun]:
        """Run everything that the verdict needs; see `execute` for errors."""
        _execute((), (self.runs[0].before, self.runs[0].after), options, self, display, self)
        return self.runs

    @property
    def cases(self) -> Iterable[Case]:
        return (run.case for run in self.runs)

    def ready(self) -> Sequence[CellTask]:
        first, *others = self.runs
        others = others if can_be_stressed(first) else []
        asked = {OTHER_PARTITIONS: shuffles_itself, UNFIT: depends_on_ansi}
        runs = [
            first,
            *(run for run in others if all(asks(first) for end, asks in asked.items() if end in run.case.id)),
        ]
        cells = [cell for run in runs if not self._asked[run.case.id] for cell in next_cells(run)]
        self._asked.update(cell.case.id for cell in cells)
        self.on_ready(cells)
        return cells

    def introduce(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        record = target_record(target, identity, place)
        for at, run in enumerate(self.runs):
            engines = tuple(record if engine.name == record.name else engine for engine in run.engines)
            self.runs[at] = replace(run, engines=engines)

    def keep(self, task: CellTask, verdict: CellAnswer, run: CellRun | None) -> None:  # noqa: ARG002
        self._asked[task.case.id] -= 1
        self.runs = [
            replace(run_of, answers=(*run_of.answers, verdict)) if run_of.case.id == task.case.id else run_of
            for run_of in self.runs
        ]

    def left(self) -> str:
        return "the answer is not complete"


def run_cell(cell: CellTask, options: EngineUse, display: Display[CellAnswer]) -> CellAnswer:
    """Run a cell; see `execute` for errors."""
    return run_cells((cell,), options, display)[cell.case.id]


def run_cells(cells: Sequence[CellTask], options: EngineUse, display: Display[CellAnswer]) -> dict[str, CellAnswer]:
    """Run cells of the same targets, and return their answers by case; see `execute` for errors."""
    collector: Collector[CellAnswer] = Collector(len(cells))
    _execute(tuple(cells), cells[0].targets, options, collector, display)
    return {answer.task.case.id: answer for answer, _ in collector.kept}


def _execute(
    cells: tuple[CellTask, ...],
    targets: tuple[Target, ...],
    options: EngineUse,
    sink: Sink[CellAnswer],
    display: Display[CellAnswer],
    later: LaterCells | None = None,
) -> None:
    """Nothing is taken from the cache, because the code of the job is not part of the case."""
    limits = options.concurrency.limits(len(targets))
    plan = CellPlan(cells, options.runtime, limits, options.work, allow_code=True, kept=options.kept, later=later)
    execute(plan, KeepAnswers(), sink, display)


def expecting(run: JobRun, folder: Path) -> JobRun:
    """The run of a case that expects, also in its file in the folder, what the earlier version did, if that ended and is in no files."""
    seen = run.on(run.before).observation
    if seen is None or not seen.complete or run.files:
        return run
    return replace(run, case=with_expectations(run.case, folder, seen))
