"""An engine of a soak in a few lines: micro-batches go on where the engine before it was killed."""

import json
import queue
import time

from harness.engine.transport import TransportClosed
from tools.soak.engine import SoakEngine

IDENTITY = {"protocol": 1, "spark": "3.5.9", "scala": "2.12", "java": "17", "python": "3.11", "os": "Linux", "apis": []}


class FakeTransport:
    """To a program that answers like that of a soak.

    Args:
        folder: what is left behind of a killed engine: the number of micro-batches that are over.
        batches: of how many the stream is.
        rows: of each.
        dies_at: the micro-batch at which it ends by itself.
        ms: how long it says a micro-batch takes.
        silent: whether it says nothing after its introduction.
        says: a line of its own in front of every answer.
        watching: the ``Watching`` that must have heard of a micro-batch before the next one runs; None for nobody.
        breaks: name of the law that a row of its answers breaks.
        fails: the traceback with which it gives up in the first micro-batch.
    """

    def __init__(
        self,
        folder,
        *,
        batches=20,
        rows=10,
        dies_at=None,
        ms=1,
        silent=False,
        says=None,
        breaks=None,
        watching=None,
        fails=None,
    ):
        self.folder, self.batches, self.rows, self.dies_at, self.ms = folder, batches, rows, dies_at, ms
        self.breaks, self.fails = breaks, fails
        self.watching = watching
        self.silent, self.says = silent, says
        self.requests = []
        self.killed = self.closed = False
        self._lines = queue.SimpleQueue()
        self._lines.put(json.dumps({"kind": "hello", "identity": IDENTITY}) + "\n")

    def _message(self, kind, **fields):
        return json.dumps({"kind": kind, "case": self.requests[-1]["case"], **fields})

    def _send(self, kind, **fields):
        self._lines.put(self._message(kind, **fields) + "\n")

    def write(self, line):
        if self.killed:
            raise TransportClosed
        request = json.loads(line)
        self.requests.append(request)
        if self.silent:
            return
        if self.says is not None:
            self._lines.put(self.says)
        if request["kind"] == "run":
            for batch in range(self.folder.get("over", 0), self.batches):
                self._lines.put(("batch", batch))
        for question in request.get("questions", ()):
            self._answer(question["name"])
        self._send("done", columns=[])

    def _answer(self, name):
        columns, rows = ["batch"], [[7]] if name == self.breaks else []
        if name == "totals":
            columns, rows = ["arrived", "counted", "late", "in_state"], [[200, 190, 9, 1]]
        elif name.endswith(", looked"):
            rows = [[5]]
        self._send("rows", name=name, columns=columns, rows=rows)

    def answers(self):
        while not self.killed and not self.closed:
            try:
                line = self._lines.get(timeout=0.05)
            except queue.Empty:
                continue
            if isinstance(line, tuple):
                batch = line[1]
                if batch == self.dies_at:
                    return
                if self.fails is not None:
                    yield self._message("failed", message=self.fails, reason="driver-error")
                    return
                yield self._message("emitted", batch=batch)
                time.sleep(0.02)
                if self.killed:
                    return
                self.folder["over"] = batch + 1
                yield self._message("progressed", batch=batch, rows=self.rows, watermark=1000 * batch, ms=self.ms)
                self._wait_until_heard(batch)
            else:
                yield line

    def _wait_until_heard(self, batch):
        while self.watching is not None and not (self.killed or self.closed) and not self.watching.heard(batch):
            time.sleep(0.001)

    def log(self):
        yield "java.lang.OutOfMemoryError: Java heap space\n"

    def ending(self):
        return "signal SIGKILL" if self.killed else "exit code 70"

    def kill(self):
        self.killed = True

    def close(self):
        self.closed = True


class FakeEngines:
    """Starts engines one after another, and keeps their transports."""

    def __init__(self, **kind):
        self.folder, self.kind, self.transports, self.watching = {}, kind, [], None

    def start(self):
        self.transports.append(FakeTransport(self.folder, watching=self.watching, **self.kind))
        return SoakEngine(self.transports[-1], patience=60)


class Watching:
    """Keeps what it is told."""

    def __init__(self):
        self.lines, self.rows = [], []

    def __call__(self, line, /):
        self.lines.append(line)

    def progressed(self, rows, a_second, watermark, kills):
        self.rows.append((rows, kills))

    def heard(self, batch):
        """Whether as many micro-batches were reported as there are up to this one."""
        return len(self.rows) > batch
