"""The explanation of queries by their progress, as values, text and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from conformance.core.data import Json
from conformance.core.wording import counted, duration, shortened
from conformance.query_progress.causes import Cause, causes_of, growth
from conformance.query_progress.query_page import QueryPage
from conformance.query_progress.reading import Event, Skipped, Watched, events, events_in
from conformance.query_progress.tracks import Queries, Query, Run, same_place, short_name
from conformance.query_progress.waiting import WaitingState
from conformance.query_progress.wire import instant

UNKNOWN: Final = (
    "which rows were dropped or wait",
    "the length of windows and the bounds of joins",
    "the code of the query",
)
"""What progress does not tell."""
SOUND: Final = "no cause for missing rows or growing state"
_FEW: Final = 3


@dataclass(frozen=True)
class QueryExplanation:
    query: Query
    causes: tuple[Cause, ...]
    """What explains most comes first; none for a sound query."""

    def lines(self, detail: int = 2) -> Iterator[str]:
        """Yield the answer; ``detail`` 1 leaves out the sentences of rules, 0 all but the causes, -1 their evidence and rules too."""
        yield from self.page.lines(detail)
        yield from (f"  {line}" for line in self._notes(detail))

    def _notes(self, detail: int = 2) -> Iterator[str]:
        yield from (f"restart: {line}" for line in changes(self.query)) if detail >= 0 else ()
        yield from (f"not known: why state grows: {line}" for line in self._not_known())
        yield from _facts(self.query.worked) if self.query.worked and detail > 0 else ()

    def _not_known(self) -> Iterator[str]:
        """Yield the operators of which it does not show whether they will remove rows."""
        yield from (why for run in self.query.worked[-1:] for why in growth(run) if isinstance(why, str))

    @property
    def page(self) -> QueryPage:
        """Return the same for a page."""
        runs, number = self.query.worked, len(self.query.runs) - 1 + self.query.runs_left_out
        restarts = f", {counted(number, 'restart')}" if number else ""
        name = f'query "{self.query.name}"' if self.query.name else "query"
        ids = f"id {self.query.id[:8]}" + (f", run {runs[-1].id[:8]}" if runs else "")
        error = self.query.runs[-1].exception
        return QueryPage(
            f"{name} ({ids}): {_summary(runs)}{restarts}",
            self.causes,
            f"{SOUND} in this progress",
            tuple(self._notes()),
            self.query.over_time,
            f"it ended with an error: {shortened(error.splitlines()[0], 160)}" if error else "",
        )

    def record(self) -> dict[str, Json]:
        """Return the same for programs."""
        runs, left_out = [_run_record(run) for run in self.query.runs], self.query.runs_left_out
        about = {"id": self.query.id, "name": self.query.name, "restarts": len(runs) - 1 + left_out}
        changed, causes = [*changes(self.query)], [cause.record() for cause in self.causes]
        why = {"changed": changed, "causes": causes, "not_known": [*self._not_known()]}
        return {**about, "runs": runs, "runs_left_out": left_out, **why}


@dataclass(frozen=True)
class ProgressExplanation:
    """What the progress of queries explains: for each query its causes, and what was not read."""

    queries: tuple[QueryExplanation, ...]
    skipped: Skipped = field(default_factory=Skipped)
    state: WaitingState | None = None
    """What waits in the checkpoint, if it is given."""

    def lines(self, detail: int = 2) -> Iterator[str]:
        for query in sorted(self.queries, key=lambda query: not query.causes):
            yield from query.lines(detail)
        yield from self.notes()

    def notes(self) -> Iterator[str]:
        """Yield what waits in the checkpoint, and what holds for all queries."""
        yield from self.state.lines() if self.state else ()
        if self.skipped.count:
            first = "; ".join(self.skipped.first[:_FEW])
            yield f"skipped {self.skipped.count:,}: {first}" + ("; …" if self.skipped.count > _FEW else "")
        if self.queries:
            yield f"progress does not tell: {'; '.join(UNKNOWN)}"

    def disorder_lines(self) -> Iterator[str]:
        """Yield how far behind the oldest event times of each query's micro-batches were: all that progress tells of its delay."""
        for query in self.queries:
            yield next(query.lines(0))
            for by, batch in (run.disorder for run in query.query.worked):
                yield f"  at least 1 row was {duration(by)} behind the newest of earlier micro-batches, in micro-batch {batch}"
        yield "windows need less delay, by up to their length; how many rows are so late, progress does not tell"

    def record(self) -> dict[str, Json]:
        """Return the same for programs."""
        queries, skipped = [query.record() for query in self.queries], asdict(self.skipped)
        state = {"state": self.state.record()} if self.state else {}
        return {"queries": queries, "skipped": skipped, "not_told": [*UNKNOWN], **state}

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain_progress(iterable: Iterable[object]) -> ProgressExplanation:
    """Explain queries by their progress: lines of text, or what `recentProgress` and a listener give.

    Each query has its causes, what explains most first: why it emits nothing, drops rows or keeps more and more state. It needs neither
    Spark nor the code of the query, and holds one progress at a time.
    """
    return _explained(lambda skipped: events(iterable, skipped))


