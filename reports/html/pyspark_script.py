"""A case as a script that needs only pyspark: rows, query, sink, checkpoint and restarts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from conformance.core.case import PYTHON_STATE, Add, Backlog, Case, Idle, Pipeline, Restart, Row, Trigger
from conformance.core.spark_types import Schema
from conformance.core.values import to_json_value
from reports.html.pyspark_text import INDENT, assigned, name_of, query_lines, source_names, text_of

_TRIGGERS = {"once": "once=True", "availableNow": "availableNow=True"}
assert {"default", "realTime", *_TRIGGERS} == set(get_args(Trigger))

_HEAD = '''\
import json
import os
import tempfile
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()
)
work = tempfile.mkdtemp()
arrivals, files = 0, 0
step, emitted = 0, []


def source(stream, schema, name=None):
    os.makedirs(f"{work}/arrived/0/{stream}", exist_ok=True)
    reader = spark.readStream.name(name) if name else spark.readStream
    return (
        reader.schema(schema)
        .option("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
        .option("timestampNTZFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        .option("maxFilesPerTrigger", 1)
        .json(f"{work}/arrived/*/{stream}")
    )


def arrive(*batches):
    """Rows of streams, micro-batch by micro-batch; all of them appear at once."""
    global arrivals, files
    arrivals += 1
    for batch in batches:
        files += 1
        for stream, rows in batch.items():
            os.makedirs(f"{work}/{arrivals}/{stream}", exist_ok=True)
            path = f"{work}/{arrivals}/{stream}/{files:06}.json"
            with open(path, "w") as file:
                file.write("".join(json.dumps(row) + "\\n" for row in rows) or "\\n")
            os.utime(path, (1600000000 + files,) * 2)  # Spark reads the oldest file first
'''
_AT_ONCE = """\
    os.rename(f"{work}/{arrivals}", f"{work}/arrived/{arrivals}")
"""
_BETWEEN_TRIGGERS = """\
    time.sleep((0.5 - time.time()) % 1)  # between two triggers, so that one micro-batch reads all streams
    os.rename(f"{work}/{arrivals}", f"{work}/arrived/{arrivals}")
"""
_SINK = """

def sink(frame, batch):
    for row in frame.collect():
        emitted.append((step, batch, row))
        print(f"step {step}, micro-batch {batch}:", *row, sep="  ")


def start(query, mode):
    return (
        query.writeStream.outputMode(mode)TRIGGER
        .option("checkpointLocation", f"{work}/checkpoint")
        .foreachBatch(sink)
        .start()
    )

