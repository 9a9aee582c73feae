"""An engine with the program of a soak in it."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from conformance.core.observation import Identity
from harness.engine.engine import DriverFailed, EngineDied, EngineFailed, ProtocolBroken, StepTimedOut
from harness.engine.protocol import Hello
from harness.engine.reader import TransportReader
from harness.engine.transport import Transport, TransportClosed
from harness.environments.provision import prepare
from harness.progress import ProgressCallback
from harness.runtimes import program
from harness.runtimes.cluster import Cluster
from harness.soak.messages import ANSWERS, Answer, Done, Failed, Request
from harness.targets.target import Target

_START_SECONDS = 180.0
_SHOWN_LINES = 15


@dataclass(frozen=True)
class SoakOptions:
    """How engines of a soak are started. Spark's defaults stay as they are, but for what ``conf`` says."""

    target: Target
    root: Path
    """Where they get their working directories; the caller removes it."""
    cluster: Cluster | None = None
    """Where executors come from; None for as many threads as this machine has cores."""
    conf: Mapping[str, str] = field(default_factory=dict)
    patience: float = 600.0
    """Seconds without a word after which an engine counts as lost."""


class SoakEngine:
    """Speaks to one engine, a request at a time.

    Args:
        transport: to a program that was just started; the engine's from here on.
        patience: seconds without a word after which it counts as lost.

    Raises:
        EngineFailed: it did not introduce itself.
    """

    identity: Identity

    def __init__(self, transport: Transport, *, patience: float) -> None:
        self.ended = False
        self._transport = transport
        self._patience = patience
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = TransportReader(
            transport, take=self._lines.put, end=lambda: self._lines.put(None), log_lines=_SHOWN_LINES
        )
        self._reader.start()
        try:
            hello = self._next(_START_SECONDS)
            if not isinstance(hello, Hello):
                raise ProtocolBroken(f"the engine said {hello.kind!r} before it introduced itself")
            self.identity = hello.identity
        except BaseException:  # Ctrl-C too must not leave it running
            self.close()
            raise

    @classmethod
    def start(cls, around: SoakOptions, on_progress: ProgressCallback) -> SoakEngine:
        """Bring one up, installing what it lacks.

        Raises:
            SurroundingsFailed: this machine cannot run it, or it did not start.
        """
        if around.cluster is not None:
            around.cluster.check()
        environment = prepare(around.target, on_progress=on_progress)
        work = program.stage(around.target, around.root, "__init__.py", "driver", "soak_driver", into="harness")
        master = around.cluster.settings(str(work)) if around.cluster else {"spark.master": "local[*]"}
        transport = program.start("harness.soak_driver", environment, work, {**master, **around.conf}, around.cluster)
        return cls(transport, patience=around.patience)

    def ask(self, request: Request) -> Iterator[Answer]:
        """What the engine tells until the request is carried out.

        Raises:
            EngineDied: its process ended.
            StepTimedOut: it has not said a word for too long; it was ended.
            DriverFailed: the request cannot be carried out; the engine lives on.
            ProtocolBroken: it said what is no message; it was ended.
        """
        try:
            self._transport.write(request.model_dump_json())
        except TransportClosed:
            raise self._died() from None
        while not isinstance(answer := self._next(self._patience), Done):
            yield answer

    def kill(self) -> None:
        """End it at once, by SIGKILL to its process group; from any thread."""
        self.ended = True
        self._transport.kill()

    def close(self) -> None:
        """End it and everything it started; may be called twice."""
        self.ended = True
        self._transport.close()
        self._reader.join()

    def _next(self, patience: float) -> Answer:
        try:
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            raise self._lost(StepTimedOut(f"no word from the engine for {patience:g} s; it was ended")) from None
        if line is None:
            raise self._died()
        try:
            answer = ANSWERS.validate_json(line)
        except ValidationError as error:
            raise self._lost(ProtocolBroken(f"the engine said what is no message: {line[:200]!r} ({error})")) from None
        if isinstance(answer, Failed):
            raise DriverFailed(f"the engine failed:\n{answer.message}")
        return answer

    def _lost(self, error: EngineFailed) -> EngineFailed:
        self.close()
        return error

    def _died(self) -> EngineDied:
        self.ended = True
        ending = self._transport.ending()
        self._reader.join()  # its last words may still be on their way
        return EngineDied(f"the engine's process ended with {ending}", log="\n".join(self._reader.log))
