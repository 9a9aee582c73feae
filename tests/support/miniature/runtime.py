"""A runtime whose engines are miniatures: real processes, no JVM; or threads of this process, which go wrong where they are told to."""

import json
import queue
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from harness.engine.driver_engine import DriverEngine
from harness.engine.engine import NOTHING_ELSE, EngineLocation
from harness.engine.transport import SubprocessTransport, TransportClosed
from tests.support.miniature.engine import IDENTITY, run

PROGRAM = Path(__file__).with_name("engine.py")

FaultKind = Literal["stops", "stalls", "answers twice", "loses its context", "talks nonsense"]
KINDS = get_args(FaultKind)


class Fault(NamedTuple):
    """What goes wrong in an engine while a case runs there, and after how many messages about it: 4 is after its end."""

    kind: FaultKind
    after: int


class _Over(Exception):
    """The engine has ended."""


class FaultyTransport:
    """To a miniature in threads of this process, one for each request. Each attempt at a case takes the next of its faults."""

    def __init__(self, faults: Mapping[str, list[Fault]]) -> None:
        self._faults = faults
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._over = threading.Event()
        self._lost = False
        self._late: list[str] = []
        """What comes before the next line, whatever case that is about."""
        self._say(json.dumps({"kind": "hello", "identity": IDENTITY}))

    def write(self, line):
        if self._over.is_set():
            raise TransportClosed
        threading.Thread(target=self._answer, args=(json.loads(line),), daemon=True).start()

    def _answer(self, request):
        waiting = self._faults.get(request["case"])
        fault = waiting.pop(0) if waiting else None
        said: list[str] = []

        def say(line):
            if fault is not None and len(said) == fault.after:
                self._go_wrong(fault.kind, line)
            self._say(line)
            said.append(line)

        with suppress(_Over, OSError):  # the test may be over, and its folders gone
            run(request, "right", say)
            if fault is not None and len(said) == fault.after:
                self._go_wrong(fault.kind, said[-1])

    def _go_wrong(self, kind, line):
        match kind:
            case "stops":
                self.kill()
            case "stalls":
                self._over.wait()
            case "answers twice":
                self._late.append(line)
            case "loses its context":
                self._lost = True  # which the engine notices when it is to answer next
            case "talks nonsense":
                self._late.append("this is no message")

    def _say(self, line):
        if self._over.is_set():
            raise _Over
        if self._lost:
            line = json.dumps({"kind": "failed", "reason": "engine-lost", "message": "the SparkContext was stopped"})
        while self._late:
            self._lines.put(self._late.pop())
        self._lines.put(line)
        if self._lost:
            self.kill()
            raise _Over

    def answers(self):
        yield from iter(self._lines.get, None)

    def log(self):
        self._over.wait()
        return iter(())

    def ending(self):
        return "exit code 137"

    def kill(self):
        self._over.set()
        self._lines.put(None)

    close = kill


class MiniatureRuntime:
    name = "miniature"

    def __init__(
        self,
        root: Path,
        mode: str = "right",
        *,
        only_first: bool = False,
        fingerprint: str | None = None,
        faults: Mapping[str, list[Fault]] | None = None,
    ) -> None:
        self._root = root
        self._mode = mode
        self._only_first = only_first
        self._fingerprint = fingerprint
        self._faults = faults
        self.started = 0

    def unsupported(self, case, target):
        return None

    def fingerprint(self, target):
        return self._fingerprint

    def start(self, target, *, on_progress, needs=NOTHING_ELSE):
        self.started += 1
        mode = "right" if self._only_first and self.started > 1 else self._mode
        on_progress(f"{target.name}: starting")
        command = [sys.executable, str(PROGRAM), mode]
        transport = SubprocessTransport(command) if self._faults is None else FaultyTransport(self._faults)
        work = tempfile.mkdtemp(dir=self._root)
        return DriverEngine(transport, work=work, place=EngineLocation(self.name), start_timeout=60)

    def close(self):
        pass
