"""What became of each row of a sample in a job on one version.

An engine shows the rows below each watermark and below the first operator that keeps state. The reference model repeats that operator
on them, and its word counts only if it predicts the watermarks, dropped rows and state of every micro-batch that the engine ran.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Literal, TypeAlias

from conformance.account.account import Span, dropped_rows, is_window
from conformance.core.case import Action, Add, Case, Partitioned, Step, WrittenRow
from conformance.core.data import Json
from conformance.core.observation import BatchSeen, Column, Observation
from conformance.core.spark_types import DataType
from conformance.core.values import NotAValue, canonical
from conformance.core.versions import SparkVersion
from conformance.core.wording import duration, shortened
from conformance.judging.finding import cell
from conformance.judging.step_comparison import OutputSchema
from conformance.language.reader import case_from
from conformance.language.source import InvalidCase
from conformance.model.columns import Value
from conformance.model.errors import ModelDefect, Unpredictable
from conformance.model.operators import BatchProgress
from conformance.oracle.prediction import Prediction, predict
from conformance.own_job.analyzed_plan import (
    JobPlan,
    OperatorInput,
    PlanWatermark,
    is_event_time,
    keys_of,
    without_numbers,
)
from conformance.query.reading import PlanNode

Treatment: TypeAlias = Literal[
    "no event time",
    "late",
    "filtered",
    "duplicate",
    "without partner",
    "removed",
    "in state",
    "joined",
    "out",
    "not known",
]
"""In the order in which a person looks for them."""
_ROW = "row_of_sample"
"""The column that numbers the rows in what the model runs."""
_GROUP = f"array_sort(collect_set({_ROW}l)) AS {_ROW}"
"""The numbers of the rows of a group; the order of rows in a session is not fixed."""
_OF_STREAMS = "spark.sql.streaming."
_JOINS = ("Inner", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi")
_TIME = "time_of_watermark"
"""The column with the event time, where a projection below the operator leaves only its windows."""
_SIDES = "lrstuvwx"
"""The inputs of a join, or the branches of a union."""
_ROW_BY_ROW = (
    "Project",
    "Filter",
    "SubqueryAlias",
    "View",
    "Union",
    "EventTimeWatermark",
    "WriteToMicroBatchDataSource",
    "WriteToMicroBatchDataSourceV1",
)
"""Operators that make at most one row of each."""
_CONDITION = re.compile(r"full = (.*?) \], state info")


class NotKnown(Exception):
    """The model cannot say what becomes of the rows; the message says why."""


@dataclass(frozen=True)
class TreatedRow:
    """A row of the sample, or one that a query makes of it."""

    stream: str
    step: int
    text: str
    time_us: int | None = None
    treatment: Treatment = "not known"
    batch: int | None = None
    """The micro-batch that dropped or emitted it."""
    window: Span | None = None
    """The window that holds it longest."""
    late_by_ms: int | None = None
    """How far the watermark had passed it, or the end of its last window."""
    values: Mapping[str, Json] = field(default_factory=dict, compare=False)
    """Those of the sample, by the names of their columns."""

    def shown(self, most: int = 60) -> str:
        return f"{self.stream} ({shortened(self.text, most)})"

    @property
    def passed(self) -> str:
        passed = "its window" if self.window else "it"
        return f"the watermark had passed {passed} by {duration(self.late_by_ms or 0)}"


@dataclass(frozen=True)
class RowsThere:
    """The rows at a place of a query, in the order in which they arrive."""

    columns: OutputSchema
    rows: tuple[tuple[Json, ...], ...]

    @classmethod
    def of(cls, seen: Observation) -> RowsThere:
        return cls(OutputSchema.of(seen.columns), tuple(row for batch in seen.batches for row in batch.rows))

    def values(self, places: Iterable[int]) -> list[tuple[object, ...]]:
        """Return the values of each row in these columns."""
        wanted = [*places]
        return [tuple(self.value(row, at) for at in wanted) for row in self.rows]

    def place(self, name: str) -> int | None:
        return next((at for at, other in enumerate(self.columns.names) if other == name), None)

    def value(self, row: Sequence[Json], at: int) -> object:
        return _canonical(row[at], self.columns.types[at])

    def time_of(self, mark: PlanWatermark | None) -> int | None:
        """Return the place of the event time of a watermark."""
        place = self.place(mark.column) if mark is not None else None
        return self.place(_TIME) if place is None else place

    @property
    def windows(self) -> tuple[int, ...]:
        return tuple(at for at, type in enumerate(self.columns.types) if is_window(type))


@dataclass(frozen=True)
class TreatedRows:
    rows: tuple[TreatedRow, ...]
    prediction: Prediction | None = None
    """What the model says of the first operator that keeps state; None if it does not know, or differs from the engine."""
    case: Case | None = None
    """What the model ran."""
    unknown: str = ""
    """Why it is not known which rows the engine's counts are about; empty if it is."""

    def of(self, *treatments: Treatment) -> tuple[TreatedRow, ...]:
        return tuple(row for row in self.rows if row.treatment in treatments)

    def with_delay(self, delay: str) -> Prediction:
        """Predict the same with another delay of each watermark; see `predict` for errors."""
        assert self.case is not None
        assert self.prediction is not None
        marked = self.case.query.changed(lambda op: op.with_values(delay=delay) if op.name == "withWatermark" else op)
        return predict(self.case.model_copy(update={"query": marked}), self.prediction.version)

    def late_without(self, numbers: Collection[int]) -> int:
        """Count the rows that the model drops if these rows do not come."""
        assert self.case is not None
        arrivals = (arrival for step in self.case.steps for arrival in step.arrivals())
        without = ({name: _without(placed, numbers) for name, placed in arrival.items()} for arrival in arrivals)
        steps = zip(self.case.steps, without, strict=True)
        return self._late_in(*(step.model_copy(update={"action": Add(streams=rows)}) for step, rows in steps))

    @property
    def held_without_no_data(self) -> bool:
        """Whether the model emits more rows if micro-batches without data run."""
        if self.case is None or self.prediction is None:
            return False
        conf = {**self.case.conf, f"{_OF_STREAMS}noDataMicroBatches.enabled": "true"}
        with_them = predict(self.case.model_copy(update={"conf": conf}), self.prediction.version)
        return sum(_emitted(with_them.observation)) > sum(_emitted(self.prediction.observation))

    def late_together(self) -> int:
        """Count the rows that the model drops if all come in one micro-batch."""
        assert self.case is not None
        return self._late_in(together(self.case))

    def _late_in(self, *steps: Step) -> int:
        assert self.case is not None
        assert self.prediction is not None
        return dropped_in(predict(self.case.model_copy(update={"steps": steps}), self.prediction.version))


