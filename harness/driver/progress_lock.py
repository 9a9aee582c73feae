"""Stops the engine between the commit of one micro-batch and the planning of the next.

The engine takes the query's progress lock for both. The lock is fair: a thread that queues behind the engine gets it next. So one of our
threads takes the lock while the micro-batch runs; the engine queues for it, another thread of ours queues behind the engine, and the
first unlocks. Each needs a JVM thread of its own, and therefore a py4j connection of its own.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject

_TIMEOUT_S = 60.0


class LockNotTaken(Exception):
    """The engine did not queue for the lock."""


def stop_after_commit(gateway: Any, lock: Any, resume: Callable[[], None], is_committed: Callable[[], bool]) -> None:
    """Let the engine commit the running micro-batch, then keep the lock forever.

    ``gateway``: the session's; ``lock``: the query's progress lock, free at the moment; ``resume``: lets the micro-batch finish.

    Raises:
        LockNotTaken: the engine did something else.
    """
    holder, queued = _LockClient(gateway, lock), _LockClient(gateway, lock)
    holder.lock.lock()
    resume()
    while True:
        holder.wait_for_queue(1)
        waiting = threading.Thread(target=queued.lock.lock, daemon=True)
        waiting.start()
        holder.wait_for_queue(2)
        holder.lock.unlock()
        waiting.join(_TIMEOUT_S)
        if waiting.is_alive():
            raise LockNotTaken("the engine kept its progress lock")
        if is_committed():
            return
        # The engine wanted the lock for something other than the commit; it will queue again.
        holder, queued = queued, holder


class _LockClient:
    """The lock through a py4j connection of its own, and so from a JVM thread of its own."""

    def __init__(self, gateway: Any, lock: Any) -> None:
        known = gateway.gateway_parameters
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(
                address=known.address, port=known.port, auth_token=known.auth_token, auto_convert=True
            )
        )
        self.lock = JavaObject(lock._target_id, self._gateway._gateway_client)

    def wait_for_queue(self, threads: int) -> None:
        """Return once this many threads wait for the lock."""
        limit = time.monotonic() + _TIMEOUT_S
        while self.lock.getQueueLength() < threads:
            if time.monotonic() > limit:
                raise LockNotTaken("the engine did not queue for its progress lock")
            time.sleep(0.002)
