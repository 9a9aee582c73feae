"""Which delay a query needs: for each, the rows dropped, the results changed, the state and when results come.

The reference model repeats the first operator that keeps state with each delay. Its word counts only if it predicts what an engine does
with the query's own delay, with the shortest that keeps all rows, and with one between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import chain, takewhile, tee
from typing import Final

from conformance.account.account import dropped_rows
from conformance.core.case import Case
from conformance.core.data import Json
from conformance.core.wording import counted, duration
from conformance.model.errors import ModelDefect, Unpredictable
from conformance.oracle.prediction import Prediction
from conformance.own_job.analyzed_plan import JobPlan
from conformance.own_job.explained_job import JobExplanation, NoAnswer, answer_of
from conformance.own_job.first_operator import NotKnown
from conformance.own_job.job_run import CellAnswer
from conformance.own_job.lateness import EndOf, Lateness, TimedRow, lateness_of, shortest_above, whole
from conformance.own_job.many_rows import NO_INSTANT
from conformance.own_job.sample import RECORD_ARRIVAL, Sample
from conformance.own_job.sample_arrivals import arrival_keys, when_sent
from conformance.own_job.treatment import check_predicted, dropped_in, late_by
from conformance.query import read_query
from conformance.query_progress.query_page import DelaysShown, QueryPage
from conformance.runner.execution import Display
from conformance.runner.resources import EngineUse
from harness.driver.backend import DELAY

SHARES: Final = (1.0, 0.999, 0.99)
_MOST_POINTS: Final = 9


@dataclass(frozen=True)
class DelayPoint:
    """What a delay does to the rows of the sample."""

    delay_ms: int
    dropped: int
    changed: int
    """Results of the longest delay that lack a row here, or do not come."""
    state: int
    """Rows of state after the micro-batch after which they are most."""
    later_ms: int
    """How much later results come than with the query's own delay, in event time."""


