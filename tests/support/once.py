"""What takes long to make: made by the first of pytest-xdist's workers that needs it, and used by all."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder that one call of ``make`` has filled. Where a call fails, the next worker makes it from nothing.

    Args:
        factory: of this worker.
        name: of the folder, below that of the whole run of tests.
        make: fills an empty folder, which no test changes afterwards.
    """
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    made = folder.with_suffix(".made")
    with FileLock(folder.with_suffix(".lock")):
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            made.touch()
    return folder
