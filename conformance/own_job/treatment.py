"""What became of each row of a sample in a job on one version.

An engine shows the rows below each watermark and below the first operator that keeps state. The reference model repeats that operator
on them, and its word counts only if it predicts the watermarks, dropped rows and state of every micro-batch that the engine ran.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal, TypeAlias

from conformance.account.account import Span, dropped_rows
from conformance.core.case import Action, Add, Case, Partitioned, Step, WrittenRow
from conformance.core.data import Json
from conformance.core.observation import BatchSeen, Column, Observation
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
from conformance.own_job.analyzed_plan import WHOLE, JobPlan, OperatorInput
from conformance.own_job.first_operator import ROW, SIDES, TIME, NotKnown, RowsThere, Side, query_of
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
_OF_STREAMS = "spark.sql.streaming."


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
        if self.late_by_ms:
            return f"the watermark had passed {'its window' if self.window else 'it'} by {duration(self.late_by_ms)}"
        return f"the watermark had reached {'the end of its window' if self.window else 'it'}"


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
        if WHOLE not in there or (out := reading.of_rows(there[WHOLE])) is None:
            return TreatedRows(rows, unknown="the query keeps no state, and which rows it emits does not show")
        return TreatedRows(tuple(_out_of_stateless(rows, seen, {*out})))
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


def _out_of_stateless(rows: Sequence[TreatedRow], seen: Observation, out: Collection[int]) -> Iterator[TreatedRow]:
    """A query without state emits each row in its micro-batch, or filters it."""
    emitting = {step.number: batch.id for step in seen.steps for batch in reversed(step.batches) if batch.rows}
    for number, row in enumerate(rows):
        if number in out:
            yield replace(row, treatment="out", batch=emitting.get(row.step))
        else:
            yield replace(row, treatment="filtered")


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
        reached = set[int]()
        for mark in self.plan.watermarks:
            if (rows := self.there.get(mark.input)) is None or (numbers := self.of_rows(rows)) is None:
                continue
            self.numbers[mark.input] = numbers
            reached.update(numbers)
            if (at_time := rows.place(mark.column)) is None:
                continue
            for number, row in zip(numbers, rows.rows, strict=True):
                time = rows.value(row, at_time)
                time = time[1] if isinstance(time, tuple) else time
                how: Treatment = "no event time" if time is None else "not known"
                made[number] = replace(made[number], time_us=time if isinstance(time, int) else None, treatment=how)
        marked = {made[number].stream for number in reached}
        for number, treated in enumerate(made):
            if treated.stream in marked and number not in reached:
                made[number] = replace(treated, treatment="filtered")
        yield from made

    def of_rows(self, rows: RowsThere) -> list[int] | None:
        """Return the number of the row of the sample that each row comes from; None if that is not known."""
        return None if rows.origins is None else [self.of_stream[stream][at] for stream, at in rows.origins]

    def under(self, side: PlanNode, input: OperatorInput) -> list[Side]:
        """Return the rows of an input, or of each branch of a union in it, and the number of the row that each comes from.

        Raises NotKnown.
        """
        if (rows := self.there.get(input)) is None:
            raise NotKnown("the engine did not show the rows that the operator gets")
        if (numbers := self.of_rows(rows)) is None:
            raise NotKnown("which rows of the sample the operator gets")
        marks = self.plan.marks(side)
        if not marks:
            return [(rows, numbers, None)]
        if any(mark.input not in self.numbers for mark in marks):
            raise NotKnown("which rows of the sample reach the watermark")
        mark, below = marks[0], self.there[marks[0].input]
        column = mark.column
        if len(marks) > 1:
            # The branches of a union have the event time under one name, that of the first.
            instants = [each.name for each in rows.columns.columns if each.type == "timestamp"]
            column = min(instants, key=lambda name: name != mark.column, default="")
            if rows.place(column) is None:
                raise NotKnown("several watermarks stand below one input of the operator")
        elif rows.place(column) is None and (at_time := below.place(column)) is not None:
            time = Column(name=TIME, type=below.columns.columns[at_time].type)
            times = {n: row[at_time] for n, row in zip(self.numbers[mark.input], below.rows, strict=True)}
            with_time = ((*row, times[n]) for row, n in zip(rows.rows, numbers, strict=True))
            rows = replace(rows, columns=OutputSchema.of((*rows.columns.columns, time)), rows=tuple(with_time))
        sides: list[Side] = []
        for each in marks:
            here = {*self.numbers[each.input]}
            of_mark = [(row, number) for row, number in zip(rows.rows, numbers, strict=True) if number in here]
            there = replace(rows, rows=tuple(row for row, _ in of_mark))
            sides.append((there, [number for _, number in of_mark], replace(each, column=column)))
        return sides


def number_of(row: WrittenRow) -> int:
    """The number of a row of what the model runs: its first column."""
    return int(next(iter(row)))


def rows_given(action: Action, stream: str) -> list[WrittenRow]:
    placed = action.streams.get(stream) if isinstance(action, Add) else None
    return [row for partition in placed.partitions for row in partition] if placed is not None else []


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
        sides, windows = list[Side](), dict[int, Span]()
        for side, input in zip(node.children, plan.inputs(node), strict=True):
            sides += read.under(side, input)
        if len(sides) > (len(node.children) if node.name == "Join" else len(SIDES)):
            raise NotKnown("several watermarks stand below one input of the operator")
        for rows, numbers, _ in sides:
            for row, number in zip(rows.rows, numbers, strict=True):
                for place in rows.windows:
                    span = rows.value(row, place)
                    if isinstance(span, tuple):
                        last = windows.get(number)
                        windows[number] = Span(*span) if last is None or last.end < span[1] else last
        query = query_of(node, plan.joins, sides)
        streams, arriving = {}, dict[int, dict[str, list[list[Json]]]]()
        for name, (rows, numbers, _) in zip(SIDES, sides, strict=False):
            kept = [place for place in range(len(rows.columns.names)) if place not in rows.windows]
            of_rows = (f"c{place} {rows.columns.columns[place].type}" for place in kept)
            streams[name] = ", ".join([f"{ROW}{name} BIGINT", *of_rows])
            first = dict[int, list[object]]()
            for row, number in zip(rows.rows, numbers, strict=True):
                sent = arriving.setdefault(base[number].step, {}).setdefault(name, [])
                span = [rows.value(row, place) for place in rows.windows]
                # Spark copies a row for each of its sliding windows; the model gets the first copy and makes the others itself.
                if first.setdefault(number, span) == span:
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
                sides = sum(name.startswith(ROW) for name in columns)
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
                removed.update(n for name, _, n in evicted if name.startswith(ROW) and isinstance(n, int))
        for number in removed:
            if known[number][0] == "in state":
                known[number] = "without partner" if self.kind == "Join" else "removed", None, None
        yield from known.items()


def numbers_of(row: Sequence[Value], columns: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of the rows that an emitted row is made of."""
    for name, part in zip(columns, row, strict=True):
        if name.startswith(ROW) and part is not None:
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