def together(case: Case) -> Step:
    """Return the step in which all rows of a case arrive in one micro-batch."""
    rows = {
        stream: Partitioned(partitions=(tuple(row for step in case.steps for row in rows_given(step.action, stream)),))
        for stream in case.streams
    }
    return case.steps[0].model_copy(update={"action": Add(streams=rows)})


def _without(placed: Partitioned, numbers: Collection[int]) -> Partitioned:
    rows = (tuple(row for row in rows if number_of(row) not in numbers) for rows in placed.partitions)
    return Partitioned(partitions=tuple(rows))


def treat_rows(
    case: Case,
    version: SparkVersion,
    seen: Observation,
    plan: JobPlan,
    there: Mapping[OperatorInput, RowsThere],
    conf: Mapping[str, str],
) -> TreatedRows:
    """Say what became of the rows of a case that an engine ran.

    Args:
        there: the rows at places of its plan, as far as they are known.
        conf: of the engine.
    """
    reading = _Rows(case, plan, there)
    first = plan.first
    rows = tuple(reading.base())
    if seen.error is not None:
        return TreatedRows(rows, unknown="the query fails")
    if first is None:
        if plan.stateful:
            return TreatedRows(rows, unknown="which operator gets the rows first: several keep state side by side")
        if not all(node.name in _ROW_BY_ROW or not node.children for node in plan.nodes):
            return TreatedRows(rows, unknown="the query keeps no state, and makes other rows of its rows")
        return TreatedRows(tuple(_out_of_stateless(rows, seen)))
    try:
        made = _Made.of(case, plan, first, reading, rows, conf)
        prediction = predict(made.case, version)
        check_predicted(seen, prediction)
    except (NotKnown, Unpredictable, ModelDefect, InvalidCase) as why:
        return TreatedRows(rows, unknown=str(why).splitlines()[0])
    above, operator = "", f"the first operator, {first.name}"
    if made.elsewhere:
        above = f"what becomes of the rows of {', '.join(sorted(made.elsewhere))}, which do not reach {operator}"
    elif _emitted(seen) != _emitted(prediction.observation):
        above = f"which rows that leave {operator}, those above it let through"
    judged = tuple(made.judged(rows, prediction))
    if above and not any(_emitted(seen)) and any(seen.batches[-1].state[:-1]):
        # What left the first operator waits in those above it.
        left = ("out", "joined")
        judged = tuple(
            replace(row, treatment="in state", window=None) if row.treatment in left else row for row in judged
        )
    return TreatedRows(judged, prediction, made.case, above)