"""
_CRASH = """\
commits = f"{work}/checkpoint/commits"
newest = max(int(name) for name in os.listdir(commits) if name.isdigit())
for name in (f"{newest}", f".{newest}.crc"):
    if os.path.exists(f"{commits}/{name}"):
        os.remove(f"{commits}/{name}")"""


def pyspark_script(case: Case) -> str | None:
    """The script, without a final newline; it leaves the rows it emitted in ``emitted``, each with its step and micro-batch.

    Returns:
        None if a script cannot do what the case does: kill the engine, damage the checkpoint, change the trigger, run in real time,
        or call code that is not in the case.
    """
    if (
        case.sink
        or case.in_real_time
        or any(operation.name in PYTHON_STATE or operation.name == "call" for operation in case.operations())
    ):
        return None
    for step in case.steps:
        action = step.action
        if isinstance(action, Restart) and (
            action.how == "kill" or action.damage or action.repartition or action.change.trigger
        ):
            return None
    return "\n".join(_Script(case).lines()).rstrip()


class _Script:
    def __init__(self, case: Case) -> None:
        self._case = case
        self._mode = case.output_mode
        self._runs_on = case.trigger == "default"

    def lines(self) -> Iterator[str]:
        case = self._case
        yield f"# {' '.join(case.title.split())}"
        yield f"# {case.id} of watermark-conformance"
        several = len(case.streams) > 1 and self._runs_on
        yield from (_HEAD + (_BETWEEN_TRIGGERS if several else _AT_ONCE)).splitlines()
        trigger = _TRIGGERS.get(case.trigger, 'processingTime="1 second"' if several else "")
        called = f"\n        .trigger({trigger})" if trigger else ""
        yield from _SINK.replace("TRIGGER", called).splitlines()
        yield ""
        named = {name for pipeline in case.pipelines() for name in source_names(pipeline)}
        unnamed = [name for name in case.streams if name not in named]
        yield from (self._source(name) for name in unnamed)
        yield from [""] if unnamed else []
        yield from _settings(case.conf)
        yield from self._query(case.query)
        yield from self._steps()

    def _source(self, stream: str, name: str | None = None) -> str:
        named = f", {text_of(name)}" if name else ""
        return f"{name_of(stream)} = source({text_of(stream)}, {text_of(self._case.streams[stream].ddl)}{named})"

    def _query(self, pipeline: Pipeline) -> Iterator[str]:
        yield from (self._source(stream, name) for stream, name in source_names(pipeline).items())
        statements, frame = query_lines(pipeline)
        yield from statements
        yield from assigned("query", frame)
        yield ""

    def _steps(self) -> Iterator[str]:
        begun = False
        for step in self._case.steps:
            yield f"# {step.name}" if step.name else f"# step {step.number}"
            yield f"step = {step.number}"
            if isinstance(step.action, Restart):
                yield from self._restart(step.action, begun=begun)
                continue
            if self._runs_on and not begun:
                yield self._start()
                yield "running.processAllAvailable()"
            begun = True
            yield from self._arrival(step.action)
            if not self._runs_on:
                yield self._start()
            yield "running.processAllAvailable()" if self._runs_on else "running.awaitTermination()"
            yield ""
        yield "running.stop()"

    def _start(self) -> str:
        return f"running = start(query, {text_of(self._mode)})"

    def _restart(self, action: Restart, *, begun: bool) -> Iterator[str]:
        if begun:
            yield "running.stop()"
        if action.how == "crash-before-commit":
            yield from _CRASH.splitlines()
        yield from _settings(action.change.conf or {})
        if action.change.query is not None:
            yield from self._query(action.change.query)
        self._mode = action.change.output_mode or self._mode
        if self._runs_on:
            yield self._start()
            yield "running.processAllAvailable()"
        yield ""

    def _arrival(self, action: object) -> Iterator[str]:
        match action:
            case Add(streams=arrival):
                yield from self._arrive([arrival])
            case Backlog(entries=entries):
                yield from self._arrive([{name: entry.get(name) for name in self._case.streams} for entry in entries])
            case Idle() | _:
                return

    def _arrive(self, batches: list[Any]) -> Iterator[str]:
        yield "arrive("
        for batch in batches:
            yield f"{INDENT}{{"
            for stream, placed in batch.items():
                schema = self._case.streams[stream]
                rows = [row for part in placed.partitions for row in part] if placed is not None else []
                if not rows:
                    yield f"{INDENT * 2}{text_of(stream)}: [],"
                    continue
                yield f"{INDENT * 2}{text_of(stream)}: ["
                yield from (f"{INDENT * 3}{_row(row, schema)}," for row in rows)
                yield f"{INDENT * 2}],"
            yield f"{INDENT}}},"
        yield ")"


def _settings(conf: Mapping[str, str]) -> Iterator[str]:
    for key, value in conf.items():
        yield f"spark.conf.set({text_of(key)}, {text_of(value)})"
    if conf:
        yield ""


def _row(row: Row, schema: Schema) -> str:
    values = (
        dict(row)
        if isinstance(row, Mapping)
        else {field.name: value for field, value in zip(schema.fields, row, strict=True)}
    )
    return repr(
        json.loads(
            json.dumps({field.name: to_json_value(values.get(field.name), field.type) for field in schema.fields})
        )
    )
