"""An engine at the other end of a driver's standard input and output."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable
from itertools import count

from conformance.core.observation import Identity, Interrupted, Observation, StepSeen
from harness.engine.dispatcher import Dispatcher, Mailbox, MalformedMessage, StreamEnded
from harness.engine.engine import (
    DriverFailed,
    EngineDied,
    EngineFailed,
    EngineLocation,
    ExecutorsLost,
    KillMissed,
    ProtocolBroken,
    StepTimedOut,
    TooBusy,
)
from harness.engine.path_redaction import placeless
from harness.engine.protocol import (
    VERSION,
    AnyAnswer,
    CaseRequest,
    Done,
    Emitted,
    Failed,
    Hello,
    Reached,
    StepAnswer,
)
from harness.engine.reader import TransportReader
from harness.engine.transport import Transport, TransportClosed

_LOG_LINES = 200
_SHOWN_LINES = 15
_LOST_ITS_ENGINE = "exit code 70"
"""How a driver ends that finds its engine gone; see ``harness/driver/__main__.py``."""


class DriverEngine:
    """Speaks the driver protocol; ``observe`` may be called from several threads at once, each with another case.

    Args:
        transport: to a driver that was just started; the engine's from here on.
        work: the engine's directory on its own file system.
        cases: what cases get their directories in; by default a directory in ``work``.
        place: where it runs.
        code_path: where it finds the modules that ``call`` names; None where the user did not allow code.
        start_timeout: seconds until the driver must have introduced itself.
        hidden: takes what must not be told out of a text, before anybody sees it.

    Raises:
        EngineFailed: it did not introduce itself, or speaks another version of the protocol.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        work: str,
        cases: str | None = None,
        place: EngineLocation,
        code_path: str | None = None,
        start_timeout: float,
        hidden: Callable[[str], str] = str,
    ) -> None:
        self.place = place
        self.code_path = code_path
        self.ended = False
        self.memory: int | None = None
        self.slots: int | None = None
        self._transport = transport
        self._work = work
        self._cases = cases or f"{work}/cases"
        self._numbers = count(1)
        self._dispatcher = Dispatcher()
        self._writing = threading.Lock()
        self._reader = TransportReader(
            transport, take=self._dispatcher.take, end=self._dispatcher.end, log_lines=_LOG_LINES, hidden=hidden
        )
        try:
            self.identity = self._introduction(start_timeout)
        except BaseException:  # Ctrl-C too must not leave it running
            self.close()
            raise

    identity: Identity

    def new_directory(self, case: str) -> str:
        return f"{self._cases}/{next(self._numbers)}-{re.sub(r'[^A-Za-z0-9]+', '-', case)[-60:]}"

    def observe(self, request: CaseRequest, *, step_timeout: float) -> Observation:
        try:
            with self._dispatcher.listening(request.case) as mailbox:
                self._send(request.model_dump_json(by_alias=True, exclude_none=True))
                return self._follow(request, mailbox, step_timeout)
        except EngineFailed as error:
            if not isinstance(error, DriverFailed):
                self.close()
            raise

    def _follow(self, request: CaseRequest, mailbox: Mailbox, step_timeout: float) -> Observation:
        steps: list[StepSeen] = []
        emitted: list[Interrupted] = []
        places = {request.directory: "<case>", self._work: "<engine>"}
        while True:
            doing = (
                f"step {request.first + len(steps)} of {request.case}"
                if len(steps) < len(request.steps)
                else f"the end of {request.case}"
            )
            match self._answer(mailbox, step_timeout, doing, tuple(steps), tuple(emitted)):
                case StepAnswer(case=case, step=step) if case == request.case:
                    steps.append(placeless(step, places))
                case Emitted(case=case, batch=batch, rows=rows) if case == request.case:
                    emitted.append(Interrupted(id=batch, rows=rows))
                case Reached(case=case, step=step, columns=columns, missed=missed, executors_lost=lost) if (
                    case == request.case
                ):
                    self.kill()
                    _check_executors(lost, request, steps)
                    if missed:
                        raise KillMissed(f"the engine was killed too late at {doing}", steps=tuple(steps))
                    steps.append(_with_what_was_interrupted(step, emitted))
                    return Observation(case=case, columns=columns, steps=tuple(steps))
                case Done(case=case, columns=columns, memory=memory, executors_lost=lost) if case == request.case:
                    self.memory = memory
                    _check_executors(lost, request, steps)
                    return Observation(case=case, columns=columns, steps=tuple(steps))
                case Failed(message=message, passing=passing):
                    kind = TooBusy if passing else DriverFailed
                    raise kind(f"the driver failed at {doing}:\n{message}", steps=tuple(steps))
                case other:
                    raise ProtocolBroken(
                        f"the driver answered {other.kind!r} at {doing}, out of turn", log=self._tail()
                    )

    def kill(self) -> None:
        self.ended = True
        self._transport.kill()

    def close(self) -> None:
        """End the driver and everything it started."""
        self.ended = True
        self._transport.close()
        self._reader.join()

    def _introduction(self, timeout: float) -> Identity:
        with self._dispatcher.listening(None) as mailbox:
            # Only now: a word that nobody listens to is lost.
            self._reader.start()
            match self._answer(mailbox, timeout, "its start"):
                case Hello(identity=identity, slots=slots) if identity.protocol == VERSION:
                    self.slots = slots
                    return identity
                case Hello(identity=identity):
                    raise ProtocolBroken(
                        f"the driver speaks version {identity.protocol} of the protocol, this harness speaks {VERSION}"
                    )
                case Failed(message=message):
                    ending = self._transport.ending()
                    raise EngineDied(f"the engine did not start, and ended with {ending}:\n{message}", log=self._tail())
                case other:
                    raise ProtocolBroken(
                        f"the driver said {other.kind!r} before it introduced itself", log=self._tail()
                    )

    def _send(self, line: str) -> None:
        try:
            with self._writing:
                self._transport.write(line)
        except TransportClosed as error:
            raise EngineDied("the engine's process has ended before it could be asked", log=self._tail()) from error

    def _answer(
        self,
        mailbox: Mailbox,
        timeout: float,
        doing: str,
        steps: tuple[StepSeen, ...] = (),
        emitted: tuple[Interrupted, ...] = (),
    ) -> AnyAnswer:
        try:
            word = mailbox.get(timeout)
        except queue.Empty:
            raise StepTimedOut(
                f"no answer within {timeout:g} s at {doing}; the engine was ended", log=self._tail(), steps=steps
            ) from None
        match word:
            case StreamEnded():
                raise EngineDied(
                    f"{self._what_ended()} at {doing}",
                    log=self._tail(),
                    steps=steps,
                    emitted=emitted,
                )
            case MalformedMessage(line=line, why=why):
                raise ProtocolBroken(
                    f"the driver said at {doing} what is no message: {line[:200]!r} ({why})", steps=steps
                )
            case _:
                return word

    def _what_ended(self) -> str:
        ending = self._transport.ending()
        if self.place.runtime == "connect" and ending == _LOST_ITS_ENGINE:
            return f"{self.place.master} answered no more"
        return f"the engine's process ended with {ending}"

    def _tail(self) -> str:
        time.sleep(0.1)  # the last words may still be on their way through the pipe
        return "\n".join(list(self._reader.log)[-_SHOWN_LINES:])


def _check_executors(lost: int, request: CaseRequest, steps: list[StepSeen]) -> None:
    if lost:
        raise ExecutorsLost(f"the cluster lost {lost} of its executors while {request.case} ran", steps=tuple(steps))


def _with_what_was_interrupted(step: StepSeen, emitted: list[Interrupted]) -> StepSeen:
    """The step in which the engine was killed, with the micro-batch that had emitted and was not committed."""
    last = emitted[-1] if emitted else None
    uncommitted = last is not None and all(batch.id != last.id for batch in step.batches)
    return step.model_copy(update={"interrupted": last}) if uncommitted else step
