"""An engine with a driver in it: its lines, which case each message is about, and what a case makes of them."""

import queue
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from conformance.core.data import Json
from conformance.core.errors import ended_by_stop
from conformance.core.observation import Interrupted, Observation, StepSeen
from harness.driver import PROTOCOL
from harness.driver.errors import FailureReason
from harness.engine import protocol
from harness.engine.engine import (
    DriverFailed,
    EngineDied,
    EngineFailed,
    EngineKilled,
    EngineLocation,
    EngineNotStarted,
    EngineSilent,
    ExecutorsLost,
    KillMissed,
    TooBusy,
)
from harness.engine.transport import Transport, TransportClosed
from harness.errors import HarnessError

_DELIMITERS = re.compile(r"""([\s"'(\[{,=])""")
_LIBRARIES = re.compile(r"/lib/(?=python3\.\d+/)")


def redact_paths(step: StepSeen, names: Mapping[str, str]) -> StepSeen:
    """Replace directories in a step's error and plan.

    ``names``: absolute directory → its replacement, ``{"/tmp/x/cases/7-a": "<case>"}``; a nested directory before its parent. Paths of
    modules of Python then begin with ``python3.11/``.
    """

    def redacted(text: str) -> str:
        for directory, name in names.items():
            text = text.replace(directory, name)
        # One pattern for the whole path would take quadratic time on hostile text.
        return "".join(_LIBRARIES.split(word)[-1] for word in _DELIMITERS.split(text))

    error = step.error and step.error.model_copy(update={"message": redacted(step.error.message)})
    return step.model_copy(update={"error": error, "plan": step.plan and redacted(step.plan)})


def without_folders(step: StepSeen, directory: str) -> StepSeen:
    """Replace the directory of the case by ``<case>`` in rows, which have paths by ``input_file_name`` or ``_metadata``.

    A row in state may have the directory that the case had in another engine of the run.
    """
    engines, _, folder = directory.rpartition("/cases/")
    run, name = engines.rpartition("/")[0], folder.partition("-")[2]
    any_engine = re.compile(rf"{re.escape(run)}/[^/]+/cases/\d+-{re.escape(name)}(?![^/])")

    def of(value: Json) -> Json:
        if isinstance(value, str):
            return any_engine.sub("<case>", value) if run in value else value
        if isinstance(value, Mapping):
            return {key: of(item) for key, item in value.items()}
        return type(value)(map(of, value)) if isinstance(value, list | tuple) else value

    batches = tuple(batch.model_copy(update={"rows": of(batch.rows)}) for batch in step.batches)
    return step.model_copy(update={"batches": batches})


Delivery: TypeAlias = protocol.Hello | protocol.DriverAnswer | str | None
"""A message, the beginning of a line that is not a message with the reason, or None once the driver has closed its output."""
OnlyAnswer = TypeVar("OnlyAnswer", protocol.ProgramSeen, protocol.StateSeen)
"""The answer to a request that has no other."""
Mailbox: TypeAlias = "queue.SimpleQueue[Delivery]"
"""Receives the messages for one listener."""


class Dispatcher:
    """Takes the driver's lines from one thread and puts them into the mailboxes of others.

    A line that belongs to no listener goes to all of them: one that is not a message, names no case, or names a case without a listener.
    The end of the stream also goes to every later listener.
    """

    def __init__(self, answers: TypeAdapter[protocol.Hello | protocol.DriverAnswer] = protocol.ANSWERS) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._mailboxes: dict[str | None, Mailbox] = {}
        self._ended = False

    @contextmanager
    def listening(self, case: str | None) -> Iterator[Mailbox]:
        """A mailbox for messages about a run of a case, or, for None, those before any case."""
        mailbox: Mailbox = queue.SimpleQueue()
        with self._lock:
            self._mailboxes[case] = mailbox
            if self._ended:
                mailbox.put(None)
        try:
            yield mailbox
        finally:
            with self._lock:
                del self._mailboxes[case]

    def dispatch(self, line: str) -> None:
        try:
            message = self._answers.validate_json(line)
        except ValidationError as error:
            self._to_all(f"{line[:200]!r} ({error})")
            return
        case = None if isinstance(message, protocol.Hello) else message.case
        with self._lock:
            mailbox = self._mailboxes.get(case)
        if mailbox is not None:
            mailbox.put(message)
        else:
            self._to_all(message)

    def end(self) -> None:
        """No more lines will come."""
        with self._lock:
            self._ended = True
        self._to_all(None)

    def _to_all(self, delivery: Delivery) -> None:
        with self._lock:
            for mailbox in self._mailboxes.values():
                mailbox.put(delivery)