@dataclass(frozen=True)
class DelayTable:
    answer: JobExplanation
    rows: int
    """The rows of the sample that reach the operator with an event time."""
    results: int
    """The results with the longest delay."""
    own: DelayPoint
    points: tuple[DelayPoint, ...]
    lateness: Lateness
    """Of the rows of the sample."""
    of_file: Lateness | None
    """Of all rows of the file, if the sample is a part of them, and one pass counts in the sample what the model does."""
    checked: tuple[int, ...]
    """The delays that an engine ran with."""
    unmeasured: str
    """Why the rows of the file beyond the sample are not measured, if they are not."""

    @property
    def measured(self) -> Lateness:
        """That of all rows of the file or, where they are not measured, of the sample."""
        return self.of_file or self.lateness

    @property
    def dropped(self) -> int:
        """The rows that the query's own delay drops, of `measured`."""
        return self.of_file.dropped_with(self.own.delay_ms) if self.of_file else self.own.dropped

    @property
    def exit_code(self) -> int:
        return int(self.dropped > 0)

    def lines(self, detail: int = 2) -> Iterator[str]:
        job = self.answer.job
        of_file = f" of {counted(self.of_file.rows, 'row')} of the file" if self.of_file else ""
        on = f"{self.answer.query.title} on {self.answer.target.version}"
        yield f"{on}: {counted(self.rows, 'row')}{of_file}, micro-batches: {len(job.case.steps)}"
        yield f"  {'✗' if self.exit_code else '●'} your {self._sentence()}"
        others = (cause.what for cause in self.answer.causes if cause.id != "short-delay")
        yield from (f"  also: {what}; explain without --delays says more" for what in others)
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for *cells, mark in table:
            row = "   ".join(text.rjust(width) for text, width in zip(cells, widths, strict=False))
            yield f"    {row} {mark}".rstrip()
        yield from (f"  {line}" for line in self._notes(detail))

    def _table(self) -> list[tuple[str, ...]]:
        """Return the lines of the table, titles first; the last column marks the query's own delay."""
        table = [("delay", "rows dropped", "of the file", "results changed", "state", "results", "")]
        for point in self.points:
            share = _share(self.of_file.dropped_with(point.delay_ms), self.of_file.rows) if self.of_file else ""
            dropped, changed = f"{point.dropped} of {self.rows}", f"{point.changed} of {self.results}"
            row = duration(point.delay_ms), dropped, share, changed, f"{point.state:,}", _later(point, "as now")
            table.append((*row, "← yours" if point == self.own else ""))
        columns = [column for column in zip(*table, strict=True) if any(column[1:])]
        return [*zip(*columns, strict=True)]

    def _notes(self, detail: int) -> Iterator[str]:
        job, version = self.answer.job, self.answer.target.version
        shortest = (f"{share:.1%} {duration(self.measured.delay_for(share))}".replace(".0%", "%") for share in SHARES)
        yield f"shortest delay that keeps so many rows: {', '.join(shortest)}"
        yield from (f"outliers: {line}" for line in self._outliers())
        if detail > 0:
            at = ", ".join(map(duration, sorted(self.checked)))
            alone = "; its code, not Python's, takes no other delay" if len(self.checked) == 1 else ""
            counts = all(batch.dropped is not None for batch in job.seen.batches)
            what = "watermark, rows dropped, state" if counts else "watermark and state; it does not count dropped rows"
            yield f"Spark {version} with {at} does what the model says: {what}{alone}"
        if job.treated.unknown:
            yield f"counted at the first operator that keeps state; not known: {job.treated.unknown}"
        if self.unmeasured:
            yield f"of the sample alone: {self.unmeasured}"
        if not self._by_arrival:
            several = sum(bool(sample.rows) for sample in self.answer.samples) > 1
            order = "each file, and its newest event time so far, stand" if several else "the file stands"
            yield f"the order of {order} for the arrival; {RECORD_ARRIVAL}"

    @property
    def page(self) -> QueryPage:
        """The same for a page."""
        shown = DelaysShown(f"Your {self._sentence()}", self._table(), tuple(self._notes(2)), self.record())
        return replace(self.answer.page, delays=shown)

    def _sentence(self) -> str:
        own, keeping = self.own, self.measured.delay_for(1)
        point, mine = next(point for point in self.points if point.delay_ms == keeping), duration(own.delay_ms)
        if not self.measured.late:
            return f"{mine}: any delay keeps all {self.rows} rows; of a file that was sorted by time this says nothing"
        state = f"state × {point.state / own.state:.2g}" if own.state else f"{point.state} rows of state"
        costs = f"results come {_later(point, 'no later')}, {state}"
        if self.dropped:
            return f"{mine}: {self.dropped:,} of {self.measured.rows:,} rows dropped; {duration(keeping)} keep all, {costs}"
        shorter = f"{duration(keeping)} is enough: {costs}" if keeping < own.delay_ms else "no shorter delay keeps all"
        return f"{mine}: all {counted(self.measured.rows, 'row')} kept; {shorter}"

    @property
    def _by_arrival(self) -> bool:
        return any(sample.arrived for sample in self.answer.samples)

    def _outliers(self) -> Iterator[str]:
        if (outliers := self.measured.outliers()) is not None:
            rows, others, every = outliers
            yield f"{duration(every)} is for {counted(rows, 'row')} far later than all others, which {duration(others)} keep"
        if self.measured.ahead_ms >= max(3 * self.own.delay_ms, 1_800_000):
            ahead = f"the newest row is {duration(self.measured.ahead_ms)} ahead of all others"
            yield f"{ahead}: rows that come after such a row seem late; filter it below the watermark"

    def _point_record(self, point: DelayPoint) -> dict[str, Json]:
        of_file = self.of_file and self.of_file.dropped_with(point.delay_ms)
        dropped = {"delayMs": point.delay_ms, "rowsDropped": point.dropped, "rowsDroppedOfFile": of_file}
        return {**dropped, "resultsChanged": point.changed, "stateRows": point.state, "laterMs": point.later_ms}

    def record(self) -> dict[str, Json]:
        """Return the same for programs."""
        outliers = self.measured.outliers()
        return {
            "query": self.answer.query.title,
            "spark": str(self.answer.target.version),
            "rows": self.rows,
            "rowsOfFile": self.of_file and self.of_file.rows,
            "microBatches": len(self.answer.job.case.steps),
            "byTimeOfArrival": self._by_arrival,
            "results": self.results,
            "ownMs": self.own.delay_ms,
            "delays": [*map(self._point_record, self.points)],
            "shortestMs": {f"{share:.3g}": self.measured.delay_for(share) for share in SHARES},
            "outliers": outliers and dict(zip(("rows", "othersNeedMs", "allNeedMs"), outliers, strict=True)),
            "newestRowAheadMs": self.measured.ahead_ms,
            "checkedOnEngineMs": sorted(self.checked),
        }


