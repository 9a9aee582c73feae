"""Checks when a query starts, independent of its rows: its settings, its operators, its sources, its trigger, and over a restart the state
of a stateful processor: which other columns and modes Spark accepts, and what it finds in a value.

In Avro a value is read as a row of the present columns, by their names. An UnsafeRow has places and types only. Sources:
`UnsupportedOperationChecker`, SPARK-33259, SPARK-40940, SPARK-55121 (named sources), SPARK-53736 (real-time mode); "State schema evolution"
of the transformWithState guide; `StateSchemaCompatibilityChecker.check` and `SchemaConverters.toAvroTypeWithDefaults` (SPARK-50714),
"Schema Resolution" of the Avro specification; `TransformWithStateOperatorProperties.validateOperatorProperties`, which Spark calls after it
(`StateSchemaAndOperatorMetadataRule`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias

from conformance.core.operations import OutputMode
from conformance.core.spark_types import Field, parse_schema
from conformance.model import plan as logical
from conformance.model.checkpoint import ModelCheckpoint
from conformance.model.errors import Unpredictable
from conformance.model.functions import DISTINCT
from conformance.model.group_functions import STATEFUL_PROCESSORS, ProcessorState
from conformance.model.join_bounds import KeyBound, bounds, is_time_interval, lower_bounds
from conformance.model.plan import Plan, StatefulProcessor, expressions_of, is_streaming, operator_name, stateful, walk
from conformance.model.rules import Rules

RefusalNames: TypeAlias = Iterator[tuple[str, str]]
"""Names and subjects of refusals that may apply."""


def check_start(plan: Plan, mode: OutputMode, rules: Rules, *, check_correctness: bool) -> None:
    """``check_correctness``: the conf ``statefulOperator.checkCorrectness.enabled``."""
    every = [node for node in walk(plan) if isinstance(node, logical.Aggregate)]
    # 3.0.0 did not recognise DISTINCT as an aggregation (SPARK-32456).
    aggregations = [node for node in every if rules.distinct_is_noticed or not node.from_distinct]
    _refuse_first(_whole_plan(plan, aggregations, mode), rules)
    for node in walk(plan):
        if isinstance(node, logical.Join) and node.is_of_streams:
            _check_join(node, mode, rules)
    if check_correctness:
        _refuse_first(_chains(plan, mode, rules), rules)


def _refuse_first(names: RefusalNames, rules: Rules) -> None:
    # All of them first: whether the model knows the query is decided before any refusal.
    for name, what in tuple(names):
        if name in rules.refusals:
            raise rules.refusal(name, what)


def _whole_plan(plan: Plan, aggregations: list[logical.Aggregate], mode: OutputMode) -> RefusalNames:
    """In the order in which Spark checks."""
    streaming = [node for node in walk(plan) if is_streaming(node)]
    if len(aggregations) > 1:
        yield "several aggregations", ""
    if sum(isinstance(node, logical.StateFunction) for node in walk(plan)) > 1:
        yield "several state functions", ""
    # Of several aggregations Spark only checks the topmost.
    if mode == "append" and aggregations and not any(key.column.is_event_time for key in aggregations[0].keys):
        yield "append without watermark", ""
    if mode == "complete" and not aggregations:
        yield "complete without aggregation", ""
    if mode == "update" and any(node.session is not None for node in aggregations):
        yield "update of sessions", ""
    outputs = [output for node in aggregations if is_streaming(node) for output in node.outputs]
    if any(call.name.endswith(DISTINCT) for output in outputs for call in output.expression.aggregates):
        yield "distinct aggregation", ""
    yield from _functions(plan, aggregations, mode)
    for node in streaming:
        if isinstance(node, logical.Deduplicate):
            if any(isinstance(below, logical.Aggregate) for below in node.below):
                yield "deduplication after aggregation", ""
            if node.within_watermark and not any(column.is_event_time for column in node.child.columns):
                yield "deduplication within the watermark without watermark", ""
    if any(isinstance(node, logical.Sort) for node in streaming) and not (mode == "complete" and aggregations):
        yield "sorting", ""
    if mode == "update" and any(isinstance(node, logical.Limit) for node in streaming):
        yield "limit in update mode", ""
    # An id that increases within a micro-batch starts again in the next one (SPARK-21947).
    nodes = (node for node in walk(plan) if not isinstance(node, logical.Sort))
    parts = (part for node in nodes for expression in expressions_of(node) for part in expression.walk())
    if any(part.name == "monotonically_increasing_id" for part in parts):
        yield "monotonically increasing id", ""


def _functions(plan: Plan, aggregations: list[logical.Aggregate], mode: OutputMode) -> RefusalNames:
    for node in walk(plan):
        if isinstance(node, logical.StatefulProcessor) and node.mode != mode:
            raise Unpredictable("transformWithState in another output mode than the query")
        if not isinstance(node, logical.StateFunction):
            continue
        if aggregations and node.mode == "update":
            yield "update function with an aggregation", ""
        elif any(isinstance(below, logical.Aggregate) for below in walk(node.child)):
            raise Unpredictable("applyInPandasWithState after an aggregation")
        elif not aggregations and node.mode != mode:
            yield "state function in another mode", f"{node.mode} mode is not supported with {mode.capitalize()}"
        if node.timeout == "EventTimeTimeout" and not any(column.is_event_time for column in node.child.columns):
            yield "event-time timeout without watermark", ""


def _chains(plan: Plan, mode: OutputMode, rules: Rules) -> RefusalNames:
    """Stateful operators above others whose output may be late for them."""
    above = (node for node in stateful(plan) if _may_miss_late_rows(node, rules))
    for below in (below for node in above for child in node.children for below in stateful(child)):
        if isinstance(below, logical.StateFunction) and below.timeout == "EventTimeTimeout":
            yield "stateful after event-time timeout", ""
        if isinstance(below, logical.Aggregate):
            yield f"stateful after {'append' if mode == 'append' else 'update or complete'} aggregation", ""
        if isinstance(below, logical.Join) and below.how != "inner":
            yield "stateful after outer join", ""
        if isinstance(below, logical.Join) and is_time_interval(below):
            yield "stateful after time-interval join", ""


def _may_miss_late_rows(node: Plan, rules: Rules) -> bool:
    """Whether the checks consider an operator. Source: `UnsupportedOperationChecker.isStatefulOperation`."""
    match node:
        case logical.Limit():
            return False
        case logical.Deduplicate(within_watermark=False) if rules.deduplication_by_key_may_follow:
            return any(key.is_event_time for key in node.keys)
        case _:
            return True


def _check_join(node: logical.Join, mode: OutputMode, rules: Rules) -> None:
    if mode != "append":
        in_update = "inner join in update mode"
        if mode != "update" or node.how not in ("inner", "leftSemi") or in_update in rules.refusals:
            name = in_update if mode == "update" and node.how == "inner" else "join in update or complete mode"
            # Before 3.0 the check covered inner joins only (SPARK-28223).
            if name in rules.refusals or node.how == "inner":
                raise rules.refusal(name, mode.capitalize())
    kind = {"fullOuter": "full outer join", "leftSemi": "left semi join"}.get(node.how)
    if kind is not None and kind in rules.refusals:
        raise rules.refusal(kind)
    if node.how != "inner" and "outer join without bound" in rules.refusals and not _has_bound(node):
        raise rules.refusal("outer join without bound", node.how)


def _has_bound(node: logical.Join) -> bool:
    """Whether a key has a watermark, or the nullable side has one and a range bounds the other side."""
    if isinstance(bounds(node)[0], KeyBound):
        return True
    left = bool(lower_bounds(node.left.columns, node.right.columns, node, folded=False))
    right = bool(lower_bounds(node.right.columns, node.left.columns, node, folded=False))
    return {"leftOuter": left, "leftSemi": left, "rightOuter": right, "fullOuter": left or right}[node.how]


NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
ALLOW_MULTIPLE = "spark.sql.streaming.statefulOperator.allowMultiple"
CHECK_CORRECTNESS = "spark.sql.streaming.statefulOperator.checkCorrectness.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"
STRICT_DISTRIBUTION = "spark.sql.streaming.statefulOperator.useStrictDistribution"
TIME_ZONE = "spark.sql.session.timeZone"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
OFFSET_LOG = "spark.sql.streaming.offsetLog.formatVersion"
SCHEMA_CHANGES = "spark.sql.streaming.stateStore.valueStateSchemaEvolutionThreshold"
CLEANUP_FACTOR = "spark.sql.streaming.statefulOperator.incrementalCleanupFactor"
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"

WITHOUT_EFFECT = frozenset(
    {
        TIME_ZONE,
        "spark.sql.adaptive.enabled",
        "spark.sql.codegen.factoryMode",
        "spark.sql.codegen.wholeStage",
        "spark.sql.legacy.interval.enabled",
        "spark.sql.streaming.aggregation.stateFormatVersion",
        "spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition",
        CLEANUP_FACTOR,
        PROVIDER,
        "spark.sql.streaming.stateStore.checkpointFormatVersion",
        "spark.sql.streaming.stateStore.compression.codec",
        ENCODING,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
        "spark.sql.streaming.stateStore.rowChecksum.enabled",
        "spark.sql.streaming.stateStore.skipNullsForStreamStreamJoins.enabled",
        "spark.sql.dropDuplicates.deterministicKeyOrder.enabled",
    }
)
"""Confs that do not change any prediction: where state is kept, and how results are computed."""

KNOWN = WITHOUT_EFFECT | {
    *(NO_DATA, POLICY, ALLOW_MULTIPLE, CHECK_CORRECTNESS, PARTITIONS, STRICT_DISTRIBUTION),
    *(JOIN_FORMAT, BROADCAST, EVOLUTION, OFFSET_LOG, SCHEMA_CHANGES),
}


@dataclass(frozen=True)
class QuerySettings:
    mode: OutputMode
    trigger: Literal["default", "once", "availableNow", "realTime", "processingTime"]
    conf: Mapping[str, str]

    def is_on(self, conf: str) -> bool:
        """Whether a conf that is on by default is on."""
        return self.conf.get(conf, "true").lower() != "false"

    @property
    def time_zone(self) -> str:
        return self.conf.get(TIME_ZONE, "UTC")

    @property
    def evolves(self) -> bool:
        """Whether source evolution is on, which wants a name for each source."""
        return self.conf.get(EVOLUTION, "false").lower() == "true"


def in_rocksdb(settings: QuerySettings) -> bool:
    """Whether a query keeps its state in RocksDB."""
    return "RocksDB" in settings.conf.get(PROVIDER, "")


def sources(plan: Plan) -> tuple[tuple[str, str | None], ...]:
    """The stream and the name, if any, of each source as in `MicroBatchExecution.sources`: a stream may be several."""
    return tuple((node.stream, node.name) for node in walk(plan) if isinstance(node, logical.StreamSource))


def check_names(plan: Plan, settings: QuerySettings, rules: Rules) -> None:
    read = sources(plan)
    if settings.evolves and "named sources" not in rules.features:
        raise Unpredictable("source evolution where sources have no names")
    for stream, name in sorted(read, key=str):
        if name is None and settings.evolves:
            raise rules.refusal("source without a name", stream)
        if name is not None and not re.fullmatch("[A-Za-z0-9_]+", name):
            raise rules.refusal("name of a source", name)
        if name is not None and not settings.evolves:
            raise rules.refusal("named source without source evolution", name)
    names = [name for _, name in read if name is not None]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise rules.refusal("two sources of one name", repeated[0])


def keeps_names(settings: QuerySettings, rules: Rules) -> bool:
    """Whether a new checkpoint keeps offsets by name."""
    by_version = "offset log by source evolution"
    return settings.evolves and (settings.conf.get(OFFSET_LOG) == "2" or by_version in rules.features)


def check_restart(plan: Plan, settings: QuerySettings, checkpoint: ModelCheckpoint, rules: Rules) -> None:
    """Compare what the query reads with what the checkpoint has offsets of."""
    if checkpoint.sources is None:
        return
    others = settings.conf.get(PARTITIONS) != checkpoint.partitions and not settings.is_on(STRICT_DISTRIBUTION)
    if others and "other partitions without state" in rules.features:
        # Hashes decide which rows find their state.
        raise Unpredictable("other shuffle partitions without strict distribution")
    read = sources(plan)
    if checkpoint.by_name:
        if not settings.evolves:
            raise rules.refusal("names in a checkpoint without source evolution")
        before = {stream for batch in checkpoint.planned for stream in batch.data}
        if before & {stream for stream, _ in {*read} - {*checkpoint.sources}}:
            raise Unpredictable("a source that is read from its beginning again")
        return
    name = "source evolution on an existing checkpoint"
    had_names = any(name is not None for _, name in checkpoint.sources)
    if settings.evolves and not had_names and checkpoint.by_number:
        raise Unpredictable("a name for a source that the checkpoint has a number of")
    if settings.evolves and not had_names and name in rules.refusals:
        raise rules.refusal(name)
    now, then = [stream for stream, _ in read], [stream for stream, _ in checkpoint.sources]
    if now != then and checkpoint.planned:
        if len(now) == len(then) or (checkpoint.by_number and "named sources" in rules.features):
            raise Unpredictable("a restart with other sources, or with these in another order")
        raise rules.refusal("another number of sources", f"[{len(then)}] sources")


def check_trigger(settings: QuerySettings, rules: Rules) -> None:
    """PySpark refuses a trigger that it does not have yet, before the query is built."""
    if settings.trigger == "realTime" and "realTime" not in rules.features:
        raise rules.refusal("unknown trigger", settings.trigger)


def check_files(settings: QuerySettings, rules: Rules) -> None:
    """Files cannot wait for rows: Spark refuses them in real time, unless it refuses the output mode before."""
    if settings.trigger == "realTime" and settings.mode == "update":
        raise rules.refusal("real-time source", "FileStreamSource")


_IN_REAL_TIME = {
    "stateStoreSave": ("HashAggregateExec", True),
    "dedupe": ("StreamingDeduplicateExec", True),
    "dedupeWithinWatermark": ("StreamingDeduplicateWithinWatermarkExec", False),
    "symmetricHashJoin": ("StreamingSymmetricHashJoinExec", False),
    "applyInPandasWithState": ("FlatMapGroupsInPandasWithStateExec", False),
}
"""Operator → the part of its name in errors that releases share, and whether it runs in real time since 4.3; others are not known."""


def check_real_time(plan: Plan, settings: QuerySettings, rules: Rules) -> None:
    """For a query whose sources can wait for rows; in which order those of a long micro-batch are emitted is not known."""
    if settings.trigger != "realTime":
        return
    if settings.mode != "update":
        raise rules.refusal("real-time output mode", settings.mode.capitalize())
    for operator in map(operator_name, stateful(plan)):
        name, runs = _IN_REAL_TIME.get(operator, ("", True))
        if name and not (runs and "state in real time" in rules.features):
            raise rules.refusal("real-time operator", name)
    raise Unpredictable("a query in real-time mode")


_TYPES = {
    "boolean": "BooleanType",
    "int": "IntegerType",
    "bigint": "LongType",
    "float": "FloatType",
    "double": "DoubleType",
    "string": "StringType",
    "binary": "BinaryType",
}
"""The types that have an Avro type of their own → what Spark calls them in messages."""

_AVRO_READS_AS = {
    "int": ("bigint", "float", "double"),
    "bigint": ("float", "double"),
    "float": ("double",),
    "string": ("binary",),
    "binary": ("string",),
}
"""Type that was written → the other types as which Avro reads it."""

_PLAIN_COLUMNS = re.compile(r"\s*\w+\s+\w+\s*(,\s*\w+\s+\w+\s*)*")


def columns_of_state(ddl: str) -> tuple[Field, ...]:
    """The columns of a processor's state, given as ``count BIGINT, note STRING``."""
    columns = parse_schema(ddl).fields
    if not _PLAIN_COLUMNS.fullmatch(ddl) or any(column.type.name not in _TYPES for column in columns):
        raise Unpredictable(f"the columns {ddl} of a processor's state")
    return columns


