"""Two threads hear what is at the other end of a link: one what it answers, one its log."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from harness.engine.transport import Transport

_CLOSING_SECONDS = 10.0


class TransportReader:
    """Until the other end is silent.

    Args:
        transport: to a program that was just started.
        take: is given each line that it answers.
        end: is called when there will be no more.
        log_lines: how many of its log are kept, the last ones.
        hidden: takes what must not be told out of a text, before anybody sees it.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        take: Callable[[str], None],
        end: Callable[[], None],
        log_lines: int,
        hidden: Callable[[str], str] = str,
    ) -> None:
        self.log: deque[str] = deque(maxlen=log_lines)
        self._transport = transport
        self._take = take
        self._end = end
        self._hidden = hidden
        self._threads = [threading.Thread(target=hear, daemon=True) for hear in (self._hear_answers, self._hear_log)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait for its last words, which may still be on their way; not for ever."""
        for thread in self._threads:
            thread.join(_CLOSING_SECONDS)

    def _hear_answers(self) -> None:
        for line in self._transport.answers():
            self._take(self._hidden(line))
        self._end()

    def _hear_log(self) -> None:
        for line in self._transport.log():
            self.log.append(self._hidden(line.rstrip("\n")))