def delay_table_of(answer: JobExplanation, where: EngineUse, display: Display[CellAnswer]) -> DelayTable:
    """Compute the table of a query that was explained, and run the query with two more delays.

    Raises NoAnswer: what becomes of the rows is not known, or the model and the engine differ; as `execute`.
    """
    job, treated = answer.job, answer.job.treated
    own_ms = job.plan.delay_ms
    if own_ms is None or treated.case is None or treated.prediction is None:
        stateless = "no row is dropped, whatever the delay: the query has no watermark, or keeps no state"
        raise NoAnswer(f"no table of delays: {treated.unknown or stateless}")
    given = (row for row in treated.rows if row.time_us is not None and row.treatment != "filtered")
    rows = sorted(given, key=lambda row: row.step)
    end_of = _end_of(treated.case)
    timed = ((row.step, row.stream, row.time_us or 0) for row in rows)
    by_rule = lateness_of(timed, {row.stream for row in rows}, end_of)
    try:
        batches = (batch for step in treated.with_delay(_text(0)).steps for batch in step.batches)
        late = Counter(late_by(batch, origin) or 0 for batch in batches for origin in dropped_rows(batch))
        model = replace(by_rule, late=late)
        same = all(by_rule.dropped_with(at) == model.dropped_with(at) for at in (0, own_ms, *map(shortest_above, late)))
        measured = _of_file(answer, [row.time_us or 0 for row in rows] if same else None, end_of)
        of_file, unmeasured = (None, measured) if isinstance(measured, str) else (measured, "")
        keeping = model.delay_for(1)
        delays = _candidates({0, own_ms, keeping}, of_file or model)
        tried = _tried(own_ms, keeping, delays)
        predictions = {delay: treated.with_delay(_text(delay)) for delay in {*delays, *tried}}
    except (Unpredictable, ModelDefect) as why:
        raise NoAnswer(f"no table of delays: {why}") from None
    # Several watermarks may have a delay of their own each.
    predictions[own_ms] = treated.prediction
    checked = takewhile(lambda delay: _agrees(answer, delay, predictions[delay], where, display), tried)
    complete = _results(predictions[max(predictions)])

    def point(delay: int) -> DelayPoint:
        prediction = predictions[delay]
        state = max((sum(batch.state) for batch in prediction.observation.batches), default=0)
        changed = (complete - _results(prediction)).total()
        later = delay - own_ms if _waits(answer) else 0
        return DelayPoint(delay, dropped_in(prediction), changed, state, later)

    points = tuple(map(point, sorted(predictions)))
    own = next(each for each in points if each.delay_ms == own_ms)
    return DelayTable(answer, len(rows), complete.total(), own, points, model, of_file, (own_ms, *checked), unmeasured)


