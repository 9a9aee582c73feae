"""Holding the engine between the commit of one micro-batch and the planning of the next.

The engine takes the query's progress lock for either. The lock is fair: who waits for it behind the engine has it next. So one of our
threads takes it while the micro-batch runs, the engine comes to wait for it, another of ours waits behind the engine, and the first
lets go. Each needs a thread of its own in the JVM, and so a connection that nobody else uses.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject

_PATIENCE_SECONDS = 60.0


class NotHeld(Exception):
    """The engine did not come to wait for the lock."""


def hold_after_commit(gateway: Any, lock: Any, go_on: Callable[[], None], is_committed: Callable[[], bool]) -> None:
    """Let the engine go on, and have the lock for ever once it has committed.

    ``gateway``: the session's; ``lock``: the query's progress lock, which nobody holds; ``go_on``: lets the micro-batch that runs end.

    Raises:
        NotHeld: the engine did something else.
    """
    ours, next_one = _Holder(gateway, lock), _Holder(gateway, lock)
    ours.lock.lock()
    go_on()
    while True:
        ours.until_waiting(1)
        waiting = threading.Thread(target=next_one.lock.lock, daemon=True)
        waiting.start()
        ours.until_waiting(2)
        ours.lock.unlock()
        waiting.join(_PATIENCE_SECONDS)
        if waiting.is_alive():
            raise NotHeld("the engine kept its progress lock")
        if is_committed():
            return
        # It was not for the commit that it wanted the lock; it will come again.
        ours, next_one = next_one, ours


class _Holder:
    """The lock, seen through a connection, and so a thread of the JVM, of our own."""

    def __init__(self, gateway: Any, lock: Any) -> None:
        known = gateway.gateway_parameters
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(
                address=known.address, port=known.port, auth_token=known.auth_token, auto_convert=True
            )
        )
        self.lock = JavaObject(lock._target_id, self._gateway._gateway_client)

    def until_waiting(self, threads: int) -> None:
        """Return once so many threads wait for the lock."""
        limit = time.monotonic() + _PATIENCE_SECONDS
        while self.lock.getQueueLength() < threads:
            if time.monotonic() > limit:
                raise NotHeld("the engine did not come to wait for its progress lock")
            time.sleep(0.002)
