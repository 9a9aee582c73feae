"""A whole run over changes of version: the harness hands checkpoints over, each answer is judged as it comes and handed on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from conformance.case import Case
from conformance.observation import Identity, Observation
from conformance.upgrade import Handover, Pair, UpgradeVerdict, broken, judge_upgrade, not_applicable, not_run
from harness.engine import Place, Runtime
from harness.pairs import TargetPair
from harness.scheduler import Limits
from harness.target import Target
from harness.upgrades import Crossing, CrossingRun, Upgrades


class UpgradeDisplay(Protocol):
    """What a person sees while it runs. Calls never overlap."""

    def says(self, target: Target, line: str) -> None: ...

    def ready(self, target: Target, identity: Identity, place: Place) -> None: ...

    def crossed(self, verdict: UpgradeVerdict, seconds: float) -> None: ...


class UpgradeSink(Protocol):
    """Where cells are kept. Calls never overlap."""

    def introduce(self, target: Target, identity: Identity, place: Place) -> None:
        """An engine has introduced itself; once or more per target."""

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


class _Judging:
    """The listener: one thread at a time, whatever engine it comes from."""

    def __init__(self, display: UpgradeDisplay, sink: UpgradeSink) -> None:
        self._display = display
        self._sink = sink
        self._lock = threading.Lock()

    def engine_says(self, target: Target, line: str) -> None:
        with self._lock:
            self._display.says(target, line)

    def engine_ready(self, target: Target, identity: Identity, place: Place) -> None:
        with self._lock:
            self._sink.introduce(target, identity, place)
            self._display.ready(target, identity, place)

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
