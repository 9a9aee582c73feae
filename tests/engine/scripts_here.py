"""Runs scripts of cases one after the other in this process, each in a session of its own; runs inside an engine's Python.

Reads ``{"conf": …, "scripts": {case: script}}`` as JSON from standard input, settings of the one JVM among it that save time and change
no answer, and writes ``{case: {"columns", "rows", "error"}}`` to the file that is named; a row is its step, its micro-batch and its
values in the encoding of observations.
"""

import json
import sys
import traceback
from pathlib import Path

from pyspark.sql import SparkSession

from harness.driver.values import encode_row


def main(out):
    given = json.load(sys.stdin)
    builder = SparkSession.builder
    builder.config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    for key, value in given["conf"].items():
        builder.config(key, value)
    first = builder.master("local[1]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    first.sparkContext.setLogLevel("OFF")
    kind, collected, found = type(first.range(1)), [], {}
    collect = kind.collect

    def recording(frame):
        rows = collect(frame)
        collected.extend(encode_row(row, frame.schema) for row in rows)
        return rows

    def session(own):
        made = first.newSession()
        for key, value in own._options.items():
            if key.startswith("spark.sql."):
                made.conf.set(key, value)
        return made

    kind.collect = recording
    type(builder).getOrCreate = session
    for case, text in given["scripts"].items():
        collected.clear()
        scope, error = {"__name__": "__main__"}, None
        try:
            exec(compile(text, case, "exec"), scope)
        except Exception:
            error = traceback.format_exc()
        for query in first.streams.active:
            query.stop()
        columns = (
            [[field.name, field.dataType.simpleString()] for field in scope["query"].schema] if "query" in scope else []
        )
        emitted = scope.get("emitted", [])
        rows = [[*emitted[at][:2], row] for at, row in enumerate(collected)]
        found[case] = {"columns": columns, "rows": rows, "error": error}
        Path(out).write_text(json.dumps(found), encoding="utf-8")


main(sys.argv[1])
