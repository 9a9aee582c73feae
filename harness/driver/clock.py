"""A clock that only the steps of a case move, for queries with the trigger ``processingTime``.

A query takes its clock when it is made. It calls its listeners before its first micro-batch and waits for them, so a listener exchanges
the clock in time. The query asks the clock until when to wait for the next micro-batch, so the clock knows when the query rests.
"""

# ruff: noqa: N802

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any, Iterator

from .errors import DriverFailure


class DrivenClock:
    """An ``org.apache.spark.util.Clock`` at ``ms`` after the epoch, of one query at a time."""

    def __init__(self, ms: int) -> None:
        self._ms = ms
        self._changed = threading.Condition()
        self._waits_until: int | None = None
        self._query: Any = None

    def advance(self, ms: int) -> None:
        with self._changed:
            self._ms += ms
            self._changed.notify_all()

    def wait_until_rest(self) -> None:
        """Return once the query waits for a later time, or has ended."""
        with self._changed:
            while (self._waits_until is None or self._waits_until <= self._ms) and self._query.isActive():
                self._changed.wait(0.05)

    @contextmanager
    def of_next_query(self, session: Any) -> Iterator[None]:
        """A context in which one query is started in this session, which gets this clock.

        Raises:
            ImportError: this release has no listeners in Python (before 3.4).
            DriverFailure: the query has another clock.
        """
        from pyspark.sql.streaming.listener import StreamingQueryListener

        exchange = self._take_place_in

        class Starts(StreamingQueryListener):  # type: ignore[misc, unused-ignore]
            def onQueryStarted(self, event: Any) -> None:
                exchange(session._jsparkSession.streams().get(str(event.id)).streamingQuery())

            def onQueryProgress(self, event: Any) -> None:
                pass

            def onQueryIdle(self, event: Any) -> None:
                """3.5.0 demands it; later releases do not."""

            def onQueryTerminated(self, event: Any) -> None:
                pass

        self._query = self._waits_until = None
        listener = Starts()
        session.streams.addListener(listener)
        try:
            yield
        finally:
            session.streams.removeListener(listener)
        if self._query is None:
            raise DriverFailure("the clock of the query was not exchanged")

    def _take_place_in(self, query: Any) -> None:
        """Exchange the clock of a ``StreamExecution`` and, if it has one already, of its ``ProcessingTimeExecutor``."""
        for holder, name in ((query, "triggerClock"), (_field(query, "triggerExecutor").get(query), "clock")):
            if holder is not None:
                _field(holder, name).set(holder, self)
        self._query = query

    # The methods of the interface, which threads of the query call.

    def getTimeMillis(self) -> int:
        return self._ms

    def nanoTime(self) -> int:
        return self._ms * 1000000

    def waitTillTime(self, ms: int) -> int:
        """A query that is stopped cannot interrupt this."""
        with self._changed:
            self._waits_until = ms
            self._changed.notify_all()
            while self._ms < ms and self._query.isActive():
                self._changed.wait(0.05)
            self._waits_until = None
            return self._ms

    class Java:
        implements = ("org.apache.spark.util.Clock",)


def _field(holder: Any, name: str) -> Any:
    """The ``java.lang.reflect.Field`` of an object, which its class or one above it declares."""
    kind = holder.getClass()
    while name not in [field.getName() for field in kind.getDeclaredFields()]:
        kind = kind.getSuperclass()
    field = kind.getDeclaredField(name)
    field.setAccessible(True)
    return field
