"""Why a query emits nothing, drops rows or keeps state, as far as its progress shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import chain, islice, pairwise
from typing import Final

from conformance.core.data import Json, read_data
from conformance.core.wording import counted, duration
from conformance.language.catalogue import Catalogue
from conformance.query_progress.tracks import OperatorTrack, Query, Run, same_place, short_name
from conformance.query_progress.wire import instant
from conformance.suite.discovery import shipped

_HALF_HOUR_MS: Final = 1_800_000
_DAY_MS: Final = 86_400_000
_LONGEST_MS: Final = 32 * _DAY_MS
"""Longer than windows, join bounds and timeouts usually are."""
_HALF_DAY_MS: Final = _DAY_MS // 2
_TWICE: Final = 2
_FEWER: Final = 4
"""How many times fewer rows a micro-batch has after a restart that divides a backlog."""
_MANY: Final = 10
"""How many times further than others a jump goes, or a partition is behind."""
_UNITS: Final = (
    (250, 1_100, "milliseconds-as-seconds"),
    (1_100, 1_100_000, "microseconds-as-seconds"),
    (1 / 2_000, 1 / 600, "seconds-as-milliseconds"),
    (1 / 2_000_000, 1 / 600_000, "seconds-as-microseconds"),
)
"""Event times as a multiple of the clock's, and the cause. Microseconds read as seconds overflow."""
_RELEASING: Final = ("stateStoreSave", "sessionWindowStateStoreSaveExec", None)
"""Operators that emit in append mode what the watermark passes; before 3.2 none has a name."""
_USING: Final = ("dedupeWithinWatermark", "sessionWindowStateStoreSaveExec")
"""Operators that Spark refuses without a watermark that they use."""
_JOIN: Final = "symmetricHashJoin"
_GROWING: Final = {_JOIN: "join-without-bound", "dedupe": "deduplication-without-event-time"}


@dataclass(frozen=True)
class Cause:
    id: str
    what: str
    evidence: tuple[str, ...]
    rule: str
    """The name of a statement of the specification: ``idle-stream-blocks``."""
    fix: str

    @classmethod
    def of(cls, id: str, *evidence: str, **values: object) -> Cause:
        said = written()[id]
        return cls(id, said["what"].format(**values), evidence, said["rule"], said["fix"].format(**values))

    def lines(self, number: int, detail: int) -> Iterator[str]:
        """Yield it as lines; ``detail`` 1 leaves out the sentence of its rule, -1 evidence and rule too."""
        yield f"  ✗ {number}. {self.what}"
        if detail >= 0:
            yield from (f"      {line}" for line in self.evidence)
            number_of, sentence = rule(self.rule)
            yield f"      rule {number_of}" + (f": {sentence}" if detail > 1 else f" ({self.rule})")
        yield f"      fix: {self.fix}"

    def record(self) -> dict[str, Json]:
        return {**asdict(self), "rule": rule(self.rule)[0], "behaviour": self.rule}


@cache
def rule(name: str) -> tuple[str, str]:
    """Return the number and the sentence of a statement of the specification."""
    catalogue = Catalogue.at(shipped())
    assert catalogue is not None
    entry = catalogue.behaviours[name]
    return str(entry["number"]), " ".join(str(entry["sentence"]).split())


@cache
def written() -> dict[str, dict[str, str]]:
    causes: dict[str, dict[str, str]] = read_data("conformance.query_progress", "causes.yaml")
    return causes


def causes_of(query: Query) -> tuple[Cause, ...]:
    """Return the causes, what explains most first; a cause that another explains is not named."""
    if not (runs := query.worked):
        return tuple(_no_rows(query.runs))
    run = runs[-1]
    # Event times in progress are those of one watermark, which another one may hold.
    wrong = chain(units(run.average or 0, run.ended), units(run.watermark or 0, run.ended, " of the watermark"))
    for alone in chain(wrong, _nulls(run), newest_first(run), future_row(run), _other_restart(runs)):
        return (alone,)
    late = [*_backlog(runs), *short_delay(runs)]
    dropped = chain(_changed_delay(runs), _partition(run), _half_a_day(run) if late else (), late)
    still = chain(silent_source(run), _no_data(run), _no_rows(query.runs), _nothing_released(runs))
    return (*islice(dropped, 1), *islice(still, 1), *(cause for cause in growth(run) if isinstance(cause, Cause)))


