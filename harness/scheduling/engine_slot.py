"""A slot for the engine of a target: how many cases may use it at once, when it starts, and when it is replaced."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from conformance.core.observation import Identity
from harness.engine.engine import NOTHING_ELSE, Engine, EngineLocation, EngineNeeds, Runtime
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.targets.target import Target


class EngineListener(Protocol):
    """Is told what happens to engines, from the threads in which it happens."""

    def engine_says(self, target: Target, line: str) -> None:
        """Progress of installing and starting."""

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        """The engine has introduced itself; once per target, and again after each replacement."""


class SlotClosed(HarnessError):
    """The run was stopped; no engine starts any more."""

    def __init__(self, target: Target) -> None:
        super().__init__(f"{target.name} was stopped")


class SlotUse:
    """One use of the engine."""

    def __init__(self) -> None:
        self.shared = False
        """Whether the engine had other users meanwhile, who may have caused what happened to it."""


class EngineSlot:
    """One engine of a target at a time, started when first needed and replaced when it is lost or has grown too big.

    If an engine cannot be started, the slot remembers the error: another attempt may take minutes and fails again.

    Args:
        width: how many users the engine may have at once; fewer if its cluster has fewer slots.
        memory_limit: bytes above which an engine is replaced as soon as it has no users; None for no limit.
        needs: what its cases need of it.
    """

    def __init__(
        self,
        runtime: Runtime,
        target: Target,
        listener: EngineListener,
        *,
        width: int = 1,
        memory_limit: int | None = None,
        needs: EngineNeeds = NOTHING_ELSE,
    ) -> None:
        self.target = target
        self.needs = needs
        self._runtime = runtime
        self._listener = listener
        self._max_width = width
        # The first user starts the engine. The others could only wait for it, and a cluster reports its slots only then.
        self._width = 1
        self._memory_limit = memory_limit
        self._changed = threading.Condition()
        self._uses: list[SlotUse] = []
        self._held_alone = False
        self._waiting_to_be_alone = 0
        self._starting = threading.Lock()
        self._engine: Engine | None = None
        self._start_error: HarnessError | None = None
        self._closed = False

    @contextmanager
    def use(self, *, alone: bool = False) -> Iterator[SlotUse]:
        """Use the engine, together with others or ``alone``; waits until that is possible.

        Raises:
            SlotClosed: the run was stopped meanwhile.
        """
        use = SlotUse()
        with self._changed:
            self._waiting_to_be_alone += alone
            self._changed.wait_for(lambda: self._closed or self._has_room(alone))
            self._waiting_to_be_alone -= alone
            if self._closed:
                raise SlotClosed(self.target)
            self._held_alone = alone
            self._uses.append(use)
            if len(self._uses) > 1:
                for other in self._uses:
                    other.shared = True
            too_big = self._too_big
        try:
            if too_big:
                self.replace()
            yield use
        finally:
            with self._changed:
                self._uses.remove(use)
                self._held_alone = False
                self._changed.notify_all()

    def engine(self) -> Engine:
        """The engine, started if needed; only within ``use``.

        Raises:
            HarnessError: it cannot be started here.
        """
        with self._starting:
            if self._closed:
                raise SlotClosed(self.target)
            if self._start_error is not None:
                raise self._start_error
            if self._engine is not None and self._engine.ended:
                self.replace()
            if self._engine is None:
                try:
                    self._engine = self._runtime.start(
                        self.target,
                        on_progress=self._progress_callback(),
                        needs=self.needs,
                    )
                except HarnessError as error:
                    self._start_error = error
                    raise
                with self._changed:
                    self._width = min(self._max_width, self._engine.slots or self._max_width)
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
        """End the engine for good; whoever waits for it gets ``SlotClosed``."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.replace()

    @property
    def _too_big(self) -> bool:
        memory = self._engine.memory if self._engine is not None else None
        return self._memory_limit is not None and memory is not None and memory > self._memory_limit

    def _has_room(self, alone: bool) -> bool:
        if alone:
            return not self._uses
        # A user who waits to be alone needs the engine empty, and so does its replacement: no other user may enter before.
        return not (self._held_alone or self._waiting_to_be_alone) and (
            not self._uses or (not self._too_big and len(self._uses) < self._width)
        )

    def _progress_callback(self) -> ProgressCallback:
        return lambda line, /: self._listener.engine_says(self.target, line)