def _of_file(answer: JobExplanation, times: Sequence[int] | None, end_of: EndOf) -> Lateness | str:
    """Measure all rows of the files of the samples, with micro-batches like theirs; else say why not, empty if the samples have all.

    ``times``: of the rows of the samples, as the query has them; None if the model drops other rows than the rule of the pass.
    """
    sent = [sample for sample in answer.samples if sample.rows]
    if not any(sample.skipped for sample in sent):
        return ""
    if times is None:
        return "the query drops rows by more than the rule of one operator and one delay"
    if sorted(time for sample in sent for time in sample.instants if time != NO_INSTANT) != sorted(times):
        return "the query filters rows, or its event time is not that of the sample: see --event-time"
    alone = len(sent) == 1
    keys = [key for sample in sent for key in arrival_keys(sample, alone=alone) if key != NO_INSTANT]
    every = answer.every_us or max((max(keys) - min(keys) + 1) // len(answer.job.case.steps), 1)
    timed = (_timed(sample, every, alone=alone) for sample in sent)
    return lateness_of(merge(*timed), {sample.stream for sample in sent}, end_of)


def _timed(sample: Sample, every: int, *, alone: bool) -> Iterator[TimedRow]:
    if alone or sample.arrived:
        return ((at // every, sample.stream, time) for at, time in sample.times())
    sent, times = tee(time for _, time in sample.times())
    return ((at // every, sample.stream, time) for at, time in zip(when_sent(sent), times, strict=True))


def _share(dropped: int, rows: int) -> str:
    """A percentage of which no row that is dropped is rounded away: a few of millions are not none."""
    percent = f"{dropped / rows:.3%}" if dropped else "0%"
    return "< 0.001%" if percent == "0.000%" else percent


def _later(point: DelayPoint, same: str) -> str:
    later = point.later_ms
    return f"{duration(abs(later))} {'later' if later > 0 else 'earlier'}" if later else same


def _end_of(case: Case) -> EndOf:
    """Return what the watermark must not have passed for a row to be taken, by the window of the query (`windows_of` of the model)."""
    window = next(iter(read_query(case.query, case.streams).windows), None)
    if window is None or window.length_us is None:
        return lambda time: time
    length, slide, start = window.length_us, window.slide_us, window.start_us
    if slide is None:
        return lambda time: time + length
    return lambda time: time - (time - start) % slide + length


def _candidates(wanted: set[int], lateness: Lateness) -> list[int]:
    """Return the delays of the table: those that are asked for, and some of the others at which the number of dropped rows changes."""
    wanted = {*wanted, *map(lateness.delay_for, SHARES)}
    late = sorted({*map(shortest_above, lateness.late)} - wanted)
    room = max(_MOST_POINTS - len(wanted), 0)
    return sorted(wanted.union(late[at * len(late) // room] for at in range(room) if late))


def _tried(own: int, keeping: int, delays: Sequence[int]) -> list[int]:
    """Return the delays with which an engine runs the query: that which keeps all rows, and one between it and the query's own."""
    between = [delay for delay in delays if min(own, keeping) < delay < max(own, keeping)]
    middle = between[len(between) // 2] if between else whole(max(own, keeping) // 2) or 60_000
    return [delay for delay in dict.fromkeys((keeping, middle)) if delay != own]


def _agrees(
    answer: JobExplanation, delay: int, prediction: Prediction, where: EngineUse, display: Display[CellAnswer]
) -> bool:
    """Run the query with another delay; return False if its code takes no other. Raises NoAnswer unless it does what the model predicts."""
    case = answer.job.case
    other = case.model_copy(update={"id": f"{case.id}-{delay}ms", "conf": {**case.conf, DELAY: _text(delay)}})
    seen = answer_of(other, answer.target, where, display)
    what = f"no table of delays: with a delay of {duration(delay)}"
    if seen.error is not None:
        raise NoAnswer(f"{what} it fails: {seen.error.first_line}")
    if any(mark.delay_ms != delay for mark in JobPlan.of(seen).watermarks):
        return False
    try:
        check_predicted(seen, prediction)
    except NotKnown as why:
        raise NoAnswer(f"{what}, {why}") from None
    return True


def _waits(answer: JobExplanation) -> bool:
    """Whether results wait for the watermark: windows in append mode, and rows of an outer join without a partner."""
    first = answer.job.plan.first
    assert first is not None
    outer = first.name == "Join" and "Outer" in first.arguments.partition(",")[0]
    return outer or (first.name in ("Aggregate", "Distinct") and answer.job.case.output_mode == "append")


def _results(prediction: Prediction) -> Counter[object]:
    """Count the results; those of an aggregation by their keys, the last of each, also if it is still in state."""
    batches = [batch for step in prediction.steps for batch in step.batches]
    rows = [row for batch in batches for row in batch.emitted]
    kept = next((batch.operators[-1] for batch in reversed(batches) if batch.operators), None)
    if kept is None or not kept.operator.startswith(("stateStoreSave", "sessionWindow")):
        return Counter(rows)
    names = [column.name for column in prediction.columns]
    shown = [{name: value for name, _, value in row.what} for row in kept.shown]
    in_state = (tuple(row[name] for name in names) for row in shown)
    return Counter({row[:-1]: row for row in chain(rows, in_state)}.values())


def _text(delay_ms: int) -> str:
    return f"{delay_ms} milliseconds"
