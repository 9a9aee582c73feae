"""Runs a stream through one query on one engine after another: each but the last is killed, and the next resumes from the checkpoint."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from conformance.core.wording import secrets_of, without_secrets
from harness.engine.driver_engine import DriverConnection
from harness.engine.engine import EngineDied, EngineFailed, EngineKilled
from harness.engine.protocol import Done, DriverAnswer, Emitted, Failed, Hello, Message
from harness.engine.transport import Transport
from harness.environments.provision import prepare
from harness.progress import ProgressCallback
from harness.runtimes import program
from harness.runtimes.options import RuntimeOptions
from harness.targets.targets import Target

CODE = {"harness/driver": program.DRIVER, "soak_driver": Path(__file__).parent / "driver"}
"""What an engine can import, by its path there."""
Late: TypeAlias = Literal["own batch", "batch before"]
"""Whose watermark decides which rows are late: that of their micro-batch or of the one before (SPARK-40925)."""


class SoakStream(BaseModel):
    """What is generated, and the query over it. The same parameters always give the same stream."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: int
    """The number of rows. The last one is far ahead and closes every window but its own."""
    seed: int
    batches: int
    """The number of micro-batches; the last row has a further one to itself."""
    files: int
    """Files of each micro-batch: the number of tasks that read it, and of partitions of its state."""
    span_s: int = 600
    """How far event time advances in a micro-batch, in seconds."""
    delay_s: int = 600
    window_s: int = 300
    sensors: int = 16
    """The number of keys in each window."""


class InvariantQuery(Message):
    """A SQL query over the tables of a soak."""

    name: str
    sql: str
    most: int = 1


class _SoakRequest(Message):
    case: str
    """The name of the request, which its answers repeat."""
    folder: str
    """Holds the soak's files: an absolute path, the same on every machine that takes part."""
    stream: SoakStream


class Generate(_SoakRequest):
    case: str = "generate"
    kind: Literal["generate"] = "generate"


class RunQuery(_SoakRequest):
    """Run the query, or resume it, until everything is read."""

    case: str = "run"
    kind: Literal["run"] = "run"
    attempt: int
    """Number of this engine, from 0."""


class Ask(_SoakRequest):
    """Run SQL over the results."""

    case: str = "ask"
    kind: Literal["ask"] = "ask"
    late: Late
    questions: tuple[InvariantQuery, ...]


Request: TypeAlias = Generate | RunQuery | Ask


class Progressed(DriverAnswer):
    """A micro-batch is over."""

    kind: Literal["progressed"]
    case: str
    batch: int
    rows: int
    watermark: int | None
    """The watermark that the micro-batch ran with, in ms."""
    ms: int
    """How long the micro-batch took."""


class RowsAnswer(DriverAnswer):
    """The answer to one question."""

    kind: Literal["rows"]
    case: str
    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


_ANSWERS: TypeAdapter[Hello | DriverAnswer] = TypeAdapter(
    Annotated[Hello | Emitted | Progressed | RowsAnswer | Done | Failed, Field(discriminator="kind")]
)


class SoakEngine(DriverConnection):
    """Sends one engine a request at a time. ``patience``: seconds without new messages after which it counts as lost."""

    def __init__(self, transport: Transport, *, patience: float, redact: Callable[[str], str] = str) -> None:
        super().__init__(transport, answers=_ANSWERS, start_timeout=program.START_SECONDS, redact=redact)
        self._patience = patience
        self.identity = self.hello.identity

    @classmethod
    def start(
        cls, target: Target, root: Path, options: RuntimeOptions, patience: float, on_progress: ProgressCallback
    ) -> SoakEngine:
        """Start an engine, by default with a thread per core, below ``root``. Raises ``HarnessError`` if it does not start here."""
        if options.cluster is not None:
            options.cluster.check()
        environment = prepare(target, on_progress=on_progress)
        work = program.stage(target, root, CODE)
        master = options.cluster.settings(str(work)) if options.cluster else {"spark.master": "local[*]"}
        settings = {**master, **options.conf}
        transport = program.start(
            "soak_driver", environment, work, settings, options.cluster, variables=options.variables
        )
        urls = [options.cluster.master] if options.cluster else []
        secrets = secrets_of({**settings, **options.variables}, urls)
        return cls(transport, patience=patience, redact=without_secrets(secrets))

    def ask(self, request: Request) -> Iterator[Emitted | Progressed | RowsAnswer]:
        """The answers to a request, each once, until it is carried out.

        Raises:
            DriverFailed: the request failed; the engine keeps running.
            EngineFailed: the engine died, said nothing new for too long or broke the protocol; it was ended.
        """
        doing = f"{request.kind!r} of the soak"
        heard: set[tuple[str, int | str]] = set()
        deadline = time.monotonic() + self._patience
        with self.conversation(request.case, request) as mailbox:
            while True:
                answer = self.next_answer(mailbox, self._patience, doing, deadline=deadline)
                if not isinstance(answer, Emitted | Progressed | RowsAnswer | Done) or answer.case != request.case:
                    raise self.unexpected(answer, doing)
                if isinstance(answer, Done):
                    return
                about = answer.name if isinstance(answer, RowsAnswer) else answer.batch
                if (answer.kind, about) not in heard:
                    heard.add((answer.kind, about))
                    deadline = time.monotonic() + self._patience
                    yield answer

    def rows(self, request: Ask) -> dict[str, RowsAnswer]:
        """The answer to each question, by its name. Raises ``EngineFailed``: as `ask`, or a question has no answer."""
        answers = {answer.name: answer for answer in self.ask(request) if isinstance(answer, RowsAnswer)}
        missing = [question.name for question in request.questions if question.name not in answers]
        if missing:
            raise EngineFailed(f"the engine of the soak gave no answer to {missing[0]!r}", log=self.log_tail())
        return answers


