"""Engines beside a Connect server: a query moves from a classic session to Connect, or back."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.core.case import Case
from harness.engine.engine import NOTHING_ELSE, Engine, EngineNeeds, Runtime
from harness.progress import ProgressCallback
from harness.targets.target import Target


@dataclass(frozen=True, eq=False)
class BesideConnect:
    """Two runtimes that see the same files: targets that are ``through_connect`` use the second, all others the first."""

    classic: Runtime
    connect: Runtime

    name = "local"

    def unsupported(self, case: Case, target: Target) -> str | None:
        return self._of(target).unsupported(case, target)

    def fingerprint(self, target: Target) -> str | None:
        return self._of(target).fingerprint(target)

    def start(self, target: Target, *, on_progress: ProgressCallback, needs: EngineNeeds = NOTHING_ELSE) -> Engine:
        return self._of(target).start(target, on_progress=on_progress, needs=needs)

    def close(self) -> None:
        self.classic.close()
        self.connect.close()

    def _of(self, target: Target) -> Runtime:
        return self.connect if target.through_connect else self.classic
