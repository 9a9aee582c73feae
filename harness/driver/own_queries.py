"""Queries that a function of the case's author starts on the result of the case, beside the one that is captured."""

from __future__ import annotations

from typing import Any, Callable, List


class OwnQueries:
    """``session``: of the case, which has no other queries but the captured one; ``captured``: the id of that one."""

    def __init__(self, session: Any, captured: Any) -> None:
        self._session = session
        self._captured = captured
        self._started: List[Any] = []

    def start(self, write: Callable[[Any], None], frame: Any) -> None:
        """Call the function with the streaming DataFrame; what it raises, this raises."""
        write(frame)
        self._started = [query for query in self._session.streams.active if query.id != self._captured]

    def drain(self) -> None:
        """Wait until they have processed what has arrived; a query that failed raises its error."""
        for query in self._started:
            query.processAllAvailable()
            error = query.exception()
            if error is not None:
                raise error

    def stop(self) -> None:
        for query in self._started:
            try:
                query.stop()
            except Exception:  # a query that failed has stopped already
                pass
        self._started = []
