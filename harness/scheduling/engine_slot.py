"""The place of a target's engine: who may use it at once, when it is started, and when it is replaced."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from conformance.core.observation import Identity
from harness.engine.engine import Engine, EngineLocation, Runtime
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.targets.target import Target


class EngineListener(Protocol):
    """Hears what becomes of engines, from the threads in which it happens."""

    def engine_says(self, target: Target, line: str) -> None:
        """Progress of installing and starting."""

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        """The engine has introduced itself; once per target, and again when it was replaced."""


class SlotClosed(HarnessError):
    """The run was stopped: there will be no engine any more."""

    def __init__(self, target: Target) -> None:
        super().__init__(f"{target.name} was stopped")


class SlotUse:
    """One use of the engine."""

    def __init__(self) -> None:
        self.company = False
        """Whether others used the engine during this use: what became of it may be their doing."""


class EngineSlot:
    """One engine of a target at a time, started when first needed and replaced when it was lost or has grown too big.

    Where an engine cannot be started, that is kept: it would fail again, and each attempt may take minutes.

    Args:
        runtime: where engines come from.
        target: of which version.
        listener: hears what becomes of them.
        width: how many may use the engine at once; fewer where its cluster has fewer slots.
        most_memory: bytes above which an engine is replaced as soon as nobody uses it; None for never.
    """

    def __init__(
        self,
        runtime: Runtime,
        target: Target,
        listener: EngineListener,
        *,
        width: int = 1,
        most_memory: int | None = None,
    ) -> None:
        self.target = target
        self._runtime = runtime
        self._listener = listener
        self._widest = width
        # Nobody could do anything before there is an engine, and a cluster tells its slots only then.
        self._width = 1
        self._most_memory = most_memory
        self._changed = threading.Condition()
        self._visits: list[SlotUse] = []
        self._held_alone = False
        self._waiting_to_be_alone = 0
        self._starting = threading.Lock()
        self._engine: Engine | None = None
        self._unstartable: HarnessError | None = None
        self._closed = False

    @contextmanager
    def taken(self, *, alone: bool = False) -> Iterator[SlotUse]:
        """Use the engine, beside others or ``alone``; waits until that is possible.

        Raises:
            SlotClosed: the run was stopped meanwhile.
        """
        visit = SlotUse()
        with self._changed:
            self._waiting_to_be_alone += alone
            self._changed.wait_for(lambda: self._closed or self._has_room(alone))
            self._waiting_to_be_alone -= alone
            if self._closed:
                raise SlotClosed(self.target)
            self._held_alone = alone
            self._visits.append(visit)
            if len(self._visits) > 1:
                for together in self._visits:
                    together.company = True
            outgrown = self._outgrown
        try:
            if outgrown:
                self.replace()
            yield visit
        finally:
            with self._changed:
                self._visits.remove(visit)
                self._held_alone = False
                self._changed.notify_all()

    def engine(self) -> Engine:
        """The engine, started if need be; for who has ``taken`` the seat.

        Raises:
            HarnessError: it cannot be started here.
        """
        with self._starting:
            if self._closed:
                raise SlotClosed(self.target)
            if self._unstartable is not None:
                raise self._unstartable
            if self._engine is not None and self._engine.ended:
                self.replace()
            if self._engine is None:
                try:
                    self._engine = self._runtime.start(self.target, on_progress=self._progress_callback())
                except HarnessError as error:
                    self._unstartable = error
                    raise
                with self._changed:
                    self._width = min(self._widest, self._engine.slots or self._widest)
                    self._changed.notify_all()
                self._listener.engine_ready(self.target, self._engine.identity, self._engine.place)
                if self._closed:
                    self.replace()
                    raise SlotClosed(self.target)
            return self._engine

    def replace(self) -> None:
        """End the engine, if there is one; the next use starts another."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def close(self) -> None:
        """End the engine for good; whoever waits for it is told."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.replace()

    @property
    def _outgrown(self) -> bool:
        memory = self._engine.memory if self._engine is not None else None
        return self._most_memory is not None and memory is not None and memory > self._most_memory

    def _has_room(self, alone: bool) -> bool:
        if alone:
            return not self._visits
        # Whoever waits to be alone needs it empty, and so does an engine that is to be replaced: nobody else comes in before.
        return not (self._held_alone or self._waiting_to_be_alone) and (
            not self._visits or (not self._outgrown and len(self._visits) < self._width)
        )

    def _progress_callback(self) -> ProgressCallback:
        return lambda line, /: self._listener.engine_says(self.target, line)
