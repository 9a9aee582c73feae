"""Whose code a thread runs: a thread that code of the author's starts is theirs, too, and what it does belongs to the same run."""

from __future__ import annotations

import functools
import mmap
import sys
import threading
import time
import traceback
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

_LIBRARIES = ("py4j", "grpc")
"""Packages whose threads serve everybody, whoever starts them."""
_LONGEST, _IDLE = 10.0, 1.0
"""Seconds to wait for threads at most, and after which a thread that stands still is taken to wait itself."""


class CodeRun:
    """What the code of a case does beside its thread. ``place``: names the author's line that calls."""

    def __init__(self, place: Callable[[], Optional[str]]) -> None:
        self._refused = mmap.mmap(-1, 1 << 16)
        self.place = place
        self.threads: List[threading.Thread] = []
        _known.add(self)

    @property
    def refused(self) -> List[str]:
        """The lines that were about to start a query, and were refused, also in processes that the code has forked."""
        return self._refused[:].rstrip(b"\0").decode().splitlines()

    def refuse(self) -> None:
        line = (self.place() or "a line that is not known").encode() + b"\n"
        if line not in self._refused[:]:
            at = self._refused.find(b"\0")
            self._refused[at : at + len(line)] = line

    def settle(self) -> None:
        """Wait for its threads, as a process does at its end, but not for those that wait themselves, such as idle workers of a pool."""
        since: Dict[threading.Thread, Tuple[Any, float]] = {}
        began = time.monotonic()
        while time.monotonic() < began + _LONGEST and any(_is_busy(thread, since) for thread in self.threads):
            time.sleep(0.01)
        self.threads.clear()


def _is_busy(thread: threading.Thread, since: Dict[threading.Thread, Tuple[Any, float]]) -> bool:
    """Whether a thread runs, or waits for Spark. ``since``: where each thread stood last, and from when on."""
    frame, now = sys._current_frames().get(thread.ident or 0), time.monotonic()
    if frame is None or not thread.is_alive():
        return False
    stands = id(frame), frame.f_lasti
    if thread not in since or since[thread][0] != stands:
        since[thread] = stands, now
    return now < since[thread][1] + _IDLE or _calls_spark(frame)


def _calls_spark(frame: Any) -> bool:
    names = (caller.f_globals.get("__name__", "") for caller, _ in traceback.walk_stack(frame))
    return any(name.partition(".")[0] in _LIBRARIES for name in names)


class _OfThread(threading.local):
    """What a thread inherits from the thread that starts it."""

    code: Optional[CodeRun] = None
    """The author's code that it runs; None for a thread of the harness."""
    program: Any = None
    """The run of a program to which that code belongs."""
    session: Any = None
    """The session of the case that it runs."""


of_thread = _OfThread()


class SessionOfThread:
    """What pyspark keeps as the only session of its process: for each thread that of its case, else the first.

    When a Python function is made, pyspark asks it how the function gets its values (``spark.sql.execution.pythonUDF.arrow.enabled``).
    """

    def __init__(self, first: Any) -> None:
        self._first = first

    def __getattr__(self, name: str) -> Any:
        return getattr(of_thread.session or self._first, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """That of a session, as code which asks pyspark for the session gets this."""
        return type(self._first)


_known: weakref.WeakSet[CodeRun] = weakref.WeakSet()


def refuse() -> None:
    """Note that a query was about to start in this thread. One that ``threading`` has not started may be of any code."""
    for code in filter(None, (of_thread.code,) if "code" in vars(of_thread) else _known):
        code.refuse()


@contextmanager
def belonging_to(**values: Any) -> Iterator[None]:
    """Let this thread, and those that it starts in the block, have these values of ``of_thread``."""
    before = {name: getattr(of_thread, name) for name in values}
    vars(of_thread).update(values)
    try:
        yield
    finally:
        vars(of_thread).update(before)


def inherit() -> None:
    """From here on, let every thread of this process inherit ``of_thread``."""
    start = threading.Thread.start
    if getattr(start, "_inherits", False):
        return

    @functools.wraps(start)
    def inheriting(thread: threading.Thread) -> None:
        inherited, runs = dict(vars(of_thread)), thread.run
        code = inherited.get("code")
        if code is not None and not _is_of_a_library(thread):

            def run() -> None:
                vars(of_thread).update(inherited)
                runs()

            thread.run = run  # type: ignore[method-assign]
            code.threads.append(thread)
        start(thread)

    inheriting._inherits = True  # type: ignore[attr-defined]
    threading.Thread.start = inheriting  # type: ignore[assignment, method-assign]


def _is_of_a_library(thread: threading.Thread) -> bool:
    owner = getattr(thread, "_target", None) or type(thread)
    return str(getattr(owner, "__module__", "")).partition(".")[0] in _LIBRARIES
