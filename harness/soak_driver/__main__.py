"""``python -m harness.soak_driver WORK [KEY=VALUE …]``: start the engine, introduce it, do what is asked until standard input ends."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, Dict

from harness.driver import places
from harness.driver.channel import Channel


def main(arguments: list[str]) -> int:
    channel = Channel()
    # Spark 3.2 and newer do so themselves; the sink is called from a thread of its own.
    os.environ["PYSPARK_PIN_THREAD"] = "true"
    try:
        places.find_pyspark()
        from harness.driver.classic import Classic

        engine = Classic(arguments[0], dict(setting.split("=", 1) for setting in arguments[1:]))
        channel.send("hello", identity=engine.identity(), slots=engine.slots())
    except Exception:
        channel.send("failed", message=traceback.format_exc())
        return 3
    for request in channel.requests():
        try:
            _answer(channel, engine, request)
        except Exception:
            channel.send("failed", message=traceback.format_exc())
    # Nobody listens any more. The JVM ends with us.
    sys.stderr.flush()
    os._exit(0)


def _answer(channel: Channel, engine: Any, request: Dict[str, Any]) -> None:
    from . import questions, running, stream

    if request["kind"] == "generate":
        stream.generate(engine.spark, request["folder"], request["stream"])
    elif request["kind"] == "run":
        running.run(engine, request["folder"], request["stream"], request["attempt"], channel)
    else:
        questions.answer(engine.spark, request, channel)
    channel.send("done")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
