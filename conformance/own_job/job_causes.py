"""Why rows of a sample are missing or wait, by the plan of the job, what the engine showed and the treatment of each row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from conformance.core.case import Case
from conformance.core.data import read_data
from conformance.core.observation import ErrorSeen, Observation
from conformance.core.operations import Deduplication
from conformance.core.values import show, show_ms
from conformance.core.wording import counted, duration, shortened
from conformance.own_job.analyzed_plan import TITLES, JobPlan, is_event_time, keys_of, without_numbers
from conformance.own_job.lateness import shortest_above
from conformance.own_job.sample_arrivals import FAR_AHEAD
from conformance.own_job.treatment import TreatedRow, TreatedRows, dropped_in, numbers_of
from conformance.query.reading import PlanNode
from conformance.query_progress.causes import (
    Cause,
    future_row,
    newest_first,
    short_delay,
    silent_source,
    units,
    written,
)
from conformance.query_progress.tracks import Queries, Run
from conformance.query_progress.wire import Progress

_FEW = 3
"""How many times the delay a row from the future is at least ahead, and how many rows there are at least."""
_MANY = 10
"""Of so many rows, at most one is from the future, and one of fewer."""
_HALF_HOUR_MS = 1_800_000
_YEAR_10000 = 253_402_300_800
"""In seconds since 1970. Spark 3.0 to 3.5 read no timestamp in the text that `from_unixtime` makes of this number or a larger one."""
_MICROS = (10**15, 25 * 10**14)
"""In microseconds since 1970, times from 2001 to 2049."""
_PATTERN = re.compile(r"[yYuM dDHhKkmsSaEXxZzVT'/.:\-]*(?:y|Y|u|d|H|h|m){2}[yYuM dDHhKkmsSaEXxZzVT'/.:\-]*")
_ARGUMENT = re.compile(r",\s*(?=\S[^,)]*[ '/.:\-])([yYuMdDHhKkmsSaEXxZzVT' /.:\-]+?)\s*[,)]")
"""A pattern of times as Spark shows it among the arguments of a function, without quotes."""
_UNPARSED = re.compile(
    r"CANNOT_PARSE_TIMESTAMP|could not be parsed|week-based patterns|DATETIME_PATTERN|Fail to (recognize|parse)", re.I
)
_QUOTED = re.compile(r"(?:[Tt]ext|parse) '([^']*)'")
_BY_WATERMARK = re.compile(r"state cleanup \[ left (= null)?.*?, right (= null)?")
_LOCAL = re.compile(r"\d:\d\d(:\d\d(\.\d+)?)?\s*$")
"""A text with a time of day and no zone after it."""
_APPENDING, _REFUSING = ("kafka", "memory"), ("csv", "delta", "json", "orc", "parquet", "table", "text")
"""Sinks that append each row in update mode too, and those that do not take this mode."""
_APPEND_REFUSED = re.compile(r"without watermark|UNSUPPORTED_OPERATION|STREAMING_OUTPUT_MODE", re.I)


@dataclass(frozen=True)
class Explained:
    """What an explanation is made of."""

    case: Case
    seen: Observation
    plan: JobPlan
    treated: TreatedRows
    trigger: str
    zone: str = "UTC"
    """Of the session."""
    sink: str = ""
    kept_later: bool = False
    """Whether a row much later than all others removed none of its state."""

    @cached_property
    def run(self) -> Run | None:
        """The last run of the query as its progress shows it; None if no micro-batch ran."""
        queries = Queries()
        queries.read(Progress.model_validate(batch.progress) for batch in self.seen.batches if batch.progress)
        return next((run for query in queries.by_id.values() for run in reversed(query.runs) if run.batches), None)


def causes_of(job: Explained) -> tuple[Cause, ...]:
    """Return the causes, what explains most first; a cause that another explains is not named."""
    error = job.seen.error
    if error and (refused := _unparsed(error, job.plan) or _overflow(job, error) or _refused(error)):
        return (refused,)

    def of_run(found: Callable[[Run], Iterator[Cause]]) -> Cause | None:
        return next(found(job.run), None) if job.run else None

    alone = _units(job) or _nulls(job) or _zone(job) or _other_time(job) or of_run(newest_first)
    # Without the rows, progress shows it.
    alone = alone or (_future_row(job) if job.treated.prediction is not None else of_run(future_row))
    # A value that is null does not make other rows late, as another pattern does.
    if alone and alone.id != "null-event-time":
        return (alone,)
    late = _partition(job) or _short_delay(job)
    if alone:
        return (alone, late) if late else (alone,)
    never = tuple(_never_removed(job))
    waits = None if never or job.seen.error else of_run(silent_source) or _waits(job)
    return tuple(cause for cause in (late, _again(job), *never, waits) if cause is not None)


def _units(job: Explained) -> Cause | None:
    """Look at the event times in progress, which are those of one watermark, and at those of each stream."""
    means = {"": job.run.average or 0} if job.run else {}
    for stream in job.case.streams:
        times = [row.time_us // 1000 for row in job.treated.rows if row.stream == stream and row.time_us is not None]
        means |= {f" of {stream}": sum(times) // len(times)} if times else {}
    return next((cause for of, mean in means.items() if job.run for cause in units(mean, job.run.ended, of)), None)


@cache
def _mistakes() -> tuple[Mapping[str, str], ...]:
    return tuple(read_data("conformance.own_job", "pattern_mistakes.yaml"))


def _mistake(text: str) -> tuple[str, str] | None:
    """Say what is wrong with a pattern of times in a text, and what to write; None if nothing shows."""
    for pattern in _PATTERN.findall(text):
        for mistake in _mistakes():
            if re.search(mistake["pattern"], pattern):
                return f"in {pattern.strip()!r} {mistake['why']}", mistake["instead"]
    return None


def _unparsed(error: ErrorSeen, plan: JobPlan) -> Cause | None:
    message = error.message
    if _UNPARSED.search(message) is None:
        return None
    made = filter(None, map(_mistake, (*(mark.expression for mark in plan.watermarks), message)))
    text, rest = _QUOTED.search(message), re.search(r"unparsed text found at index (\d+)", message)
    left = f"it ends before {text[1][int(rest[1]) :]!r}" if text and rest else "see the text"
    fix = "compare the pattern with the text; try_to_timestamp gives null in place of the error"
    why, fix = next(made, (left, fix))
    evidence = f"the query fails: {f'the text {text[1]!r} does not parse' if text else shortened(error.first_line, 90)}"
    return Cause.of("event-time-not-parsed", evidence, why=why, fix=fix)


def _overflow(job: Explained, error: ErrorSeen) -> Cause | None:
    """In ANSI mode, times after the last that Spark has: of microseconds that are read as seconds."""
    numbers = (item for row in job.treated.rows for item in row.values.items() if isinstance(item[1], int))
    micros = next((f"{name} is {number}" for name, number in numbers if _MICROS[0] < number < _MICROS[1]), None)
    if micros is None or "overflow" not in error.message:
        return None
    return Cause.of("microseconds-as-seconds", f"the query fails: {shortened(error.first_line, 90)}", micros)


def _refused(error: ErrorSeen) -> Cause | None:
    named = (id for id, said in written().items() if "error" in said and re.search(said["error"], error.message))
    evidence = f"the query is refused: {shortened(error.first_line, 90)}"
    return next((Cause.of(id, evidence) for id in named), None)


def _zone(job: Explained) -> Cause | None:
    """Text without a zone whose rows are late by no more than the zone of the session is from UTC, or than its clock was set back."""
    made = " ".join(mark.expression for mark in job.plan.watermarks if "(" in mark.expression)
    # The last is that of to_utc_timestamp, which the text is of, whatever the zone of the session.
    zone, words = [job.zone, *re.findall(r"\b[A-Z]\w+/[\w/]+", made)][-1], re.findall(r"\w+", made)
    local = {
        row: name
        for row in job.treated.rows
        for name, text in row.values.items()
        if name in words and isinstance(text, str) and _LOCAL.search(text)
    }
    late = job.treated.of("late")
    if not late or not local or zone not in available_timezones():
        return None
    worst, evidence = _worst(late)
    by, before, at, after = (worst.late_by_ms or 0, *(_offset(zone, worst, hours) for hours in (-2, 0, 2)))
    if before != after and by <= abs(before - after) and {*late} <= local.keys():
        way, set_by = "back" if after < before else "forward", duration(abs(before - after))
        return Cause.of("daylight-saving", evidence, column=local[worst], zone=zone, way=way, offset=set_by)
    # East of UTC these rows are too early; west of it they are too late, and move the watermark past the others.
    if by <= abs(at) and len(local) < len(job.treated.rows) and all((row in local) == (at > 0) for row in late):
        column = next(iter(local.values()))
        return Cause.of("session-zone", evidence, column=column, zone=zone, offset=duration(abs(at)))
    return None


def _worst(late: Sequence[TreatedRow]) -> tuple[TreatedRow, str]:
    """Return the row that is late by most, and say how late rows are."""
    worst = max(late, key=lambda row: row.late_by_ms or 0)
    by = f", by {duration(worst.late_by_ms)}" if worst.late_by_ms is not None else ""
    return worst, f"{counted(len(late), 'row')} late, such as {worst.shown()}{by}"


def _offset(zone: str, row: TreatedRow, hours: int = 0) -> int:
    """How far a zone is from UTC at the event time of a row or hours later, in ms."""
    at = datetime.fromtimestamp((row.time_us or 0) / 10**6, UTC) + timedelta(hours=hours)
    return int((at.astimezone(ZoneInfo(zone)).utcoffset() or timedelta()).total_seconds() * 1000)


def _nulls(job: Explained) -> Cause | None:
    nulls, marks, rows = job.treated.of("no event time"), job.plan.watermarks, job.treated.rows
    if not nulls or not marks:
        return None
    evidence = [f"{len(nulls)} of {counted(len(rows), 'row')} have no event time, such as {nulls[0].shown()}"]
    made = next((mark.expression for mark in marks if not mark.expression.isidentifier()), None)
    if made is None:
        return Cause.of("null-event-time", *evidence, f"{marks[0].column} is null in the source")
    evidence.append(f"{shortened(made, 80)} gives null")
    words = re.findall(r"\w+", made)
    numbers = (value for row in nulls for name, value in row.values.items() if name in words)
    if "from_unixtime" in words and any(isinstance(number, int) and number >= _YEAR_10000 for number in numbers):
        return Cause.of("milliseconds-as-seconds", *evidence)
    if mistake := _mistake(made):
        return Cause.of("event-time-not-parsed", *evidence, why=mistake[0], fix=mistake[1])
    return Cause.of("null-event-time", *evidence)


def _other_time(job: Explained) -> Cause | None:
    """A pattern that gives each row an event time, but not the time that is meant: 01:05 for 13:05."""
    for mark in job.plan.watermarks:
        for mistake in filter(None, map(_mistake, _ARGUMENT.findall(mark.expression))):
            evidence = [f"the event time is {shortened(mark.expression, 90)}"]
            if late := job.treated.of("late"):
                evidence.append(_worst(late)[1])
            return Cause.of("other-event-time", *evidence, why=mistake[0], fix=mistake[1])
    return None


def _future_row(job: Explained) -> Cause | None:
    """A few rows far ahead of all others, after which every row was late; without them, the model drops hardly any."""
    treated, late = job.treated, job.treated.of("late")
    timed = [row for row in treated.rows if row.time_us is not None and row.treatment != "filtered"]
    timed.sort(key=lambda row: row.time_us or 0)
    least = max(_FEW * (job.plan.delay_ms or 0), _HALF_HOUR_MS)
    for few in range(1, 1 + max(len(timed) // _MANY, 1)) if late and len(timed) >= _FEW else ():
        ahead, first = ((row.time_us or 0) // 1000 for row in (timed[-few], timed[-few - 1]))
        future = timed[-few:]
        after = [row for row in timed[:-few] if row.step > min(row.step for row in future)]
        if ahead - first < least or len(after) < 2 or any(row.treatment != "late" for row in after):
            continue
        left = treated.late_without({number for number, row in enumerate(treated.rows) if row in future})
        if left * 2 <= len(late):
            more = f" and {few - 1} more" if few > 1 else ""
            text = f"{future[0].shown()}{more}: {duration(ahead - first)} after all others"
            without = f"without {'them' if more else 'it'} {left} of {len(treated.rows) - few} rows are late, by the reference model"
            return Cause.of("future-row", f"{text}; all {len(after)} rows that came later are late", without)
    return None


def _partition(job: Explained) -> Cause | None:
    """Late rows that are all of one partition of a topic, whose own rows come in order."""
    parts: dict[str, list[TreatedRow]] = {}
    for row in job.treated.rows:
        if "partition" in row.values and row.time_us is not None:
            parts.setdefault(f"{row.stream}-{row.values['partition']}", []).append(row)
    behind = [part for part, rows in parts.items() if any(row.treatment == "late" for row in rows)]
    if len(parts) < 2 or len(behind) != 1:
        return None
    rows, slack = parts[behind[0]], (job.plan.delay_ms or 0) * 1000
    late = [row for row in rows if row.treatment == "late"]
    if any((b.time_us or 0) < (a.time_us or 0) - slack for a, b in pairwise(rows)):
        return None
    text = f"all late rows, {len(late)} of {len(job.treated.rows)}, are of it, such as {late[0].shown()}; its rows are in order"
    return Cause.of("lagging-partition", text, partition=behind[0])


def _short_delay(job: Explained) -> Cause | None:
    late, treated = job.treated.of("late"), job.treated
    if not late:
        return next(short_delay([job.run] if job.run and (job.run.dropped or not treated.prediction) else []), None)
    worst, _ = _worst(late)
    text = f"{described(job.plan.first)} dropped {counted(len(late), 'row')}, such as {worst.shown()}: {worst.passed}"
    longer = f"a longer delay than {job.plan.watermarks[0].delay}"
    if (delay := _delay_that_keeps(job.treated, job.plan.delay_ms)) is not None:
        total = sum(row.treatment not in ("filtered", "no event time") for row in treated.rows)
        longer = f"a delay of {delay} keeps {total} of {total} rows (by the reference model; {job.plan.watermarks[0].delay} now)"
    together = treated.late_together()
    apart = f"in one micro-batch {together or 'none'} of them would be late: a rate limit that divides a backlog makes rows late"
    return Cause.of("short-delay", text, *([apart] if together < len(late) else []), longer=longer)


def _delay_that_keeps(treated: TreatedRows, size: int | None) -> str | None:
    """The shortest delay, rounded as by `whole`, with which the model drops no row; None if no such delay is known."""
    if size is None:
        return None
    delay = shortest_above(size + max((row.late_by_ms or 0 for row in treated.of("late")), default=0))
    text = f"{delay // 1000} seconds" if delay <= 90_000 else f"{delay // 60_000} minutes"
    return text if dropped_in(treated.with_delay(text)) == 0 else None


def _again(job: Explained) -> Cause | None:
    """Rows with the keys of an earlier row: of a key that dropDuplicatesWithinWatermark had forgotten, or in a sink that only appends."""
    treated, updates = job.treated, job.case.output_mode == "update"
    if updates and job.sink in _REFUSING:
        does = "takes no updates"
        return Cause.of("sink-without-update-mode", "Spark refuses such a query", sink=job.sink, does=does)
    forgets = job.plan.first is not None and job.plan.first.name == "DeduplicateWithinWatermark"
    appends = forgets or (updates and job.sink in _APPENDING)
    if not appends or treated.prediction is None or treated.case is None or treated.unknown:
        return None
    # A projection may rename the keys, or make one value of each result, as for a topic: only the model knows them.
    operation, columns = treated.case.query.operations[-1], [column.name for column in treated.prediction.columns]
    keys = operation.columns if isinstance(operation, Deduplication) else columns[:-1]
    rows = [row for step in treated.prediction.steps for batch in step.batches for row in batch.emitted]
    keys_of_rows = [tuple(row[columns.index(name)] for name in keys) for row in rows]
    again = [row for at, (row, key) in enumerate(zip(rows, keys_of_rows, strict=True)) if key in keys_of_rows[:at]]
    if not again:
        return None
    *_, number = numbers_of(again[0], columns)
    such = treated.rows[number].shown()
    evidence = f"{len(again)} of {counted(len(rows), 'row')} out have the keys of an earlier one, such as {such}"
    if forgets:
        return Cause.of("duplicates-after-the-delay", evidence, delay=job.plan.watermarks[0].delay)
    return Cause.of("sink-without-update-mode", evidence, sink=job.sink, does="keeps each of them")


def _never_removed(job: Explained) -> Iterator[Cause]:
    """Yield the operators from which the watermark cannot remove state, by the plan."""
    plan, complete = job.plan, job.case.output_mode == "complete"
    refused = (error := job.seen.error) is not None
    if error is not None and not _APPEND_REFUSED.search(error.message):
        return
    # Only what ran tells whether the code of a state function removes state.
    for node, operator in zip(plan.stateful, job.run.operators if job.run else (), strict=False):
        unset = "NoTimeout" in node.arguments or ("Transform" in node.name and operator.looks is False)
        if "WithState" in node.name and operator.grows and (unset or job.kept_later):
            later = "" if unset else f", not by a row {FAR_AHEAD.days} days later either"
            yield Cause.of("state-without-timeout", f"{operator.title}: {operator.rows:,} rows, never fewer{later}")
    sizes = (str(sum(batch.state)) for batch in job.seen.batches if batch.kind == "data")
    evidence = f"rows in state after each micro-batch: {', '.join(sizes)}"
    evidence = "the query is refused: it needs a watermark there" if refused else evidence
    joins = iter(plan.joins)
    for node in plan.stateful:
        name = TITLES.get(node.name, "the operator")
        below = plan.marks(node)
        # A Distinct has the columns of what is below it.
        below_it = (other for other in node.downwards() if other.name in ("Project", "EventTimeWatermark"))
        kept = next(below_it, node) if node.name == "Distinct" else node
        keys = keys_of(kept)
        if node.name == "Join":
            ran = next(joins, None)
            cleanup = _BY_WATERMARK.search(ran.arguments) if ran else None
            sides = cleanup.groups() if cleanup else ("= null",) * 2 if refused else ()
            held = " and ".join(side for side, text in zip(("left", "right"), sides, strict=False) if text)
            if held:
                cause = "join-without-bound" if below else "no-watermark"
                yield Cause.of(cause, f"the state of the {held} side is never removed; {evidence}")
            continue
        by_time = any(map(is_event_time, keys)) or kept.name == "EventTimeWatermark"
        if complete or by_time or node.name not in TITLES or node.name.endswith("WithinWatermark"):
            continue
        columns = ", ".join(map(without_numbers, keys)) or "all columns"
        if not plan.watermarks:
            yield Cause.of("no-watermark", f"{name} by {columns}: {evidence}")
        elif not below:
            yield Cause.of("watermark-after-operator", f"{name} by {columns}: {evidence}", operator=name)
        elif node.name == "Aggregate":
            what = {"column": below[0].column, "operator": name, "keys": columns}
            yield Cause.of("watermark-on-other-column", evidence, **what)
        elif keys or node.name == "Deduplicate":
            yield Cause.of("deduplication-without-event-time", f"{name} by {columns}: {evidence}")


def _waits(job: Explained) -> Cause | None:
    batches = job.seen.batches
    out, held = sum(len(batch.rows) for batch in batches), sum(batches[-1].state) if batches else 0
    if not held or job.case.output_mode != "append" or job.plan.first is None:
        return None
    waiting, watermark = job.treated.of("in state"), batches[-1].next_watermark or 0
    times = f"{counted(held, 'row')} in state, {out} out; watermark {show_ms(watermark)}"
    # What left the first operator may wait in one above it.
    first = job.plan.stateful[0] if not out and any(batches[-1].state[:-1]) else job.plan.first
    if job.trigger == "default" and batches[-1].watermark != watermark and job.treated.held_without_no_data:
        return Cause.of("no-data-batches-off", times)
    if first.name == "Join":
        outer = re.match(r"\W*(Left|Right|Full)Outer", first.arguments)
        if not out and (outer is None or not waiting):
            return Cause.of("join-waits", times)
        if outer is None or not waiting or job.treated.of("without partner"):
            return None
        matched = f"{counted(len(waiting), 'row')} without a partner {'wait' if len(waiting) > 1 else 'waits'}"
        return Cause.of("outer-join-waits", f"{matched}, such as {waiting[0].shown()}", times)
    if first.name not in ("Aggregate", "Distinct"):
        return None
    passed = [row for row in waiting if row.window and row.window.end <= watermark * 1000]
    if job.trigger == "once" and passed:
        last = passed[0].window
        such = f"such as the window that ends at {show(last.end) if last else ''}"
        return Cause.of("last-windows-left-by-once", times, such)
    if job.trigger in ("once", "availableNow"):
        return Cause.of("last-windows-left", times, *released(job.treated, job.plan), trigger=job.trigger)
    return Cause.of("append-before-any-later-row", times, *released(job.treated, job.plan)) if not out else None


def released(treated: TreatedRows, plan: JobPlan) -> Iterator[str]:
    """Yield what must come so that the next window comes out."""
    windows = sorted({row.window for row in treated.of("in state") if row.window}, key=lambda span: span.end)
    # What leaves the first operator may wait in one above it.
    if windows and not treated.unknown:
        first, delay = windows[0], plan.delay_ms
        row = f", by a row at {show(first.end + delay * 1000)} or later" if delay is not None else ""
        yield f"the window {show(first.start)} – {show(first.end)} comes out when the watermark reaches its end{row}"


def described(node: PlanNode | None) -> str:
    """``the aggregation by window, who``"""
    keys = ", ".join(map(without_numbers, keys_of(node))) if node is not None and node.name != "Join" else ""
    title = TITLES.get(node.name, "the operator") if node is not None else "the query"
    return f"{title} by {keys}" if keys else title
