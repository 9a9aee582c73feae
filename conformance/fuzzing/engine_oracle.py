"""An engine as an oracle: it lives as long as the campaign and runs several cases at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.fuzzing.oracle import OracleAnswer
from harness.engine.engine import Runtime
from harness.scheduling.cell_run import Limits, run_cell
from harness.scheduling.engine_slot import EngineListener, EngineSlot
from harness.targets.target import Target


class EngineOracle:
    """Answers with the observation of a Spark.

    Args:
        runtime: starts the engine.
        target: which Spark.
        limits: cases at a time, step timeout, and Spark settings for all cases.
        listener: is notified of engine events.
        settings: a name for the settings, appended to the name of the target; empty for the defaults.
    """

    def __init__(
        self, runtime: Runtime, target: Target, limits: Limits, listener: EngineListener, *, settings: str = ""
    ) -> None:
        self._target = target
        self._limits = limits
        self._settings = settings
        self._slot = EngineSlot(runtime, target, listener, width=limits.side_by_side, memory_limit=limits.engine_memory)
        self._pool = ThreadPoolExecutor(limits.side_by_side, thread_name_prefix=target.name)
        self._numbers = count(1)

    @property
    def name(self) -> str:
        return f"{self._target.name} with {self._settings}" if self._settings else self._target.name

    @property
    def version(self) -> SparkVersion:
        return self._target.version

    @property
    def conf(self) -> Mapping[str, str]:
        return self._limits.conf

    @property
    def at_once(self) -> int:
        return self._limits.side_by_side

    def answers(self, cases: Sequence[Case]) -> Sequence[OracleAnswer]:
        return list(self._pool.map(self._answer, cases))

    def _answer(self, case: Case) -> OracleAnswer:
        # An engine identifies a case by its id, and a case being shrunk runs in several variants at once.
        alone = case.model_copy(update={"id": f"{case.id}-{next(self._numbers)}"})
        run = run_cell(alone, self._slot, self._limits, allow_code=False)
        if run.failure is not None:
            return OracleAnswer(None, run.failure)
        return OracleAnswer(run.observations[0])

    def close(self) -> None:
        self._slot.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