def units(average: int, clock: int, of: str = "") -> Iterator[Cause]:
    """Compare event times with the clock: a wrong unit makes them a thousand times as far from 1970. ``of``: whose they are."""
    ratio = average / clock
    times = f"{ratio:,.0f}" if ratio > 1 else f"1/{1 / ratio:,.0f}" if ratio > 0 else "0"
    for low, high, cause in _UNITS:
        if low < ratio < high:
            yield Cause.of(
                cause, f"event times{of} are about {instant(average)}, the clock {instant(clock)}: ratio {times}"
            )


def _nulls(run: Run) -> Iterator[Cause]:
    # Without state nothing is dropped, and a deduplication lets such rows through.
    if run.nulls_in is not None and any(not (one.name or "").startswith("dedupe") for one in run.operators):
        which = "every row" if run.highest == 0 else "rows"
        text = f"{which} of micro-batch {run.nulls_in}: eventTime.min is 1970-01-01T00:00, as which Spark counts null"
        yield Cause.of("null-event-time", text)
    if run.without_event_time and not run.with_event_time and not run.watermark:
        text = f"{run.rows_in:,} rows in {counted(run.batches, 'micro-batch')}, eventTime has no max in any"
        yield Cause.of("no-event-time", text)


def future_row(run: Run) -> Iterator[Cause]:
    jump = run.jump
    if not run.drops or jump is None or run.watermark is None or not jump.after or jump.behind < jump.after:
        return
    if jump.by >= max(_MANY * run.spread, _HALF_HOUR_MS if jump.after > 1 else _DAY_MS):
        newest = f"newest event time {instant(jump.newest_after)}, behind the watermark {instant(run.watermark)}"
        yield Cause.of(
            "future-row",
            f"micro-batch {jump.batch}: newest event time {instant(jump.to)}, {duration(jump.by)} after all others",
            f"{counted(jump.after, 'micro-batch')} after it: {newest}; {run.dropped_shown}",
        )


def newest_first(run: Run) -> Iterator[Cause]:
    """Find micro-batches that are each older than the one before, so that the rows of all but the first are late."""
    if run.drops and run.late is not None and run.backwards >= max(2, run.with_event_time - 1):
        batch, lowest, watermark = run.late
        older = f"each of {counted(run.backwards, 'micro-batch')} is older than all before it: in micro-batch {batch}"
        times = f"the oldest event time is {instant(lowest)}, the watermark {instant(watermark)}"
        yield Cause.of("newest-files-first", f"{older} {times}")


def _other_restart(runs: list[Run]) -> Iterator[Cause]:
    policy = "spark.sql.streaming.multipleWatermarkPolicy"
    for before, after in pairwise(runs):
        old, new = ([source.description for source in run.sources] for run in (before, after))
        where = f"micro-batch {after.first_batch}"
        if not all(map(same_place, old, new)) and sorted(old) == sorted(new):
            names = f"{', '.join(map(short_name, old))}, then {', '.join(map(short_name, new))}"
            yield Cause.of("restart-with-other-order", f"up to {where} the sources were {names}")
        was, now = (run.settings.get(policy) or "min" for run in (before, after))
        if was != now and len(new) > 1:
            yield Cause.of("restart-with-other-policy", f"{where}: {policy} {was} → {now}", kept=was)


def _backlog(runs: list[Run]) -> Iterator[Cause]:
    """Find a restart with smaller micro-batches since which rows are late."""
    for before, after in pairwise(runs):
        # Rows that come live take as long as their event times.
        moved, took = (after.highest or 0) - (after.points[0][2] if after.points else 0), after.ended - after.started
        fewer = before.most_rows >= _FEWER * after.most_rows > 0
        if fewer and after.drops and before.late is None and moved >= _TWICE * took:
            sizes = f"at most {before.most_rows:,} rows in a micro-batch, none late, then {after.most_rows:,}"
            yield Cause.of("backlog-in-many-batches", f"{sizes}; since then {after.dropped_shown}")


