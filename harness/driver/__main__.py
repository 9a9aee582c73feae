"""``python -m driver [--shared] WORK [KEY=VALUE …]``: start the engine, introduce it, answer requests until standard input ends.

``--shared``: what it writes may be changed by other users of the machine too, whose engines may resume a query.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from typing import Any, Callable, Dict, List

from . import places
from .channel import Channel


def main(arguments: list[str]) -> int:
    channel = Channel()
    try:
        places.find_pyspark()
        from . import session
        from .errors import keep_origins
        from .execution import Execution, Reached, put_away

        keep_origins()
        if arguments[0] == "--shared":
            os.umask(0)
            arguments = arguments[1:]
        work, settings = arguments[0], dict(setting.split("=", 1) for setting in arguments[1:])
        spark = session.start(work, settings)
        channel.send("hello", identity=session.identity(spark))
    except Exception:
        channel.send("failed", message=traceback.format_exc())
        return 3
    for request in channel.requests():
        try:
            execution = Execution(spark, request, _teller(channel, request))
            for step in execution.run():
                channel.send("step", case=request["case"], step=step)
            put_away(request)
            channel.send("done", case=request["case"], columns=execution.columns)
        except Reached as here:
            channel.send("reached", case=request["case"], step=here.step, columns=execution.columns, missed=here.missed)
            # Whatever else this process did would be done after it was killed.
            threading.Event().wait()
        except Exception:
            if not session.is_alive(spark):
                # Not a message: our end tells the host that the engine is gone, and why is on standard error.
                traceback.print_exc()
                return 70
            channel.send("failed", message=traceback.format_exc())
    spark.stop()
    return 0


def _teller(channel: Channel, request: Dict[str, Any]) -> "Callable[[int, List[List[Any]]], None] | None":
    """Who is told of each micro-batch before it is committed, where the host wants to know even if this process is killed."""
    if not request.get("tell"):
        return None
    return lambda batch, rows: channel.send("emitted", case=request["case"], batch=batch, rows=rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
