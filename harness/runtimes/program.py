"""A program of ours inside the environment of an engine: a child process that sees its own modules and pyspark."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from types import MappingProxyType

from harness.engine.subprocess_transport import SubprocessTransport
from harness.environments.environment import Environment
from harness.runtimes.cluster import Cluster
from harness.runtimes.storage import StorageUrl
from harness.targets.target import Target


def stage(target: Target, root: Path, *rooms: str, into: str = "") -> Path:
    """Make a directory for an engine, with rooms of the harness in its ``engine``, alone: nothing else of the host's is importable there.

    Args:
        target: of the engine.
        root: where engines have their directories.
        rooms: files or folders of ``harness``.
        into: the package they are in there.

    Returns:
        The engine's directory.
    """
    work = Path(tempfile.mkdtemp(prefix=f"{target.key}-", dir=root))
    for room in rooms:
        with as_file(files("harness") / room) as source:
            copy = work / "engine" / into / room
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy)
    return work


def start(
    module: str,
    environment: Environment,
    work: Path,
    settings: Mapping[str, str],
    cluster: Cluster | None,
    *,
    storage: StorageUrl | None = None,
    also: Mapping[str, str] = MappingProxyType({}),
) -> SubprocessTransport:
    """Start ``python -m MODULE [--storage URL] WORK KEY=VALUE …``.

    Args:
        module: a module that was staged.
        environment: of the engine.
        work: the engine's directory, where it runs.
        settings: of Spark.
        cluster: where executors come from; None for the process itself.
        storage: where cases have their files; None for ``work``.
        also: variables of its own; arguments are for everybody on the machine to see.
    """
    environ = environment.environ(elsewhere=cluster is not None and not cluster.on_this_machine)
    # An installed Spark may be found through the user's own PYTHONPATH; `environ` has already dropped a foreign one.
    path = os.pathsep.join(filter(None, [str(work / "engine"), environ.get("PYTHONPATH")]))
    where = ["--storage", str(storage)] if storage else []
    return SubprocessTransport(
        [
            str(environment.python),
            "-m",
            module,
            *where,
            str(work),
            *(f"{key}={value}" for key, value in settings.items()),
        ],
        cwd=work,
        env={**environ, "PYTHONPATH": path, **also},
    )