def _half_a_day(run: Run) -> Iterator[Cause]:
    """Find event times that fell back by about twelve hours and did not come up again, as with ``hh`` for ``HH``."""
    by, batch = run.disorder
    if _HALF_DAY_MS - 3_600_000 <= by <= _HALF_DAY_MS and run.highest_in < batch:
        why = "its times go back by about 12 h and stay there, as those of hh for HH do"
        fix = "compare the pattern with a row of the source: HH is the hour from 0 to 23, hh needs a for AM or PM"
        yield Cause.of("other-event-time", f"micro-batch {batch}: {duration(by)} behind", why=why, fix=fix)


def _changed_delay(runs: list[Run]) -> Iterator[Cause]:
    for earlier, later in pairwise(runs):
        before, after = earlier.delay, later.delay
        if before is None or before == after or later.highest is None or later.watermark is None:
            continue
        behind = later.highest - later.watermark
        waits = not later.delays and len(later.sources) == 1 and later.with_event_time > 2 and behind > before
        if after is not None or waits:
            now = duration(after) if after is not None else f"over {duration(behind)}: it waits"
            text = f"micro-batch {later.first_batch}: newest event time − watermark was {duration(before)}, now {now}"
            yield Cause.of("restart-with-changed-delay", f"{text}; since then {later.dropped_shown}")


def _partition(run: Run) -> Iterator[Cause]:
    for source in run.sources:
        behind = sorted(source.behind.items(), key=lambda one: -one[1])
        if run.dropped and len(behind) > 1 and behind[0][1] > _MANY * max(behind[1][1], 1):
            (worst, lag), (_, other) = behind[:2]
            text = f"{worst} is {lag:,} offsets behind, the next {other:,}; {run.dropped:,} rows dropped"
            yield Cause.of("lagging-partition", text, partition=worst)


def short_delay(runs: list[Run]) -> Iterator[Cause]:
    """Find runs that dropped rows, and the delay that would have kept the oldest."""
    lossy = [run for run in runs if run.drops]
    for run in sorted(lossy, key=lambda run: -run.needed)[:1]:
        total = f"{sum(one.dropped for one in lossy):,} dropped in {len(lossy)} runs"
        evidence = [total] if len(lossy) > 1 and run.counts_dropped else []
        for one in run.operators:
            first = ", ".join(map(str, one.dropped_in))
            evidence += [f"{one.title} dropped {one.dropped:,}, first in micro-batch {first}"] if one.dropped else []
        if run.late is not None:
            batch, lowest, watermark = run.late
            evidence.append(f"micro-batch {batch}: oldest event time {instant(lowest)}, watermark {instant(watermark)}")
        evidence += [] if run.counts_dropped else [run.dropped_shown]
        longer = f"a delay longer by more than {duration(run.needed)}" if run.needed else "a longer delay"
        if (delay := run.delay) is not None and run.needed:
            longer = f"a delay of more than {duration(delay + run.needed)} ({duration(delay)} now) keeps all so far"
        yield Cause.of("short-delay", *evidence, longer=longer)


def silent_source(run: Run) -> Iterator[Cause]:
    """Find the source that brings nothing while others do, and the watermark stands still."""
    active = max(run.since_move.values(), default=0)
    if run.watermark is None or run.highest is None or len(run.sources) < 2 or run.moved_in is None or active < 2:
        return
    if not run.operators:
        return
    if run.highest_at_move is not None and run.highest <= run.highest_at_move:
        return
    for place, source in enumerate(run.sources):
        usual = (run.batches - run.without_rows - source.silent) / max(source.batches, 1)
        if run.since_move[place] <= (source.last_batch == run.moved_in) and source.silent > _TWICE * usual:
            last = f"{counted(source.rows, 'row')}{source.last_shown}"
            yield Cause.of(
                "idle-source" if source.rows or run.first_watermark else "source-without-data",
                f"source {place} {short_name(source.description)}: {last}; another had rows in {counted(active, 'micro-batch')} since",
                f"watermark {instant(run.watermark)} since micro-batch {run.moved_in}; newest event time {instant(run.highest)}",
                place=place,
            )


