"""One JVM thread for each Python thread, where pyspark does not see to it itself."""

from __future__ import annotations

import threading
from typing import Any, List


class ConnectionsOfThread(threading.local):
    """The idle connections of each Python thread to the JVM, where a connection is a thread.

    It stands for the ``deque`` of py4j's ``GatewayClient``, which gives any connection to any thread. A thread has a second connection
    if an object is collected while it uses the first.
    """

    def __init__(self) -> None:
        self._idle: List[Any] = []

    def pop(self) -> Any:
        """The connection that came back last. Raises ``IndexError`` if there is none; py4j then makes one."""
        return self._idle.pop()

    def append(self, connection: Any) -> None:
        self._idle.append(connection)

    def __len__(self) -> int:
        return len(self._idle)


def pin_threads(gateway: Any) -> None:
    """Give each Python thread connections of its own, unless the gateway does.

    The active session belongs to a JVM thread. pyspark 3.0 and newer pin threads if ``PYSPARK_PIN_THREAD`` is set; 2.4 cannot.
    """
    from py4j.clientserver import ClientServer

    if not isinstance(gateway, ClientServer):
        gateway._gateway_client.deque = ConnectionsOfThread()
