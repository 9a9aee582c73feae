"""``python -m driver [--shared] [--storage URL] WORK [KEY=VALUE …]``: run cases in an engine until standard input ends."""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Dict, List, Optional

from .backend import Backend
from .checkpoint import read_state
from .kill_point import KillPointReached
from .memory import RecentMemory
from .request import CaseRequest
from .serve import Channel, serve

_memory = RecentMemory()


def answer(channel: Channel, backend: Backend, message: Dict[str, Any]) -> None:
    from .execution import Execution
    from .files import finish
    from .jobs.survey import Survey

    if "program" in message:
        channel.send("program", case=message["case"], **Survey(backend, message).answer())
        return
    if "reads" in message:
        channel.send("state", case=message["case"], **read_state(backend.new_session(), message))
        return
    request = CaseRequest.parse(message)
    execution = Execution(backend, request, _sender(channel, request))
    try:
        for step in execution.run():
            channel.send("step", case=request.case, step=step)
    except KillPointReached as point:
        channel.send(
            "reached",
            case=request.case,
            step=point.step,
            columns=execution.columns,
            missed=point.missed,
            executorsLost=execution.executors_lost(),
        )
        # The host kills this process now; anything it did here would happen after the kill.
        threading.Event().wait()
    finish(backend.files, request)
    lost = execution.executors_lost()
    channel.send("done", case=request.case, columns=execution.columns, memory=_memory(), executorsLost=lost)


def _sender(channel: Channel, request: CaseRequest) -> Optional[Callable[[int, List[List[Any]]], None]]:
    """What sends each micro-batch before it is committed, if the host needs to know even when this process is killed."""
    if not request.tell:
        return None
    return lambda batch, rows: channel.send("emitted", case=request.case, batch=batch, rows=rows)


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1:], answer))
