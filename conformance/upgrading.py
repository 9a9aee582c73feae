"""A whole run over changes of version: the harness hands checkpoints over, each answer is judged as it comes and handed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from conformance.audience import Audience, EngineDisplay, EngineSink
from conformance.case import Case
from conformance.observation import Observation
from conformance.upgrade import Handover, Pair, UpgradeVerdict, broken, judge_upgrade, not_applicable, not_run
from harness.engine import Runtime
from harness.pairs import TargetPair
from harness.scheduler import Limits
from harness.upgrades import Crossing, CrossingRun, Upgrades


class UpgradeDisplay(EngineDisplay, Protocol):
    """What a person sees while it runs. Calls never overlap."""

    def crossed(self, verdict: UpgradeVerdict, seconds: float) -> None: ...


class UpgradeSink(EngineSink, Protocol):
    """Where cells are kept. Calls never overlap."""

    def keep(
        self, case: Case, pair: TargetPair, verdict: UpgradeVerdict, observation: Observation | None, seconds: float
    ) -> None:
        """A judged cell; the observation is None where nothing ran or nothing was seen."""


def conduct_upgrades(
    handovers: Sequence[Handover],
    pairs: Sequence[TargetPair],
    runtime: Runtime,
    limits: Limits,
    *,
    display: UpgradeDisplay,
    sink: UpgradeSink,
    allow_code: bool = False,
) -> None:
    """Hand every case over between the versions of every pair; returns when all cells are in.

    Raises:
        KeyboardInterrupt: the user stopped it; every engine has ended.
    """
    judging = _Judging(display, sink)
    crossings = []
    for origin in dict.fromkeys(origin for origin, _ in pairs):
        for handover in handovers:
            to = []
            for pair in (pair for pair in pairs if pair[0] == origin):
                nothing = not_applicable(handover, Pair(origin.version, pair[1].version))
                if nothing is None:
                    to.append(pair[1])
                else:
                    judging.keep(handover.case, pair, nothing, None, 0.0)
            if to:
                crossings.append(Crossing(handover.case, handover.cut, origin, tuple(to)))
    Upgrades(runtime, limits, judging, allow_code=allow_code).run(crossings)


class _Judging(Audience[UpgradeDisplay, UpgradeSink]):
    """The listener of the hand-overs."""

    def crossing_done(self, run: CrossingRun) -> None:
        handover, pair = Handover(run.case, run.cut), Pair(run.origin.version, run.to.version)
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
