"""Runs a case step by step: start the query, deliver rows, wait until it is idle, report what was observed."""

from __future__ import annotations

import sys
import time
from concurrent import futures
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Iterator

from .backend import DEFAULTS, DELAY, ROWS_AT, Backend, OnEmitted
from .checkpoint import READ_STATE, CheckpointLogs, newest_path, state_as_constants, stored_state
from .clock import DrivenClock
from .dataframe import build, delayed
from .errors import (
    DriverError,
    DriverFailure,
    EngineLost,
    FailureReason,
    MissingName,
    NotPermitted,
    check_argument,
    describe,
    machine_failure,
    method,
    raised_by_driver,
)
from .files import LocalFiles, keep, prepare
from .jobs.own_code import AuthorCode, AuthorFailed, AuthorSink, OwnQueries
from .jobs.query_starts import allowed, no_starts
from .kill_point import Breakpoint, KillPointNotReached, KillPointReached
from .permission import analysed_plan, check_plan
from .progress import at_rest, batch_seen, executed, is_idle, reported, runs_by_the_clock
from .request import CaseRequest, StepRequest
from .sinks import SINKS, SinkUnreadable

if TYPE_CHECKING:
    from .capture import Capture

REAL_TIME = "realTime"
PROCESSING_TIME = "processingTime"
_DURATION = "5 minutes"
"""The longest that a real-time micro-batch lasts, Spark's default. One that reads from memory ends when no rows are left."""
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
"""Where queries of the author's keep their checkpoints that name no folder."""
_START = StepRequest(action="start", batches=[])
_LOOKS = 500
"""How often to look whether a micro-batch still runs before a checkpoint is copied."""


class QueryFailed(Exception):
    """The engine refused the query, it failed, or its sink cannot be read: the case ends. ``stage``: as in ``ErrorStage`` of the host."""

    def __init__(self, stage: str, cause: Exception) -> None:
        super().__init__(stage)
        self.stage = stage
        self.cause = cause


def check_trigger(name: str) -> None:
    """Raise ``MissingName`` if this release has no real-time trigger (Python before 4.2), and so no source for such a query either."""
    if name == REAL_TIME:
        from pyspark.sql.streaming import DataStreamWriter

        check_argument(partial(DataStreamWriter.trigger, None), name)


def triggered(writer: Any, name: str, interval: int | None = None) -> Any:
    """Give a ``DataStreamWriter`` a trigger. ``interval``: of ``processingTime``, in ms.

    Raises:
        MissingName: this release does not have the trigger (``availableNow`` before 3.3).
    """
    if name == "default":
        return writer
    check_argument(writer.trigger, name)
    if name == PROCESSING_TIME:
        return writer.trigger(processingTime="{} milliseconds".format(interval))
    return writer.trigger(**{name: _DURATION if name == REAL_TIME else True})


@contextmanager
def _failures(stage: str) -> Iterator[None]:
    """Make the query fail with whatever fails in the block; the exceptions that the host treats in another way pass."""
    try:
        yield
    except DriverFailure:
        raise
    except MissingName as missing:
        raise QueryFailed(stage, missing.error) from missing
    except Exception as error:
        raise QueryFailed(stage, error) from error


