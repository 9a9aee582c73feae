"""Starts a program of ours in an engine's environment: a child process that sees only its own modules and pyspark."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from conformance.core.errors import cause
from conformance.core.wording import is_secret
from harness.engine.transport import SubprocessTransport
from harness.environments.environment import Environment
from harness.errors import HarnessError
from harness.runtimes.cluster import Cluster, StorageUrl
from harness.targets.targets import Target

DRIVER = Path(__file__).parents[1] / "driver"
"""Of a package that a project has of the same name, `files("harness")` would be that."""
START_SECONDS = 180.0
"""How long an engine may take to introduce itself."""


def stage(target: Target, root: Path, folders: Mapping[str, Path] = MappingProxyType({"driver": DRIVER})) -> Path:
    """Make and return a directory for an engine below ``root``, with folders of code in its ``engine``: no other code is importable.

    Raises HarnessError: it cannot be written.

    ``folders``: by their paths there; by default the driver.
    """
    try:
        work = Path(tempfile.mkdtemp(prefix=f"{target.key}-", dir=root))
        for path, folder in folders.items():
            shutil.copytree(folder, work / "engine" / path, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise HarnessError(f"cannot write {root}: {cause(error)}") from error
    return work


def start(
    module: str,
    environment: Environment,
    work: Path,
    settings: Mapping[str, str],
    cluster: Cluster | None,
    *,
    storage: StorageUrl | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> SubprocessTransport:
    """Start ``python -m MODULE WORK KEY=VALUE …``, a staged module; the storage and settings that are secrets go into variables.

    Args:
        work: the engine's directory, and its working directory.
        storage: holds the files of cases; None for ``work``.
        variables: additional environment variables; use them for secrets, because every user of the machine can read arguments.
    """
    environ = environment.environ(elsewhere=cluster is not None and not cluster.on_this_machine)
    # `environ` has a PYTHONPATH only if the installed Spark is found through it.
    temporary = work / "tmp"
    temporary.mkdir(exist_ok=True)
    # In addition to the user's `spark.driver.extraJavaOptions`, which come after it.
    options = f'{environ.get("SPARK_SUBMIT_OPTS", "")} "-Djava.io.tmpdir={temporary}"'
    path = os.pathsep.join(filter(None, [str(work / "engine"), environ.get("PYTHONPATH")]))
    hidden = {key: value for key, value in settings.items() if is_secret(key, value)}
    assignments = (f"{key}={value}" for key, value in settings.items() if key not in hidden)
    secrets = {"CONFORMANCE_SETTINGS": json.dumps(hidden)} if hidden else {}
    if storage is not None:
        secrets["CONFORMANCE_STORAGE"] = str(storage)
    return SubprocessTransport(
        [str(environment.python), "-m", module, str(work), *assignments],
        cwd=work,
        env={
            **environ,
            "PYTHONPATH": path,
            "TMPDIR": str(temporary),
            "SPARK_SUBMIT_OPTS": options,
            **secrets,
            **variables,
        },
    )