def _emitted(seen: Observation) -> list[int]:
    return [len(batch.rows) for batch in seen.batches]


def batches_of(seen: Observation) -> list[tuple[int, BatchSeen]]:
    return [(step.number, batch) for step in seen.steps for batch in step.batches]


def check_predicted(seen: Observation, prediction: Prediction) -> None:
    """Raise NotKnown unless the model predicts what the engine shows of the operator, which is its last in the progress."""
    engine, model = batches_of(seen), batches_of(prediction.observation)
    alone = max((len(batch.state) for _, batch in engine), default=0) <= 1
    # Without a watermark below it, that of an operator above does not concern it.
    marked = any(other.watermark is not None for _, other in model)
    for (number, batch), (other_number, other) in zip(engine, model, strict=False):
        dropped = batch.dropped if alone else (batch.dropped_by_operator or (None,))[-1]
        counted = other.dropped if dropped is None else dropped
        shown = number, batch.id, (batch.watermark or 0) if marked else 0, batch.state[-1:], counted
        if shown != (other_number, other.id, other.watermark or 0, other.state, other.dropped):
            raise NotKnown(f"the reference model predicts micro-batch {batch.id} otherwise than the engine ran it")
    if len(engine) != len(model):
        raise NotKnown("the reference model predicts other micro-batches than the engine ran")


def _out_of_stateless(rows: Sequence[TreatedRow], seen: Observation) -> Iterator[TreatedRow]:
    """A query without state emits each row in its micro-batch, or filters it: which, is known if it emits all or none."""
    emitting = ((step.number, [batch for batch in step.batches if batch.rows]) for step in seen.steps)
    left = {step: (sum(len(b.rows) for b in of), of[0].id if of else None) for step, of in emitting}
    given = Counter(row.step for row in rows)
    for row in rows:
        number, batch = left.get(row.step, (0, None))
        if row.treatment == "filtered" or number == 0:
            yield replace(row, treatment="filtered")
        elif number == given[row.step]:
            yield replace(row, treatment="out", batch=batch)
        else:
            yield row


