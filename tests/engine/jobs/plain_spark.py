"""What runs in production, tried: plain PySpark runs a job on a sample and resumes copies of its checkpoints. python plain_spark.py TASKS

Runs in the Python of one Spark version and imports nothing but pyspark and the job. Reads a JSON list of tasks from a file, and prints
a JSON line for each with what every micro-batch emitted.
"""

import importlib
import json
import re
import shutil
import sys
import traceback
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from unittest import mock

import pyspark
from pyspark.sql import SparkSession

VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))
TRIES = 5
"""Of a run in which one micro-batch did not read the rows of one arrival: on a busy machine, one stream got its file too late."""


class NotAligned(Exception):
    """Rows that arrived together were read by several micro-batches."""


SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    # A query that has nothing to do asks its sources again after half a second. The streams of an arrival get their files within
    # that time, so that no micro-batch asks one source before it has its file and the next source after.
    "spark.sql.streaming.pollingDelay": "500ms",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djdk.lang.Process.launchMechanism=VFORK",
}
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.{}FileSystemBasedCheckpointFileManager"
"""Without Hadoop's native library the default one starts a process for each file of a checkpoint."""


def start_spark():
    builder = SparkSession.builder.master("local[1]")
    package = "checkpointing." if VERSION >= (4, 1) else ""
    manager = {"spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER.format(package)}
    for key, value in {**SETTINGS, **manager}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def run(spark, task):
    """Run a job from a copy of a checkpoint, or from nothing. If ``keep`` names a folder, it gets a copy after each arrival."""
    folder = Path(task["folder"])
    scratch = folder / "checkpoint"
    shutil.rmtree(scratch, ignore_errors=True)
    if task["resume"]:
        shutil.copytree(task["resume"], scratch)
    inputs = {stream: folder / "in" / stream for stream in task["schemas"]}
    for stream, place in inputs.items():
        place.mkdir(parents=True, exist_ok=True)
        for number, file in enumerate(sorted(place.iterdir())):
            if number >= task["arrived"]:
                file.unlink()
        for number in range(len([*place.iterdir()]), task["arrived"]):
            write(shown(place, number), task["arrivals"][number][stream])
    session = spark.newSession()
    # Expressions ask the active session whether ANSI mode is on; in production, that of the job is the only one.
    sql = spark._jvm.org.apache.spark.sql
    (sql.classic if VERSION >= (4, 0) else sql).SparkSession.setActiveSession(session._jsparkSession)
    for key, value in task["conf"].items():
        session.conf.set(key, value)
    emitted, done = {}, {"batches": [], "columns": None, "error": None, "stage": "build", "untimed": 0}
    query = None
    try:
        streams = [
            session.readStream.schema(ddl).option("maxFilesPerTrigger", 1).json(str(inputs[stream]))
            for stream, ddl in task["schemas"].items()
        ]
        module, _, name = task["function"].partition(":")
        function = partial(getattr(importlib.import_module(module), name), **task["arguments"])
        if not task["resume"]:
            done["untimed"] = untimed(session, function, task, folder)
        frame = function(session, *streams)
        done["columns"] = [[field.name, field.dataType.simpleString()] for field in frame.schema.fields]

        def keep(rows, number):
            emitted[number] = rows.collect()

        done["stage"] = "start"
        writer = frame.writeStream.foreachBatch(keep).outputMode(task["mode"])
        query = writer.option("checkpointLocation", str(scratch)).start()
        done["stage"] = "run"
        if task["resume"]:
            query.processAllAvailable()
        for number in range(task["arrived"], len(task["arrivals"])):
            for stream, place in inputs.items():
                write(hidden(place, number), task["arrivals"][number][stream])
            for place in inputs.values():
                hidden(place, number).rename(shown(place, number))
            query.processAllAvailable()
            if task["keep"]:
                shutil.copytree(scratch, Path(task["keep"]) / str(number + 1))
        done["stage"] = "end"
    except Exception as error:  # what Spark, py4j or the job raises is the answer
        failure = query.exception() if query is not None else None
        text = str(failure or error)
        done["error"] = {"type": type(failure or error).__name__, "names": names(text), "text": text[:4000]}
        done["trace"] = traceback.format_exc()[-1500:]
    finally:
        progress = progress_of(query)
        if query is not None:
            query.stop()
    aligned(progress, task)
    for each in progress:
        if "addBatch" in each["durationMs"]:
            number = each["batchId"]
            rows = sorted(repr(comparable(row)) for row in emitted[number])
            done["batches"].append({"id": number, "rows": rows, **metrics(each)})
    return done


def untimed(session, function, task, folder):
    """The rows of the samples whose event time is null: those of a batch, wherever the job declares a watermark on one."""
    files = {stream: folder / f"{stream}.json" for stream in task["schemas"]}
    for stream, file in files.items():
        write(file, [line for arrived in task["arrivals"] for line in arrived[stream]])
    marked = []
    frames = type(session.range(0))
    marking = frames.withWatermark

    def mark(frame, column, delay):
        marked.append((frame, column))
        return marking(frame, column, delay)

    with suppress(Exception), mock.patch.object(frames, "withWatermark", mark):
        # What a batch cannot do comes after its watermarks.
        function(
            session, *(session.read.schema(ddl).json(str(files[stream])) for stream, ddl in task["schemas"].items())
        )
    try:
        return sum(frame.where(frame[column].isNull()).count() for frame, column in marked)
    except Exception:  # the query will meet it, too
        return 0


def comparable(value):
    """A value as it compares: numbers by their size, whatever their type is, which is compared with the columns."""
    if isinstance(value, (tuple, list)):
        return [comparable(each) for each in value]
    if isinstance(value, dict):
        return sorted((repr(comparable(key)), comparable(each)) for key, each in value.items())
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        number = Decimal(repr(value) if isinstance(value, float) else value)
        return number.normalize() if number.is_finite() else number
    return value


def progress_of(query):
    """Of each micro-batch: a dict, or what has its text since 4.0."""
    entries = query.recentProgress if query is not None else []
    return [json.loads(each.json) if hasattr(each, "json") else each for each in entries]


def aligned(progress, task):
    """Each micro-batch must have read one file of each stream, or none."""
    for each in progress:
        moved = {
            (source["endOffset"] or {}).get("logOffset", -1) - (source["startOffset"] or {}).get("logOffset", -1)
            for source in each["sources"]
            if source["description"].startswith("FileStreamSource")
        }
        if len(moved) > 1:
            raise NotAligned(str(moved))


def metrics(progress):
    return {
        # Of a year beyond 9999, newer versions write the sign, too.
        "watermark": progress.get("eventTime", {}).get("watermark", "").lstrip("+"),
        "operators": [each.get("operatorName") for each in progress["stateOperators"]],
        "state": [each["numRowsTotal"] for each in progress["stateOperators"]],
        "dropped": [each.get("numRowsDroppedByWatermark") for each in progress["stateOperators"]],
    }


def names(text):
    """The error conditions that a message names, without those that say only that a query ended."""
    names = re.findall(r"\[([A-Z][A-Z0-9_.]+)\]", text)
    return [name for name in dict.fromkeys(names) if name not in ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR")]


def shown(place, number):
    return place / f"{number:04}.json"


def hidden(place, number):
    return place.parent / f".{place.name}-{number:04}"


def write(file, lines):
    # Spark ignores an empty file.
    file.write_text("".join(f"{line}\n" for line in lines) or "\n")


def main(tasks):
    spark = start_spark()
    for task in json.loads(Path(tasks).read_text()):
        if task["resume"] and not Path(task["resume"]).is_dir():
            print(json.dumps({"name": task["name"], "skipped": "the job did not get there"}), flush=True)
            continue
        for attempt in range(TRIES):
            try:
                if task["keep"]:
                    shutil.rmtree(task["keep"], ignore_errors=True)
                done = run(spark, task)
                break
            except NotAligned:
                if attempt == TRIES - 1:
                    raise
        print(json.dumps({"name": task["name"], **done}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