def explain_files(paths: Iterable[Path], opened: Watched, *, pictured: bool = False) -> ProgressExplanation:
    """Explain the queries of files and folders: JSON lines, a driver's log, an event log; ``pictured``: for a page."""
    return _explained(lambda skipped: events_in(paths, skipped, opened), pictured=pictured)


def changes(query: Query) -> Iterator[str]:
    """Yield what a restart changed, as far as progress shows it."""
    for before, after in pairwise(query.worked):
        where = f"before micro-batch {after.first_batch}"
        if before.delay is not None and after.delay is not None and before.delay != after.delay:
            yield f"{where}: delay {duration(before.delay)} → {duration(after.delay)}"
        for what, old, new in (
            ("sources", [one.description for one in before.sources], [one.description for one in after.sources]),
            ("operators", [one.title for one in before.operators], [one.title for one in after.operators]),
            ("sink", [before.sink], [after.sink]),
        ):
            if len(old) != len(new) or not all(map(same_place, old, new)):
                yield f"{where}: {what} {', '.join(map(short_name, old))} → {', '.join(map(short_name, new))}"
        for key in sorted({*before.settings, *after.settings}):
            if (old_value := before.settings.get(key)) != (new_value := after.settings.get(key)):
                yield f"{where}: {key} {old_value or 'unset'} → {new_value or 'unset'}"


def _explained(read: Callable[[Skipped], Iterable[Event]], *, pictured: bool = False) -> ProgressExplanation:
    queries = Queries(pictured=pictured)
    queries.read(read(queries.skipped))
    found = (query for query in queries.by_id.values() if query.runs)
    return ProgressExplanation(tuple(QueryExplanation(query, causes_of(query)) for query in found), queries.skipped)


def _summary(runs: list[Run]) -> str:
    if not runs:
        return "no micro-batch ran"
    first, last, read = runs[0].first_batch, runs[-1].last_batch, sum(run.batches for run in runs)
    times = " – ".join(instant(ms // 1000 * 1000) for ms in (runs[0].started, runs[-1].ended))
    some = f"{read:,} read, " if read != last - first + 1 else ""
    return f"micro-batches {first}–{last}, {some}{times}"


def _facts(runs: list[Run]) -> Iterator[str]:
    """Yield what the progress says, of sources and operators of the last run."""
    run, known = runs[-1], [one.rows_out for one in runs if one.rows_out is not None]
    out = f"{sum(known):,}" if len(known) == len(runs) else "not counted by the sink"
    lost = sum(one.dropped for one in runs)
    late = f"rows dropped: {lost:,}" if lost else run.dropped_shown
    yield f"rows: {sum(one.rows_in for one in runs):,} in, out: {out}; {late}"
    first = next((one.first_watermark for one in runs if one.first_watermark is not None), None)
    if run.watermark is None or first is None:
        yield "watermark: none in eventTime"
    else:
        newest = f"; newest event time {instant(run.highest)}" if run.highest is not None else ""
        delay = f", {duration(run.delay)} before it at each move" if run.delay is not None else ""
        moved = f"{instant(first)} → {instant(run.watermark)} (since micro-batch {run.moved_in})"
        yield f"watermark: {moved if run.watermark else 'not moved yet'}{newest}{delay}"
    for place, source in enumerate(run.sources[:_FEW] if len(run.sources) > 1 else ()):
        since = " since the restart" if len(runs) > 1 else ""
        yield f"source {place} {short_name(source.description)}: {counted(source.rows, 'row')}{since}{source.last_shown}"
    for one in run.operators[:_FEW]:
        dropped = f", {one.dropped:,} dropped from micro-batch {one.dropped_in[0]} on" if one.dropped else ""
        # Tasks commit at the same time: their sum may be more than the time of the micro-batches.
        spent = f" (sum of tasks) in {duration(run.batch_ms)} of micro-batches"
        commit = f", commit of state {duration(one.commit_ms)}{spent}" if one.commit_ms is not None else ""
        yield f"{one.title}: {counted(one.rows, 'row')} in state, at most {one.peak:,}{dropped}{commit}"


def _run_record(run: Run) -> dict[str, Json]:
    record = asdict(run)
    for name in ("id", "since_move", "highest_at_move", "delays", "idle", "_every", "_lowest", "jump", "points"):
        del record[name]
    over_time = [
        dict(zip(("micro_batch", "watermark", "newest_event_time", "rows_in", "state_rows"), point, strict=True))
        for point in run.points
    ]
    return {"run_id": run.id, **record, "delay": run.delay, "over_time": over_time}