_EARLIEST, _LATEST = 0.05, 0.9
"""Kills happen after this share of the rows; later, the query might already be over."""


@dataclass(frozen=True)
class KillMoment:
    rows: int
    """How many rows are read before, at least."""
    when: Literal["emitted", "anywhere"]
    """``emitted``: as soon as a micro-batch has passed its rows to the sink and before its commit, so that it is replayed."""
    wait: float
    """With ``anywhere``: how long after the end of a micro-batch, as a multiple of its duration."""


def kill_moments(kills: int, rows: int, seed: int) -> tuple[KillMoment, ...]:
    """Random moments in the reading of a stream, in order, from the seed; the first is before a commit, which is the riskiest."""
    chance = random.Random(seed)
    shares = sorted(chance.uniform(_EARLIEST, _LATEST) for _ in range(kills))
    return tuple(
        KillMoment(
            rows=int(share * rows),
            when="emitted" if number == 0 else chance.choice(("emitted", "anywhere")),
            wait=chance.uniform(0.0, 2.0),
        )
        for number, share in enumerate(shares)
    )


@dataclass(frozen=True)
class SoakRun:
    rows: int
    """The number of rows that the engines reported as read."""
    seconds: float
    """The time from the first start of the query to its end, including restarts."""
    kills: int
    """The number of engines killed while the query ran: fewer than requested if it ended earlier."""


class Watcher(ProgressCallback, Protocol):
    def progressed(self, rows: int, a_second: float, watermark: int | None, kills: int) -> None:
        """Take the rows read so far and per second, the watermark in ms, and the engines killed so far."""


class Soak:
    """``folder``: holds its files, at the same absolute path for every engine; ``kills``: how many engines to kill."""

    def __init__(
        self, start: Callable[[], SoakEngine], folder: str, stream: SoakStream, kills: int, watcher: Watcher
    ) -> None:
        self._start, self._folder, self._stream = start, folder, stream
        self._moments = list(kill_moments(kills, stream.rows, stream.seed))
        self._watcher = watcher
        self._rows: dict[int, int] = {}
        self._killed = 0
        self._started = 0.0

    def run(self) -> SoakRun:
        """Generate the stream and read it to its end. Raises ``HarnessError`` if an engine fails without having been killed."""
        engine = self._start()
        try:
            self._watcher(f"generating {self._stream.rows:,} rows, seed {self._stream.seed}")
            for _ in engine.ask(Generate(folder=self._folder, stream=self._stream)):
                pass
            self._started = time.monotonic()
            attempt = 0
            while not self._read_to_end(engine, attempt):
                engine.close()
                attempt += 1
                self._watcher(f"kill {self._killed}: engine {attempt + 1} resumes")
                engine = self._start()
            return SoakRun(sum(self._rows.values()), time.monotonic() - self._started, self._killed)
        finally:
            engine.close()

    def _read_to_end(self, engine: SoakEngine, attempt: int) -> bool:
        """Let an engine read on. Return False if it was killed."""
        killer = _Killer(engine, self._moments[0] if self._moments else None)
        try:
            for answer in engine.ask(RunQuery(folder=self._folder, stream=self._stream, attempt=attempt)):
                if isinstance(answer, Progressed):
                    self._rows[answer.batch] = answer.rows
                    rows = sum(self._rows.values())
                    a_second = rows / (time.monotonic() - self._started)
                    self._watcher.progressed(rows, a_second, answer.watermark, self._killed)
                if isinstance(answer, Progressed | Emitted):
                    killer.observe(answer, sum(self._rows.values()))
        except (EngineDied, EngineKilled):
            if not killer.has_killed:
                raise
            self._killed += 1
            self._moments.pop(0)
            return False
        finally:
            killer.cancel()
        return True


class _Killer:
    """Waits for a moment and kills an engine that runs the query."""

    def __init__(self, engine: SoakEngine, moment: KillMoment | None) -> None:
        self._engine = engine
        self._moment = moment
        self._timer: threading.Timer | None = None
        self.has_killed = False

    def observe(self, answer: Progressed | Emitted, rows: int) -> None:
        """Take a message about a micro-batch and the number of rows read so far."""
        moment = self._moment
        if moment is None or rows < moment.rows or self._timer is not None:
            return
        if moment.when == "emitted" and isinstance(answer, Emitted):
            self._kill()
        elif moment.when == "anywhere" and isinstance(answer, Progressed):
            self._timer = threading.Timer(moment.wait * answer.ms / 1000, self._kill)
            self._timer.start()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _kill(self) -> None:
        self.has_killed = True
        self._engine.kill()
