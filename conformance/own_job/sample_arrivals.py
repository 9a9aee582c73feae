"""The rows of samples as they arrive: divided into micro-batches, then rows that come much later, late, again or unfit."""

from __future__ import annotations

import json
import random
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from heapq import nlargest
from itertools import accumulate, islice, tee, zip_longest

from conformance.core.data import Json
from conformance.core.spark_types import DataType
from conformance.core.values import canonical, show
from conformance.own_job.many_rows import MOST_IN_A_CASE, NO_INSTANT, SampleRow, Stored
from conformance.own_job.sample import Sample
from conformance.own_job.written_time import WrittenTime, json_object, separator_of, written_time

_MOST_SORTED = 100_000
"""Of more rows, only so many say where a micro-batch begins."""
_LAST_INSTANT: int = canonical("9999-12-31 23:59:59", DataType("timestamp"))
FAR_AHEAD = timedelta(days=366)
"""How much later the last rows are: more than any delay, window or range, so that state is evicted and outer joins are answered."""
FAR_AHEAD_COMES = "a row much later: windows close"
ENDS_COME_AGAIN = "the latest row arrives again, and the earliest, late"


@dataclass(frozen=True)
class SampleArrival:
    """Rows that arrive in one micro-batch; without rows, the query restarts."""

    name: str
    rows: Mapping[str, Sequence[SampleRow]]
    """The rows by stream; a stream that is missing is silent."""


