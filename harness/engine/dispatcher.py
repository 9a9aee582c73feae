"""Dispatches the driver's messages: several cases run in one engine, and each message belongs to one of them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import ValidationError

from harness.engine.protocol import ANSWERS, AnyAnswer, Hello


@dataclass(frozen=True)
class MalformedMessage:
    """A line that is not a message of the protocol."""

    line: str
    why: str


@dataclass(frozen=True)
class StreamEnded:
    """The driver has closed its output."""


Delivery: TypeAlias = AnyAnswer | MalformedMessage | StreamEnded
Mailbox: TypeAlias = "queue.SimpleQueue[Delivery]"
"""Receives the messages for one listener."""


class Dispatcher:
    """Takes the driver's lines from one thread and puts them into the mailboxes of others.

    A line that belongs to no listener goes to all of them: one that is not a message, names no case, or names a case without a listener.
    The end of the stream also goes to every later listener.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._mailboxes: dict[str | None, Mailbox] = {}
        self._ended = False

    @contextmanager
    def listening(self, case: str | None) -> Iterator[Mailbox]:
        """A mailbox for messages about a case, or, for None, those before any case; waits while another listens for the same."""
        mailbox: Mailbox = queue.SimpleQueue()
        with self._lock:
            self._lock.wait_for(lambda: case not in self._mailboxes)
            self._mailboxes[case] = mailbox
            if self._ended:
                mailbox.put(StreamEnded())
        try:
            yield mailbox
        finally:
            with self._lock:
                del self._mailboxes[case]
                self._lock.notify_all()

    def dispatch(self, line: str) -> None:
        """Deliver a line."""
        try:
            message = ANSWERS.validate_json(line)
        except ValidationError as error:
            self._to_all(MalformedMessage(line, str(error)))
            return
        case = None if isinstance(message, Hello) else message.case
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
        self._to_all(StreamEnded())

    def _to_all(self, delivery: Delivery) -> None:
        with self._lock:
            for mailbox in self._mailboxes.values():
                mailbox.put(delivery)