def _no_rows(runs: list[Run]) -> Iterator[Cause]:
    """Find triggers without rows, from the first on or for much longer than ever before."""
    run, operators = runs[-1], [operator for run in runs for operator in run.operators]
    quiet, last = run.ended - max(run.started, run.rows_at or 0), max(run.rows_at or 0 for run in runs)
    if last and quiet >= max(_HALF_HOUR_MS, 2 * max(one.pause for one in runs)):
        held = sum(operator.rows for operator in [one.operators for one in runs if one.batches][-1])
        text = f"the last rows came at {instant(last)}; none in {duration(quiet)}; {held:,} in state"
        yield Cause.of("no-rows", text)
    if not last and not any(operator.peak for operator in operators) and not any(one.rows_out for one in runs):
        batches = counted(sum(one.batches for one in runs), "micro-batch")
        yield Cause.of("no-rows", f"not a row in {duration(quiet)}; {batches} ran")


def _no_data(run: Run) -> Iterator[Cause]:
    # In complete mode, which emits all in each micro-batch, none needs to follow.
    releases = (one.evicts or (one.name in _RELEASING and run.rows_out == 0) for one in run.operators)
    if run.no_data_missing is not None and any(releases):
        batch, ran, newer = run.no_data_missing
        then = f"it then was {instant(newer)}, and none ran while idle"
        yield Cause.of("no-data-batches-off", f"micro-batch {batch} ran with watermark {instant(ran)}; {then}")


def _nothing_released(runs: list[Run]) -> Iterator[Cause]:
    run = runs[-1]
    if any(one.rows_out != 0 for one in runs) or not run.operators or run.watermark is None or run.highest is None:
        return
    # From the top: what an operator releases may wait in one above it.
    last = next((one for one in run.operators if one.rows), run.operators[-1])
    if last.rows and (last.name == _JOIN or (not last.evicts and last.name in _RELEASING)):
        times = f"newest event time {instant(run.highest)}, watermark {instant(run.watermark)}"
        cause = "join-waits" if _joins(run, last) else "append-before-any-later-row"
        yield Cause.of(cause, f"{counted(last.rows, 'row')} in state, 0 out; {times}")


def growth(run: Run) -> Iterator[Cause | str]:
    """Say why the state of operators grows: causes, or what is not known."""
    yield from filter(None, (_growth(run, at) for at in range(len(run.operators))))


def _growth(run: Run, at: int) -> Cause | str | None:
    operator, watermark, points = run.operators[at], run.watermark, run.points
    name = operator.name or ""
    by = max(watermark - points[0][2], 0) if watermark is not None and points else 0
    same = f"windows, join bounds or timeouts longer than {duration(by)}" if by else "a timeout by the clock"
    # In complete mode all rows of the state come out, and no micro-batch without data runs; a join has none.
    complete = run.all_out if run.rows_out is not None else not run.without_rows and watermark is not None
    of_code = "WithState" in name
    groups = name in _USING or (name not in _GROWING and not of_code and (complete or run.rows_out == 0))
    if not operator.grows or (groups and not _joins(run, operator)):
        return None
    text = f"{operator.title}: {operator.rows:,} rows, more after {counted(operator.rises, 'micro-batch')}, never fewer"
    # Among the keys of a deduplication, windows longer than an hour are rare.
    long, looks = 2 * _HALF_HOUR_MS if name == "dedupe" else _LONGEST_MS, operator.looks
    if watermark is None and not of_code:
        why = "eventTime has no watermark"
    elif looks is False:
        why = f"it did not look for rows to remove in {counted(operator.not_looked, 'micro-batch')}, which would take time"
    elif looks is None and run.no_data_missing is not None and len(run.operators) == 1:
        why = f"the watermark moved to {instant(run.no_data_missing[2])}, and no micro-batch without data ran; they may be off"
    elif looks is None and by >= long:
        why = f"the watermark has moved by {duration(by)}"
    else:
        return f"{text}, as with {same}" if of_code or looks is None else None
    other = "no-watermark" if watermark is None else "watermark-not-used" if name else "state-never-removed"
    return Cause.of("state-without-timeout" if of_code else _GROWING.get(name, other), text, why)


def _joins(run: Run, operator: OperatorTrack) -> bool:
    """Whether an operator is a join: by its name or, without one, as it keeps each row of several sources."""
    nameless = operator.name is None and len(run.sources) > 1 and operator.rows == run.rows_in
    return nameless or operator.name == _JOIN