@dataclass
class _Rows:
    case: Case
    plan: JobPlan
    there: Mapping[OperatorInput, RowsThere]
    numbers: dict[OperatorInput, list[int]] = field(default_factory=dict)
    """Input of a watermark → the number of the row of the sample that each row there comes from."""
    of_stream: dict[str, list[int]] = field(default_factory=dict)
    """Stream → the numbers of its rows."""
    treated: list[TreatedRow] = field(default_factory=list)
    """All rows by their numbers, as far as the watermarks tell what became of them."""

    def base(self) -> Iterator[TreatedRow]:
        """Yield the rows of the samples, with the event times that the watermarks get."""
        made = self.treated
        for stream, schema in self.case.streams.items():
            self.of_stream[stream] = []
            for step in self.case.steps:
                for row in rows_given(step.action, stream):
                    self.of_stream[stream].append(len(made))
                    names = [of.name for of in schema.fields]
                    given = row if isinstance(row, Mapping) else dict(zip(names, row, strict=False))
                    values = {name: given.get(name) for name in names}
                    made.append(TreatedRow(stream, step.number, ", ".join(map(cell, values.values())), values=values))
        for mark in self.plan.watermarks:
            if (rows := self.there.get(mark.input)) is None or (of_sample := self._of_sample(mark.node, rows)) is None:
                continue
            streams, numbers = of_sample
            self.numbers[mark.input] = numbers
            for number in {at for stream in streams for at in self.of_stream[stream]} - set(numbers):
                made[number] = replace(made[number], treatment="filtered")
            if (at_time := rows.place(mark.column)) is None:
                continue
            for number, row in zip(numbers, rows.rows, strict=True):
                time = rows.value(row, at_time)
                time = time[1] if isinstance(time, tuple) else time
                how: Treatment = "no event time" if time is None else "not known"
                made[number] = replace(made[number], time_us=time if isinstance(time, int) else None, treatment=how)
        yield from made

    def _of_sample(self, node: PlanNode, rows: RowsThere) -> tuple[list[str], list[int]] | None:
        """Return whose rows an operator gets, and the number of the row that each comes from; None if that does not tell.

        It is the stream whose columns the leaves below the operator have; of several, the one whose values the rows have. A union has the
        rows of its branches one after the other.
        """
        of_branches = [self._streams(branch) for branch in _branches(node)]
        if len(of_branches) > 1:
            united = [stream for streams in of_branches for stream in streams]
            numbers = [number for stream in united for number in self.of_stream[stream]]
            whole = len(united) == len({*united}) == len(of_branches) and len(numbers) == len(rows.rows)
            return (united, numbers) if whole and all(of_branches) else None
        found = {name: self._numbers(name, rows, compared=len(of_branches[0]) > 1) for name in of_branches[0]}
        known = [([name], numbers) for name, numbers in found.items() if numbers is not None]
        return known[0] if len(known) == 1 else None

    def _streams(self, node: PlanNode) -> list[str]:
        """Return the streams of which an operator may get the rows."""
        leaves = " ".join(below.arguments for below in node.downwards() if not below.children)
        sent = [name for name, numbers in self.of_stream.items() if numbers]
        columns = {name: [re.escape(field.name) for field in self.case.streams[name].fields] for name in self.of_stream}
        fitting = [n for n, of in columns.items() if all(re.search(rf"(?<![^\s\[,]){each}#", leaves) for each in of)]
        return fitting or (sent if len(sent) == 1 else [])

    def _numbers(self, stream: str, rows: RowsThere, *, compared: bool) -> list[int] | None:
        schema = self.case.streams[stream]
        places = {
            at: place
            for at, of in enumerate(schema.fields)
            if (place := rows.place(of.name)) is not None and of.type == rows.columns.types[place]
        }
        fields, given = [schema.fields[at] for at in places], [self.treated[at].values for at in self.of_stream[stream]]
        lower = [tuple(_canonical(row[of.name], of.type) for of in fields) for row in given]
        upper = rows.values(places.values())
        other = compared and len(lower) == len(upper) and (not places or lower != upper)
        found = None if other else aligned(lower, upper)
        return None if found is None else [self.of_stream[stream][at] for at in found]

    def under(self, side: PlanNode, input: OperatorInput) -> list[_Side]:
        """Return the rows of an input, or of each branch of a union in it, and the number of the row that each comes from.

        Raises NotKnown.
        """
        if (rows := self.there.get(input)) is None:
            raise NotKnown("the engine did not show the rows that the operator gets")
        marks = self.plan.marks(side)
        if not marks:
            if (of_sample := self._of_sample(side, rows)) is None:
                raise NotKnown("which rows of the sample the operator gets")
            return [(rows, of_sample[1], None)]
        if any(mark.input not in self.there or mark.input not in self.numbers for mark in marks):
            raise NotKnown("which rows of the sample reach the watermark")
        lower = [(mark, number) for mark in marks for number in self.numbers[mark.input]]
        mark, below, windows = marks[0], self.there[marks[0].input], rows.windows
        column = mark.column
        if len(marks) == 1:
            names = [(below.place(name), at) for at, name in enumerate(rows.columns.names) if at not in windows]
            here = [(place, at) for place, at in names if place is not None]
            values: Sequence[object] = below.values(place for place, _ in here)
            upper: Sequence[object] = rows.values(at for _, at in here)
        else:
            # The branches of a union, one after the other, have nothing in common but event times, whatever their name.
            instants = [each.name for each in rows.columns.columns if each.type == "timestamp"]
            column = min(instants, key=lambda name: name != mark.column, default="")
            at_time = rows.place(column)
            if at_time is None or any(len(self.plan.marks(branch)) != 1 for branch in _branches(side)):
                raise NotKnown("several watermarks stand below one input of the operator")
            values, upper = [(self.treated[at].time_us,) for _, at in lower], rows.values([at_time])
        found = aligned(values, upper, rows.values(windows) if windows else None)
        # Rows whose event time is null may have no window.
        timed = [value for value in values if value != (None,) or value in upper]
        if found is None or (len(marks) > 1 and len({*timed}) < len(timed) > len({*found})):
            raise NotKnown("which rows pass what stands between the watermark and the operator")
        if rows.place(column) is None and (at_time := below.place(column)) is not None:
            time = Column(name=_TIME, type=below.columns.columns[at_time].type)
            with_time = ((*row, below.rows[at][at_time]) for row, at in zip(rows.rows, found, strict=True))
            rows = RowsThere(OutputSchema.of((*rows.columns.columns, time)), tuple(with_time))
        sides: list[_Side] = []
        for each in marks:
            of_mark = [(row, lower[at][1]) for row, at in zip(rows.rows, found, strict=True) if lower[at][0] is each]
            there = RowsThere(rows.columns, tuple(row for row, _ in of_mark))
            sides.append((there, [number for _, number in of_mark], replace(each, column=column)))
        return sides


