"""``python -m driver [--shared] [--storage URL] WORK [KEY=VALUE …]``: an engine, which answers requests until standard input ends.

Requests are answered side by side, each in a thread with a session of its own: how many there are at once is for the host to say.

``--shared``: what it writes may be changed by other users of the machine too, whose engines may resume a query. ``--storage``: of a
directory that directories of cases are in; without it they are on this machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List

from . import places
from .channel import Channel
from .memory import memory

_MOST_AT_ONCE = 64
_ENGINE_GONE = 70


def main(arguments: list[str]) -> int:
    channel = Channel()
    # Each of our threads is one thread of the JVM: the active session is a thread's own. Spark 3.2 and newer do so themselves.
    os.environ["PYSPARK_PIN_THREAD"] = "true"
    try:
        places.find_pyspark()
        from .classic import Classic
        from .connect import Connect
        from .errors import keep_origins
        from .storage_fails import StorageFails

        keep_origins()
        said = _arguments(arguments)
        if said.shared:
            os.umask(0)
        # Not an argument: it may hold a token, and arguments are for everybody to see.
        url = os.environ.pop("CONFORMANCE_ENDPOINT", None)
        settings = dict(setting.split("=", 1) for setting in said.settings)
        engine = Connect(url, said.storage) if url else Classic(said.work, settings, said.storage)
        channel.send("hello", identity=engine.identity(), slots=engine.slots())
    except StorageFails as error:
        channel.send("failed", message=str(error))
        return 3
    except Exception:
        channel.send("failed", message=traceback.format_exc())
        return 3
    threads = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="case")
    for request in channel.requests():
        threads.submit(_answer, channel, engine, request)
    # Nobody listens any more, even if the host was killed: what still runs is of no use. The JVM ends with us.
    sys.stderr.flush()
    os._exit(0)


def _arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="driver")
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--storage")
    parser.add_argument("work")
    parser.add_argument("settings", nargs="*")
    return parser.parse_args(arguments)


def _answer(channel: Channel, engine: Any, request: Dict[str, Any]) -> None:
    from .execution import Execution, MachineLacks, Reached, put_away

    case = request["case"]
    try:
        execution = Execution(engine, request, _teller(channel, request))
        for step in execution.run():
            channel.send("step", case=case, step=step)
        put_away(engine, request)
        lost = execution.executors_lost()
        channel.send("done", case=case, columns=execution.columns, memory=memory(), executorsLost=lost)
    except Reached as here:
        lost = execution.executors_lost()
        channel.send(
            "reached", case=case, step=here.step, columns=execution.columns, missed=here.missed, executorsLost=lost
        )
        # Whatever else this process did would be done after it was killed.
        threading.Event().wait()
    except Exception as error:
        if not engine.is_alive():
            # Not a message: our end tells the host that the engine is gone, and why is on standard error.
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(_ENGINE_GONE)
        passing = isinstance(error, MachineLacks) and error.passing
        channel.send("failed", case=case, message=traceback.format_exc(), passing=passing)


def _teller(channel: Channel, request: Dict[str, Any]) -> "Callable[[int, List[List[Any]]], None] | None":
    """Who is told of each micro-batch before it is committed, where the host wants to know even if this process is killed."""
    if not request.get("tell"):
        return None
    return lambda batch, rows: channel.send("emitted", case=request["case"], batch=batch, rows=rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
