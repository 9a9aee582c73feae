"""An engine with the program of a soak in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformance.core.redaction import secrets_of, without_secrets
from harness.engine.driver_engine import DriverConnection
from harness.engine.protocol import AnyAnswer, Done
from harness.engine.transport import Transport
from harness.environments.provision import prepare
from harness.progress import ProgressCallback
from harness.runtimes import program
from harness.runtimes.cluster import Cluster
from harness.soak.messages import CASE, Request
from harness.targets.target import Target


@dataclass(frozen=True)
class SoakOptions:
    """How to start the engines of a soak. They keep Spark's defaults, except for ``conf``."""

    target: Target
    root: Path
    """Holds their working directories; the caller removes it."""
    cluster: Cluster | None = None
    """Provides executors; None for one thread per core of this machine."""
    conf: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    """Additional environment variables."""
    patience: float = 600.0
    """Seconds without a message after which an engine counts as lost."""


class SoakEngine:
    """Sends one engine a request at a time.

    Args:
        transport: to a program that was just started; owned by the engine from here on.
        patience: seconds without a message after which it counts as lost.
        redact: removes secrets from a text.

    Raises:
        EngineFailed: it did not introduce itself.
    """

    def __init__(self, transport: Transport, *, patience: float, redact: Callable[[str], str] = str) -> None:
        self._patience = patience
        self._connection = DriverConnection(transport, start_timeout=program.START_SECONDS, redact=redact)
        self.identity = self._connection.hello.identity

    @classmethod
    def start(cls, options: SoakOptions, on_progress: ProgressCallback) -> SoakEngine:
        """Start an engine, installing what is missing.

        Raises:
            HarnessError: this machine cannot run it, or it did not start.
        """
        if options.cluster is not None:
            options.cluster.check()
        environment = prepare(options.target, on_progress=on_progress)
        work = program.stage(options.target, options.root, "__init__.py", "driver", "soak_driver", into="harness")
        master = options.cluster.settings(str(work)) if options.cluster else {"spark.master": "local[*]"}
        settings = {**master, **options.conf}
        transport = program.start(
            "harness.soak_driver", environment, work, settings, options.cluster, variables=options.variables
        )
        urls = [options.cluster.master] if options.cluster else []
        secrets = secrets_of({**settings, **options.variables}, urls)
        return cls(transport, patience=options.patience, redact=without_secrets(secrets))

    def ask(self, request: Request) -> Iterator[AnyAnswer]:
        """The answers to a request, until it is carried out.

        Raises:
            DriverFailed: the request failed; the engine keeps running.
            EngineFailed: the engine died, was silent for too long or broke the protocol; it was ended.
        """
        doing = f"{request.kind!r} of the soak"
        with self._connection.conversation(CASE, request) as mailbox:
            while not isinstance(answer := self._connection.next_answer(mailbox, self._patience, doing), Done):
                yield answer

    def kill(self) -> None:
        """End it at once by SIGKILL; from any thread."""
        self._connection.kill()

    def close(self) -> None:
        """End it and everything it started; may be called twice."""
        self._connection.close()
