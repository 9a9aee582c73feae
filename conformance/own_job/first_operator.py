"""The query in which the reference model repeats the first operator of a job that keeps state, on the rows that it gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from conformance.account.account import is_window
from conformance.core.data import Json
from conformance.core.observation import Observation
from conformance.core.values import NotAValue, canonical
from conformance.judging.step_comparison import OutputSchema
from conformance.own_job.analyzed_plan import PlanWatermark, is_event_time, keys_of, without_numbers
from conformance.query.reading import PlanNode
from harness.driver.backend import ROW_FROM

ROW = "row_of_sample"
"""The column that numbers the rows in what the model runs."""
_GROUP = f"array_sort(collect_set({ROW}l)) AS {ROW}"
"""The numbers of the rows of a group; the order of rows in a session is not fixed."""
_JOINS = ("Inner", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi")
TIME = "time_of_watermark"
"""The column with the event time, where a projection below the operator leaves only its windows."""
SIDES = "lrstuvwx"
"""The inputs of a join, or the branches of a union."""
_CONDITION = re.compile(r"full = (.*?) \], state info")


class NotKnown(Exception):
    """The model cannot say what becomes of the rows; the message says why."""


@dataclass(frozen=True)
class RowsThere:
    """The rows at a place of a query, in the order in which they arrive."""

    columns: OutputSchema
    rows: tuple[tuple[Json, ...], ...]
    origins: tuple[tuple[str, int], ...] | None
    """The stream of each row, and which of its rows it comes from; None if that is not known."""

    @classmethod
    def of(cls, seen: Observation) -> RowsThere:
        rows = [row for batch in seen.batches for row in batch.rows]
        at = next((at for at, column in enumerate(seen.columns) if column.name == ROW_FROM), None)
        if at is None or any(str(row[at]).startswith(" ") for row in rows):
            return cls(OutputSchema.of(seen.columns), tuple(rows), None)
        columns = OutputSchema.of((*seen.columns[:at], *seen.columns[at + 1 :]))
        known = sorted(((_origin(row[at]), row) for row in rows), key=lambda each: each[0])
        return cls(
            columns, tuple((*row[:at], *row[at + 1 :]) for _, row in known), tuple(origin for origin, _ in known)
        )

    def place(self, name: str) -> int | None:
        return next((at for at, other in enumerate(self.columns.names) if other == name), None)

    def value(self, row: Sequence[Json], at: int) -> object:
        """Return a value in its canonical form, in which equal values are equal; None if the engine wrote no value of this type."""
        try:
            return canonical(row[at], self.columns.types[at])
        except NotAValue:
            return None

    def time_of(self, mark: PlanWatermark | None) -> int | None:
        """Return the place of the event time of a watermark."""
        place = self.place(mark.column) if mark is not None else None
        return self.place(TIME) if place is None else place

    @property
    def windows(self) -> tuple[int, ...]:
        return tuple(at for at, type in enumerate(self.columns.types) if is_window(type))


def _origin(text: Json) -> tuple[str, int]:
    """``file:///…/streams/orders/000001.json 7``"""
    path, _, number = str(text).rpartition(" ")
    # The upper bits are the number of the partition.
    return path.rsplit("/", 2)[-2].removeprefix("stream="), int(number) % 2**33


Side: TypeAlias = tuple[RowsThere, list[int], PlanWatermark | None]


def query_of(node: PlanNode, joins: Sequence[PlanNode], sides: Sequence[Side]) -> list[dict[str, Json]]:
    pipelines = []
    for name, (rows, numbers, mark) in zip(SIDES, sides, strict=False):
        pipeline: list[dict[str, Json]] = [{"from": name}]
        if mark is not None:
            at = rows.time_of(mark)
            if at is None:
                raise NotKnown(f"the operator does not get {mark.column}, the column of the watermark")
            pipeline.append({"withWatermark": [f"c{at}", mark.delay]})
        if node.name != "Aggregate":
            windows = ((place, _window((rows, numbers, mark), by_mark=True, session=False)) for place in rows.windows)
            pipeline += ({"withColumn": [f"c{place}", window]} for place, window in windows)
            pipeline += [{"drop": [f"c{rows.place(TIME)}"]}] if rows.place(TIME) is not None else []
        pipelines.append(pipeline)
    pipeline = [*pipelines[0], *({"union": other} for other in pipelines[1:])]
    match node.name:
        case "Aggregate":
            return [*pipeline, {"groupBy": [*_keys(node, sides[0])], "agg": [_GROUP]}]
        case "Distinct":
            # Of SQL, which Spark runs as an aggregation by all columns; that of a DataFrame is a Deduplicate.
            columns = [f"c{at}" for at, name in enumerate(sides[0][0].columns.names) if name != TIME]
            return [*pipeline, {"groupBy": columns, "agg": [_GROUP]}]
        case "Deduplicate" | "DeduplicateWithinWatermark":
            columns = [_column(sides[0][0], key, node) for key in keys_of(node)]
            name = "dropDuplicatesWithinWatermark" if node.name.endswith("Watermark") else "dropDuplicates"
            return [*pipeline, {name: columns}]
        case "Join":
            kind = node.arguments.strip().partition(",")[0]
            if kind not in _JOINS or len(joins) != 1:
                raise NotKnown(f"a join {node.arguments.strip()}")
            on = _condition(joins[0], sides)
            left, right = ([*made, {"alias": name}] for made, name in zip(pipelines, SIDES, strict=False))
            how = {} if kind == "Inner" else {"how": kind[0].lower() + kind[1:]}
            return [*left, {"join": right, "on": on, **how}]
    raise NotKnown(f"what {node.name} does with its rows is its author's code")