_FRAME = re.compile(r"\s+(?:at .*\(|\.\.\. \d+ more)")
"""A line of Java's stack, of which there are hundreds after the line that tells."""
_NO_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError: [\w /-]+")
_LOG_LINES = 15
"""How many lines of the driver's log an error shows."""
_CLOSING_SECONDS = 10.0
_VMSTAT = Path("/proc/vmstat")


def _killed_for_memory() -> int:
    """How many processes Linux has killed for lack of memory, of the machine or of a group with a limit; 0 where it does not say."""
    with suppress(OSError):
        if counts := re.search(r"^oom_kill (\d+)$", _VMSTAT.read_text(), re.MULTILINE):
            return int(counts[1])
    return 0


class DriverConnection:
    """Speaks the driver protocol over a transport to a driver that was just started, which the connection owns from here on.

    Args:
        start_timeout: seconds until the driver must have introduced itself.
        master: what runs the driver's queries, for error messages.
        redact: removes secrets from a text.

    Raises:
        EngineFailed: the driver did not introduce itself, or speaks another version of the protocol.
    """

    hello: protocol.Hello

    def __init__(
        self,
        transport: Transport,
        *,
        start_timeout: float,
        answers: TypeAdapter[protocol.Hello | protocol.DriverAnswer] = protocol.ANSWERS,
        master: str = "the engine's JVM",
        redact: Callable[[str], str] = str,
    ) -> None:
        self.ended = False
        self.transport = transport
        self._master = master
        self._redact = redact
        self._killed_before = _killed_for_memory()
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._no_memory: re.Match[str] | None = None
        self._dispatcher = Dispatcher(answers)
        self._writing = threading.Lock()
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_answers, self._read_log)]
        try:
            self.hello = self._introduction(start_timeout)
        except BaseException:  # on Ctrl-C too, so that the driver does not keep running
            self.close()
            raise

    @contextmanager
    def conversation(self, case: str, request: protocol.Message) -> Iterator[Mailbox]:
        """Send a request; the mailbox receives its answers. After an error other than ``DriverFailed`` the driver is ended."""
        try:
            with self._dispatcher.listening(case) as mailbox:
                self._send(request)
                yield mailbox
        except EngineFailed as error:
            if not isinstance(error, DriverFailed):
                self.close()
            raise

    def next_answer(
        self, mailbox: Mailbox, timeout: float, doing: str, *, deadline: float | None = None
    ) -> protocol.Hello | protocol.DriverAnswer:
        """The next answer, unless it is ``Failed``; else raises ``EngineFailed``.

        ``deadline``: when to stop waiting, on the monotonic clock, in seconds; by default ``timeout`` from now. Several answers share
        it, so that a driver that sends one after another does not run for ever.
        """
        try:
            left = timeout if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise queue.Empty
            delivered = mailbox.get(timeout=left)
        except queue.Empty:
            silent = f"no answer within {timeout:g} s at {doing}; the engine was ended"
            raise EngineSilent(silent, log=self.log_tail()) from None
        match delivered:
            case None:
                raise self._died(f"the engine's process ended with {self.transport.ending()} at {doing}")
            case str(malformed):
                raise EngineFailed(f"the driver wrote a line at {doing} that is not a message: {malformed}")
            case protocol.Failed() as failed:
                raise self._error(failed, doing)
            case _:
                return delivered

    def unexpected(self, answer: protocol.Hello | protocol.DriverAnswer, doing: str) -> EngineFailed:
        """The error for an answer that does not belong here."""
        return EngineFailed(f"the driver sent an unexpected {answer.kind!r} at {doing}", log=self.log_tail())

    def kill(self) -> None:
        """End the driver at once by SIGKILL; from any thread."""
        self.ended = True
        self.transport.kill()

    def close(self) -> None:
        self.ended = True
        self.transport.close()
        self._join()

    def log_tail(self) -> str:
        """The end of what the driver wrote to standard error."""
        time.sleep(0.1)  # the last lines may still be in the pipe
        return "\n".join(list(self._log))

    def _introduction(self, timeout: float) -> protocol.Hello:
        with self._dispatcher.listening(None) as mailbox:
            # Not earlier: a message without a mailbox is lost.
            for thread in self._readers:
                thread.start()
            with ended_by_stop(self.transport.kill):
                answer = self.next_answer(mailbox, timeout, "startup")
        if not isinstance(answer, protocol.Hello):
            raise self.unexpected(answer, "startup")
        if (version := answer.identity.protocol) != PROTOCOL:
            raise EngineFailed(f"the driver speaks version {version} of the protocol, this harness speaks {PROTOCOL}")
        return answer

    def _error(self, failed: protocol.Failed, doing: str) -> EngineFailed:
        if doing == "startup":
            ending = self.transport.ending()
            why = EngineNotStarted(failed.reason, failed.message, ending, log=self.log_tail())
            return self._died(f"the engine did not start and ended with {ending}", why)
        if failed.reason in (FailureReason.NO_EXECUTORS, FailureReason.NO_BROKER):
            return EngineDied(f"{failed.message}, at {doing}")
        if failed.reason is FailureReason.ENGINE_LOST:
            return self._died(f"{self._master} stopped answering at {doing}: {failed.message}")
        if failed.reason in (FailureReason.MACHINE_OVERLOADED, FailureReason.EXECUTORS_LOST):
            return TooBusy(f"the driver failed at {doing}: {failed.message}")
        return DriverFailed(f"the driver failed at {doing}: {failed.message}")

    def _died(self, what: str, why: EngineFailed | None = None) -> EngineFailed:
        if _killed_for_memory() > self._killed_before:
            return EngineKilled(f"{what}; meanwhile the kernel killed a process of this machine for lack of memory")
        if lacking := self._no_memory or _NO_MEMORY.search(what):
            what = f"{what.partition(': ')[0]}: {self._master} has too little memory ({lacking[0]})"
            return EngineKilled(f"{what}; give it more, as by --conf spark.driver.memory=4g")
        return why or EngineDied(what, log=self.log_tail())

    def _send(self, request: protocol.Message) -> None:
        try:
            with self._writing:
                self.transport.write(request.model_dump_json(by_alias=True, exclude_none=True))
        except TransportClosed as error:
            self._join()
            raise self._died(f"the engine's process had already ended with {self.transport.ending()}") from error

    def _join(self) -> None:
        for thread in self._readers:
            if thread.ident is not None:  # it was started
                thread.join(_CLOSING_SECONDS)

    def _read_answers(self) -> None:
        for line in self.transport.answers():
            self._dispatcher.dispatch(self._redact(line))
        self._dispatcher.end()

    def _read_log(self) -> None:
        for line in self.transport.log():
            if not _FRAME.match(line):
                self._no_memory = self._no_memory or _NO_MEMORY.search(line)
                self._log.append(self._redact(line.rstrip("\n")))