def _branches(side: PlanNode) -> Iterator[PlanNode]:
    union = next((node for node in side.downwards() if node.name == "Union"), None)
    if union is None:
        yield side
    else:
        yield from chain.from_iterable(map(_branches, union.children))


def number_of(row: WrittenRow) -> int:
    """The number of a row of what the model runs: its first column."""
    return int(next(iter(row)))


def rows_given(action: Action, stream: str) -> list[WrittenRow]:
    placed = action.streams.get(stream) if isinstance(action, Add) else None
    return [row for partition in placed.partitions for row in partition] if placed is not None else []


def _canonical(value: Json, type: DataType) -> object:
    try:
        return canonical(value, type)
    except NotAValue:
        return None


def aligned(
    lower: Sequence[object], upper: Sequence[object], windows: Sequence[object] | None = None
) -> list[int] | None:
    """Return for each upper row the place of the lower row that it comes from; None if that does not follow.

    The operators between keep the order, unless a join with a table brings equal keys together, and drop rows or repeat them for each of
    several windows. Rows are what both have in common.
    """
    place_of = {row: place for place, row in enumerate(lower)}
    if len(place_of) == len(lower) == len(upper) and place_of.keys() == {*upper}:
        return [place_of[row] for row in upper]
    if len(lower) == len(upper) and (windows is None or not upper or upper[0] == ()):
        return [*range(len(lower))]
    places: list[int] = []
    at, held = -1, set[object]()
    for number, row in enumerate(upper):
        window = windows[number] if windows is not None else None
        if at < 0 or row == () or lower[at] != row or window in held or windows is None:
            at = next((place for place in range(at + 1, len(lower)) if lower[place] == row and row != ()), len(lower))
            held = set()
        if at == len(lower):
            return None
        held.add(window)
        places.append(at)
    return places


