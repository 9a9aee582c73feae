"""Checks that each micro-batch read exactly the rows that the case meant for it.

Two file sources are not atomic: a micro-batch may be planned between two renames. The driver holds the query's progress lock while it
places files; this checks from the sources' own offsets that it worked. The offsets of a topic also tell how many records of each
partition a micro-batch read.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TypeAlias

from conformance.core.case import Case, Partitioned, Restart, Step
from conformance.core.observation import BatchSeen, Observation, TopicRead
from conformance.core.operations import From, Pipeline
from harness.engine.request import arrivals_of

Records: TypeAlias = tuple[int, ...] | None
"""How many records a micro-batch reads of each partition of a topic, without zeros at the end, or how many commits to a table; None of
files."""
Moved: TypeAlias = Mapping[str, Records]
"""The streams whose offsets a micro-batch moves."""
ReadSources: TypeAlias = frozenset[tuple[str, str | None]]
"""What a query reads: each stream with the name of its source, None if it has none."""


class MisalignedBatches(Exception):
    """Rows were not read in the micro-batches that they were meant for: the run must be repeated, not judged."""

    def __init__(self, step: int, meant: Sequence[Moved], batches: Sequence[BatchSeen], unit: str) -> None:
        ids = ", ".join(str(batch.id) for batch in batches) or "none"
        wanted = "; ".join(_shown(moved, unit) for moved in meant) or "nothing"
        read = [_moved(batch) for batch in batches]
        counted = any(any(moved.values()) for moved in read)
        of_topics = f", which read {'; '.join(_shown(moved, unit) for moved in read)}" if counted else ""
        super().__init__(
            f"the rows of step {step} were not read as the case means: one data batch for each of: {wanted}; "
            f"data batches seen: {ids}{of_topics}"
        )
        self.step = step
        self.batches = tuple(batch.id for batch in batches)


def check_alignment(case: Case, observation: Observation, *, killed: bool = False) -> None:
    """Compare the streams that each data batch read with those that it was meant to read.

    ``killed``: whether the engine was killed in the last step of the observation, and no other has continued it yet.

    Raises:
        MisalignedBatches: a step has more or fewer data batches than it was meant to have, or one of them read other streams.
    """
    arrivals = _Arrivals(case)
    in_parts = case.files or any(topic.max_offsets_per_trigger for topic in case.topics.values())
    for step, ran in zip(case.steps, observation.steps, strict=False):
        data = [
            batch for batch in ran.batches if any(read.moved and read.stream in case.streams for read in batch.sources)
        ]
        read = [_only(_moved(batch), case.streams) for batch in data]
        meant = arrivals.data_batches(step, ran.batches)
        if ran.error is not None or (killed and ran is observation.steps[-1]):
            # A micro-batch that does not finish is not reported, and none runs after it.
            meant = meant[: len(read)]
        # Several micro-batches may share the records of one arrival, or one have the files of several, as Spark likes.
        as_meant = _together(read) == _together(meant) if in_parts else read == meant
        if arrivals.known and not as_meant:
            raise MisalignedBatches(ran.number, meant, data, "commits" if case.tables else "records")


def _together(batches: Sequence[Moved]) -> Moved:
    streams = {stream for moved in batches for stream in moved}
    return {stream: _sum(moved[stream] for moved in batches if stream in moved) for stream in streams}


def _sum(records: Iterable[Records]) -> Records:
    known = [counts for counts in records if counts is not None]
    return tuple(map(sum, zip_longest(*known, fillvalue=0))) if known else None


class _Arrivals:
    """The rows on their way to the query, step by step.

    A micro-batch reads as many files of a stream as each arrival has (``maxFilesPerTrigger``): one arrival of every stream that has some
    waiting; with ``once``, which ignores the limit, all of them. Of a topic or a table it reads all that is there, and the next arrival
    waits for it. One that was planned and not committed runs again first. With ``once`` and ``processingTime``, at most one runs at a time.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._tables = frozenset(case.tables)
        self._recorded = {*case.topics, *case.in_memory}
        """The streams of which it is known how many rows a micro-batch read."""
        self._trigger = case.trigger
        self._query = case.query.streams()
        self._sources = _names(case.query)
        self._ever_read = self._sources
        """The sources that some query of the case has read."""
        self._arrived: dict[str, list[Records]] = {name: [] for name in case.streams}
        self._waiting: dict[str, deque[Records]] = {name: deque() for name in case.streams}
        self._uncommitted: Moved | None = None
        self._newest: Moved | None = None
        """What the newest micro-batch read; None before the first."""
        self.known = True
        """Whether it can be said what the last step was meant to read."""

    def data_batches(self, step: Step, batches: Sequence[BatchSeen]) -> list[Moved]:
        """What each data batch of the next step is meant to read. ``batches``: all that ran."""
        case, action = self._case, step.action
        # A file may be too old to be read, and what is made again begins elsewhere than where the query goes on.
        again = any(isinstance(done.action, Restart) and done.action.recreated for done in case.steps[: step.number])
        self.known = (
            not again and not case.table_options and all(source.max_file_age is None for source in case.files.values())
        )
        if batches:
            # What the query does not read, though the case says so, is left to the verdict.
            self._query &= {read.stream for batch in batches for read in batch.sources}
        for arrival in arrivals_of(action, self._waiting):
            for name, rows in arrival.items():
                self._arrived[name].append(self._records(name, rows))
                if step.number == 1 and name in case.topics and case.topics[name].starting_offsets != "earliest":
                    self.known = False  # it is there when the query starts, which may begin behind it
                else:
                    self._waiting[name].append(self._arrived[name][-1])
        meant = []
        if case.triggers_in(step.number):
            meant = self._restarted(action) if isinstance(action, Restart) else self._run()
        if batches:
            self._newest = _moved(batches[-1])
        return meant

    def _records(self, name: str, rows: Partitioned) -> Records:
        if name in self._tables:
            return (1,)
        return _records(rows) if name in self._recorded else None

    def _next(self, waiting: deque[Records]) -> Records:
        """Take what the next micro-batch reads."""
        return _sum([waiting.popleft() for _ in range(len(waiting) if self._trigger == "once" else 1)])

    def _restarted(self, action: Restart) -> list[Moved]:
        before = self._killed(action) if action.how == "kill" and action.add else []
        if action.how == "crash-before-commit" or action.damage == {"gone": "commit"}:
            self._uncommitted = self._newest
        elif action.damage or action.checkpoint == "new":
            self.known = False
        change = action.change
        self._trigger = change.trigger or self._trigger
        if change.query is not None:
            self._query = change.query.streams()
            self._renamed(_names(change.query))
        return before + ([] if self._trigger in ("once", "availableNow") else self._run())

    def _renamed(self, names: ReadSources) -> None:
        """The query reads these sources from here on. One with a new name reads its stream from the beginning."""
        for stream, name in names - self._sources:
            if name is not None and (stream, None) not in self._ever_read:
                self._waiting[stream] = deque(self._arrived[stream])
                # One that returns under its name goes on after its offset only if no micro-batch has run without it.
                self.known = self.known and (stream, name) not in self._ever_read
        self._sources, self._ever_read = names, self._ever_read | names

    def _killed(self, action: Restart) -> list[Moved]:
        """The data batches that were committed before the engine was killed."""
        meant = self._run()
        if action.at == "committed":
            return meant
        done, left = meant[: action.batch - 1], meant[action.batch - 1 :]
        self._uncommitted = left[0] if left else {}
        return done

    def _run(self) -> list[Moved]:
        meant: list[Moved] = []
        if self._uncommitted is not None:
            meant.append(_only(self._uncommitted, self._query))
            self._uncommitted = None
        single = self._trigger in ("once", "processingTime")
        while not (meant and single) and (waiting := [stream for stream in self._query if self._waiting.get(stream)]):
            meant.append({stream: self._next(self._waiting[stream]) for stream in waiting})
        return [moved for moved in meant if moved]


def _names(query: Pipeline) -> ReadSources:
    reads = (operation for operation in query.walk() if isinstance(operation, From))
    return frozenset((read.stream, read.source_name) for read in reads)


def _records(rows: Partitioned) -> Records:
    """The records that an arrival is: one a row or, without any, one without a value."""
    return _without_zeros(tuple(map(len, rows.partitions))) or (1,)


def _moved(batch: BatchSeen) -> Moved:
    """The streams that a micro-batch read, by every source of the query that reads them."""
    still = {read.stream for read in batch.sources if not read.moved}
    return {
        read.stream: _without_zeros(read.records) if isinstance(read, TopicRead) else None
        for read in batch.sources
        if read.moved and read.stream not in still
    }


def _without_zeros(counts: tuple[int, ...]) -> tuple[int, ...]:
    while counts and not counts[-1]:
        counts = counts[:-1]
    return counts


def _only(moved: Moved, streams: Iterable[str]) -> Moved:
    return {name: moved[name] for name in streams if name in moved}


def _shown(moved: Moved, unit: str) -> str:
    counts = {name: f" ({', '.join(map(str, records))} {unit})" if records else "" for name, records in moved.items()}
    return ", ".join(f"{name}{counts[name]}" for name in sorted(moved))
