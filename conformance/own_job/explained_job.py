"""One query of a job on one version: every micro-batch, what became of each row of its samples, and why rows are missing or wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import get_args

from conformance.core.case import Case
from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.core.observation import BatchSeen, Observation
from conformance.core.temporary_folder import temporary_folder
from conformance.core.values import show, show_ms
from conformance.core.wording import counted, shortened
from conformance.own_job.analyzed_plan import WHOLE, JobPlan, OperatorInput
from conformance.own_job.first_operator import RowsThere
from conformance.own_job.job_case import OwnQuery, telling_plan, write_job, write_sample
from conformance.own_job.job_causes import Explained, causes_of, released
from conformance.own_job.job_run import CellAnswer, run_cell, run_cells
from conformance.own_job.sample import Sample
from conformance.own_job.sample_arrivals import FAR_AHEAD_COMES
from conformance.own_job.treatment import TreatedRow, Treatment, batches_of, rows_given, together, treat_rows
from conformance.own_job.trial import MOST_BATCHES
from conformance.query_progress.answer import SOUND
from conformance.query_progress.causes import Cause
from conformance.query_progress.over_time import ROWS_OUT, OverTime, Series
from conformance.query_progress.query_page import QueryPage
from conformance.query_progress.tracks import values_of
from conformance.query_progress.wire import Progress
from conformance.runner.execution import Display
from conformance.runner.resources import EngineUse
from harness.driver.backend import ROWS_AT
from harness.runtimes.missing import what_ended
from harness.scheduling.cell_run import CellTask
from harness.targets.targets import Target

MOST_BATCHES_SHOWN = 8
_TREATMENTS: tuple[Treatment, ...] = get_args(Treatment)
_EACH = 3
"""How many rows of a treatment are shown."""


class NoAnswer(Exception):
    """The engine gave no answer. ``of_the_code``: whether the job failed by a fault of its own."""

    def __init__(self, why: str, *, of_the_code: bool = False) -> None:
        super().__init__(why)
        self.of_the_code = of_the_code


@dataclass(frozen=True)
class JobExplanation:
    query: OwnQuery
    target: Target
    job: Explained
    samples: Sequence[Sample] = ()
    every_us: int | None = None
    """The trigger interval that divided them; None if their number did."""

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        return causes_of(self.job)

    @property
    def exit_code(self) -> int:
        return int(bool(self.causes) or self.job.seen.error is not None)

    def lines(self, detail: int = 2) -> Iterator[str]:
        """Yield the answer; ``detail`` 1 leaves out the sentences of rules, 0 rows and micro-batches too."""
        yield from self.page.lines(detail)
        if detail > 0:
            yield from (f"  {line}" for line in (*self._batches(self.job.seen.batches), *self._rows()))
        yield from (f"  {line}" for line in self.page.notes if detail > 0 or line.startswith("not known"))

    @cached_property
    def page(self) -> QueryPage:
        """The same for a page."""
        treated, error = self.job.treated, self.job.seen.error
        counts = Counter(row.treatment for row in treated.rows)
        known = ", ".join(f"{counts[how]} {how}" for how in reversed(_TREATMENTS) if counts[how])
        given, emitted = counted(len(treated.rows), "row"), sum(len(batch.rows) for batch in self.job.seen.batches)
        notes = [f"next: {line}" for line in released(treated, self.job.plan)]
        notes += [f"not tried: {each.shown}; the rows came in the order of the sample" for each in self.query.options]
        if treated.unknown:
            notes.append(f"not known: {'' if treated.prediction else 'what became of each row: '}{treated.unknown}")
        return QueryPage(
            f"{self.query.title} on {self.target.version}: {given} in: {known}; {counted(emitted, 'row')} emitted",
            self.causes,
            f"{SOUND}{' is known' if error or treated.unknown else ''}",
            tuple(notes),
            self._over_time(),
            f"it fails with {error.title} at {error.stage}: {shortened(error.first_line, 160)}" if error else "",
            [_record(row) for row in treated.rows],
        )

    def _over_time(self) -> OverTime:
        over_time, clock = OverTime(), self._clock()
        newest: dict[Series, int | None] = {}
        for step, batch in batches_of(self.job.seen):
            for row in self.job.treated.rows if len(batch.sources) > 1 else ():
                if row.step == step and row.time_us is not None:
                    of_stream = Series("event time", f"newest of {row.stream}")
                    newest[of_stream] = max(newest.get(of_stream) or 0, row.time_us // 1000)
            titles = [f"rows of {source.stream}" for source in batch.sources]
            values = values_of(Progress.model_validate(batch.progress), titles) if batch.progress else {}
            over_time.add(batch.id, clock.get(step), {**values, **newest, ROWS_OUT: len(batch.rows)})
        return over_time

    def _clock(self) -> dict[int, int]:
        """Return when the last row of each step arrived, in ms, if the samples say it."""
        clock: dict[int, int] = {}
        for sample in self.samples:
            arrived = iter(sorted(sample.arrived))
            for step in self.job.case.steps:
                for at in islice(arrived, len(rows_given(step.action, sample.stream))):
                    clock[step.number] = max(clock.get(step.number, 0), at // 1000)
        return clock

    def _batches(self, batches: Sequence[BatchSeen]) -> Iterator[str]:
        for batch in batches[:MOST_BATCHES_SHOWN]:
            rows = sum(source.rows for source in batch.sources)
            state = ", ".join(map(str, batch.state)) or "none"
            dropped = "dropped rows not known" if batch.dropped is None else f"{batch.dropped} dropped"
            at = show_ms(batch.watermark) if batch.watermark else "1970-01-01"
            mark = f"watermark {at}, " if batch.watermark is not None else ""
            yield f"micro-batch {batch.id}: {rows} in, {mark}{dropped}, {len(batch.rows)} out, state {state}"
        if len(batches) > MOST_BATCHES_SHOWN:
            yield f"{len(batches) - MOST_BATCHES_SHOWN} more micro-batches: --json has all"

    def _rows(self) -> Iterator[str]:
        for treatment in _TREATMENTS[:-3]:
            rows = self.job.treated.of(treatment)
            shown = "; ".join(_described(row) for row in rows[:_EACH])
            if rows:
                yield f"{treatment}: {shown}{f'; {len(rows) - _EACH} more' if len(rows) > _EACH else ''}"

    def record(self) -> dict[str, Json]:
        """Return the same for programs."""
        error = self.job.seen.error
        return {
            "query": self.query.title,
            "spark": str(self.target.version),
            "error": error and {"class": error.name, "stage": error.stage, "message": error.first_line},
            "causes": [cause.record() for cause in self.causes],
            "microBatches": [{"step": step, **_batch_record(batch)} for step, batch in batches_of(self.job.seen)],
            "rows": [*self.page.rows],
            "notKnown": self.job.treated.unknown or None,
        }


def _described(row: TreatedRow) -> str:
    text = row.shown(44)
    if row.treatment == "late":
        return f"{text} in micro-batch {row.batch}{f', {row.passed}' if row.late_by_ms is not None else ''}"
    return f"{text} until {show(row.window.end)}" if row.window is not None and row.treatment == "in state" else text


def _batch_record(batch: BatchSeen) -> dict[str, Json]:
    watermarks = {"watermark": show_ms(batch.watermark), "nextWatermark": show_ms(batch.next_watermark)}
    counts = {"dropped": batch.dropped, "state": list(batch.state), "emitted": len(batch.rows)}
    return {"id": batch.id, "rows": sum(source.rows for source in batch.sources), **watermarks, **counts}


def _record(row: TreatedRow) -> dict[str, Json]:
    window = row.window and {"start": show(row.window.start), "end": show(row.window.end)}
    time = show(row.time_us) if row.time_us is not None else None
    given = {"stream": row.stream, "step": row.step, "row": row.text, "eventTime": time}
    became = {"treatment": row.treatment, "microBatch": row.batch, "window": window, "lateByMs": row.late_by_ms}
    return {**given, **became}


def explain_query(
    query: OwnQuery,
    samples: Sequence[Sample],
    target: Target,
    where: EngineUse,
    display: Display[CellAnswer],
    *,
    batches: int,
    every_us: int | None = None,
) -> JobExplanation:
    """Run a query with its samples on one version, and what stands below its watermarks and its first operator that keeps state.

    ``batches``, ``every_us``: as in `conformance.own_job.sample.arrivals`.

    Raises WrongUsage without a row, or with too many micro-batches;
    NoAnswer without an answer; InvalidCase, CannotWriteFile: see `write_sample`; as `execute`.
    """
    if not any(sample.rows for sample in samples):
        give = "give a sample of one that it reads, --sample STREAM=FILE"
        raise WrongUsage(f"{query.title}: no stream of it has rows: {give}")
    with temporary_folder() as folder:
        case = write_sample(query, samples, folder, batches=batches, every_us=every_us)
        if len(case.steps) > MOST_BATCHES:
            cut = f"the trigger interval divides the rows into {len(case.steps)} micro-batches, of which an engine runs"
            take = f"at most {MOST_BATCHES}: take a longer one, or fewer rows with --rows"
            raise WrongUsage(f"{query.title}: {cut} {take}")
        seen = answer_of(case, target, where, display)
        plan = JobPlan.of(seen)
        whole = () if plan.stateful else (WHOLE,)
        places = [mark.input for mark in plan.watermarks] + [*(plan.inputs(plan.first) if plan.first else whole)]
        there = _rows_at(case, places, target, where, display) if seen.complete and places else {}
        kept_later = False
        if seen.complete and any("EventTimeTimeout" in node.arguments for node in plan.stateful):
            later = write_job(query, samples, folder, batches=batches).model_copy(update={"id": f"{case.id}-later"})
            if later.steps[-1].name == FAR_AHEAD_COMES:
                at_end = answer_of(later, target, where, display)
                kept_later = at_end.complete and sum(at_end.batches[-1].state) >= sum(seen.batches[-1].state)
    treated = treat_rows(case, target.version, seen, plan, there, where.runtime.conf)
    zone = {**where.runtime.conf, **case.conf}.get("spark.sql.session.timeZone", "UTC")
    explained = Explained(case, seen, plan, treated, query.trigger, zone, query.sink, kept_later)
    return JobExplanation(query, target, explained, samples, every_us)


def answer_of(case: Case, target: Target, where: EngineUse, display: Display[CellAnswer]) -> Observation:
    """Run a case whose plan is wanted; raises NoAnswer."""
    answer = run_cell(CellTask(telling_plan(case), (target,)), where, display)
    seen = answer.observation
    if seen is None:
        raise NoAnswer(answer.lacking or "no answer")
    if seen.own_code_error is not None:
        raise NoAnswer(what_ended(seen.own_code_error, target.version), of_the_code=True)
    return seen


def _rows_at(
    case: Case, places: Sequence[OperatorInput], target: Target, where: EngineUse, display: Display[CellAnswer]
) -> dict[OperatorInput, RowsThere]:
    """Ask an engine for the rows at places of the plan, all of them in one micro-batch; those that it cannot show are left out."""
    appending = case.model_copy(update={"output_mode": "append", "trigger": "default", "steps": (together(case),)})
    # Spark refuses to number the rows of a stream, unless it leaves out this check.
    conf = {**case.conf, "spark.sql.streaming.unsupportedOperationCheck": "false"}
    cases = {
        place: appending.model_copy(update={"id": f"{case.id}-{number}", "conf": {**conf, ROWS_AT: str(place)}})
        for number, place in enumerate(places, 1)
    }
    answers = run_cells([CellTask(other, (target,)) for other in cases.values()], where, display)
    seen = {place: answers[other.id].observation for place, other in cases.items()}
    return {place: RowsThere.of(rows) for place, rows in seen.items() if rows is not None and rows.complete}
