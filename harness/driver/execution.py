"""One case, step by step: start the query, let rows arrive, come to rest, tell what was seen."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any, Callable, Iterator

from .arrivals import Staged
from .capture import Hold
from .checkpoint import Checkpoint
from .dataframe import build
from .errors import describe, surroundings
from .holding import hold_after_commit
from .progress import batch_seen, executed
from .state_functions import MissingPackages


class _Failed(Exception):
    """The engine refused or died; the case ends here."""

    def __init__(self, stage: str, cause: Exception) -> None:
        super().__init__(stage)
        self.stage = stage
        self.cause = cause


class EngineGone(Exception):
    """The JVM has died under us: there is nothing to observe."""


class NeverReached(Exception):
    """There was no point at which this process could have been killed: the case expects more micro-batches than there are."""


class MachineLacks(Exception):
    """No room for checkpoint or input, or for a process: what the engine did says nothing about Spark.

    ``passing``: whether it may be otherwise the next time.
    """

    def __init__(self, message: str, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing


class Reached(Exception):
    """The point at which this process is to be killed.

    ``step``: what the step has shown until then, as ``StepSeen``; ``missed``: whether the engine has gone past the point.
    """

    def __init__(self, step: dict[str, Any], missed: bool) -> None:
        super().__init__(step["number"])
        self.step = step
        self.missed = missed


class Execution:
    """A case, or some steps of it, in the engine: a ``Classic`` or a ``Connect``.

    ``run`` yields the fields of one ``StepSeen`` after another; a step with an error is the last. ``emitted`` is told the rows of each
    micro-batch before the engine can commit it, from another thread; None where nobody wants to know.
    """

    def __init__(
        self, engine: Any, request: dict[str, Any], emitted: Callable[[int, list[list[Any]]], None] | None = None
    ) -> None:
        put_in_place(request)
        self._emitted = emitted
        self._engine = engine
        self._session = engine.new_session()
        self._request = request
        self._query_text = request["query"]
        self._output_mode = request["outputMode"]
        self._trigger = request["trigger"]
        self._conf = dict(request["conf"])
        self._arrivals = engine.arrivals(request["directory"] + "/streams", request["streams"])
        self._checkpoint = Checkpoint(request["directory"] + "/checkpoint", engine.files)
        self._frame: Any = None
        self._query: Any = None
        self._capture: Any = None
        self._entries = 0
        self._has_executed = False
        self._executors = engine.executors()
        self.columns: list[dict[str, str]] = []

    def run(self) -> Iterator[dict[str, Any]]:
        """
        Raises:
            Reached: the process is to be killed now; it must not do anything any more.
        """
        failed = False
        reached = None
        try:
            for number, step in enumerate(self._request["steps"], self._request.get("first", 1)):
                begun = time.monotonic()
                error = None
                batches: list[dict[str, Any]] = []
                try:
                    if step["action"] == "kill":
                        missed = self._reach(step)
                        batches = self._batches(tolerant=True) if self._query is not None else []
                        reached = Reached(self._seen(number, batches, None, begun), missed)
                        raise reached
                    self._act(step)
                except _Failed as failure:
                    if not self._engine.is_alive():
                        raise EngineGone from failure.cause
                    lacking = surroundings(failure.cause)
                    if lacking:
                        where = "{} where this engine works, {}".format(lacking.what, self._request["directory"])
                        raise MachineLacks(where, lacking.passing) from failure.cause
                    error = describe(failure.cause, failure.stage)
                    failed = True
                if self._query is not None:
                    batches = self._batches(tolerant=failed)
                self._executors |= self._engine.executors()
                yield {
                    **self._seen(number, batches, error, begun),
                    "plan": self._plan() if step.get("plan") and not failed else None,
                }
                if failed:
                    return
        finally:
            if reached is None:
                self._close()

    def executors_lost(self) -> int:
        """How many of the executors that were there meanwhile are gone: what was seen is not what the case is about."""
        return len(self._executors - self._engine.executors())

    def _seen(self, number: int, batches: list[dict[str, Any]], error: Any, begun: float) -> dict[str, Any]:
        return {
            "number": number,
            "batches": batches,
            "watermark": self._checkpoint.watermark(),
            "plan": None,
            "error": error,
            "wall_ms": int((time.monotonic() - begun) * 1000),
        }

    # The actions.

    def _act(self, step: dict[str, Any]) -> None:
        action = step["action"]
        if action == "restart":
            self._restart(step)
            return
        batches = step.get("batches", [])
        if self._at_rest_between_runs():
            self._arrivals.place(self._arrivals.stage(batches))
            self._start()
            self._finish_run()
            return
        if self._query is None:
            self._start()
            self._drain()
        if batches:
            staged = self._arrivals.stage(batches)
            self._place_at_once(staged)
        if action != "start":
            self._drain()

    def _restart(self, step: dict[str, Any]) -> None:
        if self._query is not None:
            self._query.stop()
        if step["how"] == "crash-before-commit":
            self._checkpoint.uncommit_newest()
        # What is spoilt on disk is not answered from memory: state stores are kept by the run of a query, and the next one is another.
        for how, part in (step.get("damage") or {}).items():
            self._checkpoint.damage(how, part)
        change = step.get("change", {})
        self._conf.update(change.get("conf") or {})
        self._output_mode = change.get("outputMode") or self._output_mode
        self._trigger = change.get("trigger") or self._trigger
        self._query_text = change.get("query") or self._query_text
        self._frame = self._query = None
        if not self._at_rest_between_runs():
            self._start()
            self._drain()

    def _reach(self, step: dict[str, Any]) -> bool:
        """Go on to the point at which this process is to be killed; whether the engine has gone past it already."""
        if step["at"] == "rest":
            if not self._at_rest_between_runs():
                self._act({"action": "start"})
            return False
        # With `once` and `availableNow` this run is the one that is killed; else the query must be at rest before.
        if self._at_rest_between_runs():
            self._arrivals.place(self._arrivals.stage(step["batches"]))
            self._start(Hold(step["at"], step["nth"]))
        else:
            self._act({"action": "start"})
            self._capture.hold = Hold(step["at"], step["nth"])
            self._place_at_once(self._arrivals.stage(step["batches"]))
        hold = self._capture.hold
        assert hold is not None
        while not hold.reached.wait(0.02):
            if not self._query.isActive:
                self._finish_run()
                raise NeverReached(
                    "the query came to its end and never ran micro-batch {} of the step".format(step["nth"])
                )
        if step["at"] == "committed":
            batch = hold.batch or 0
            lock = self._query._jsq.streamingQuery().awaitProgressLock()
            hold_after_commit(
                self._engine.spark.sparkContext._gateway,
                lock,
                hold.go_on.set,
                lambda: self._checkpoint.is_committed(batch),
            )
            while not any(entry["batchId"] == batch for entry in executed(self._recent()[0])):
                time.sleep(0.005)
            return self._checkpoint.is_planned(batch + 1)
        return False

    def _at_rest_between_runs(self) -> bool:
        """With ``once`` and ``availableNow`` every action is a run of its own."""
        return bool(self._trigger != "default")

    # The query.

    def _start(self, hold: Hold | None = None) -> None:
        try:
            for key, value in self._conf.items():
                self._session.conf.set(key, value)
        except Exception as error:
            raise _Failed("start", error) from error
        try:
            self._frame = self._build()
            fields = self._frame.schema.fields  # through Connect nothing is analysed before somebody asks
        except MissingPackages:
            raise
        except Exception as error:
            raise _Failed("analysis", error) from error
        self.columns = [{"name": f.name, "type": f.dataType.simpleString()} for f in fields]
        self._capture = self._engine.capture(self._emitted, self._request["directory"])
        self._capture.hold = hold
        self._entries = 0
        self._has_executed = False
        try:
            writer = self._frame.writeStream.outputMode(self._output_mode)
            if self._trigger != "default":
                writer = writer.trigger(**{self._trigger: True})
            if self._engine.makes_directories:
                self._checkpoint.make_directories()
            writer = writer.option("checkpointLocation", self._checkpoint.path)
            self._query = writer.foreachBatch(self._capture.function).start()
        except Exception as error:
            self._query = None
            raise _Failed("start", error) from error

    def _build(self) -> Any:
        streams = {}
        for name, stream in self._request["streams"].items():
            streams[name] = (
                self._session.readStream.format("json")
                .schema(stream["ddl"])
                .option("mode", "FAILFAST")
                .option("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
                .option("timestampNTZFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
                .option("maxFilesPerTrigger", stream["files"])
                .load(self._arrivals.directory(name))
            )
        return build(self._query_text, streams, self._session, self._request.get("codePath"))

    def _drain(self) -> None:
        try:
            self._query.processAllAvailable()
        except Exception as error:
            raise _Failed("run", self._engine.cause(self._query, self._capture, error)) from error

    def _finish_run(self) -> None:
        try:
            self._query.awaitTermination()
        except Exception as error:
            raise _Failed("run", self._engine.cause(self._query, self._capture, error)) from error

    def _place_at_once(self, staged: Staged) -> None:
        """Show the files while no micro-batch is being planned: two sources are not atomic."""
        with self._engine.still(self._query):
            self._arrivals.place(staged)

    # What was seen.

    def _batches(self, tolerant: bool) -> list[dict[str, Any]]:
        recent, self._entries = self._recent()
        entries = executed(recent)
        self._has_executed = self._has_executed or bool(entries)
        seen = []
        for entry in entries:
            try:
                seen.append(batch_seen(entry, self._checkpoint, self._capture, self._arrivals))
            except FileNotFoundError:
                if not tolerant:
                    raise
        return seen

    def _recent(self) -> Any:
        return self._engine.recent(self._query, self._entries)

    def _plan(self) -> str:
        plan: str = self._engine.plan(self._query, self._frame, self._has_executed)
        return plan

    def _close(self) -> None:
        if self._query is not None:
            try:
                self._query.stop()
            except Exception:  # a query that failed has stopped already
                pass
        self._engine.end_session(self._session)


def put_in_place(request: dict[str, Any]) -> None:
    """Remove the directories nobody needs any more, and put the copy that the steps go on from where they are to find it."""
    for path in request.get("discard", []):
        shutil.rmtree(path, ignore_errors=True)
    if request.get("restore"):
        shutil.rmtree(request["directory"], ignore_errors=True)
        # With the times of the files, which are their places in the order.
        shutil.copytree(request["restore"], request["directory"])


def put_away(engine: Any, request: dict[str, Any]) -> None:
    """Keep the case's directory under the name it is wanted by, or remove it."""
    if request.get("save"):
        shutil.rmtree(request["save"], ignore_errors=True)
        os.rename(request["directory"], request["save"])
    else:
        engine.files.discard(request["directory"])
