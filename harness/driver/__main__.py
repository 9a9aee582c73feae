"""``python -m driver WORK [KEY=VALUE …]``: start the engine, introduce it, and answer requests until standard input ends."""

from __future__ import annotations

import sys
import traceback

from .channel import Channel
from .errors import keep_origins


def main(arguments: list[str]) -> int:
    channel = Channel()
    try:
        from . import session
        from .execution import Execution

        keep_origins()
        work, settings = arguments[0], dict(setting.split("=", 1) for setting in arguments[1:])
        spark = session.start(work, settings)
        channel.send("hello", identity=session.identity(spark))
    except Exception:
        channel.send("failed", message=traceback.format_exc())
        return 3
    for request in channel.requests():
        try:
            execution = Execution(spark, request)
            for step in execution.run():
                channel.send("step", case=request["case"], step=step)
            channel.send("done", case=request["case"], columns=execution.columns)
        except Exception:
            if not session.is_alive(spark):
                # Not a message: our end tells the host that the engine is gone, and why is on standard error.
                traceback.print_exc()
                return 70
            channel.send("failed", message=traceback.format_exc())
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
