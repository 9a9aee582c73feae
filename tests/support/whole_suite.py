"""The built-in suite, read once for all tests of a process; its values are frozen. What tests the reading reads it itself."""

import os
import pickle
from functools import cache
from pathlib import Path

from filelock import FileLock

from conformance.suite.discovery import Suite, load, shipped


@cache
def whole_suite() -> Suite:
    """What ``discovery.load()`` gives: one worker of pytest-xdist reads the files, and the others what that one has kept."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return load()
    kept = Path(os.environ["SHARED_BY_WORKERS"], f"{str(shipped()).replace(os.sep, '-')}.pickle")
    with FileLock(f"{kept}.lock"):
        if kept.exists():
            suite = pickle.loads(kept.read_bytes())
            assert isinstance(suite, Suite)
            return suite
        kept.write_bytes(pickle.dumps(suite := load()))
        return suite