def check_processor(
    node: StatefulProcessor, before: Sequence[StatefulProcessor], rules: Rules, *, in_avro: bool, most_changes: int
) -> None:
    """Compare a processor with those that wrote its state, one for each micro-batch, the newest last.

    ``most_changes``: the conf ``valueStateSchemaEvolutionThreshold``, which the number of changes may not reach. Raises Refused: Spark does
    not accept its columns or modes; Unpredictable: it has other variables or another time to live.
    """
    mine, theirs = (STATEFUL_PROCESSORS[writer.processor] for writer in (node, before[-1]))
    schemas = [writer.keeps for writer in before]
    if not in_avro and mine.keeps == theirs.keeps and (mine.ttl_ms is None) != (theirs.ttl_ms is None):
        # With a time to live, a value is kept with the time at which it expires (SPARK-46906).
        raise rules.refusal("state of another value")
    if (mine.keeps, mine.ttl_ms) != (theirs.keeps, theirs.ttl_ms):
        raise Unpredictable("a processor that finds the state of another one")
    if node.keeps != schemas[-1] and mine.ttl_ms is not None:
        raise Unpredictable("other columns of state with a time to live")
    if node.keeps != schemas[-1]:
        if in_avro:
            _check_avro(node.keeps, schemas, rules, most_changes)
        elif [column.type for column in node.keeps] != [column.type for column in schemas[-1]]:
            raise rules.refusal("state of another value")
    for what, now, then in (
        ("timeMode", node.time_mode, before[-1].time_mode),
        ("outputMode", node.mode, before[-1].mode),
    ):
        if now != then:
            raise rules.refusal("another mode of a processor", what)


