"""Runs one case after another on one engine at a time: for pytest, and for a case that Python code runs."""

from __future__ import annotations

from contextlib import ExitStack

from conformance.core.case import Case
from conformance.core.observation import Identity
from conformance.runner.resources import open_runtime
from harness.engine.engine import EngineLocation, Runtime
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import CellRun, Limits, run_cell
from harness.scheduling.engine_slot import EngineSlot
from harness.targets.target import Target


class Engines:
    """Runs cases on one engine at a time: another version's engine is closed first.

    Args:
        options: where engines run; cases may run code if it has ``own_code``.
        limits: of a case.
    """

    def __init__(self, options: RuntimeOptions, limits: Limits) -> None:
        self._options = options
        self._limits = limits
        self._stack = ExitStack()
        self._runtime: Runtime | None = None
        self._slot: EngineSlot | None = None

    def __enter__(self) -> Engines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, case: Case, target: Target) -> CellRun:
        """Run a case, on the engine of the last one if that is of the same target."""
        if self._slot is None or not self._fits(self._slot, case, target):
            self.close_engine()
            if self._runtime is None:
                self._runtime = self._stack.enter_context(open_runtime(self._options))
            real_time = case.runs_in_real_time(target.version)
            self._slot = EngineSlot(self._runtime, target, _Silent(), topics=bool(case.topics), real_time=real_time)
        return run_cell(case, self._slot, self._limits, self._options.own_code is not None)

    @staticmethod
    def _fits(slot: EngineSlot, case: Case, target: Target) -> bool:
        fits = slot.target == target and slot.real_time == case.runs_in_real_time(target.version)
        return fits and (slot.topics or not case.topics)

    def close_engine(self) -> None:
        """End the engine, if one runs; the next case starts another."""
        if self._slot is not None:
            self._slot.close()
            self._slot = None

    def close(self) -> None:
        """End the engine, and remove its files."""
        self.close_engine()
        self._runtime = None
        self._stack.close()


class _Silent:
    """Prints nothing: the caller shows progress."""

    def engine_says(self, target: Target, line: str) -> None: ...

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None: ...
