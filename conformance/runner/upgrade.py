"""Hands the checkpoints of cases over from one version to another."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.judging.handoff_verdict import (
    CheckpointHandoff,
    UpgradeVerdict,
    VersionPair,
    judge_upgrade,
    not_applicable,
    without_answer,
)
from conformance.runner.run_cells import Display, Sink, run_cells
from harness.engine.engine import Runtime
from harness.scheduling.answer_cache import AnswerCache
from harness.scheduling.cell_run import CellRun, CellTask, Limits
from harness.targets.upgrade_paths import TargetPair


def run_upgrades(
    handoffs: Sequence[CheckpointHandoff],
    pairs: Sequence[TargetPair],
    runtime: Runtime,
    limits: Limits,
    *,
    display: Display[UpgradeVerdict],
    sink: Sink[UpgradeVerdict],
    allow_code: bool = False,
    cache: AnswerCache | None = None,
) -> int:
    """Hand every case over between the versions of every pair: ``run_cells``."""
    cells = [CellTask(handoff.case, pair, handoff.cut) for pair in pairs for handoff in handoffs]
    return run_cells(cells, _Judge(), runtime, limits, display=display, sink=sink, allow_code=allow_code, cache=cache)


class _Judge:
    def without_run(self, task: CellTask, lacking: str | None) -> UpgradeVerdict | None:
        handoff, pair = _handed_over(task)
        verdict = not_applicable(handoff, pair)
        if verdict is None and lacking is not None:
            verdict = without_answer(handoff, pair, "not-applicable", lacking)
        return verdict

    def verdict(self, run: CellRun) -> UpgradeVerdict:
        handoff, pair = _handed_over(run.task)
        if not run.runnable:
            return without_answer(handoff, pair, "not-run", run.failure or "")
        if run.failure is not None:
            return without_answer(handoff, pair, "broken", run.failure)
        return judge_upgrade(handoff, pair, run.observations[0])


def _handed_over(task: CellTask) -> tuple[CheckpointHandoff, VersionPair]:
    assert task.cut is not None
    return CheckpointHandoff(task.case, task.cut), VersionPair(task.origin.version, task.target.version)