def taken_over(state: ProcessorState, columns: tuple[Field, ...], *, in_avro: bool) -> ProcessorState:
    """The state of a processor with these columns, after a restart. UnsafeRow has kept no names, so a value gets the present ones."""
    if in_avro:
        return state
    names = [column.name for column in columns]
    return replace(
        state, values={key: dict(zip(names, value.values(), strict=True)) for key, value in state.values.items()}
    )


def _check_avro(now: tuple[Field, ...], schemas: Sequence[tuple[Field, ...]], rules: Rules, most_changes: int) -> None:
    """A value may still be written with any earlier schema, so the present one must be able to read all of them."""
    for old in reversed(schemas):
        types = {column.name: column.type.name for column in old}
        for column in now:
            then = types.get(column.name, column.type.name)
            if column.type.name not in (then, *_AVRO_READS_AS.get(then, ())):
                what = f"new value_schema={_in_messages(now)} and old value_schema={_in_messages(old)}"
                raise rules.refusal("state in Avro of another schema", what)
    changes = 1 + sum(earlier != later for earlier, later in pairwise(schemas))
    if changes >= most_changes:
        what = f"{changes} exceeds the maximum number of state schema evolutions, {most_changes}"
        raise rules.refusal("too many schemas of state", what)


def _in_messages(columns: tuple[Field, ...]) -> str:
    fields = (f"StructField({column.name},{_TYPES[column.type.name]},true)" for column in columns)
    return f"StructType({','.join(fields)})"
