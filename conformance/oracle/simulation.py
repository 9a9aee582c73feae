"""Runs a case on the reference model: builds its query, takes its steps, and records an ``Observation`` as an engine would."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import assert_never

from conformance.core import observation as seen
from conformance.core import operations
from conformance.core.case import Action, Add, Alter, Arrival, Backlog, Case, Partitioned, Restart, Step, WrittenRow
from conformance.core.data import Json
from conformance.core.observation import DROPPED_ROWS, BatchSeen, Column, Observation, StepSeen
from conformance.core.operations import STATE_VIEW, Operation, Pipeline, sort_order
from conformance.core.spark_types import DataType
from conformance.core.values import canonical, show
from conformance.model import sql
from conformance.model.checkpoint import STATE_BEFORE_THE_FIRST, CommitLogEntry, ModelCheckpoint
from conformance.model.checks import QuerySettings, check_files, check_trigger, in_rocksdb
from conformance.model.columns import Ids, Value
from conformance.model.errors import Refused, Unpredictable
from conformance.model.execution import BatchData
from conformance.model.frame import Frame
from conformance.model.functions import INTERVAL
from conformance.model.group_functions import stored_state
from conformance.model.operators import BatchProgress, OperatorProgress
from conformance.model.plan import StateFunction, StreamSource, stateful, walk, watermarks
from conformance.model.query import Query, together
from conformance.model.rules import Rules


@dataclass
class _FrameBuilder:
    _case: Case
    _rules: Rules
    _time_zone: str
    _before: CommitLogEntry | None
    """The last commit of the query whose state this one can begin with."""
    _ids: Ids = field(default_factory=Ids)
    _views: dict[str, Frame] = field(default_factory=dict)

    def pipeline(self, pipeline: Pipeline) -> Frame:
        first, *rest = pipeline.operations
        if not isinstance(first, operations.From):
            raise Unpredictable(f"the operation {first.name}")
        schema = self._case.streams[first.stream]
        frame = Frame.read(first.stream, schema, self._rules, self._ids, first.source_name, self._time_zone)
        for operation in rest:
            frame = self._applied(operation, frame)
        return frame

    def _applied(self, operation: Operation, frame: Frame) -> Frame:
        match operation:
            case operations.WithWatermark(column=column, delay=delay):
                return frame.with_watermark(column, delay)
            case operations.Where(condition=condition):
                return frame.where(condition)
            case operations.Dropna():
                return frame.dropna(operation)
            case operations.Select(columns=columns):
                return frame.select(*columns)
            case operations.WithColumn(column=name, expression=expression):
                return frame.with_column(name, expression)
            case operations.Drop(columns=columns):
                return frame.drop(*columns)
            case operations.Alias(alias=alias):
                return frame.alias(alias)
            case operations.GroupBy(by=by, agg=agg):
                return frame.group_by(by, agg)
            case operations.Join(other=other, on=on, how=how):
                return frame.join(self.pipeline(other), on, how or "inner")
            case operations.Union(other=other):
                return frame.union(self.pipeline(other))
            case operations.OrderBy(orders=orders):
                return frame.order_by(*map(sort_order, orders))
            case operations.Limit(rows=rows):
                return frame.limit(rows)
            case operations.Deduplication(columns=columns):
                return frame.drop_duplicates(*columns, within_watermark=operation.within_watermark)
            case operations.Sql(statement=statement, as_=view, views=views):
                others = {name.lower(): self.pipeline(nested) for name, nested in views.items()}
                self._views |= {**others, view.lower(): frame}
                return sql.run(statement, self._views)
            case operations.ApplyInPandasWithState():
                return frame.apply_in_pandas_with_state(operation)
            case operations.TransformWithState(initial_state=statement):
                initial = None if statement is None else self._initial(frame, statement)
                return frame.transform_with_state(operation, initial)
            case operations.From() | operations.Call():
                raise Unpredictable(f"the operation {operation.name}")
            case _:
                assert_never(operation)

    def _initial(self, frame: Frame, statement: str) -> Frame:
        """The rows of an initial state, which may come from the view of the state before."""
        views = {"": frame}
        node = next(iter(stateful(self._before.written_by.plan)), None) if self._before else None
        if self._before is not None and isinstance(node, StateFunction):
            if re.search(r"timeoutTimestamp|partition_id|\*", statement, re.IGNORECASE):
                raise Unpredictable("timeouts and partitions of a state that is read as a table")
            views[STATE_VIEW] = frame.of(stored_state(node, self._before.states[0], frame.ids))
        return sql.run(statement, views)


_EPOCH = datetime(1970, 1, 1)
_400_YEARS_MS = 146097 * 86400 * 1000
_RUNS_ONCE_AN_ACTION = ("once", "availableNow")
"""Triggers with which every action is a run of the query."""


@dataclass(frozen=True)
class StepProgress:
    step: Step
    batches: tuple[BatchProgress, ...]
    error: Refused | None = None


class CaseSimulation:
    """Runs the steps of a case on the reference model, the partitions of each micro-batch in an order, by default as written."""

    def __init__(self, case: Case, rules: Rules, order: tuple[int, ...] = ()) -> None:
        self._case = case
        self._order = order
        self._rules = rules
        self._settings = QuerySettings(case.output_mode, case.trigger, case.conf)
        self._pipeline = case.query
        self._checkpoint = ModelCheckpoint()
        self._query: Query | None = None
        self._unread: list[BatchData] = []
        self._arrived: list[BatchData] = []
        self._before: CommitLogEntry | None = None
        """The last commit of the query before, if this one has a new checkpoint."""
        self._left_out: set[str] = set()
        """Streams that rows arrived on while no query read them."""
        self.columns: tuple[Column, ...] = ()
        self._steps_seen: list[StepSeen] = []
        self._types: tuple[DataType, ...] = ()

    def run(self) -> Iterator[StepProgress]:
        """Run the steps until one fails."""
        for step in self._case.steps:
            batches: list[BatchProgress] = []
            error = None
            try:
                for batch in self._batches(step):
                    batches.append(batch)
            except Refused as refused:
                error = refused
            self._steps_seen.append(self._step_seen(step, batches, error))
            yield StepProgress(step, tuple(batches), error)
            if error is not None:
                return

    @property
    def observation(self) -> Observation:
        """What the steps so far show, with every metric: ``without_metrics`` removes those that a version lacks."""
        return Observation.of(self._case.id, self.columns, tuple(self._steps_seen))

    def _batches(self, step: Step) -> Iterator[BatchProgress]:
        action = step.action
        if isinstance(action, Restart):
            yield from self._restarted(action, step.number)
            return
        if step.number == 1 and isinstance(action, Add):
            action = Add(streams=self._read_at_start(action.streams))
        arriving = self._arriving(action)
        if self._settings.trigger in _RUNS_ONCE_AN_ACTION:
            self._query = self._started()
            self._query.arrive([*self._unread, *arriving])
            yield from self._query.run()
            self._unread = self._query.unread
            self._checkpoint = self._query.checkpoint
            return
        if self._query is None:
            self._query = self._started()
            yield from self._runs(self._query, step.number)
        self._query.arrive(arriving)
        if self._case.triggers_in(step.number):
            yield from self._runs(self._query, step.number + 1)
        self._checkpoint = self._query.checkpoint

    def _read_at_start(self, arrival: Arrival) -> Arrival:
        """What a query without checkpoint reads of the rows that are there when it starts."""
        read = dict(arrival)
        for name in self._case.topics.keys() & arrival.keys():
            if (begins := self._case.topics[name].starting_offsets) == "latest":
                del read[name]
            elif begins != "earliest":
                records = zip(arrival[name].partitions, begins, strict=False)
                left = (rows[{-2: 0, -1: len(rows)}.get(at, at) :] for rows, at in records)
                read[name] = Partitioned(partitions=tuple(left))
        return read

    def _runs(self, query: Query, step: int) -> Iterator[BatchProgress]:
        """The micro-batches that run now. ``step``: that before which the clock shows the time of now."""
        if self._case.interval_ms is None:
            return query.run()
        return islice(query.run(self._case.clock_ms(step)), 1)

    def _restarted(self, action: Restart, number: int) -> Iterator[BatchProgress]:
        if action.how == "kill":
            yield from self._killed(action)
        if self._query is not None:
            self._checkpoint = self._query.checkpoint
        if action.how == "crash-before-commit":
            self._checkpoint = self._checkpoint.without_newest_commit()
        if action.rewritten or (action.aged_out and (action.how != "graceful" or self._case.tables)):
            raise Unpredictable("rows that may be gone")
        for damage, part in action.damage.items():
            self._damaged(damage, part)
        if self._case.written in ("files", "delta") and action.how != "graceful":
            raise Unpredictable("a micro-batch that its sink may skip")
        if action.recreated:
            self._recreate(action.recreated)
        if action.alter:
            raise Unpredictable("a table whose columns change")
        if action.repartition is not None:
            raise Unpredictable("state that is divided into other partitions")
        if action.checkpoint is not None and self._checkpoint.committed:
            self._checkpoint = replace(self._checkpoint, folders=(*self._checkpoint.folders, action.checkpoint))
        change = action.change
        self._settings = QuerySettings(
            change.output_mode or self._settings.mode,
            change.trigger or self._settings.trigger,
            {**self._settings.conf, **(change.conf or {})},
        )
        self._pipeline = change.query or self._pipeline
        self._query = None
        if action.checkpoint == "new":
            self._begin_with_state()
        if self._settings.trigger not in _RUNS_ONCE_AN_ACTION:
            self._query = self._started()
            self._query.arrive(self._unread)
            self._unread = []
            yield from self._runs(self._query, number)

    def _recreate(self, made: Arrival) -> None:
        """What is read where a source is deleted and made again: files are known by their names, and records by their numbers."""
        waiting, name = self._checkpoint.uncommitted, next(iter(made))
        before = [data[name] for data in self._arrived if name in data]
        if self._case.tables or len(self._case.streams) > 1 or self._unread or self._settings.trigger != "default":
            raise Unpredictable("a source that is deleted and made again, other than one of files or a topic")
        if (topic := self._case.topics.get(name)) is not None:
            read, (records, *others) = sum(len(rows) or 1 for rows in before), made[name].partitions
            if others or waiting or (len(records) < read and topic.fail_on_data_loss is not False):
                raise Unpredictable(
                    "a topic that is made again, with several partitions, or without records that are awaited"
                )
            self._unread = [self._data({name: Partitioned(partitions=(records[read:],))})] if records[read:] else []
        elif waiting is not None and waiting.data:
            # The newest of several files is gone.
            replayed = replace(waiting, data=self._data(made) if len(before) == 1 else {name: ()})
            self._checkpoint = replace(self._checkpoint, planned=(*self._checkpoint.planned[:-1], replayed))
        elif name in self._case.files and (age := self._case.files[name].max_file_age) is not None:
            # The files of each arrival are a second younger than those before.
            forgotten = re.fullmatch(r"\d+s", age) and len(before) - 1 > int(age[:-1])
            self._unread = [self._data(made)] if forgotten else []

    def _damaged(self, damage: str, part: str) -> None:
        match damage, part:
            case "gone", "commit":
                self._checkpoint = self._checkpoint.without_newest_commit()
            case "gone", "offsets" if self._checkpoint.uncommitted is not None:
                self._begin_anew()
            case "gone", "metadata":
                if "checkpoint without metadata" in self._rules.refusals:
                    raise self._rules.refusal("checkpoint without metadata")
            case "gone", "delta" | "state":
                self._checkpoint = replace(self._checkpoint, lost=f"{part} {damage}")
            case _ if f"{part} {damage}" in self._rules.refusals:
                raise self._rules.refusal(f"{part} {damage}")
            case _:
                raise Unpredictable(f"a checkpoint whose {part} is {damage}")

    def _begin_anew(self) -> None:
        """The offsets of an uncommitted micro-batch are gone: of the first, nothing is left but its state."""
        if len(self._checkpoint.planned) > 1:
            raise Unpredictable("a micro-batch that is planned anew")
        self._unread = [self._checkpoint.planned[0].data, *self._unread]
        is_refused = STATE_BEFORE_THE_FIRST in self._rules.refusals
        self._checkpoint = ModelCheckpoint(lost=STATE_BEFORE_THE_FIRST if is_refused else None)

    def _begin_with_state(self) -> None:
        """A new checkpoint, with which the files of all steps are read again, in one micro-batch."""
        others = (*self._case.topics, *self._case.tables, *self._case.in_memory)
        backlog = any(isinstance(step.action, Backlog) for step in self._case.steps)
        if others or backlog or self._settings.trigger != "default":
            raise Unpredictable("what a new checkpoint reads again, other than files in one micro-batch")
        commits = self._checkpoint.committed
        self._before = commits[max(commits)] if commits else None
        self._unread = [together(self._arrived)] if self._arrived else []
        self._checkpoint = ModelCheckpoint(effort=self._checkpoint.effort)

    def _killed(self, action: Restart) -> Iterator[BatchProgress]:
        """What runs before the engine is killed. A micro-batch killed before its commit is reported by its replay."""
        if self._settings.trigger in _RUNS_ONCE_AN_ACTION:
            raise Unpredictable(f"restart: kill with trigger {self._settings.trigger}")
        self._query = self._query or self._started()
        self._query.arrive([self._data(action.add)] if action.add else [])
        running = self._query.run()
        if action.at == "rest":
            yield from running
            return
        for number in range(1, action.batch + 1):
            batch = next(running, None)
            if batch is None:
                raise Unpredictable(f"restart: kill in micro-batch {number} of a step that has none")
            if number < action.batch or action.at == "committed":
                yield batch
        if action.at == "emitted" and in_rocksdb(self._settings) and "replay in RocksDB" not in self._rules.features:
            raise Unpredictable("a replay in RocksDB where it may take the files of another attempt for its own")
        if action.at != "committed":
            self._query.checkpoint = self._query.checkpoint.without_newest_commit()

    def _started(self) -> Query:
        check_trigger(self._settings, self._rules)
        if self._case.written is not None and self._settings.mode == "update":
            raise Unpredictable("a sink that takes no updates")
        if self._pipeline.streams() == frozenset():
            raise Unpredictable("a query without streams")
        backlog = any(isinstance(step.action, Backlog) for step in self._case.steps)
        cut = any(source.max_files_per_trigger != 1 for source in self._case.files.values()) and backlog
        cut = cut or any(topic.max_offsets_per_trigger for topic in self._case.topics.values())
        if cut or self._case.table_options or (self._case.files and len(self._case.streams) > 1):
            raise Unpredictable("micro-batches that read parts of an arrival, as many as Spark likes")
        if early := self._left_out & self._pipeline.streams():
            raise Unpredictable(f"rows of {min(early)} that arrived before a query read it")
        build = _FrameBuilder(self._case, self._rules, self._settings.time_zone, self._before)
        frame = build.pipeline(self._pipeline)
        self._types = tuple(column.type for column in frame.plan.columns)
        if INTERVAL in self._types:
            raise Unpredictable("an interval in the result")
        self.columns = tuple(Column(name=column.name, type=str(column.type)) for column in frame.plan.columns)
        if not self._pipeline.streams() <= {*self._case.in_memory, *self._case.topics, *self._case.tables}:
            check_files(self._settings, self._rules)
        return Query(frame.plan, self._settings, self._checkpoint, self._rules)

    def _arriving(self, action: Action) -> list[BatchData]:
        match action:
            case Alter():
                raise Unpredictable("a table whose columns change")
            case Add(streams=arrival):
                return [self._data(arrival)]
            case Backlog(entries=entries):
                nothing = Partitioned(partitions=((),))
                arriving = [{name: entry.get(name, nothing) for name in self._case.streams} for entry in entries]
                newest_first = any(source.latest_first for source in self._case.files.values())
                return [*map(self._data, arriving[::-1] if newest_first else arriving)]
            case _:
                return []

    def _data(self, arrival: Arrival) -> BatchData:
        read = self._pipeline.streams()
        self._left_out |= {name for name, placed in arrival.items() if any(placed.partitions)} - read
        data: BatchData = {
            name: tuple(self._row(name, row) for row in self._ordered(placed.partitions))
            for name, placed in arrival.items()
            if name in read
        }
        self._arrived.append(data)
        return data

    def _ordered(self, partitions: tuple[tuple[WrittenRow, ...], ...]) -> Iterator[WrittenRow]:
        order = [place for place in self._order if place < len(partitions)]
        return (row for place in order or range(len(partitions)) for row in partitions[place])

    def _row(self, stream: str, row: WrittenRow) -> tuple[Value, ...]:
        fields = self._case.streams[stream].fields
        values = tuple(row[column.name] for column in fields) if isinstance(row, Mapping) else row
        return tuple(_value(value, column.type) for value, column in zip(values, fields, strict=True))

    def _step_seen(self, step: Step, batches: list[BatchProgress], error: Refused | None) -> StepSeen:
        checkpoint = self._query.checkpoint if self._query is not None else self._checkpoint
        return StepSeen(
            number=step.number,
            batches=tuple(self._batch_seen(batch) for batch in batches),
            watermark=checkpoint.watermark_ms,
            plan=None,
            error=None
            if error is None
            else seen.ErrorSeen(stage=error.stage, classes=error.classes, message=error.message),
            wall_ms=0,
            columns=self.columns,
        )

    def _batch_seen(self, batch: BatchProgress) -> BatchSeen:
        if self._query is None:
            raise AssertionError("a micro-batch without a query")
        has_watermark = bool(watermarks(self._query.written))
        read = dict(batch.read)
        names = [node.stream for node in walk(self._query.written) if isinstance(node, StreamSource)]
        sources = [seen.SourceRead(stream=name, rows=len(read.get(name, ())), moved=name in read) for name in names]
        times = {} if batch.event_time is None else asdict(batch.event_time)
        shown_times = {"watermark": batch.watermark_ms, **times} if has_watermark else {}
        partitions = self._query.checkpoint.partitions
        return BatchSeen(
            id=batch.id,
            kind=batch.kind,
            sources=tuple(sources),
            watermark=batch.watermark_ms if has_watermark else None,
            logged=batch.watermark_ms,
            next_watermark=batch.advance.after_ms,
            rows=tuple(tuple(map(wire, row, self._types)) for row in batch.emitted),
            dropped=batch.dropped,
            state=tuple(operator.state_rows for operator in batch.operators),
            event_time=seen.EventTime(**times) if times else None,
            duration_ms=0,
            progress={
                "batchId": batch.id,
                "numInputRows": sum(source.rows for source in sources),
                "eventTime": {key: _instant(millis) for key, millis in shown_times.items()},
                "stateOperators": [self._operator(operator, partitions) for operator in batch.operators],
            },
        )

    def _operator(self, operator: OperatorProgress, partitions: str | None) -> dict[str, Json]:
        known: dict[str, Json] = {
            "operatorName": operator.operator,
            "numRowsTotal": operator.state_rows,
            "numRowsUpdated": operator.updated,
            "numRowsRemoved": operator.removed,
            DROPPED_ROWS: operator.dropped,
        }
        if partitions is not None:
            known["numShufflePartitions"] = int(partitions)
            # A join in state format 2 has four state stores in each partition (SPARK-35896).
            known["numStateStoreInstances"] = int(partitions) * (4 if operator.operator == "symmetricHashJoin" else 1)
        if operator.operator.startswith("dedupe"):
            known["customMetrics"] = {"numDroppedDuplicateRows": operator.duplicates}
        if operator.timers is not None:
            known["customMetrics"] = {
                "numValueStateVars": 1,  # of each processor of the suite
                "numRegisteredTimers": operator.timers.registered,
                "numDeletedTimers": operator.timers.deleted,
            }
        return known


def without_metrics(observation: Observation, missing: frozenset[str]) -> Observation:
    """What a version shows that does not report some keys of an operator's progress."""
    if not missing:
        return observation

    def without(batch: BatchSeen) -> BatchSeen:
        kept = [
            {key: value for key, value in operator.items() if key not in missing}
            for operator in batch.progress["stateOperators"]
        ]
        dropped = None if kept and DROPPED_ROWS in missing else batch.dropped
        return batch.model_copy(update={"dropped": dropped, "progress": {**batch.progress, "stateOperators": kept}})

    steps = (step.model_copy(update={"batches": tuple(map(without, step.batches))}) for step in observation.steps)
    return observation.model_copy(update={"steps": tuple(steps)})


