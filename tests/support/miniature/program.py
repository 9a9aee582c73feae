"""``conformance`` as users start it, a process of its own, with miniature engines: no JVM.

``python -m tests.support.miniature.program SETTINGS ARGUMENTS…``; SETTINGS is JSON: ``modes``, the mode of the engines of each target,
``clock``, a seed if the wall clock is to jump, and ``largest_file``, the bytes at which a file is full; each may be null.
"""

from __future__ import annotations

import datetime
import json
import random
import resource
import signal
import sys
import time
from importlib import import_module

DAY = 86_400.0
_JUMPS = (-400 * DAY, -3600.0, -1.0, 0.0, 0.0, 1.0, 3600.0, 30 * DAY, 400 * DAY)
"""Seconds by which the clock is off; 400 days are more than any answer of an engine is kept."""
_DATED = ("conformance.runner.cases", "conformance.runner.upgrade", "reports.results.writing")
"""The modules that write dates into results."""


def let_the_clock_jump(seed: int) -> None:
    """Each time the wall clock is read it may be off by another jump."""
    now, draw = time.time, random.Random(seed)

    class Jumping(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.datetime.fromtimestamp(time.time(), tz)

    time.time = lambda: now() + draw.choice(_JUMPS)
    for module in _DATED:
        import_module(module).datetime = Jumping


def miniatures(modes: dict[str, str]) -> type:
    """A runtime whose engines of another mode are other engines: an answer of one is never an answer of another."""
    from tests.support.miniature.two_versions import TwoVersions

    class Miniatures(TwoVersions):
        def __init__(self, options, root, *, keep=False):
            super().__init__(root, modes, reusable=True)

        def fingerprint(self, target):
            return f"miniature {target.name} {modes[target.name]}"

    return Miniatures


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as the console script begins
    sys.dont_write_bytecode = True  # a compiled module on a full disk would be cut off
    settings = json.loads(sys.argv.pop(1))
    if (largest := settings["largest_file"]) is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    if settings["clock"] is not None:
        let_the_clock_jump(settings["clock"])
    commands = import_module("conformance.cli.commands")
    load = commands.load

    def with_miniatures(name):
        """Where the program handles signals already."""
        command = load(name)
        if name in ("run", "upgrade"):
            import_module("conformance.runner.resources").runtime_for = miniatures(settings["modes"])
        return command

    commands.load = with_miniatures
    import_module("conformance.cli.main").main()


if __name__ == "__main__":
    main()
