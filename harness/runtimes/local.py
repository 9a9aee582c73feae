"""The ``local`` runtime: each target in its own environment on this machine, without containers."""

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
from harness.targets.tuning import tuning


class LocalRuntime:
    """Starts engines as child processes.

    Args:
        root: holds the working directories of engines; the caller removes it.
        plain: keep Spark's defaults instead of the settings of ``tuning.yaml``.
        code_path: directory of the modules that ``call`` names; None if the user did not allow code.
        cluster: provides executors; None runs everything in the engine's own process.
        conf: Spark settings of each engine; they override the suite's own.
        storage: holds the files of cases; None for ``root``.
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

    def unsupported(self, _case: Case, _target: Target) -> None:
        """Nothing: the driver runs inside the engine."""

    def fingerprint(self, target: Target) -> str | None:
        # Users change an installed Spark in place, and the build of a cluster or a storage is unknown.
        unknown = target.installed is not None or self._cluster is not None or self._storage is not None
        environment = None if unknown else prepared(target)
        if environment is None or environment.root is None:
            return None
        build = [environment.root.name, environment.python_version, environment.java_version]
        return json.dumps([self.name, *build, {**self._tuning(target), **self._conf}])

    def start(self, target: Target, *, on_progress: ProgressCallback) -> Engine:
        if self._cluster is not None:
            self._cluster.check()
        environment = prepare(target, on_progress=on_progress)
        work = program.stage(target, self._root, "driver")
        on_progress(f"{target.name}: starting")
        cluster = self._cluster.settings(str(work)) if self._cluster else {}
        settings = {**self._tuning(target), **cluster, **self._conf}
        return DriverEngine(
            program.start("driver", environment, work, settings, self._cluster, storage=self._storage),
            work=str(work),
            cases=f"{self._storage}/{work.name}" if self._storage else None,
            place=EngineLocation(self.name, master=self._cluster.master if self._cluster else None),
            code_path=str(self._code_path) if self._code_path else None,
            start_timeout=program.START_SECONDS,
        )

    def _tuning(self, target: Target) -> dict[str, str]:
        return {} if self._plain else tuning(target.version, own_disk=self._storage is None)

    def close(self) -> None:
        """Nothing: engines share nothing, and each is closed by its user."""
