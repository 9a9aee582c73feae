"""``python -m soak_driver WORK [KEY=VALUE …]``: the driver's protocol with the requests of a soak."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, Dict

from harness.driver.backend import Backend
from harness.driver.request import snake_case
from harness.driver.serve import Channel, serve


def answer(channel: Channel, backend: Backend, message: Dict[str, Any]) -> None:
    from harness.driver.classic import Classic

    from . import stream, tables

    assert isinstance(backend, Classic)
    case, folder = message["case"], message["folder"]
    spec = stream.SoakStream(**snake_case(message["stream"]))
    if message["kind"] == "generate":
        stream.generate(backend.spark, folder, spec)
    elif message["kind"] == "run":
        stream.run(backend, folder, spec, message["attempt"], partial(channel.send, case=case))
    else:
        tables.register(backend.spark, folder, spec, message["late"])
        for question in message["questions"]:
            frame = backend.spark.sql(question["sql"])
            rows = [list(row) for row in frame.limit(question["most"]).collect()]
            channel.send("rows", case=case, name=question["name"], columns=frame.columns, rows=rows)
    channel.send("done", case=case, columns=[])


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1:], answer))