class Execution:
    """A case, or some of its steps, on a backend; a step with an error is the last."""

    def __init__(self, backend: Backend, request: CaseRequest, emitted: OnEmitted | None = None) -> None:
        prepare(request)
        self._emitted = emitted
        self._backend = backend
        self._session = backend.new_session(sum(stream.files for stream in request.streams.values()))
        self._request = request
        self._operations, self._output_mode, self._trigger = request.query, request.output_mode, request.trigger
        self._conf = dict(request.conf)
        self._changed: set[str] = set()
        """The settings that a restart changed, which hold against what the author's code sets."""
        self._code = AuthorCode(request.code, backend.sends_functions) if request.code is not None else None
        self._arrivals = backend.arrivals(request.directory + "/streams", request.streams, request.kafka)
        if request.arrived is not None:
            self._arrivals.renew(request.arrived)
        self._later: list[Any] = []
        """What arrives while the next micro-batches run, staged."""
        resumed = request.first > 1
        self._checkpoint = CheckpointLogs(
            newest_path(request.directory, backend.files) if resumed else request.directory + "/checkpoint",
            backend.files,
        )
        self._before = request.directory + "/before"
        """The checkpoint that a restart has set aside, whose state the query may read."""
        self._has_before = resumed and backend.files.exists(self._before)
        written = SINKS.get(request.sink)
        # The host sends no such case to Connect, whose files cannot be written.
        self._written = written(request.directory + "/sink", backend.files, self._session) if written else None
        self._frame: Any = None
        self._query: Any = None
        self._clock = DrivenClock(request.clock)
        self._own_queries = OwnQueries()
        self._capture: Capture
        self._entries = 0
        self._has_executed = False
        self._by_the_clock = False
        self._watermark: str | None = None
        self._native = backend.native(self._session)
        """The operators that an accelerator ran in this step; None without an accelerator."""
        self._read_in_part: list[int] = []
        self._executors = backend.executors()
        self.columns: list[dict[str, str]] = []

    def run(self) -> Iterator[dict[str, Any]]:
        """Yield the fields of one ``StepSeen`` after another.

        Raises:
            KillPointReached: the process is to be killed and must not do anything anymore.
            DriverFailure: the machine or the engine failed.
        """
        killed = False
        try:
            for number, step in enumerate(self._request.steps, self._request.first):
                started = time.monotonic()
                error = None
                batches: list[dict[str, Any]] = []
                try:
                    if step.keep is not None:
                        self._keep(step.keep)
                    if step.action == "kill":
                        missed = self._run_to_kill_point(step)
                        batches = self._batches(tolerant=True) if self._query is not None else []
                        raise KillPointReached(self._step_seen(number, batches, None, started), missed)
                    self._act(step)
                    batches = self._batches() if self._query is not None else []
                except QueryFailed as failure:
                    error = self._describe(failure)
                    with suppress(QueryFailed):
                        batches = self._batches(tolerant=True) if self._query is not None else []
                self._executors |= self._backend.executors()
                fields = self._step_seen(number, batches, error, started)
                if error is None:
                    if self._code is not None:
                        self._code.check_starts()
                    if self._written is not None and self._request.read_sink:
                        fields["written"] = [
                            {"id": id, "rows": rows} for id, rows in sorted(self._written.content().items())
                        ]
                    if step.plan and self._query is not None:
                        fields["plan"] = self._backend.plan(self._query, self._frame, self._has_executed)
                    if self._native is not None:
                        fields["native"], self._native = sorted(self._native), set()
                    if self._conf.get(READ_STATE) == "true":
                        fields["stored"] = stored_state(self._session, self._checkpoint.path, batches)
                elif step.plan and self._frame is not None and "own_code" not in error:
                    fields["plan"] = self._backend.plan(None, self._frame, False)
                yield fields
                if error is not None:
                    break
            else:
                if self._read_in_part:
                    what = "the sink reads part of a partition in micro-batch {}, which is not tried: persist() and count() the rows first"
                    raise DriverFailure(what.format(self._read_in_part[0]), FailureReason.NOT_PERMITTED)
        except KillPointReached:
            killed = True
            raise
        finally:
            if not killed:
                self._close()

    def executors_lost(self) -> int:
        """How many executors went away while the case ran; if any did, the observation is void."""
        return len(self._executors - self._backend.executors())

    def _describe(self, failure: QueryFailed) -> dict[str, Any]:
        cause = failure.cause
        if not self._backend.is_alive():
            raise EngineLost(str(cause)) from cause
        if isinstance(cause, AuthorFailed):
            return {**describe(cause.error, failure.stage), "own_code": dict(vars(cause.mistake))}
        described = describe(cause, failure.stage)
        if self._code is not None and self._code.used:
            mistake = self._code.mistake_in_text(described["message"])
            if mistake is not None:
                return {**described, "own_code": dict(vars(mistake))}
        failed = machine_failure(cause, self._request.directory)
        if failed is not None:
            raise failed from cause
        if raised_by_driver(cause):
            raise cause
        ours = {DriverError.__name__, "STREAMING_CONNECT_SERIALIZATION_ERROR"}  # of the only sink there
        if isinstance(cause, DriverFailure) or ours & {*described["classes"]}:
            raise DriverFailure(described["message"]) from cause
        return described

    def _step_seen(self, number: int, batches: list[dict[str, Any]], error: Any, started: float) -> dict[str, Any]:
        return {
            "number": number,
            "batches": batches,
            "watermark": self._checkpoint.watermark(),
            "plan": None,
            "error": error,
            "columns": self.columns,
            "wall_ms": int((time.monotonic() - started) * 1000),
        }

    # The actions.

    def _keep(self, to: str) -> None:
        """Copy the case's directory while no micro-batch runs, as the query would leave it if it were stopped here."""
        if not isinstance(self._backend.files, LocalFiles):
            return  # nor can a copy be restored there
        for _ in range(_LOOKS):
            with self._planning_paused():
                if self._checkpoint.is_at_rest():
                    keep(self._request.directory, to)
                    if self._checkpoint.is_at_rest():
                        return
            time.sleep(0.02)
        raise DriverFailure("the query never rests, so its checkpoint cannot be copied")

    def _act(self, step: StepRequest) -> None:
        if step.action == "restart":
            self._restart(step)
            return
        self._alter(step)
        if self._runs_per_action():
            self._arrivals.place(self._arrivals.stage(step.batches))
            self._start()
            self._await_termination()
            return
        if self._arrivals.paced or (self._arrivals.waits and self._query is None):
            now = self._arrivals.stage(step.batches)
        else:
            staged = [self._arrivals.stage([batch]) for batch in step.batches]
            now, self._later = (staged[0], staged[1:]) if staged else (None, [])
        if self._query is None:
            self._start_with(now if step.batches else None)
        elif step.batches:
            self._place_at_once(now)
        self._clock.advance(step.advance)
        if step.action != "start":
            self._drain()
        if self._later:
            raise DriverFailure("{} of {} arrivals were not placed".format(len(self._later), len(step.batches)))

    def _start_with(self, staged: Any) -> None:
        """Start the query. ``staged``: its first rows, None for none."""
        early = not self._arrivals.paced and not self._checkpoint.is_planned(0)
        if staged is not None and early:
            self._arrivals.place(staged)
        self._start()
        self._drain()
        if staged is not None and not early:
            self._place_at_once(staged)

    def _restart(self, step: StepRequest) -> None:
        self._own_queries.stop()
        if self._query is not None:
            self._query.stop()
        if step.how == "crash-before-commit":
            self._checkpoint.uncommit_newest()
        # State stores in memory belong to the run of a query, so the next run reads the damaged files.
        for how, part in (step.damage or {}).items():
            if self._written is not None and part == "sinkLog":
                self._written.remove_log()
            else:
                self._checkpoint.damage(how, part)
        for stream, partitions in (step.change.partitions or {}).items():
            self._arrivals.grow(stream, partitions)
        if step.aged_out:
            self._arrivals.age_out()
        if step.rewritten:
            self._arrivals.rewrite()
        if step.recreated:
            self._arrivals.recreate(step.recreated)
        self._alter(step)
        self._conf.update(step.change.conf or {})
        self._changed.update(step.change.conf or {})
        self._output_mode = step.change.output_mode or self._output_mode
        self._trigger = step.change.trigger or self._trigger
        self._operations = step.change.query or self._operations
        self._frame = self._query = None
        if step.checkpoint == "new":
            self._checkpoint.set_aside(self._before)
            self._has_before = True
        elif step.checkpoint is not None:
            self._checkpoint = self._checkpoint.moved(copied=step.checkpoint == "copied")
        if step.repartition is not None:
            with _failures("start"):
                self._backend.repartition(self._session, self._checkpoint.path, step.repartition)
        if not self._runs_per_action():
            self._start()
            self._drain()

    def _alter(self, step: StepRequest) -> None:
        for stream, ddl in (step.alter or {}).items():
            self._arrivals.alter(stream, ddl)

    def _run_to_kill_point(self, step: StepRequest) -> bool:
        """Continue to the point where this process is to be killed. Return whether the engine has already gone past it."""
        if step.at == "rest":
            if not self._runs_per_action():
                self._act(_START)
            return False
        if self._written is not None:
            return self._run_to_commit(step)
        assert step.at is not None
        stop = Breakpoint(step.at, step.nth)
        self._continue_with(step, stop)
        while not stop.reached.wait(0.02):
            self._require_active(step)
        if step.at != "committed":
            return False
        batch = stop.batch or 0
        self._backend.stop_after_commit(self._query, stop, lambda: self._checkpoint.is_committed(batch))
        while not any(entry["batchId"] == batch for entry in executed(self._recent()[0])):
            time.sleep(0.005)
        return self._checkpoint.is_planned(batch + 1)

    def _continue_with(self, step: StepRequest, stop: Breakpoint | None = None) -> None:
        """Let the rows of the step arrive, and the query run; the process is killed in this run.

        With ``once`` and ``availableNow`` this run is the action's own; otherwise the query must be idle before.
        """
        first = self._query is None and not self._arrivals.paced and not self._checkpoint.is_planned(0)
        if self._runs_per_action() or first:
            self._arrivals.place(self._arrivals.stage(step.batches))
            self._start(stop)
        else:
            self._act(_START)
            self._capture.breakpoint = stop
            self._place_at_once(self._arrivals.stage(step.batches))

    def _require_active(self, step: StepRequest) -> None:
        """Raises KillPointNotReached: the query has finished."""
        if not self._query.isActive:
            self._await_termination()
            raise KillPointNotReached("the query finished without running micro-batch {} of the step".format(step.nth))

    def _run_to_commit(self, step: StepRequest) -> bool:
        """Continue until the sink has the rows of a micro-batch. Return whether the micro-batch is already committed."""
        batch = self._checkpoint.planned() + step.nth

        def is_planned() -> bool:
            self._require_active(step)
            return self._checkpoint.is_planned(batch)

        self._continue_with(step)
        self._backend.stop_before_commit(self._query, is_planned)
        if self._emitted is not None:
            self._emitted(batch, self._capture.rows(batch))
        return self._checkpoint.is_committed(batch)

    def _runs_per_action(self) -> bool:
        """With ``once`` and ``availableNow`` every action is a run of its own."""
        return self._trigger not in ("default", REAL_TIME, PROCESSING_TIME)

    # The query.

    def _start(self, stop: Breakpoint | None = None) -> None:
        with _failures("start"):
            check_trigger(self._trigger)
            self._set(self._conf)
        with _failures("analysis"):
            if self._has_before:
                state_as_constants(self._session, self._before).createOrReplaceTempView("state")
            without_starts = no_starts(self._session) if self._code is not None else nullcontext()
            with without_starts, delayed(self._session, self._conf.get(DELAY)):
                self._frame = build(self._operations, self._read, self._session, self._code)
            if self._code is not None:
                self._set({key: self._conf[key] for key in self._changed})
            if ROWS_AT in self._conf:
                self._frame = self._backend.rows_at(self._frame, self._conf[ROWS_AT])
            sink = self._sink()
            fields = self._frame.schema.fields  # Connect analyzes nothing before this
            plan = analysed_plan(self._session, self._frame)
            if self._code is None:
                ddl = [stream.ddl for stream in self._request.streams.values()]
                check_plan(plan, [field.name for field in fields], [self._operations, ddl])
        self._by_the_clock = self._trigger not in ("once", PROCESSING_TIME) and runs_by_the_clock(plan)
        self.columns = [{"name": f.name, "type": f.dataType.simpleString()} for f in fields]
        if self._written is not None:
            from .capture import SinkCapture

            self._written.appends = self._output_mode == "append"
            self._capture = SinkCapture(self._written)
        else:
            self._capture = self._backend.capture(self._emitted, self._request.directory, self._trigger == REAL_TIME)
        self._capture.breakpoint = stop
        self._capture.sink = sink.batch
        self._capture.read_in_part = self._read_in_part
        self._capture.digests = self._request.digests
        self._capture.running = self._while_it_runs
        self._entries = 0
        self._has_executed = False
        self._watermark = None
        self._query = None
        with _failures("start"):
            writer = triggered(
                self._frame.writeStream.outputMode(self._output_mode), self._trigger, self._request.interval
            )
            if self._backend.makes_directories:
                self._checkpoint.make_directories()
            writer = writer.option("checkpointLocation", self._checkpoint.path)
            driven = self._clock.of_next_query(self._session) if self._trigger == PROCESSING_TIME else nullcontext()
            with allowed.this_thread(), driven:
                self._query = self._capture.attach(writer, self._frame.schema).start()
        if sink.whole is not None:
            if _CHECKPOINTS not in self._conf:
                self._session.conf.set(_CHECKPOINTS, self._request.directory + "/sinks")
            allowed.session(self._session)
            with _failures("start"):
                self._own_queries.start(sink.whole, self._frame, self._session, self._query.id)

    def _set(self, settings: dict[str, Any]) -> None:
        for name in settings.get(DEFAULTS, "").split():
            self._session.conf.unset(name)
        for key, value in settings.items():
            self._session.conf.set(key, value)

    def _read(self, name: str, source: str | None) -> Any:
        """The DataFrame of a stream. ``source``: the name of its source, None without one."""
        reader = self._session.readStream
        if source is not None:
            reader = method(reader, "name")(source)  # since 4.2
        return self._arrivals.read(reader, name)

    def _sink(self) -> AuthorSink:
        if self._request.sink is None or self._written is not None:
            return self._code.sink_of_program if self._code is not None else AuthorSink()
        if self._code is None:
            raise NotPermitted("the sink is Python code of the case's author")
        return self._code.sink(self._request.sink)

    def _drain(self) -> None:
        with self._running():
            if self._trigger == PROCESSING_TIME:
                self._clock.wait_until_rest()
                if not self._query.isActive:
                    self._query.awaitTermination()  # raises what the query failed with
            else:
                self._wait(self._query.processAllAvailable)
            while self._trigger == REAL_TIME and not at_rest(executed(self._recent()[0]), self._arrivals.behind):
                time.sleep(0.02)
                self._query.processAllAvailable()  # raises what the query failed with
            if not self._query.isActive:
                raise DriverFailure("the query was stopped before it had read everything")
            self._own_queries.drain(self._wait_until_idle)

    def _await_termination(self) -> None:
        with self._running():
            self._wait(self._query.awaitTermination)
            if self._by_the_clock:
                self._query.stop()
            if not self._backend.is_alive():
                raise DriverFailure("the engine was stopped while the query ran")
            self._own_queries.drain(self._wait_until_idle)
            self._own_queries.stop()

    def _wait(self, wait: Callable[[], object]) -> None:
        if self._by_the_clock:
            self._wait_until_idle(self._query, wait, self._capture.rows)
        else:
            wait()

    def _wait_until_idle(self, query: Any, wait: Callable[[], object], rows: Callable[[int], list[Any]]) -> None:
        """Call what returns once the query has nothing left to do, which is never if it runs by the clock: then until it is idle."""
        waiting = futures.ThreadPoolExecutor(1).submit(wait)
        before = self._backend.recent(query, sys.maxsize)[1]
        while not waiting.done():
            if is_idle(executed(self._backend.recent(query, before)[0]), rows):
                return
            futures.wait([waiting], 0.05)
        waiting.result()

    @contextmanager
    def _running(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise QueryFailed("run", self._backend.cause(self._query, self._capture, error)) from error

    def _place_at_once(self, staged: Any) -> None:
        """Show what arrives while no micro-batch is planned: two sources are not atomic."""
        with self._planning_paused():
            self._arrivals.place(staged)

    def _planning_paused(self) -> ContextManager[None]:
        """No micro-batch is planned in the block; none is between the runs of a query that runs once per action."""
        return self._backend.planning_paused(self._query) if self._query is not None else nullcontext()

    def _while_it_runs(self) -> None:
        """What happens while a micro-batch runs, before its rows are kept."""
        if self._native is not None:
            self._native |= self._backend.native(self._session) or set()
        if self._later:  # of a backlog, the next rows, which the micro-batch that runs now does not read
            self._arrivals.place(self._later.pop(0))

    # The observation.

    def _batches(self, tolerant: bool = False) -> list[dict[str, Any]]:
        """The micro-batches since the last call. ``tolerant``: leave out those whose logs are gone."""
        recent, self._entries = self._recent()
        entries = executed(recent)
        if self._trigger == REAL_TIME or self._by_the_clock:
            entries, self._watermark = reported(entries, self._watermark, self._capture.rows)
        self._has_executed = self._has_executed or bool(entries)
        batches = []
        for entry in entries:
            try:
                batches.append(batch_seen(entry, self._checkpoint, self._capture, self._arrivals))
            except SinkUnreadable as unreadable:
                raise QueryFailed("read", unreadable.cause) from unreadable
            except FileNotFoundError:
                if not tolerant:
                    raise
        return batches

    def _recent(self) -> tuple[list[dict[str, Any]], int]:
        return self._backend.recent(self._query, self._entries)

    def _close(self) -> None:
        self._own_queries.stop()
        if self._query is not None:
            with suppress(Exception):  # a query that failed has stopped already
                self._query.stop()
        if not self._request.save:
            self._arrivals.close()
        allowed.forget(self._session)
        self._backend.end_session(self._session)
