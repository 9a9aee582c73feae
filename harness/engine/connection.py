"""A connection to a driver: it starts with the driver's introduction, and carries the requests and answers of several cases at once."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.engine.dispatcher import Dispatcher, Mailbox, MalformedMessage, StreamEnded
from harness.engine.engine import (
    DriverFailed,
    EngineDied,
    EngineFailed,
    EngineNotStarted,
    ProtocolBroken,
    StepTimedOut,
    TooBusy,
)
from harness.engine.protocol import VERSION, AnyAnswer, Failed, FailureReason, Hello, Message
from harness.engine.transport import Transport, TransportClosed

_LOG_LINES = 200
_SHOWN_LINES = 15
_CLOSING_SECONDS = 10.0


class DriverConnection:
    """Speaks the driver protocol over a transport.

    Args:
        transport: to a driver that was just started; owned by the connection from here on.
        start_timeout: seconds until the driver must have introduced itself.
        master: what runs the driver's queries, for error messages.
        redact: removes secrets from a text.

    Raises:
        EngineFailed: the driver did not introduce itself, or speaks another version of the protocol.
    """

    hello: Hello

    def __init__(
        self,
        transport: Transport,
        *,
        start_timeout: float,
        master: str = "the engine's JVM",
        redact: Callable[[str], str] = str,
    ) -> None:
        self.ended = False
        self.transport = transport
        self._master = master
        self._redact = redact
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._dispatcher = Dispatcher()
        self._writing = threading.Lock()
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_answers, self._read_log)]
        try:
            self.hello = self._introduction(start_timeout)
        except BaseException:  # on Ctrl-C too, so that the driver does not keep running
            self.close()
            raise

    @contextmanager
    def conversation(self, case: str, request: Message) -> Iterator[Mailbox]:
        """Send a request; the mailbox receives its answers.

        After an error other than ``DriverFailed`` the driver is ended.
        """
        try:
            with self._dispatcher.listening(case) as mailbox:
                self._send(request)
                yield mailbox
        except EngineFailed as error:
            if not isinstance(error, DriverFailed):
                self.close()
            raise

    def next_answer(self, mailbox: Mailbox, timeout: float, doing: str, *, deadline: float | None = None) -> AnyAnswer:
        """The next answer, unless it is ``Failed``.

        Args:
            mailbox: of a conversation.
            timeout: seconds to wait.
            doing: what the driver is doing, for error messages.
            deadline: when to stop waiting, on the monotonic clock, in seconds; by default ``timeout`` from now. Several answers
                share it, so that a driver that sends one after another does not run for ever.

        Raises:
            EngineFailed: there is none.
        """
        try:
            left = timeout if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise queue.Empty
            delivered = mailbox.get(timeout=left)
        except queue.Empty:
            raise StepTimedOut(
                f"no answer within {timeout:g} s at {doing}; the engine was ended", log=self.log_tail()
            ) from None
        match delivered:
            case StreamEnded():
                raise EngineDied(
                    f"the engine's process ended with {self.transport.ending()} at {doing}", log=self.log_tail()
                )
            case MalformedMessage(line=line, why=why):
                raise ProtocolBroken(
                    f"the driver wrote a line at {doing} that is not a message: {line[:200]!r} ({why})"
                )
            case Failed() as failed:
                raise self._error(failed, doing)
            case _:
                return delivered

    def unexpected(self, answer: AnyAnswer, doing: str) -> ProtocolBroken:
        """The error for an answer that does not belong here."""
        return ProtocolBroken(f"the driver sent an unexpected {answer.kind!r} at {doing}", log=self.log_tail())

    def kill(self) -> None:
        """End the driver at once by SIGKILL; from any thread."""
        self.ended = True
        self.transport.kill()

    def close(self) -> None:
        """End the driver and everything it started."""
        self.ended = True
        self.transport.close()
        self._join()

    def log_tail(self) -> str:
        """The end of what the driver wrote to standard error."""
        time.sleep(0.1)  # the last lines may still be in the pipe
        return "\n".join(list(self._log)[-_SHOWN_LINES:])

    def _introduction(self, timeout: float) -> Hello:
        with self._dispatcher.listening(None) as mailbox:
            # Not earlier: a message without a mailbox is lost.
            for thread in self._readers:
                thread.start()
            match answer := self.next_answer(mailbox, timeout, "startup"):
                case Hello(identity=identity) if identity.protocol == VERSION:
                    return answer
                case Hello(identity=identity):
                    raise ProtocolBroken(
                        f"the driver speaks version {identity.protocol} of the protocol, this harness speaks {VERSION}"
                    )
                case other:
                    raise self.unexpected(other, "startup")

    def _error(self, failed: Failed, doing: str) -> EngineFailed:
        match failed.reason:
            case _ if doing == "startup":
                return EngineNotStarted(failed.reason, failed.message, self.transport.ending(), log=self.log_tail())
            case FailureReason.ENGINE_LOST:
                return EngineDied(f"{self._master} stopped answering at {doing}: {failed.message}", log=self.log_tail())
            case FailureReason.MACHINE_OVERLOADED | FailureReason.EXECUTORS_LOST:
                return TooBusy(f"the driver failed at {doing}: {failed.message}")
            case _:
                return DriverFailed(f"the driver failed at {doing}:\n{failed.message}")

    def _send(self, request: Message) -> None:
        try:
            with self._writing:
                self.transport.write(request.model_dump_json(by_alias=True, exclude_none=True))
        except TransportClosed as error:
            self._join()
            raise EngineDied(
                f"the engine's process had already ended with {self.transport.ending()}", log=self.log_tail()
            ) from error

    def _join(self) -> None:
        """Wait for the last lines, but not forever."""
        for thread in self._readers:
            if thread.ident is not None:
                thread.join(_CLOSING_SECONDS)

    def _read_answers(self) -> None:
        for line in self.transport.answers():
            self._dispatcher.dispatch(self._redact(line))
        self._dispatcher.end()

    def _read_log(self) -> None:
        for line in self.transport.log():
            self._log.append(self._redact(line.rstrip("\n")))
