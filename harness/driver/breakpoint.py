"""Where a case kills its engine."""

from __future__ import annotations

import threading
from typing import Any


class KillPointNotReached(Exception):
    """The query has finished before the point where the process was to be killed: the case expects too many micro-batches."""


class KillPointReached(Exception):
    """This process is to be killed now.

    ``step``: the fields of ``StepSeen`` up to this point; ``missed``: whether the engine has already gone past it.
    """

    def __init__(self, step: dict[str, Any], missed: bool) -> None:
        super().__init__(step["number"])
        self.step = step
        self.missed = missed


class Breakpoint:
    """Stops a micro-batch where the process is to be killed.

    ``point``: ``planned`` (its offsets are logged, nothing of it has run), ``running`` (one partition of it has run), ``emitted``
    (its rows are out, it is not committed) or ``committed`` (it waits for ``resume``). ``nth``: which micro-batch, from 1.
    """

    def __init__(self, point: str, nth: int) -> None:
        self._point = point
        self._left = nth
        self.reached = threading.Event()
        self.resume = threading.Event()
        self.batch: int | None = None
        """The id of the micro-batch, once it has started."""

    def point_in(self, batch: int) -> str | None:
        """Where to stop this micro-batch; None for any but the ``nth``."""
        self._left -= 1
        if self._left:
            return None
        self.batch = batch
        return self._point

    def block_forever(self) -> None:
        """Never returns: this process is killed once ``reached`` is set."""
        self.reached.set()
        while True:
            threading.Event().wait()