def _value(value: Json, type_: DataType) -> Value:
    """A value of a case in the representation of the model: DOUBLE as a Python float."""
    exact = canonical(value, type_)
    return float(exact) if type_.name in ("float", "double") and isinstance(exact, int | Decimal) else exact


def wire(value: Value, type_: DataType) -> Json:
    """A value as the driver of an engine sends it."""
    if value is None:
        return None
    match type_.name:
        case "timestamp" | "timestamp_ntz":
            try:
                moment = (_EPOCH + timedelta(microseconds=value)).isoformat(timespec="microseconds")
            except OverflowError:  # beyond the year 9999
                return show(value)
            return moment + "Z" * (type_.name == "timestamp")
        case "struct":
            return [wire(item, column.type) for item, column in zip(value, type_.fields, strict=True)]
        case "array":
            return [wire(item, type_.elements[0]) for item in value]
        case "decimal":
            return str(value)
        case _:
            return value


def _instant(millis: int) -> str:
    # Python ends with the year 9999; the calendar repeats every 400 years.
    cycles = max(millis // _400_YEARS_MS, 0)
    shown = _EPOCH + timedelta(milliseconds=millis - cycles * _400_YEARS_MS)
    return f"{shown.year + 400 * cycles:04}{shown.isoformat(timespec='milliseconds')[4:]}Z"
