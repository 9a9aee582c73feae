"""Run a function in a process of its own that gets little memory and little of the processor."""

import multiprocessing
import resource
import signal
from collections.abc import Callable
from pathlib import Path

OUT_OF_MEMORY = 3
LIMITED = Path("/proc/self/statm").exists()
"""Whether the system says how much memory is taken."""


def what_was_exceeded(call: Callable[..., object], *arguments: object, memory: int, seconds: int) -> str | None:
    """None if the call ends by itself; what it raises counts as ``failed``, but for a `MemoryError`.

    Args:
        memory: bytes beyond what this process has taken.
        seconds: of the processor.
    """

    def limited() -> None:
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + memory, taken + memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        try:
            call(*arguments)
        except MemoryError:
            raise SystemExit(OUT_OF_MEMORY) from None

    process = multiprocessing.get_context("fork").Process(target=limited)
    process.start()
    process.join()
    exceeded = {0: None, OUT_OF_MEMORY: "memory", -signal.SIGXCPU: "time", -signal.SIGKILL: "time"}
    return exceeded.get(process.exitcode or 0, "failed")
