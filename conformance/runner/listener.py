"""Who hears of engines while a run goes on: the person that watches and whatever keeps the answers, one call at a time."""

from __future__ import annotations

import threading
from typing import Generic, Protocol, TypeVar

from conformance.core.observation import Identity
from conformance.runner.cached_answers import CachedAnswers
from harness.engine.engine import EngineLocation
from harness.targets.target import Target


class EngineDisplay(Protocol):
    """What a person sees of engines. Calls never overlap."""

    def says(self, target: Target, line: str) -> None: ...

    def ready(self, target: Target, identity: Identity, place: EngineLocation) -> None: ...


class EngineSink(Protocol):
    """Where it is kept which engines answered. Calls never overlap."""

    def introduce(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        """An engine has introduced itself; once or more per target."""


D = TypeVar("D", bound=EngineDisplay)
S = TypeVar("S", bound=EngineSink)


class RunListener(Generic[D, S]):
    """The part of a listener that is the same whatever engines are asked: one thread at a time, whichever engine speaks.

    Args:
        display: the person.
        sink: keeps the answers of this run.
        reuse: keeps them for later runs; None where that is not wanted.
    """

    def __init__(self, display: D, sink: S, reuse: CachedAnswers | None = None) -> None:
        self._display = display
        self._sink = sink
        self._reuse = reuse
        self._lock = threading.Lock()

    def engine_says(self, target: Target, line: str) -> None:
        with self._lock:
            self._display.says(target, line)

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        with self._lock:
            self._sink.introduce(target, identity, place)
            self._display.ready(target, identity, place)
            if self._reuse is not None:
                self._reuse.met(target, identity, place)
