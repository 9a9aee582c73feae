"""A streaming query: start, micro-batches, stop and restart.

A micro-batch runs if a stream has new rows; one without data runs if the watermark has advanced and an operator can use it.
Sources: SPARK-24156 (no-data micro-batches), SPARK-24699 (once), SPARK-36533 (availableNow).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.model import checks
from conformance.model import plan as logical
from conformance.model.aggregation import check_functions
from conformance.model.catalyst.spark_plan import SparkPlan
from conformance.model.checkpoint import STATE_BEFORE_THE_FIRST, CommitLogEntry, ModelCheckpoint, OffsetLogEntry
from conformance.model.checks import QuerySettings, check_processor, in_rocksdb, taken_over
from conformance.model.errors import Unpredictable
from conformance.model.execution import BatchData, MicroBatch, States, execute, initial
from conformance.model.join_bounds import bounds
from conformance.model.operators import BatchProgress
from conformance.model.plan import Plan, beneath, expressions, operator_name, stateful, streams, walk
from conformance.model.rules import Rules
from conformance.model.watermark import Policy, WatermarkTracker, input_watermarks, policy_named


class Query:
    """One run of a query on its checkpoint, from a start to a stop."""

    def __init__(self, plan: Plan, settings: QuerySettings, checkpoint: ModelCheckpoint, rules: Rules) -> None:
        _check_known(plan, settings, rules)
        checks.check_names(plan, settings, rules)
        if settings.trigger == "availableNow" and "availableNow" not in rules.features:
            raise rules.refusal("unknown trigger", settings.trigger)
        checks.check_start(plan, settings.mode, rules, check_correctness=settings.is_on(checks.CHECK_CORRECTNESS))
        checks.check_real_time(plan, settings, rules)
        _check_decided(plan, settings)
        _check_encoding(plan, settings, rules)
        self.written = plan
        self._settings = settings
        self._single = not settings.is_on(checks.ALLOW_MULTIPLE) and "allowMultiple" in rules.features
        """Whether all operators share one watermark (since 3.4)."""
        # The first of several event times is used, as in versions before there was the setting.
        self._rules = rules.accepting("two event times") if self._single else rules
        self._run = SparkPlan(plan, self._rules)
        self.plan = self._run.plan
        requested = policy_named(settings.conf.get(checks.POLICY, "min"), rules)
        self._policy: Policy = checkpoint.policy if checkpoint.policy and rules.policy_is_pinned else requested
        partitions = checkpoint.partitions or settings.conf.get(checks.PARTITIONS)
        checks.check_restart(plan, settings, checkpoint, rules)
        by_name, by_number = checkpoint.by_name, checkpoint.by_number
        if checkpoint.sources is None:
            by_name = checks.keeps_names(settings, rules)
            by_number = not by_name and settings.conf.get(checks.OFFSET_LOG) == "2"
        encoding = checkpoint.encoding if checkpoint.planned else settings.conf.get(checks.ENCODING, "unsaferow")
        self.checkpoint = replace(
            checkpoint,
            policy=self._policy,
            partitions=partitions,
            encoding=encoding,
            sources=checks.sources(plan),
            by_name=by_name,
            by_number=by_number,
        )
        restored = checkpoint.watermark_ms if rules.restores_the_watermark else 0
        self._tracker = WatermarkTracker(restored, {})
        if rules.restores_node_watermarks and checkpoint.tracker is not None:
            self._tracker = checkpoint.tracker
        self._last_eviction: tuple[int, ...] | None = None
        """Eviction watermarks of the last micro-batch of this run; None before the first."""
        self.unread: list[BatchData] = []
        """Rows that have arrived, one entry per micro-batch."""

    def arrive(self, batches: Sequence[BatchData]) -> None:
        self.unread += batches

    def run(self, time_ms: int | None = None) -> Iterator[BatchProgress]:
        """Run micro-batches until the query is idle or the trigger ends it. ``time_ms``: their processing time, None if it is unknown."""
        once = self._settings.trigger == "once"
        while (planned := self._plan(time_ms, once=once)) is not None:
            yield self._execute(planned)
            if once and not self._rules.no_data_batch_after_once:
                return

    def _plan(self, time_ms: int | None, *, once: bool) -> OffsetLogEntry | None:
        """Write the next micro-batch to the offset log; None if the query is idle."""
        if (replayed := self.checkpoint.uncommitted) is not None:
            return replayed
        data: BatchData = {}
        if self.unread:
            data = together(self.unread) if once else self.unread[0]
            self.unread = [] if once else self.unread[1:]
        elif not self._wants_no_data():
            return None
        before = self.checkpoint.planned
        planned = OffsetLogEntry(len(before), data, self._tracker.global_ms, time_ms)
        self.checkpoint = replace(self.checkpoint, planned=(*before, planned))
        return planned

    def _wants_no_data(self) -> bool:
        """Whether a micro-batch without data runs: the watermark of an operator has advanced since the last micro-batch of this run."""
        if not self._settings.is_on(checks.NO_DATA) or self._rules.no_data_batches == "none":
            return False
        last = self._last_eviction
        if last is None:
            return self._rules.no_data_batch_after_restart and bool(self.checkpoint.planned) and self._once_more()
        if self._rules.no_data_batches == "always one":
            return self._once_more()
        # Source: `shouldRunAnotherBatch` of the operators.
        if not _MODES_OF_THE_CLOCK.isdisjoint(_time_modes(self.plan)):
            return True
        wanting = [self._wants_eviction(node) for node in stateful(self.plan)]
        now = self._input_watermarks(self._tracker.global_ms)
        return any(wants and new > old for wants, new, old in zip(wanting, now, last, strict=True))

    def _once_more(self) -> bool:
        """One micro-batch without data after each with data, for wrong models."""
        newest = self.checkpoint.planned[-1]
        return bool(newest.data) and bool(stateful(self.plan))

    def _wants_eviction(self, node: Plan) -> bool:
        match node:
            case logical.Aggregate():
                return self._settings.mode in ("append", "update")
            case logical.Deduplicate():
                return True
            case logical.Join():
                return bounds(node) != (None, None)
            case logical.StateFunction():
                return node.timeout == "EventTimeTimeout"
            case logical.StatefulProcessor():
                return node.mode in ("append", "update")
            case _:
                return False

    def _input_watermarks(self, global_ms: int) -> tuple[int, ...]:
        return input_watermarks(self.plan, global_ms, self._rules, single=self._single)

    def _execute(self, planned: OffsetLogEntry) -> BatchProgress:
        rules, id = self._rules, planned.id
        self._check_formats()
        self._check_stores()
        silent = streams(self.plan).difference(planned.data)
        eviction = self._input_watermarks(planned.watermark_ms)
        before_ms = self.checkpoint.logged_ms(id - 1)
        same = not eviction or before_ms == planned.watermark_ms or self._single
        own = same or rules.late_watermark == "own batch"
        late = eviction if own else self._input_watermarks(before_ms)
        spark_plan = self._run.of_micro_batch(silent)
        batch = MicroBatch(
            spark_plan.plan,
            planned.data,
            self._states(id, silent),
            late,
            eviction,
            self._settings.mode,
            spark_plan.needed,
            rules,
            self.checkpoint.effort,
            planned.time_ms,
        )
        done = execute(batch)
        self._tracker, advance = self._tracker.after(self.plan, done.statistics, silent, self._policy, rules)
        self._last_eviction = eviction
        committed = CommitLogEntry(self._tracker.global_ms, done.states, self._run)
        commits = {**self.checkpoint.committed, id: committed}
        self.checkpoint = replace(self.checkpoint, committed=commits, tracker=self._tracker)
        return BatchProgress(
            id=id,
            kind="data" if planned.data else "no-data",
            read=tuple((stream, tuple(rows)) for stream, rows in planned.data.items()),
            watermark_ms=planned.watermark_ms,
            statistics=done.statistics,
            operators=done.operators,
            emitted=done.rows,
            advance=advance,
        )

    def _states(self, id: int, silent: frozenset[str]) -> States:
        """The state before a micro-batch; ``silent``: the streams without new rows in it."""
        before = self.checkpoint.before(id)
        lost = self.checkpoint.lost
        if lost is not None and (before is not None or (lost == STATE_BEFORE_THE_FIRST and stateful(self.plan))):
            raise self._rules.refusal(lost)
        if before is None or (self._last_eviction is None and not self._rules.restores_state):
            return initial(self.plan)
        name = "operators other than in the state metadata"
        in_metadata, now = _operators(before.written_by.plan), _operators(self.plan)
        if len(before.states) != len(stateful(self.plan)) or (in_metadata != now and name in self._rules.refusals):
            nothing_written = not before.states and name not in self._rules.refusals and not in_rocksdb(self._settings)
            what = f"[{in_metadata}]; Stateful operators in current batch: [{now}]"
            raise self._rules.refusal("state gone" if nothing_written else name, what)
        if self._last_eviction is not None:
            return before.states
        self._check_folder()
        self._run.check_reads_state_of(before.written_by)
        first = self.checkpoint.committed[0].written_by
        silent_at_first = streams(first.plan).difference(self.checkpoint.planned[0].data)
        self._run.check_not_null(silent, first, silent_at_first)
        return self._taken_over(before.states)

    def _check_folder(self) -> None:
        """The metadata of a processor name the files with the schemas of its state by absolute paths."""
        folders = self.checkpoint.folders
        processors = [id for id, node in enumerate(stateful(self.plan)) if isinstance(node, logical.StatefulProcessor)]
        if not processors or "moved" not in folders:
            return
        if folders[0] != "moved":
            raise Unpredictable("a processor whose checkpoint is moved after it was copied")
        raise self._rules.refusal("schemas of state in the folder before", str(processors[0]))

    def _taken_over(self, states: States) -> States:
        """The state that a run finds in its first micro-batch."""
        in_avro = self.checkpoint.encoding == "avro"
        most_changes = int(self._settings.conf.get(checks.SCHEMA_CHANGES, "16"))
        commits = self.checkpoint.committed
        earlier = [stateful(commits[batch].written_by.plan) for batch in sorted(commits)]
        taken = list(states)
        for place, node in enumerate(stateful(self.plan)):
            if isinstance(node, logical.StatefulProcessor):
                written = (operators[place] for operators in earlier)
                before = [writer for writer in written if isinstance(writer, logical.StatefulProcessor)]
                check_processor(node, before, self._rules, in_avro=in_avro, most_changes=most_changes)
                taken[place] = taken_over(states[place], node.keeps, in_avro=in_avro)
        return tuple(taken)

    def _check_stores(self) -> None:
        processes = any(isinstance(node, logical.StatefulProcessor) for node in stateful(self.plan))
        if processes and not in_rocksdb(self._settings):
            raise self._rules.refusal("transformWithState without RocksDB")
        name = "store of another operator"
        partitions = self.checkpoint.partitions or "1"  # the default of the case language
        opens_another = in_rocksdb(self._settings) and self._run.opens_store_of_another(int(partitions))
        if opens_another and name in self._rules.refusals:
            raise self._rules.refusal(name)

    def _check_formats(self) -> None:
        joins = [node for node in stateful(self.plan) if isinstance(node, logical.Join)]
        outer = [node.how for node in joins if node.how != "inner"]
        chosen = self._settings.conf.get(checks.JOIN_FORMAT)
        for name, concerned, state_format in (
            ("join state format 1", outer, "1"),
            ("join state format 1 of any join", joins, "1"),
            ("join state format 4 under development", joins, "4"),
        ):
            if concerned and chosen == state_format and name in self._rules.refusals:
                raise self._rules.refusal(name, outer[0] if outer else "")


_MODES_OF_THE_CLOCK = frozenset({"ProcessingTimeTimeout", "ProcessingTime"})


def _time_modes(plan: Plan) -> set[str]:
    """The kinds of timeouts and time modes of the state functions and processors of a plan."""
    nodes = [*walk(plan)]
    timeouts: set[str] = {node.timeout for node in nodes if isinstance(node, logical.StateFunction)}
    return timeouts | {node.time_mode for node in nodes if isinstance(node, logical.StatefulProcessor)}


def _check_known(plan: Plan, settings: QuerySettings, rules: Rules) -> None:
    unknown = sorted(set(settings.conf) - checks.KNOWN)
    if unknown:
        raise Unpredictable(f"conf {unknown[0]}")
    modes = _time_modes(plan)
    if modes and settings.time_zone != "UTC":
        raise Unpredictable("a state function in a time zone other than UTC")
    if settings.trigger not in ("once", "processingTime") and not _MODES_OF_THE_CLOCK.isdisjoint(modes):
        raise Unpredictable("processing-time timeouts and timers, for which micro-batches run without end")
    calls = {node.name for whole in expressions(plan) for node in whole.walk()}
    if "collect_set" in calls and not calls & {"array_sort", "size"}:
        raise Unpredictable("the order of collect_set")
    for node in walk(plan):
        if isinstance(node, logical.Aggregate):
            check_functions(node, rules)
        by_key = isinstance(node, logical.Deduplicate) and not node.within_watermark
        if by_key and settings.conf.get(checks.CLEANUP_FACTOR, "0") != "0" and "incremental cleanup" in rules.features:
            raise Unpredictable("expired keys of a deduplication that are removed while rows are read")


def _check_encoding(plan: Plan, settings: QuerySettings, rules: Rules) -> None:
    name = "state in Avro"
    others = [node for node in stateful(plan) if not isinstance(node, logical.StatefulProcessor)]
    if settings.conf.get(checks.ENCODING) == "avro" and others and name in rules.refusals:
        raise rules.refusal(name, operator_name(others[0]))


def _check_decided(plan: Plan, settings: QuerySettings) -> None:
    """Sources: `PushDownLeftSemiAntiJoin`, below an aggregation only if the other side is small (SPARK-34081);
    `StreamingGlobalLimitStrategy`, by which a limit keeps state only where rows are appended, and of a complete result takes the first.
    """
    nodes = [*walk(plan)]
    pushed = {type(beneath(node.left)) for node in nodes if isinstance(node, logical.Join) and node.how == "leftSemi"}
    if logical.Union in pushed or (logical.Aggregate in pushed and settings.conf.get(checks.BROADCAST) != "-1"):
        raise Unpredictable("a left semi join that moves below a union or an aggregation")
    limited = [below for node in nodes if isinstance(node, logical.Limit) for below in node.below]
    if settings.mode == "complete" and any(isinstance(node, logical.Aggregate) for node in limited):
        raise Unpredictable("a limit of a complete result")
    if any(isinstance(node, logical.Sort) and node is not beneath(plan) for node in nodes):
        raise Unpredictable("a sort below other operators")


def together(batches: Sequence[BatchData]) -> BatchData:
    """All waiting rows in one micro-batch."""
    streams_read = dict.fromkeys(stream for batch in batches for stream in batch)
    return {stream: [row for batch in batches for row in batch.get(stream, ())] for stream in streams_read}


def _operators(plan: Plan) -> str:
    """The operators with state as the error about others names them."""
    names = enumerate(map(operator_name, stateful(plan)))
    return ", ".join(f"(OperatorId: {id} -> OperatorName: {name})" for id, name in names)
