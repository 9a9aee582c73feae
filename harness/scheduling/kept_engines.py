"""Engines that one run leaves to the next run of the same command: a start, with the first micro-batches, costs more than most cells."""

from __future__ import annotations

import threading

from harness.engine.engine import Engine, EngineNeeds, Runtime
from harness.targets.targets import Target


class KeptEngines:
    """A runtime and its engines that no run uses now, at most one per target; ``close`` ends these, and the runtime stays open."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._idle: dict[str, tuple[EngineNeeds, Engine]] = {}
        self._lock = threading.Lock()

    def take(self, target: Target, needs: EngineNeeds) -> Engine | None:
        """The engine that was left for this target; None without one. An engine that does not give what these cases need is ended."""
        with self._lock:
            has, engine = self._idle.pop(target.name, (needs, None))
        if engine is not None and (engine.ended or not has.cover(needs)):
            engine.close()
            return None
        return engine

    def leave(self, target: Target, needs: EngineNeeds, engine: Engine) -> None:
        """Keep an engine that answers no case now. The engine that was left before, if any, is ended."""
        with self._lock:
            _, before = self._idle.pop(target.name, (needs, None))
            self._idle[target.name] = needs, engine
        if before is not None:
            before.close()

    def kill(self) -> None:
        """End the engines at once; ``close`` follows."""
        with self._lock:
            for _, engine in self._idle.values():
                engine.kill()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = [engine for _, engine in self._idle.values()], {}
        for engine in idle:
            engine.close()
