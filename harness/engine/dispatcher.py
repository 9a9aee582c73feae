"""Which message of a driver's is for whom: several cases run in one engine, and each of its messages is about one of them."""

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
    """A line that is no message of the protocol."""

    line: str
    why: str


@dataclass(frozen=True)
class StreamEnded:
    """The driver says nothing any more."""


Word: TypeAlias = AnyAnswer | MalformedMessage | StreamEnded


class Mailbox:
    """Where somebody finds what is said to him."""

    def __init__(self) -> None:
        self._words: queue.SimpleQueue[Word] = queue.SimpleQueue()

    def put(self, word: Word) -> None:
        self._words.put(word)

    def get(self, timeout: float) -> Word:
        """The next word.

        Args:
            timeout: seconds.

        Raises:
            queue.Empty: nothing was said within them.
        """
        return self._words.get(timeout=timeout)


class Dispatcher:
    """Takes the driver's lines from one thread and gives them to boxes of others.

    What cannot be given to anybody in particular is given to everybody: a line that is no message, a message about a case that nobody
    waits for, and the end, which also waits for whoever asks later.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._boxes: dict[str | None, Mailbox] = {}
        self._ended = False

    @contextmanager
    def listening(self, case: str | None) -> Iterator[Mailbox]:
        """A box for what is said about a case, or, for None, before any case; waits while somebody else has one for the same."""
        mailbox = Mailbox()
        with self._lock:
            self._lock.wait_for(lambda: case not in self._boxes)
            self._boxes[case] = mailbox
            if self._ended:
                mailbox.put(StreamEnded())
        try:
            yield mailbox
        finally:
            with self._lock:
                del self._boxes[case]
                self._lock.notify_all()

    def take(self, line: str) -> None:
        """A line has come."""
        try:
            message = ANSWERS.validate_json(line)
        except ValidationError as error:
            self._to_all(MalformedMessage(line, str(error)))
            return
        case = None if isinstance(message, Hello) else message.case
        with self._lock:
            mailbox = self._boxes.get(case)
        if mailbox is not None:
            mailbox.put(message)
        else:
            self._to_all(message)

    def end(self) -> None:
        """No line will come any more."""
        with self._lock:
            self._ended = True
        self._to_all(StreamEnded())

    def _to_all(self, word: Word) -> None:
        with self._lock:
            for mailbox in self._boxes.values():
                mailbox.put(word)
