"""Divides samples into micro-batches that try what a watermark can do: late rows, a silent stream, a restart, windows that close."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from conformance.core.values import show
from conformance.own_job.sample import Sample

Json: TypeAlias = Any
Row: TypeAlias = tuple[Json, ...]

FAR_AHEAD = timedelta(days=366)
"""How much later the last rows are: more than any delay, window or range, so that state is evicted and outer joins are answered."""


@dataclass(frozen=True)
class Arrival:
    """Rows that arrive in one micro-batch; without rows, the query restarts."""

    name: str
    rows: Mapping[str, tuple[Row, ...]]
    """By stream; a stream that is missing is silent."""


def arrivals(samples: Sequence[Sample], batches: int) -> tuple[Arrival, ...]:
    """What arrives, in order.

    1. ``batches`` micro-batches by event time, one row of the first held back.
    2. In the middle of them the query restarts.
    3. With several streams, the micro-batch after the restart is divided: each stream in turn is the only one that sends.
    4. The rows that were held back: late, if the watermark has passed them.
    5. A copy of each stream's last row, much later, so that windows close and state is evicted.

    Args:
        samples: of each stream, with at least one row.
        batches: at least 2.
    """
    parts = [_divided(sample, _bounds(samples, batches), batches) for sample in samples]
    held = [_held_back(sample, part) for sample, part in zip(samples, parts, strict=True)]
    return tuple(_named(samples, parts, held, batches))


def _named(
    samples: Sequence[Sample], parts: Sequence[list[list[Row]]], held: Sequence[tuple[Row, ...]], batches: int
) -> Iterator[Arrival]:
    streams = [sample.stream for sample in samples]
    middle = batches // 2
    for number in range(batches):
        sent = {stream: tuple(part[number]) for stream, part in zip(streams, parts, strict=True) if part[number]}
        if number == middle:
            yield Arrival("the query restarts", {})
        if number == middle and len(sent) > 1:
            for stream, rows in sent.items():
                yield Arrival(f"only {stream} sends", {stream: rows})
        elif sent:
            yield Arrival(f"micro-batch {number + 1} of the sample", sent)
    late = {stream: rows for stream, rows in zip(streams, held, strict=True) if rows}
    if late:
        yield Arrival("rows that were held back arrive late", late)
    ahead = {sample.stream: (row,) for sample in samples if (row := _far_ahead(sample)) is not None}
    if ahead:
        yield Arrival("a row much later: windows close", ahead)


def _bounds(samples: Sequence[Sample], batches: int) -> list[int]:
    """The event times (µs) at which a new micro-batch begins: as many rows in each, over all streams."""
    instants = sorted(
        instant for sample in samples for row in sample.rows if (instant := sample.instant(row)) is not None
    )
    return [instants[len(instants) * number // batches] for number in range(1, batches)] if instants else []


def _divided(sample: Sample, bounds: Sequence[int], batches: int) -> list[list[Row]]:
    """The rows of each micro-batch; those without an event time by their place in the file."""
    parts: list[list[Row]] = [[] for _ in range(batches)]
    for place, row in enumerate(sample.rows):
        instant = sample.instant(row)
        number = bisect_right(bounds, instant) if instant is not None else place * batches // len(sample.rows)
        parts[number].append(row)
    return parts


def _held_back(sample: Sample, parts: list[list[Row]]) -> tuple[Row, ...]:
    """Takes the earliest row out of the first micro-batch that has two or more and is not the last."""
    if sample.event_time is None:
        return ()
    for part in parts[:-1]:
        timed = [(instant, at) for at, row in enumerate(part) if (instant := sample.instant(row)) is not None]
        if len(part) > 1 and timed:
            return (part.pop(min(timed)[1]),)
    return ()


def _far_ahead(sample: Sample) -> Row | None:
    """A copy of the latest row, ``FAR_AHEAD``."""
    timed = [(instant, at) for at, row in enumerate(sample.rows) if (instant := sample.instant(row)) is not None]
    if not timed or sample.event_time is None:
        return None
    latest, at = max(timed)
    moved = show(latest + FAR_AHEAD // timedelta(microseconds=1))
    return tuple(moved if column == sample.event_time else value for column, value in enumerate(sample.rows[at]))