def _column(rows: RowsThere, key: str, node: PlanNode) -> str:
    at = rows.place(without_numbers(key))
    if at is None and (made := re.search(rf"[\[ ]{re.escape(key)} AS (.+?)#\d+", node.arguments)):
        # Those that the operator computes come after all others.
        at = max((at for at, name in enumerate(rows.columns.names) if name == made[1]), default=None)
    if at is None:
        raise NotKnown(f"the operator does not get the key {without_numbers(key)}")
    return f"c{at}"


def _keys(node: PlanNode, side: Side) -> Iterator[str]:
    rows, windows = side[0], side[0].windows
    for key in keys_of(node):
        name = without_numbers(key)
        if windows and name in ("window", "session_window", *(rows.columns.names[at] for at in windows)):
            yield _window(side, by_mark=is_event_time(key), session="session" in name)
        else:
            yield _column(rows, key, node)


def _window(side: Side, *, by_mark: bool, session: bool) -> str:
    """Write the call that gave the windows of these rows; ``by_mark``: whether their time is the column of the watermark."""
    rows, numbers, mark = side
    window = rows.windows[0]
    held: dict[int, list[tuple[int, int]]] = {}
    values: dict[int, tuple[Json, ...]] = {}
    for row, number in zip(rows.rows, numbers, strict=True):
        span = rows.value(row, window)
        if isinstance(span, tuple):
            held.setdefault(number, []).append(span)
            values[number] = row
    if not held:
        raise NotKnown("no row reaches the windows")
    at_mark = rows.time_of(mark)
    at_time = at_mark if by_mark else None
    if at_time is None:
        instants = [at for at, type in enumerate(rows.columns.types) if type.name.startswith("timestamp")]
        fitting = [at for at in instants if at != at_mark] or instants
        fitting = [at for at in fitting if all(_holds(spans, rows.value(values[n], at)) for n, spans in held.items())]
        if not fitting:
            raise NotKnown("of which column the windows are")
        at_time = fitting[0]
    if session:
        # The gap of each row: a column may say it.
        gaps: dict[str, list[str]] = {}
        for number, ((start, end), *_) in held.items():
            gaps.setdefault(f"'{_interval(end - start)}'", []).append(str(number))
        of_rows = [f"WHEN {ROW}l IN ({', '.join(numbers)}) THEN {gap}" for gap, numbers in gaps.items()]
        return f"session_window(c{at_time}, {' '.join(['CASE', *of_rows, 'END']) if of_rows[1:] else next(iter(gaps))})"
    start, end = next(iter(held.values()))[0]
    starts = [sorted(start for start, _ in spans) for spans in held.values()]
    apart = [b - a for of_row in starts for a, b in pairwise(of_row)]
    slide = min(apart, default=end - start)
    offset = start % slide
    return f"window(c{at_time}, '{_interval(end - start)}', '{_interval(slide)}'{f', {_interval(offset)!r}' if offset else ''})"


def _holds(spans: Iterable[tuple[int, int]], time: object) -> bool:
    return isinstance(time, int) and all(start <= time < end for start, end in spans)


def _interval(us: int) -> str:
    return f"{us // 10**6} seconds" if us % 10**6 == 0 else f"{us // 1000} milliseconds"


def _condition(join: PlanNode, sides: Sequence[Side]) -> str:
    """Write the condition of a physical join with the columns of what the model runs."""
    # A side that reuses the exchange of the other names its columns before those of the other.
    made = [
        " ".join(below.arguments.partition("], Exchange ")[0] for below in side.downwards()) for side in join.children
    ]

    def named(found: re.Match[str]) -> str:
        holding = [at for at, text in enumerate(made) if re.search(rf"(?<!\w){re.escape(found[1])}#{found[2]}\b", text)]
        if len(holding) != 1:
            raise NotKnown(f"of which side {found[1]} is, in the condition of the join")
        at = sides[holding[0]][0].place(found[1])
        if at is None:
            raise NotKnown(f"the join does not get {found[1]}")
        return f"{SIDES[holding[0]]}.c{at}"

    left, right = keys_of(join), keys_of(replace(join, arguments=join.arguments.partition("], ")[2]))
    more = _CONDITION.search(join.arguments)
    parts = [f"{a} = {b}" for a, b in zip(left, right, strict=True)]
    parts += [more[1]] if more and more[1] != "null" else []
    text = re.sub(r"([^\s,()\[\]{}]+?)#(\d+L?)(?:-T\d+ms)?", named, " AND ".join(parts))
    text = re.sub(r"INTERVAL '(\d+):(\d+)' (?:HOUR TO MINUTE|MINUTE TO SECOND)", _compound, text)
    # Before 3.2, intervals are printed without the word.
    return re.sub(r"([+-] )((?:\d+ (?:days?|hours?|minutes?|seconds?|milliseconds?) ?)+)\b", r"\1INTERVAL \2", text)


def _compound(found: re.Match[str]) -> str:
    big, small = ("HOURS", "MINUTES") if "HOUR" in found[0] else ("MINUTES", "SECONDS")
    return f"INTERVAL {int(found[1])} {big} {int(found[2])} {small}"
