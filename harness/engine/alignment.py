"""Checks that each micro-batch read exactly the rows that the case meant for it.

Two file sources are not atomic: a micro-batch may be planned between two renames. The driver holds the query's progress lock while it
places files; this checks from the sources' own offsets that it worked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from conformance.core.case import Action, Add, Backlog, Case, Restart
from conformance.core.observation import BatchSeen, Observation, StepSeen
from conformance.core.query import Pipeline

Moved: TypeAlias = frozenset[str]
"""The streams whose offsets a micro-batch moves."""
Sources: TypeAlias = frozenset[tuple[str, str | None]]
"""What a query reads: each stream with the name of its source, None if it has none."""


class MisalignedBatches(Exception):
    """Rows were not read in the micro-batches that they were meant for: the run must be repeated, not judged."""

    def __init__(self, step: int, meant: Sequence[Moved], batches: Sequence[BatchSeen]) -> None:
        ids = ", ".join(str(batch.id) for batch in batches) or "none"
        wanted = "; ".join(", ".join(sorted(moved)) for moved in meant) or "nothing"
        super().__init__(
            f"the rows of step {step} were not read as the case means: one data batch for each of: {wanted}; "
            f"data batches seen: {ids}"
        )
        self.step = step
        self.batches = tuple(batch.id for batch in batches)


def check_alignment(case: Case, observation: Observation, *, killed: bool = False) -> None:
    """Compare the streams that each data batch read with those that it was meant to read.

    Args:
        case: the case.
        observation: of its steps, from the first on.
        killed: whether the engine was killed in the last of these steps, and no other has continued it yet.

    Raises:
        MisalignedBatches: a step has more or fewer data batches than it was meant to have, or one of them read other streams.
    """
    arrivals = _Arrivals(case)
    for step, seen in zip(case.steps, observation.steps, strict=False):
        data = [
            batch for batch in seen.batches if any(read.moved and read.stream in case.streams for read in batch.sources)
        ]
        read = [_moved(batch) & case.streams.keys() for batch in data]
        meant = arrivals.data_batches(step.action, seen)
        if seen.error is not None or (killed and seen is observation.steps[-1]):
            # A micro-batch that does not finish is not reported, and none runs after it.
            meant = meant[: len(read)]
        if arrivals.known and read != meant:
            raise MisalignedBatches(seen.number, meant, data)


class _Arrivals:
    """The rows on their way to the query, step by step.

    A micro-batch reads as many files of a stream as each arrival has (``maxFilesPerTrigger``): one arrival of every stream that has some
    waiting; with ``once``, which ignores the limit, all of them. One that was planned and not committed runs again first.
    """

    def __init__(self, case: Case) -> None:
        self._streams = tuple(case.streams)
        self._trigger = case.trigger
        self._query = case.query.streams()
        self._sources = _names(case.query)
        self._seen = self._sources
        """The sources that some query of the case has read."""
        self._arrived: Counter[str] = Counter()
        """How often rows have arrived on each stream."""
        self._waiting: Counter[str] = Counter()
        self._uncommitted: Moved | None = None
        self._newest: Moved | None = None
        """What the newest micro-batch read; None if there is none."""
        self.known = True
        """Whether it can be said what the last step was meant to read."""

    def data_batches(self, action: Action, seen: StepSeen) -> list[Moved]:
        """What each data batch of the next step is meant to read."""
        self.known = True
        if seen.batches:
            # What the query does not read, though the case says so, is left to the verdict.
            self._query &= {read.stream for batch in seen.batches for read in batch.sources}
        for arrival in self._arriving(action):
            self._waiting.update(tuple(arrival))
            self._arrived.update(tuple(arrival))
        meant = self._restarted(action) if isinstance(action, Restart) else self._run()
        if seen.batches:
            self._newest = _moved(seen.batches[-1])
        return meant

    def _arriving(self, action: Action) -> tuple[Iterable[str], ...]:
        match action:
            case Add(streams=arrival) | Restart(add=arrival):
                return (arrival,)
            case Backlog(entries=entries):
                # A stream that an entry does not name has a micro-batch of no rows.
                return (self._streams,) * len(entries)
            case _:
                return ()

    def _restarted(self, action: Restart) -> list[Moved]:
        before = self._killed(action) if action.how == "kill" and action.add else []
        if action.how == "crash-before-commit" or action.damage == {"gone": "commit"}:
            self._uncommitted = self._newest
        elif action.damage:
            self.known = False
        change = action.change
        self._trigger = change.trigger or self._trigger
        if change.query is not None:
            self._query = change.query.streams()
            self._renamed(_names(change.query))
        return before + (self._run() if self._trigger == "default" else [])

    def _renamed(self, names: Sources) -> None:
        """The query reads these sources from here on. One with a new name reads its stream from the beginning."""
        for stream, name in names - self._sources:
            if name is not None and (stream, None) not in self._seen:
                self._waiting[stream] = self._arrived[stream]
                # One that returns under its name goes on after its offset only if no micro-batch has run without it.
                self.known = self.known and (stream, name) not in self._seen
        self._sources, self._seen = names, self._seen | names

    def _killed(self, action: Restart) -> list[Moved]:
        """The data batches that were committed before the engine was killed."""
        meant = self._run()
        if action.at == "committed":
            return meant
        done, left = meant[: action.batch - 1], meant[action.batch - 1 :]
        self._uncommitted = left[0] if left else frozenset()
        return done

    def _run(self) -> list[Moved]:
        meant: list[Moved] = []
        if self._uncommitted is not None:
            meant.append(self._uncommitted & self._query)
            self._uncommitted = None
        if not (meant and self._trigger == "once"):
            while waiting := frozenset(stream for stream in self._query if self._waiting[stream]):
                meant.append(waiting)
                for stream in waiting:
                    self._waiting[stream] -= self._waiting[stream] if self._trigger == "once" else 1
        return [moved for moved in meant if moved]


def _names(query: Pipeline) -> Sources:
    reads = (operation.arguments for operation in query.walk() if operation.name == "from")
    return frozenset((of["from"], of.get("name")) for of in reads)


def _moved(batch: BatchSeen) -> Moved:
    """The streams that a micro-batch read, by every source of the query that reads them."""
    still = {read.stream for read in batch.sources if not read.moved}
    return frozenset(read.stream for read in batch.sources if read.moved and read.stream not in still)
