"""What ends a command early: an error that the user causes, or a signal."""

from __future__ import annotations

import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer, main_thread
from typing import Any, ClassVar

_STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))


def cause(error: OSError) -> str:
    """What the operating system says: ``No space left on device``; of many files, which shutil lists, of the first."""
    listed = re.search(r"\[Errno \d+\] ([^:]+)", str(error)) if isinstance(error, shutil.Error) else None
    return listed[1] if listed else error.strerror or str(error)


_waited_for: set[Callable[[], object]] = set()


@contextmanager
def ended_by_stop(end: Callable[[], object]) -> Iterator[None]:
    """Wait for a program, an engine or another process in a thread that no signal reaches; ``end`` makes the wait end, from any thread."""
    _waited_for.add(end)
    try:
        yield
    finally:
        _waited_for.discard(end)


def end_waits() -> None:
    """End all that threads wait for now."""
    for end in tuple(_waited_for):
        end()


class WrongUsage(ValueError):
    """Options, names or files that the user gave are wrong; a command ends with exit code 2."""

    exit_code: ClassVar[int] = 2


@contextmanager
def on_stop(handler: Callable[..., Any] = signal.default_int_handler) -> Iterator[None]:
    """Handle Ctrl-C, SIGTERM, SIGHUP (the terminal is gone) and SIGQUIT alike, by default with a `KeyboardInterrupt`.

    A signal that is ignored, as SIGHUP under ``nohup``, stays ignored. A `KeyboardInterrupt` that a library's C code swallows, because it
    comes in a callback, comes again."""
    handled = [number for number in _STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in handled}
    report = sys.unraisablehook
    repeated: list[Timer] = []

    def again(swallowed: sys.UnraisableHookArgs) -> None:
        if handled and issubclass(swallowed.exc_type, KeyboardInterrupt):
            # Not at once: what is raised in here is swallowed too.
            repeated.append(Timer(0.01, signal.pthread_kill, [main_thread().ident, handled[0]]))
            try:
                repeated[-1].start()
            except KeyboardInterrupt:  # on a busy machine it comes while the timer is still being started
                again(swallowed)
        else:
            report(swallowed)

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = report
        for timer in repeated:
            timer.cancel()  # it would end this process by the signal
        for number, earlier in before.items():
            signal.signal(number, earlier)
