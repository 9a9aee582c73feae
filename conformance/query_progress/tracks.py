"""What is kept of a query while its progress is read: sums, firsts and lasts, never the progress itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from conformance.query_progress.over_time import DROPPED, NEWEST, OLDEST, ROWS_OUT, WATERMARK, OverTime, Series
from conformance.query_progress.reading import Event, Skipped
from conformance.query_progress.wire import Environment, OperatorProgress, Progress, QueryEvent, SourceProgress

_MOST_POINTS: Final = 200
_MOST_RUNS: Final = 50
_FEW: Final = 4
_YEAR_MS: Final = 366 * 86_400_000
_SETTING: Final = re.compile(r"^Spark$|sql\.streaming")
_FILE: Final = re.compile(r"(?<=\[)file:(?=/)(//(?=/))?")
_FILE_SYSTEM: Final = re.compile(r"\w+://[^/\]]*")


@dataclass
class SourceTrack:
    description: str
    rows: int = 0
    last_batch: int | None = None
    """The last micro-batch with rows of it."""
    batches: int = 0
    """The micro-batches with rows of it."""
    silent: int = 0
    """Those with rows of others alone since then."""
    behind: Mapping[str, int] = field(default_factory=dict)
    """Partition of a topic → how many offsets it is behind."""

    def add(self, progress: SourceProgress, batch: int, with_rows: bool) -> None:
        self.rows += progress.num_input_rows
        if progress.num_input_rows:
            self.last_batch, self.batches, self.silent = batch, self.batches + 1, 0
        else:
            self.silent += with_rows
        self.behind = _behind(progress)

    @property
    def last_shown(self) -> str:
        return "" if self.last_batch is None else f", the last in micro-batch {self.last_batch}"


@dataclass
class OperatorTrack:
    name: str | None
    rows: int = 0
    peak: int = 0
    rises: int = 0
    """The micro-batches with rows after which it had more rows than ever before."""
    flat: int = 0
    """The micro-batches with rows since then."""
    evicts: bool = False
    """Whether it removed rows."""
    dropped: int = 0
    dropped_in: list[int] = field(default_factory=list)
    """The first micro-batches that dropped rows."""
    counts_dropped: bool = False
    """Whether the version reports them: from 3.1 on."""
    commit_ms: int | None = None
    batches: int = 0
    looked: int = 0
    """The micro-batches that looked for rows to remove."""
    not_looked: int = 0
    """Those that did not, which shows."""

    def add(self, progress: OperatorProgress, batch: int, with_rows: bool) -> None:
        total, looks = progress.num_rows_total, progress.looks
        self.batches += 1
        self.looked += looks is True
        self.not_looked += looks is False
        self.evicts = self.evicts or total < self.rows or bool(progress.num_rows_removed)
        if with_rows:
            self.rises, self.flat = (self.rises + 1, 0) if total > self.peak else (self.rises, self.flat + 1)
        self.rows, self.peak = total, max(self.peak, total)
        if progress.commit_time_ms is not None:
            self.commit_ms = (self.commit_ms or 0) + progress.commit_time_ms
        self.counts_dropped = progress.num_rows_dropped_by_watermark is not None
        if dropped := progress.num_rows_dropped_by_watermark or 0:
            self.dropped += dropped
            if len(self.dropped_in) < _FEW:
                self.dropped_in.append(batch)

    @property
    def grows(self) -> bool:
        """Whether rows are only added, up to the last micro-batches."""
        return self.rises >= _FEW - 1 and self.flat * _FEW <= self.rises and not self.evicts and self.rows == self.peak

    @property
    def looks(self) -> bool | None:
        """Whether it looks for rows to remove; None if that does not show. Other work of the JVM may take the time for it, too."""
        if self.looked >= _FEW - 1 and self.looked * _FEW >= self.batches and self.looked > self.not_looked:
            return True
        return False if self.not_looked >= _FEW - 1 and self.looked * _FEW <= self.not_looked else None

    @property
    def title(self) -> str:
        return self.name or "state operator"


@dataclass
class Jump:
    """The micro-batch that moved the highest event time furthest, and what came after it."""

    batch: int
    to: int
    by: int
    after: int = 0
    """Later micro-batches with event times."""
    behind: int = 0
    """Those of them whose event times are all behind the watermark."""
    newest_after: int = 0


@dataclass
class Run:
    """One run of a query: from one start to the end, a failure or a restart."""

    id: str
    started: int
    ended: int
    first_batch: int
    last_batch: int = -1
    batches: int = 0
    rows_in: int = 0
    most_rows: int = 0
    """Of a micro-batch."""
    rows_out: int | None = 0
    """None where the sink does not count."""
    rows_at: int | None = None
    """When its last micro-batch with rows began."""
    pause: int = 0
    """The longest time between two such micro-batches, in milliseconds."""
    without_rows: int = 0
    """The micro-batches without rows."""
    all_out: bool = True
    """Whether each micro-batch gave out as many rows as there are in state."""
    batch_ms: int = 0
    watermark: int | None = None
    first_watermark: int | None = None
    moved_in: int | None = None
    """The first micro-batch that ran with the last watermark."""
    highest_at_move: int | None = None
    since_move: Counter[int] = field(default_factory=Counter)
    """Source → micro-batches with rows of it after the watermark moved last."""
    highest: int | None = None
    highest_in: int = -1
    """The micro-batch that brought it."""
    backwards: int = 0
    """The micro-batches whose event times are all before those of the micro-batch before."""
    average: int | None = None
    """Of the last micro-batch with rows."""
    without_event_time: int = 0
    with_event_time: int = 0
    delays: frozenset[int] = frozenset()
    """The differences between the highest event time and the watermark that it made; equal, they are the delay."""
    spread: int = 0
    """The most that the event times of a micro-batch, other than that of the jump, go apart or on."""
    jump: Jump | None = None
    late: tuple[int, int, int] | None = None
    """The first micro-batch with an event time behind the watermark: its lowest, and the watermark."""
    needed: int = 0
    """The most by which an event time was behind the watermark, in milliseconds."""
    disorder: tuple[int, int] = (0, 0)
    """The most by which an event time was behind the highest of earlier micro-batches, in milliseconds, and in which micro-batch."""
    nulls_in: int | None = None
    no_data_missing: tuple[int, int, int] | None = None
    """An executed micro-batch, its watermark, and a newer one that no micro-batch ran with while the query was idle."""
    sources: list[SourceTrack] = field(default_factory=list)
    operators: list[OperatorTrack] = field(default_factory=list)
    sink: str = ""
    points: list[tuple[int, int | None, int, int, list[int]]] = field(default_factory=list)
    """Micro-batches, the watermark they ran with, highest event time, rows so far, rows of each state: all of a short run, else some."""
    settings: Mapping[str, str] = field(default_factory=dict)
    exception: str | None = None
    idle: bool = False
    _every: int = 1
    _lowest: int | None = None
    """Of the last micro-batch with event times."""

    @property
    def delay(self) -> int | None:
        """The delay, where each move of the watermark shows the same; of several sources each may have its own."""
        return next(iter(self.delays)) if len(self.delays) == len(self.sources) == 1 else None

    @property
    def dropped(self) -> int:
        return sum(operator.dropped for operator in self.operators)

    @property
    def counts_dropped(self) -> bool:
        return not self.operators or any(operator.counts_dropped for operator in self.operators)

    @property
    def drops(self) -> bool:
        """Whether it drops late rows or, where that is not counted, may do so."""
        return self.dropped > 0 or (self.late is not None and not self.counts_dropped)

    @property
    def dropped_shown(self) -> str:
        known = f"rows dropped: {self.dropped:,}"
        return known if self.counts_dropped else "this version does not count dropped rows (3.1 does)"

    def add(self, progress: Progress) -> None:
        self.ended = progress.timestamp
        time = progress.event_time
        idle, self.idle = self.idle, not progress.ran
        if idle or self.idle:
            self._missing(time.watermark)
        if self.idle:
            return
        self.batches, self.last_batch = self.batches + 1, progress.batch_id
        self.rows_in += progress.rows
        self.most_rows = max(self.most_rows, progress.rows)
        self.sink = progress.sink.description
        out = progress.sink.num_output_rows
        self.rows_out = None if self.rows_out is None or out is None or out < 0 else self.rows_out + out
        self.batch_ms += progress.duration_ms.get("triggerExecution", 0)
        self._watermark(time.watermark, progress.batch_id)
        if len(self.sources) != len(progress.sources):
            self.sources = [SourceTrack(source.description) for source in progress.sources]
        if len(self.operators) != len(progress.state_operators):
            self.operators, self.points = [OperatorTrack(one.operator_name) for one in progress.state_operators], []
        for place, (source, read) in enumerate(zip(self.sources, progress.sources, strict=True)):
            source.add(read, progress.batch_id, progress.has_rows)
            self.since_move[place] += read.num_input_rows > 0
        for operator, kept in zip(self.operators, progress.state_operators, strict=True):
            operator.add(kept, progress.batch_id, progress.has_rows)
        self.without_rows += not progress.has_rows
        self.all_out = self.all_out and out == sum(operator.rows for operator in self.operators)
        if progress.has_rows:
            self.pause = max(self.pause, progress.timestamp - (self.rows_at or progress.timestamp))
            self.rows_at = progress.timestamp
            self._event_times(progress)

    def _missing(self, watermark: int | None) -> None:
        """Note that the watermark moved after the last micro-batch, and none ran with it before the query was idle."""
        if watermark is not None and self.watermark is not None and watermark > self.watermark:
            self.no_data_missing = self.no_data_missing or (self.last_batch, self.watermark, watermark)

    def _watermark(self, watermark: int | None, batch: int) -> None:
        if watermark is None:
            return
        if self.watermark is None:
            self.first_watermark = watermark
        elif self.highest is not None and watermark > self.watermark:
            self.delays = (self.delays | {self.highest - watermark}) if len(self.delays) < _FEW else self.delays
        if watermark != self.watermark:
            self.watermark, self.moved_in, self.highest_at_move = watermark, batch, self.highest
            self.since_move.clear()

    def _event_times(self, progress: Progress) -> None:
        time, batch = progress.event_time, progress.batch_id
        if time.highest is None or time.lowest is None or time.average is None:
            self.without_event_time += time.watermark is not None
            return
        self.with_event_time += 1
        self.backwards += self._lowest is not None and time.highest < self._lowest
        self._lowest = time.lowest
        self.average = time.average
        # Spark reads a null event time as 1970-01-01T00:00.
        if time.lowest == 0 and (time.highest == 0 or time.highest > _YEAR_MS) and self.nulls_in is None:
            self.nulls_in = batch
        self._jump(time.highest, time.average, time.lowest, progress)
        if time.watermark is not None and 0 != time.lowest <= time.watermark:
            self.needed = max(self.needed, time.watermark - time.lowest)
            self.late = self.late or (batch, time.lowest, time.watermark)
        if self.highest is not None and time.lowest:
            self.disorder = max(self.disorder, (self.highest - time.lowest, batch))
        if self.highest is None or time.highest > self.highest:
            self.highest, self.highest_in = time.highest, batch
        if self.with_event_time % self._every == 0:
            state = [operator.rows for operator in self.operators]
            self.points.append((batch, time.watermark, time.highest, self.rows_in, state))
        if len(self.points) >= _MOST_POINTS:
            self.points, self._every = self.points[::2], self._every * 2

    def _jump(self, highest: int, average: int, lowest: int, progress: Progress) -> None:
        jump, watermark = self.jump, progress.event_time.watermark
        if jump is not None:
            jump.after += 1
            jump.behind += watermark is not None and highest <= watermark
            jump.newest_after = max(jump.newest_after, highest)
        # In the first micro-batch, a row far above the mean of all counts; later, above all before.
        first = lowest if highest - average > 3 * (average - lowest) else highest
        by = highest - (first if self.highest is None else self.highest)
        if by > (jump.by if jump is not None else 0):
            if jump is not None:
                self.spread = max(self.spread, jump.by)
            self.jump = Jump(progress.batch_id, highest, by)
        else:
            self.spread = max(self.spread, by, highest - lowest)


def values_of(progress: Progress, sources: Sequence[str] = ()) -> dict[Series, int | None]:
    """Return what pictures show of a micro-batch; 1970-01-01T00:00 stands for no watermark, and for no event time. ``sources``: titles."""
    time, out, several = progress.event_time, progress.sink.num_output_rows, len(progress.state_operators) > 1
    values = {WATERMARK: time.watermark or None, NEWEST: time.highest or None, OLDEST: time.lowest or None}
    titles = sources or [f"source {at} {short_name(one.description)}" for at, one in enumerate(progress.sources)]
    values |= {Series("rows", title): one.num_input_rows for title, one in zip(titles, progress.sources, strict=False)}
    values[ROWS_OUT] = out if out is not None and out >= 0 else None
    for at, operator in enumerate(progress.state_operators, 1):
        title = f"{operator.operator_name or 'state operator'}{f' {at}' if several else ''}"
        values[Series("state", title)] = operator.num_rows_total
        if (dropped := operator.num_rows_dropped_by_watermark) is not None:
            values[DROPPED] = (values.get(DROPPED) or 0) + dropped
    return values


@dataclass
class Query:
    id: str
    name: str | None = None
    runs: list[Run] = field(default_factory=list)
    runs_left_out: int = 0
    pictured: bool = False
    over_time: OverTime = field(default_factory=OverTime)
    """What all runs did, if it is `pictured`."""

    @property
    def worked(self) -> list[Run]:
        """The runs with micro-batches."""
        return [run for run in self.runs if run.batches]

    def add(self, progress: Progress, settings: Mapping[str, str], skipped: Skipped) -> None:
        self.name = progress.name or self.name
        run = next((run for run in reversed(self.runs) if run.id == progress.run_id), None)
        if run is None:
            if len(self.runs) == _MOST_RUNS:
                # The first run stays, to compare it with the last.
                del self.runs[1]
                self.runs_left_out += 1
            run = Run(progress.run_id, progress.timestamp, progress.timestamp, progress.batch_id, settings=settings)
            self.runs.append(run)
        elif progress.batch_id <= run.last_batch or progress.timestamp < run.ended:
            skipped.add(f"micro-batch {progress.batch_id} of query {self.name or self.id}", "repeated, or out of order")
            return
        run.add(progress)
        if self.pictured and not run.idle:
            self.over_time.add(progress.batch_id, progress.timestamp, values_of(progress), begins=run.batches == 1)


class Queries:
    """All queries of some files, in the order in which they appear."""

    def __init__(self, *, pictured: bool = False) -> None:
        self._pictured = pictured
        self.by_id: dict[str, Query] = {}
        self.skipped = Skipped()
        self._settings: Mapping[str, str] = {}

    def read(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Environment):
                told = {"Spark": event.version or self._settings.get("Spark")} | event.settings
                self._settings = {key: value for key, value in told.items() if value and _SETTING.search(key)}
            else:
                query = self.by_id.setdefault(event.id, Query(event.id, pictured=self._pictured))
                if isinstance(event, Progress):
                    query.add(event, self._settings, self.skipped)
                else:
                    self._heard(query, event)

    def _heard(self, query: Query, event: QueryEvent) -> None:
        query.name = event.name or query.name
        for run in query.runs:
            if run.id == event.run_id:
                run.exception = event.exception or run.exception
                run.idle = run.idle or event.kind.endswith("QueryIdleEvent")


def _behind(source: SourceProgress) -> dict[str, int]:
    """Return how many offsets each partition of a topic is behind; Kafka's offsets are ``{topic: {partition: offset}}``."""
    end, latest = source.end_offset, source.latest_offset
    if not isinstance(end, dict) or not isinstance(latest, dict):
        return {}
    behind: dict[str, int] = {}
    for topic, partitions in latest.items():
        read = end.get(topic)
        if isinstance(partitions, dict) and isinstance(read, dict):
            for partition, offset in partitions.items():
                if isinstance(offset, int) and isinstance(read.get(partition), int):
                    behind[f"{topic}-{partition}"] = max(0, offset - read[partition])
    return behind


def same_place(one: str, other: str) -> bool:
    """Whether two descriptions are of one source or sink: versions write its path with or without the file system."""
    one, other = (_FILE.sub("", text) for text in (one, other))
    if ("://" in one) != ("://" in other):
        one, other = (_FILE_SYSTEM.sub("", text) for text in (one, other))
    return one == other


def short_name(text: str) -> str:
    """Shorten a description of a source to its kind and the end of its place."""
    return text if len(text) <= 48 else f"{text[: text.find('[') + 1][:24]}…{text[-23:]}"