@dataclass(frozen=True)
class _Made:
    """The case in which the model repeats the first operator that keeps state."""

    case: Case
    windows: Mapping[int, Span]
    kind: str
    elsewhere: frozenset[str] = frozenset()
    """The streams whose rows reach an operator above it only."""

    @classmethod
    def of(
        cls, case: Case, plan: JobPlan, node: PlanNode, read: _Rows, base: Sequence[TreatedRow], conf: Mapping[str, str]
    ) -> _Made:
        sides, windows = list[_Side](), dict[int, Span]()
        for side, input in zip(node.children, plan.inputs(node), strict=True):
            sides += read.under(side, input)
        if len(sides) > (len(node.children) if node.name == "Join" else len(_SIDES)):
            raise NotKnown("several watermarks stand below one input of the operator")
        for rows, numbers, _ in sides:
            for row, number in zip(rows.rows, numbers, strict=True):
                for place in rows.windows:
                    span = rows.value(row, place)
                    if isinstance(span, tuple):
                        last = windows.get(number)
                        windows[number] = Span(*span) if last is None or last.end < span[1] else last
        query = _query(node, plan.joins, sides)
        streams, arriving = {}, dict[int, dict[str, list[list[Json]]]]()
        for name, (rows, numbers, _) in zip(_SIDES, sides, strict=False):
            kept = [place for place in range(len(rows.columns.names)) if place not in rows.windows]
            of_rows = (f"c{place} {rows.columns.columns[place].type}" for place in kept)
            streams[name] = ", ".join([f"{_ROW}{name} BIGINT", *of_rows])
            for row, number in zip(rows.rows, numbers, strict=True):
                sent = arriving.setdefault(base[number].step, {}).setdefault(name, [])
                if not sent or sent[-1][0] != number:
                    values = rows.columns.as_written(row)
                    sent.append([number, *(values[place] for place in kept)])
        given = [arriving.get(step.number, {}) for step in case.steps]
        steps = [{"add": {name: of_step.get(name, []) for name in streams}} for of_step in given]
        written: dict[str, Json] = {
            "title": "the first operator that keeps state",
            "strength": "observed",
            "streams": streams,
            "query": query,
            "outputMode": case.output_mode,
            "conf": {**{key: value for key, value in conf.items() if key.startswith(_OF_STREAMS)}, **case.conf},
            "steps": steps,
        }
        if case.trigger != "default":
            written["trigger"] = case.trigger
        here = {base[number].stream for _, numbers, _ in sides for number in numbers}
        elsewhere = case.streams.keys() - here if len(plan.stateful) > 1 else set[str]()
        return cls(case_from(written, "first-operator"), windows, node.name, frozenset(elsewhere))

    def judged(self, rows: Sequence[TreatedRow], prediction: Prediction) -> Iterator[TreatedRow]:
        known = dict(self._known(prediction))
        for number, row in enumerate(rows):
            made = known.get(number)
            timeless = row.treatment == "no event time"
            unseen = row.time_us is None and timeless and made is None
            if unseen or row.treatment == "filtered" or row.stream in self.elsewhere:
                yield row
                continue
            treatment, batch, late = made or ("filtered", None, None)
            if timeless and treatment not in ("out", "joined", "duplicate"):
                treatment = "no event time"
            yield replace(row, treatment=treatment, batch=batch, late_by_ms=late, window=self.windows.get(number))

    def _known(self, prediction: Prediction) -> Iterator[tuple[int, tuple[Treatment, int | None, int | None]]]:
        given = {
            (name, step.number): [number_of(row) for row in rows_given(step.action, name)]
            for step in self.case.steps
            for name in self.case.streams
        }
        numbers = [number for of_step in given.values() for number in of_step]
        known: dict[int, tuple[Treatment, int | None, int | None]] = dict.fromkeys(numbers, ("in state", None, None))
        removed: set[int] = set()
        for step, progress in zip(prediction.observation.steps, prediction.steps, strict=True):
            for batch in progress.batches:
                here = {name: given[name, step.number] for name in self.case.streams}
                late = {here[name][at]: late_by(batch, (name, at)) for (name, at) in dropped_rows(batch)}
                for number, by in late.items():
                    known[number] = "late", batch.id, by
                columns = [column.name for column in prediction.columns_of(step.number)]
                sides = sum(name.startswith(_ROW) for name in columns)
                for row in batch.emitted:
                    numbers = [*numbers_of(row, columns)]
                    treatment: Treatment = "out"
                    if self.kind == "Join":
                        treatment = "joined" if len(numbers) > 1 or sides == 1 else "without partner"
                    for number in numbers:
                        if known[number][0] in ("in state", "without partner"):
                            known[number] = treatment, batch.id, None
                if self.kind.startswith("Deduplicate") and batch.kind == "data":
                    for number in chain.from_iterable(here.values()):
                        if known[number][0] == "in state":
                            known[number] = "duplicate", batch.id, None
                evicted = (part for operator in batch.operators for row in operator.evicted for part in row.what)
                removed.update(n for name, _, n in evicted if name.startswith(_ROW) and isinstance(n, int))
        for number in removed:
            if known[number][0] == "in state":
                known[number] = "without partner" if self.kind == "Join" else "removed", None, None
        yield from known.items()


