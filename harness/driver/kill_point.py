"""Where a case kills its engine: a micro-batch stops there, or the engine between the commit of one and the planning of the next."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

_TIMEOUT_S = 60.0


class KillPointNotReached(Exception):
    """The query has finished before the point where the process was to be killed: the case expects too many micro-batches."""


class KillPointReached(Exception):
    """This process is to be killed now, after these fields of ``StepSeen``. ``missed``: whether the engine has gone past the point."""

    def __init__(self, step: dict[str, Any], missed: bool) -> None:
        super().__init__(step["number"])
        self.step = step
        self.missed = missed


class Breakpoint:
    """Stops a micro-batch where the process is to be killed.

    ``point``: ``planned`` (its offsets are logged, nothing of it has run), ``running`` (one partition of it has run), ``emitted``
    (its rows are out, it is not committed) or ``committed`` (it waits for ``resume``). ``nth``: which micro-batch, from 1.
    """

    def __init__(self, point: str, nth: int) -> None:
        self._point = point
        self._left = nth
        self.reached = threading.Event()
        self.resume = threading.Event()
        self.batch: int | None = None
        """The id of the micro-batch, once it has started."""

    def point_in(self, batch: int) -> str | None:
        """Where to stop this micro-batch; None for any but the ``nth``."""
        self._left -= 1
        if self._left:
            return None
        self.batch = batch
        return self._point

    def block_forever(self) -> None:
        """Never return: this process is killed once ``reached`` is set."""
        self.reached.set()
        while True:
            threading.Event().wait()


class LockNotTaken(Exception):
    """The engine did not queue for its progress lock."""


def stop_after_commit(gateway: Any, lock: Any, resume: Callable[[], None], is_committed: Callable[[], bool]) -> None:
    """Let the engine commit the running micro-batch, then keep its progress lock forever.

    The engine takes the lock to commit and to plan. The lock is fair: a thread that queues behind the engine gets it next. So one of our
    threads takes the lock while the micro-batch runs; the engine queues for it, another thread of ours queues behind the engine, and the
    first unlocks. Each needs a JVM thread of its own, and therefore a py4j connection of its own.

    ``gateway``: the session's; ``lock``: the query's progress lock, free at the moment; ``resume``: lets the micro-batch finish.

    Raises:
        LockNotTaken: the engine did something else.
    """
    holder, queued = _of_another_thread(gateway, lock), _of_another_thread(gateway, lock)
    holder.lock()
    resume()
    while True:
        _wait_for_queue(holder, 1)
        waiting = threading.Thread(target=queued.lock, daemon=True)
        waiting.start()
        _wait_for_queue(holder, 2)
        holder.unlock()
        waiting.join(_TIMEOUT_S)
        if waiting.is_alive():
            raise LockNotTaken("the engine kept its progress lock")
        if is_committed():
            return
        # The engine wanted the lock for something other than the commit; it will queue again.
        holder, queued = queued, holder


def stop_before_commit(gateway: Any, lock: Any, is_planned: Callable[[], bool]) -> None:
    """Wait until the engine has planned a micro-batch, and keep it from committing: it queues for the lock once its sink has the rows.

    The parameters are those of `stop_after_commit`. Raises ``LockNotTaken`` if the engine did not come to the commit.
    """
    while not is_planned():
        time.sleep(0.002)
    holder = _of_another_thread(gateway, lock)
    holder.lock()
    _wait_for_queue(holder, 1)


def _of_another_thread(gateway: Any, lock: Any) -> Any:
    """The lock through a py4j connection of its own, and so from a JVM thread of its own."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject

    known = gateway.gateway_parameters
    own = JavaGateway(
        gateway_parameters=GatewayParameters(
            address=known.address, port=known.port, auth_token=known.auth_token, auto_convert=True
        )
    )
    return JavaObject(lock._target_id, own._gateway_client)


def _wait_for_queue(lock: Any, threads: int) -> None:
    """Return once this many threads wait for the lock."""
    limit = time.monotonic() + _TIMEOUT_S
    while lock.getQueueLength() < threads:
        if time.monotonic() > limit:
            raise LockNotTaken("the engine did not queue for its progress lock")
        time.sleep(0.002)
