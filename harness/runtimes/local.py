"""The ``local`` runtime: each target in an environment of its own on this machine, no containers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from conformance.core.case import Case
from harness.engine.driver_engine import DriverEngine
from harness.engine.engine import Engine, EngineLocation
from harness.environments.provision import prepare, prepared
from harness.progress import ProgressCallback
from harness.runtimes import program
from harness.runtimes.cluster import Cluster
from harness.runtimes.storage import StorageUrl
from harness.targets.target import Target
from harness.targets.tuning import settings

_START_SECONDS = 180.0


class LocalRuntime:
    """Starts engines as child processes.

    Args:
        root: where engines get their working directories; the caller removes it.
        plain: leave Spark's defaults as they are, instead of the settings of ``tuning.yaml``.
        code_path: folder for modules that ``call`` names, None where the user did not allow code.
        cluster: where executors come from; None runs everything in the engine's own process.
        conf: Spark settings of each engine, stronger than the suite's own.
        storage: where cases have their files; None for ``root``.
    """

    name = "local"

    def __init__(
        self,
        root: Path,
        *,
        plain: bool = False,
        code_path: Path | None = None,
        cluster: Cluster | None = None,
        conf: Mapping[str, str] = MappingProxyType({}),
        storage: StorageUrl | None = None,
    ) -> None:
        self._root = root
        self._plain = plain
        self._code_path = code_path
        self._cluster = cluster
        self._conf = conf
        self._storage = storage

    def lacks(self, _case: Case, _target: Target) -> None:
        """Nothing: the driver is in the engine."""

    def fingerprint(self, target: Target) -> str | None:
        # An installed Spark may be changed where it is, by whoever built it, and nobody knows what a cluster or a storage is made of.
        nobody_knows = target.installed is not None or self._cluster is not None or self._storage is not None
        environment = None if nobody_knows else prepared(target)
        if environment is None or environment.root is None:
            return None
        made_of = [environment.root.name, environment.python_version, environment.java_version]
        return json.dumps([self.name, *made_of, {**self._tuned(target), **self._conf}])

    def start(self, target: Target, *, on_progress: ProgressCallback) -> Engine:
        if self._cluster is not None:
            self._cluster.check()
        environment = prepare(target, on_progress=on_progress)
        work = program.stage(target, self._root, "driver")
        on_progress(f"{target.name}: starting")
        told = {**self._tuned(target), **(self._cluster.settings(str(work)) if self._cluster else {}), **self._conf}
        return DriverEngine(
            program.start("driver", environment, work, told, self._cluster, storage=self._storage),
            work=str(work),
            cases=f"{self._storage}/{work.name}" if self._storage else None,
            place=EngineLocation(self.name, master=self._cluster.master if self._cluster else None),
            code_path=str(self._code_path) if self._code_path else None,
            start_timeout=_START_SECONDS,
        )

    def _tuned(self, target: Target) -> dict[str, str]:
        return {} if self._plain else settings(target.version, own_disk=self._storage is None)

    def close(self) -> None:
        """Nothing is shared between engines, and each ends with its seat."""