BATCHES_BEFORE_FINISH = 8
"""After so many micro-batches, those of five small cases or of a checked job, an engine has loaded most of what any engine loads."""


class DriverEngine:
    """An ``Engine`` over a transport; the parameters besides these are those of ``DriverConnection``, and attributes of ``Engine``.

    Args:
        work: the engine's directory on its own file system.
        cases: where cases get their directories; by default a directory in ``work``.
        finish: called once, before the driver is ended, if it has run some micro-batches and runs no case.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        work: str,
        cases: str | None = None,
        place: EngineLocation,
        code: tuple[str, ...] | None = None,
        kafka: str | HarnessError | None = None,
        start_timeout: float,
        redact: Callable[[str], str] = str,
        finish: Callable[[], None] | None = None,
    ) -> None:
        self.place = place
        self.code = code
        self.kafka = kafka
        self.memory: int | None = None
        self._work = work
        self._cases = cases or f"{work}/cases"
        self._numbers = count(1)
        self._runs = count(1)
        self._finish = finish
        self._counting = threading.Lock()
        self._running = self._batches = 0
        master = (place.runtime == "connect" and place.master) or "the engine's JVM"
        self._connection = DriverConnection(transport, start_timeout=start_timeout, redact=redact, master=master)
        self.identity = self._connection.hello.identity
        self.slots = self._connection.hello.slots

    @property
    def ended(self) -> bool:
        return self._connection.ended

    def new_directory(self, case: str) -> str:
        return f"{self._cases}/{next(self._numbers)}-{re.sub(r'[^A-Za-z0-9]+', '-', case)[-60:]}"

    def observe(
        self, request: protocol.CaseRequest, *, step_timeout: float, on_step: Callable[[], None] | None = None
    ) -> Observation:
        steps: list[StepSeen] = []
        with self._counting:
            self._running += 1
        try:
            # Checkpoints of one case may be resumed side by side, so messages name the run.
            run = f"{request.case} #{next(self._runs)}"
            with self._connection.conversation(run, request.model_copy(update={"case": run})) as mailbox:
                observation = self._follow(request, run, mailbox, step_timeout, on_step, steps)
            with self._counting:
                self._batches += sum(len(step.batches) for step in observation.steps)
            return observation
        except EngineFailed as error:
            error.steps = tuple(steps)
            raise
        finally:
            with self._counting:
                self._running -= 1

    def survey(self, request: protocol.ProgramRequest, *, timeout: float) -> protocol.ProgramSeen:
        return self._answer(request, protocol.ProgramSeen, timeout, f"the survey of {request.case}")

    def read_state(self, request: protocol.StateRequest, *, timeout: float) -> protocol.StateSeen:
        return self._answer(request, protocol.StateSeen, timeout, "reading the state")

    def _answer(
        self,
        request: protocol.ProgramRequest | protocol.StateRequest,
        kind: type[OnlyAnswer],
        timeout: float,
        doing: str,
    ) -> OnlyAnswer:
        with self._connection.conversation(request.case, request) as mailbox:
            answer = self._connection.next_answer(mailbox, timeout, doing)
            if not isinstance(answer, kind):
                raise self._connection.unexpected(answer, doing)
            return answer

    def _follow(
        self,
        request: protocol.CaseRequest,
        run: str,
        mailbox: Mailbox,
        step_timeout: float,
        on_step: Callable[[], None] | None,
        steps: list[StepSeen],
    ) -> Observation:
        emitted: list[Interrupted] = []
        names = {request.directory: "<case>", self._work: "<engine>"}
        deadline = time.monotonic() + step_timeout
        while True:
            where = f"step {request.first + len(steps)}" if len(steps) < len(request.steps) else "the end"
            doing = f"{where} of {request.case}"
            answer = self._connection.next_answer(mailbox, step_timeout, doing, deadline=deadline)
            if getattr(answer, "case", None) != run:
                raise self._connection.unexpected(answer, doing)
            match answer:
                case protocol.StepAnswer(step=step) if len(steps) < len(request.steps):
                    steps.append(without_folders(redact_paths(step, names), request.directory))
                    deadline = time.monotonic() + step_timeout
                    if on_step is not None:
                        on_step()
                case protocol.Emitted(batch=batch, rows=rows):
                    emitted.append(Interrupted(id=batch, rows=rows))
                case protocol.Reached(step=step, columns=columns, missed=missed, executors_lost=lost):
                    self.kill()
                    _check_executors(lost, request)
                    if missed:
                        raise KillMissed(f"the engine was killed too late at {doing}")
                    steps.append(_with_interrupted_batch(step, emitted))
                    return Observation.of(request.case, columns, tuple(steps))
                case protocol.Done(columns=columns, memory=memory, executors_lost=lost):
                    self.memory = memory
                    _check_executors(lost, request)
                    if steps and steps[-1].error is not None:
                        steps[-1] = _with_interrupted_batch(steps[-1], emitted)
                    return Observation.of(request.case, columns, tuple(steps))
                case other:
                    raise self._connection.unexpected(other, doing)

    def kill(self) -> None:
        self._connection.kill()

    def close(self) -> None:
        finish, self._finish = self._finish, None
        try:
            if finish and self._batches >= BATCHES_BEFORE_FINISH and not self._running and not self.ended:
                finish()
        finally:  # it may take long enough for a Ctrl-C
            self._connection.close()


def _check_executors(lost: int, request: protocol.CaseRequest) -> None:
    if lost:
        raise ExecutorsLost(f"the cluster lost {lost} of its executors while {request.case} ran")


def _with_interrupted_batch(step: StepSeen, emitted: list[Interrupted]) -> StepSeen:
    """The step in which the engine was killed or the query failed, with the micro-batch that had emitted its rows and was not committed."""
    last = emitted[-1] if emitted else None
    uncommitted = last is not None and all(batch.id != last.id for batch in step.batches)
    return step.model_copy(update={"interrupted": last}) if uncommitted else step
