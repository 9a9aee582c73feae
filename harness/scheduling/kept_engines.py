"""Engines that one run leaves to the next run of the same command: a start, with the first micro-batches, costs more than most cells."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

from conformance.core.errors import end_waits
from harness.engine.engine import Engine, EngineNeeds, Runtime
from harness.progress import ProgressCallback
from harness.targets.targets import Target

SIGNALS_WAIT = 0.5
"""Seconds until a signal is handled at the latest: one that comes just before a wait is handled only when the wait ends."""


class KeptEngines:
    """A runtime and its engines that no run uses now, at most one per target; ``close`` ends these, and the runtime stays open."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._idle: dict[str, tuple[EngineNeeds, Future[Engine]]] = {}
        self._starts = ThreadPoolExecutor(thread_name_prefix="start")
        self._lock = threading.Lock()

    def begin(self, target: Target, needs: EngineNeeds, on_progress: ProgressCallback) -> None:
        """Start an engine in the background, unless there is one for this target; `take` waits for it, and raises what its start raises."""
        start = partial(self.runtime.start, target, on_progress=on_progress, needs=needs)
        with self._lock:
            if target.name not in self._idle:
                self._idle[target.name] = needs, self._starts.submit(start)

    def take(self, target: Target, needs: EngineNeeds) -> Engine | None:
        """The engine that was left for this target; None without one. An engine that does not give what these cases need is ended."""
        with self._lock:
            has, kept = self._idle.pop(target.name, (needs, None))
        if kept is None:
            return None
        while not wait([kept], SIGNALS_WAIT).done:
            pass
        engine = kept.result()
        if engine.ended or not has.cover(needs):
            engine.close()
            return None
        return engine

    def leave(self, target: Target, needs: EngineNeeds, engine: Engine) -> None:
        """Keep an engine that answers no case now. The engine that was left before, if any, is ended."""
        left: Future[Engine] = Future()
        left.set_result(engine)
        with self._lock:
            _, before = self._idle.pop(target.name, (needs, None))
            self._idle[target.name] = needs, left
        if before is not None:
            before.result().close()

    def kill(self) -> None:
        """End the engines at once, also those that start; ``close`` follows."""
        with self._lock:
            idle = [kept for _, kept in self._idle.values()]
        while wait(idle, timeout=0.1).not_done:
            end_waits()
        for kept in idle:
            if kept.exception() is None:
                kept.result().kill()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = [kept for _, kept in self._idle.values()], {}
        engines = [kept.result() for kept in idle if kept.exception() is None]
        # At the same time: each may write a class archive, which takes seconds.
        ends = [self._starts.submit(engine.close) for engine in engines]
        try:
            while wait(ends, SIGNALS_WAIT).not_done:
                pass
        except BaseException:
            for engine in engines:
                engine.kill()
            raise
        finally:
            self._starts.shutdown()
        for end in ends:
            end.result()