def numbers_of(row: Sequence[Value], columns: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of the rows that an emitted row is made of."""
    for name, part in zip(columns, row, strict=True):
        if name.startswith(_ROW) and part is not None:
            yield from part if isinstance(part, tuple) else (part,)


def dropped_in(prediction: Prediction) -> int:
    """Count the rows that the model drops as late."""
    return sum(len(dropped_rows(batch)) for step in prediction.steps for batch in step.batches)


def late_by(batch: BatchProgress, origin: tuple[str, int]) -> int | None:
    """By how much the watermark had passed a late row, in ms; of several windows the last."""
    by = [
        (row.watermark_ms * 1000 - row.time_us) // 1000
        for operator in batch.operators
        for row in operator.late
        if origin in row.origins and row.time_us is not None
    ]
    return min(by, default=None)


_Side: TypeAlias = tuple[RowsThere, list[int], PlanWatermark | None]


def _query(node: PlanNode, joins: Sequence[PlanNode], sides: Sequence[_Side]) -> list[dict[str, Json]]:
    pipelines = []
    for name, (rows, numbers, mark) in zip(_SIDES, sides, strict=False):
        pipeline: list[dict[str, Json]] = [{"from": name}]
        if mark is not None:
            at = rows.time_of(mark)
            if at is None:
                raise NotKnown(f"the operator does not get {mark.column}, the column of the watermark")
            pipeline.append({"withWatermark": [f"c{at}", mark.delay]})
        if node.name != "Aggregate":
            windows = ((place, _window((rows, numbers, mark), by_mark=True, session=False)) for place in rows.windows)
            pipeline += ({"withColumn": [f"c{place}", window]} for place, window in windows)
            pipeline += [{"drop": [f"c{rows.place(_TIME)}"]}] if rows.place(_TIME) is not None else []
        pipelines.append(pipeline)
    pipeline = [*pipelines[0], *({"union": other} for other in pipelines[1:])]
    match node.name:
        case "Aggregate":
            return [*pipeline, {"groupBy": [*_keys(node, sides[0])], "agg": [_GROUP]}]
        case "Distinct":
            # Of SQL, which Spark runs as an aggregation by all columns; that of a DataFrame is a Deduplicate.
            columns = [f"c{at}" for at, name in enumerate(sides[0][0].columns.names) if name != _TIME]
            return [*pipeline, {"groupBy": columns, "agg": [_GROUP]}]
        case "Deduplicate" | "DeduplicateWithinWatermark":
            columns = [_column(sides[0][0], key) for key in keys_of(node)]
            name = "dropDuplicatesWithinWatermark" if node.name.endswith("Watermark") else "dropDuplicates"
            return [*pipeline, {name: columns}]
        case "Join":
            kind = node.arguments.strip().partition(",")[0]
            if kind not in _JOINS or len(joins) != 1:
                raise NotKnown(f"a join {node.arguments.strip()}")
            on = _condition(joins[0], sides)
            left, right = ([*made, {"alias": name}] for made, name in zip(pipelines, _SIDES, strict=False))
            how = {} if kind == "Inner" else {"how": kind[0].lower() + kind[1:]}
            return [*left, {"join": right, "on": on, **how}]
    raise NotKnown(f"what {node.name} does with its rows is its author's code")


def _column(rows: RowsThere, key: str) -> str:
    at = rows.place(without_numbers(key))
    if at is None:
        raise NotKnown(f"the key {without_numbers(key)} is computed in the operator")
    return f"c{at}"


def _keys(node: PlanNode, side: _Side) -> Iterator[str]:
    rows, windows = side[0], side[0].windows
    for key in keys_of(node):
        name = without_numbers(key)
        if windows and name in ("window", "session_window", *(rows.columns.names[at] for at in windows)):
            yield _window(side, by_mark=is_event_time(key), session="session" in name)
        else:
            yield _column(rows, key)


def _window(side: _Side, *, by_mark: bool, session: bool) -> str:
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
        of_rows = [f"WHEN {_ROW}l IN ({', '.join(numbers)}) THEN {gap}" for gap, numbers in gaps.items()]
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


def _condition(join: PlanNode, sides: Sequence[_Side]) -> str:
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
        return f"{_SIDES[holding[0]]}.c{at}"

    left, right = keys_of(join), keys_of(replace(join, arguments=join.arguments.partition("], ")[2]))
    more = _CONDITION.search(join.arguments)
    parts = [f"{a} = {b}" for a, b in zip(left, right, strict=True)]
    parts += [more[1]] if more and more[1] != "null" else []
    text = re.sub(r"([^\s,()\[\]{}]+?)#(\d+)L?(?:-T\d+ms)?", named, " AND ".join(parts))
    text = re.sub(r"INTERVAL '(\d+):(\d+)' (?:HOUR TO MINUTE|MINUTE TO SECOND)", _compound, text)
    # Before 3.2, intervals are printed without the word.
    return re.sub(r"([+-] )((?:\d+ (?:days?|hours?|minutes?|seconds?|milliseconds?) ?)+)\b", r"\1INTERVAL \2", text)


def _compound(found: re.Match[str]) -> str:
    big, small = ("HOURS", "MINUTES") if "HOUR" in found[0] else ("MINUTES", "SECONDS")
    return f"INTERVAL {int(found[1])} {big} {int(found[2])} {small}"
