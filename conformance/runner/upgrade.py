"""A whole run over changes of version: the harness hands checkpoints over, each answer is judged as it comes and handed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.judging.handoff_verdict import (
    CheckpointHandoff,
    UpgradeVerdict,
    VersionPair,
    broken,
    judge_upgrade,
    not_applicable,
    not_run,
)
from conformance.runner.cached_answers import CachedAnswers, CacheQuery
from conformance.runner.listener import EngineDisplay, EngineSink, RunListener
from harness.engine.engine import Runtime
from harness.scheduling.answer_cache import AnswerCache, CachedAnswer
from harness.scheduling.scheduler import Limits
from harness.scheduling.upgrades import Crossing, CrossingRun, Upgrades
from harness.targets.upgrade_paths import TargetPair


class UpgradeDisplay(EngineDisplay, Protocol):
    """What a person sees while it runs. Calls never overlap."""

    def crossed(self, verdict: UpgradeVerdict, seconds: float) -> None: ...


class UpgradeSink(EngineSink, Protocol):
    """Where cells are kept. Calls never overlap."""

    def keep(
        self, case: Case, pair: TargetPair, verdict: UpgradeVerdict, observation: Observation | None, seconds: float
    ) -> None:
        """A judged cell; the observation is None where nothing ran or nothing was seen."""


def run_upgrades(
    handovers: Sequence[CheckpointHandoff],
    pairs: Sequence[TargetPair],
    runtime: Runtime,
    limits: Limits,
    *,
    display: UpgradeDisplay,
    sink: UpgradeSink,
    allow_code: bool = False,
    known: AnswerCache | None = None,
) -> int:
    """Hand every case over between the versions of every pair; returns, once all cells are in, how many were known already.

    Args:
        handovers: what is handed over, and where.
        pairs: who writes the checkpoint, and who goes on from it.
        runtime: where engines come from.
        limits: budget.
        display: shows it.
        sink: keeps it.
        allow_code: whether cases may call Python code of their authors.
        known: answers of earlier runs, which are not asked for again, and where new ones are kept; None for neither.

    Raises:
        KeyboardInterrupt: the user stopped it; every engine has ended.
    """
    reuse = CachedAnswers(known, runtime, limits.conf) if known is not None else None
    judging = _Judging(display, sink, reuse)
    crossings = []
    for origin in dict.fromkeys(origin for origin, _ in pairs):
        for handover in handovers:
            to = {}
            for pair in (pair for pair in pairs if pair[0] == origin):
                nothing = not_applicable(handover, VersionPair(origin.version, pair[1].version))
                if nothing is None:
                    to[pair[1].name] = pair[1]
                else:
                    judging.keep(handover.case, pair, nothing, None, 0.0)
            asked = [CacheQuery(handover.case, (origin, target), handover.cut) for target in to.values()]
            for question, answer in reuse.among(asked) if reuse else ():
                judging.known(question, answer)
                del to[question.targets[1].name]
            if to:
                crossings.append(Crossing(handover.case, handover.cut, origin, tuple(to.values())))
    Upgrades(runtime, limits, judging, allow_code=allow_code).run(crossings)
    return judging.reused


class _Judging(RunListener[UpgradeDisplay, UpgradeSink]):
    """The listener of the hand-overs."""

    reused = 0
    """Cells that no engine was asked for."""

    def known(self, question: CacheQuery, answer: CachedAnswer) -> None:
        """The cell has been answered before."""
        origin, to = question.targets
        for target, (identity, place) in zip(question.targets, answer.engines, strict=True):
            self._sink.introduce(target, identity, place)
        assert question.cut is not None
        verdict = judge_upgrade(
            CheckpointHandoff(question.case, question.cut), VersionPair(origin.version, to.version), answer.observation
        )
        self.reused += 1
        self.keep(question.case, (origin, to), verdict, answer.observation, answer.seconds)

    def crossing_done(self, run: CrossingRun) -> None:
        if self._reuse is not None and run.observation is not None:
            self._reuse.keep(CacheQuery(run.case, (run.origin, run.to), run.cut), run.observation, run.seconds)
        handover, pair = CheckpointHandoff(run.case, run.cut), VersionPair(run.origin.version, run.to.version)
        if not run.runnable:
            verdict = not_run(handover, pair, run.failure or "")
        elif run.observation is None:
            verdict = broken(handover, pair, run.failure or "")
        else:
            verdict = judge_upgrade(handover, pair, run.observation)
        with self._lock:
            self.keep(run.case, (run.origin, run.to), verdict, run.observation, run.seconds)

    def keep(
        self, case: Case, pair: TargetPair, verdict: UpgradeVerdict, observation: Observation | None, seconds: float
    ) -> None:
        self._sink.keep(case, pair, verdict, observation, seconds)
        self._display.crossed(verdict, seconds)