def arrivals(
    samples: Sequence[Sample],
    batches: int,
    *,
    silent: bool = False,
    again: bool = False,
    unfit: bool = False,
    closing: int = 1,
    every_us: int | None = None,
) -> Iterator[SampleArrival]:
    """What arrives, in order.

    1. ``batches`` micro-batches with all rows, in the order of arrival of each sample.
    2. In the middle of them the query restarts; of an odd number, after the greater part.
    3. If ``silent``, the micro-batch after the restart is divided: each stream in turn is the only one that sends.
    4. A copy of each stream's latest row, or of the ``closing`` latest, much later, so that windows close and state is evicted.
    5. If ``again``, these once more, duplicates of rows in the state, and a copy of the earliest, late whatever the delay is.
    6. If ``unfit``, copies of each stream's latest rows, several because a filter may take some, in which in turn one text is none that
       parses, and in the last one numbers are zero and arrays and maps empty.

    Args:
        samples: of each stream, with at least one row.
        batches: at least 2.
        every_us: the trigger interval, which divides rows whose time of arrival is known, in place of ``batches``.
    """
    keys = {sample.stream: arrival_keys(sample, alone=len(samples) == 1) for sample in samples}
    bounds = _bounds(keys.values(), batches)
    if every_us is not None:
        begun = sorted({key // every_us for of_sample in keys.values() for key in of_sample})
        bounds, batches = [number * every_us for number in begun[1:]], len(begun)
    parts = {sample.stream: _divided(sample, keys[sample.stream], bounds, batches) for sample in samples}
    middle = (batches + 1) // 2
    for number in range(batches):
        sent = {stream: part[number] for stream, part in parts.items() if part[number]}
        if number == middle:
            yield SampleArrival("the query restarts", {})
        if silent and number == middle:
            for stream, rows in sent.items():
                yield SampleArrival(f"only {stream} sends", {stream: rows})
        elif sent:
            yield SampleArrival(f"micro-batch {number + 1} of the sample", sent)
    ahead = {sample.stream: rows for sample in samples if (rows := tuple(_far_ahead(sample, closing)))}
    if ahead:
        yield SampleArrival(FAR_AHEAD_COMES, ahead)
    if again:
        latest = {**{sample.stream: _ends(sample)[-1:] for sample in samples}, **ahead}
        ends = {sample.stream: (*latest[sample.stream], *_ends(sample)[:1]) for sample in samples}
        yield SampleArrival(ENDS_COME_AGAIN, ends)
    if unfit:
        without = {each.stream: tuple(_unfit(each)) for each in samples}
        yield SampleArrival("rows that do not parse, divide or fit", without)


def arrival_keys(sample: Sample, *, alone: bool) -> Sequence[int]:
    """What divides the rows of a sample: their event times or, in the order of the file, their places or, beside other samples, the
    latest event time so far, so that rows of all samples arrive together which their producers sent at the same time."""
    if sample.arrived:
        return sample.arrived
    if sample.arrival == "time":
        return sample.instants
    if sample.arrival.startswith("random:"):
        # Every sample is spread over the same range, whatever its number of rows.
        count = len(sample.rows)
        places = random.Random(f"{sample.arrival} {sample.stream}").sample(range(count), count)
        return array("q", (place * _MOST_SORTED // count for place in places))
    if alone:
        return range(len(sample.rows))
    return array("q", when_sent(sample.instants))


def when_sent(times: Iterable[int]) -> Iterator[int]:
    """Yield the latest event time so far of each row; a row that is ahead of the two after it was sent before them."""
    first, second, third = tee(times, 3)
    rows = zip_longest(first, islice(second, 1, None), islice(third, 2, None))
    sent = (min(time, max((at for at in later if at is not None), default=time)) for time, *later in rows)
    return accumulate(sent, max)


def _bounds(keys: Collection[Sequence[int]], batches: int) -> list[int]:
    """The keys at which a new micro-batch begins: as many rows in each, over all streams, or nearly so of many rows."""
    apart = sum(map(len, keys)) // _MOST_SORTED + 1
    known = sorted(key for of_sample in keys for key in of_sample[::apart] if key != NO_INSTANT)
    return [known[len(known) * number // batches] for number in range(1, batches)] if known else []


def _divided(sample: Sample, keys: Sequence[int], bounds: Sequence[int], batches: int) -> list[Sequence[SampleRow]]:
    """The rows of each micro-batch; those without a key by their place in the file."""
    parts = [array("q") for _ in range(batches)]
    for place, key in enumerate(keys):
        timed = key != NO_INSTANT
        parts[bisect_right(bounds, key) if timed else place * batches // len(sample.rows)].append(place)
    rows = sample.rows
    return [rows.at(part) if isinstance(rows, Stored) else tuple(rows[place] for place in part) for part in parts]


def too_many_for_a_case(samples: Iterable[Sample]) -> bool:
    """Whether a case with these rows would be too large to be read and kept."""
    return sum(len(sample.rows) for sample in samples) > MOST_IN_A_CASE


def _ends(sample: Sample) -> tuple[SampleRow, ...]:
    """The earliest and the latest row; without event times the first and the last of the file."""
    return tuple(sample.rows[at] for at in dict.fromkeys(sample.ends))


_MOST_UNFIT = 10
"""Of a stream's rows, how many get unfit copies."""
_UNPARSED = "n/a"


_EMPTY: Mapping[str, Json] = {
    "array": [],
    "map": {},
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), 0),
    **dict.fromkeys(("float", "double"), 0.0),
}


def _unfit(sample: Sample) -> Iterator[SampleRow]:
    fields = sample.schema.fields
    for row in (sample.rows[at] for at in _latest(sample, _MOST_UNFIT)):
        for at, (value, field) in enumerate(zip(row, fields, strict=True)):
            yield from ((*row[:at], other, *row[at + 1 :]) for other in _unparsed(value, field.type))
        yield tuple(_emptied(value, field.type) for value, field in zip(row, fields, strict=True))


def _unparsed(value: Json, type: DataType | None) -> Iterator[Json]:
    """Yield the value once for each text in it, which then does not parse: a part of text with separators is one, too.

    ``type``: None inside JSON text.
    """
    if isinstance(value, str):
        if type is None:
            yield _UNPARSED
        elif type.name == "string" and (inner := json_object(value)) is not None:
            yield from map(_json_text, _unparsed(inner, None))
        elif type.name == "string":
            separator = separator_of(value)
            parts = value.split(separator) if separator else [value]
            yield from (separator.join([*parts[:at], _UNPARSED, *parts[at + 1 :]]) for at in range(len(parts)))
    elif isinstance(value, Mapping) and (type is None or type.name == "struct"):
        types = {field.name: field.type for field in type.fields} if type is not None else dict.fromkeys(value)
        for name, item in value.items():
            yield from ({**value, name: other} for other in _unparsed(item, types[name]))
    elif isinstance(value, list) and value and (type is None or type.name == "array"):
        element = type.elements[0] if type is not None else None
        yield from ([other, *value[1:]] for other in _unparsed(value[0], element))


def _emptied(value: Json, type: DataType | None) -> Json:
    """Return the value with 0 for its numbers and without the elements of its arrays and maps; ``type``: None inside JSON text."""
    if type is not None and type.name == "string":
        inner = json_object(value)
        return value if inner is None else _json_text(_emptied(inner, None))
    if isinstance(value, Mapping) and (type is None or type.name == "struct"):
        types = {field.name: field.type for field in type.fields} if type is not None else dict.fromkeys(value)
        return {name: _emptied(item, types[name]) for name, item in value.items()}
    if type is not None:
        return _EMPTY.get(type.name, value)
    return [] if isinstance(value, list) else value if isinstance(value, str | bool | None) else 0


def _json_text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, default=float)


def _far_ahead(sample: Sample, most: int) -> Iterator[SampleRow]:
    """Yield copies of the latest rows that can be that much later."""
    return (row for at in _latest(sample, most) if (row := _later(sample, at)) is not None)


def _latest(sample: Sample, most: int) -> Sequence[int]:
    """Return the places of the latest rows, the latest of all first; without event times those of the last of the file."""
    instants = sample.instants
    return nlargest(most, range(len(instants)), lambda at: (instants[at], at)) if most > 1 else [sample.ends[1]]


def _later(sample: Sample, at: int) -> SampleRow | None:
    """Return a copy of the row, `FAR_AHEAD` later; None without an event time, or if Spark has no timestamp so late."""
    moved = sample.instants[at] + FAR_AHEAD // timedelta(microseconds=1)
    if sample.instants[at] == NO_INSTANT or moved > _LAST_INSTANT:
        return None
    if isinstance(sample.event_time, WrittenTime):
        return sample.event_time.later(sample.rows[at], FAR_AHEAD.days)
    row, names = sample.rows[at], [field.name for field in sample.schema.fields]
    # Of a record that arrived at a column, the time of the watermark may stand in its text.
    texts = [
        value if field.type.name == "string" else None for value, field in zip(row, sample.schema.fields, strict=True)
    ]
    inside = written_time(texts, names)
    later = inside.later(row, FAR_AHEAD.days) if inside is not None else None
    return tuple(show(moved) if column == sample.event_time else value for column, value in enumerate(later or row))
