"""``python -m driver [--shared] WORK [KEY=VALUE …]``: start the engine, introduce it, answer requests until standard input ends.

``--shared``: what it writes may be changed by other users of the machine too, whose engines may resume a query.
"""

from __future__ import annotations

import os
import shutil
import sys
import traceback

from . import places
from .channel import Channel


def main(arguments: list[str]) -> int:
    channel = Channel()
    try:
        places.find_pyspark()
        from . import session
        from .errors import keep_origins
        from .execution import Execution

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
            execution = Execution(spark, request)
            for step in execution.run():
                channel.send("step", case=request["case"], step=step)
            shutil.rmtree(request["directory"], ignore_errors=True)
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
