"""The ``local`` runtime: each target in an environment of its own on this machine, no containers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

from harness.engine import Engine
from harness.pipe import PipeEngine
from harness.provision import prepare
from harness.say import Say
from harness.target import Target
from harness.tuning import settings

_START_SECONDS = 180.0


class LocalRuntime:
    """Starts engines as child processes.

    Args:
        root: where engines get their working directories; the caller removes it.
        plain: leave Spark's defaults as they are, instead of the settings of ``tuning.yaml``.
    """

    name = "local"

    def __init__(self, root: Path, *, plain: bool = False) -> None:
        self._root = root
        self._plain = plain

    def start(self, target: Target, *, say: Say) -> Engine:
        environment = prepare(target, say=say)
        work = Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=self._root))
        stage_driver(work)
        say(f"{target.name}: starting")
        tuned = {} if self._plain else settings(target.version)
        environ = environment.environ()
        # An installed Spark may be found through the user's own PYTHONPATH; `environ` has already dropped a foreign one.
        path = os.pathsep.join(filter(None, [str(work / "engine"), environ.get("PYTHONPATH")]))
        process = subprocess.Popen(
            [str(environment.python), "-m", "driver", str(work), *(f"{key}={value}" for key, value in tuned.items())],
            cwd=work,
            env={**environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        return PipeEngine(process, work, start_timeout=_START_SECONDS)


def stage_driver(work: Path) -> None:
    """Copy the driver to ``work/engine``, alone: nothing else of the host's is importable inside the engine."""
    with as_file(files("harness") / "driver") as source:
        shutil.copytree(source, work / "engine" / "driver", ignore=shutil.ignore_patterns("__pycache__"))
