"""Programs that do something else on the newer version, and whether `conformance check` calls any query of them the same.

A program has a few queries, each of a kind that answers alike on both versions, and each with a way in which the newer version's differs;
or one query, and a way that concerns the whole program. ``none`` is the way of a query that does not differ: it must be the same.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tools.campaign.results import AFTER, BEFORE
from tools.campaign.tries import Answer, Try, drawn

HEAD = """
import os
import threading
import time

import pandas
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
NEW = spark.version >= "4"
SOON = "a.who = b.who AND b.t BETWEEN a.t AND a.t + INTERVAL 5 MINUTES"
TEN = F.window("t", "10 minutes").alias("w")
FIRST = "k LIKE '%12:0%'"


def read(name, **options):
    stream = spark.readStream.schema("t TIMESTAMP, who STRING, n INT, x DOUBLE").options(**options)
    return stream.json("/data/" + name)


def keyed(frame, start, *aggregated):
    return frame.select(
        F.col(start).cast("string").alias("k"), *aggregated, F.lit("").alias("e"), F.lit(0.0).alias("z"),
        F.col(start).alias("at"), F.array().cast("array<int>").alias("l"), F.lit(1.0).alias("d"),
    )


TYPES = "at TIMESTAMP, n BIGINT", "n BIGINT", "update", "NoTimeout"


def counted(key, frames, state):
    state.update((sum(map(len, frames)) + (state.get[0] if state.exists else 0),))
    yield pandas.DataFrame({"at": [pandas.Timestamp("2026-03-01 12:00:00")], "n": [state.get[0]]})
"""

KINDS: Mapping[str, str] = {
    "window": 'keyed(a.groupBy(TEN).agg(F.sum("n").alias("n")), "w.start", "n")',
    "keyed window": 'keyed(a.groupBy(TEN, "who").agg(F.max("n").alias("n")), "w.start", "n")',
    "session": 'keyed(a.groupBy(F.session_window("t", "4 minutes").alias("w"), "who").agg(F.count("*").alias("n")), "w.start", "n")',
    "deduplication": 'keyed(a.dropDuplicates(["who", "t"]), "t", "n")',
    "within watermark": 'keyed(a.dropDuplicatesWithinWatermark(["who", "n"]), "t", "n")',
    "chained": 'keyed(a.dropDuplicates(["who", "t"]).groupBy(TEN).agg(F.sum("n").alias("n")), "w.start", "n")',
    "inner join": 'keyed(a.alias("a").join(b.alias("b"), F.expr(SOON)), "a.t", "a.n")',
    "outer join": 'keyed(a.alias("a").join(b.alias("b"), F.expr(SOON), "left_outer"), "a.t", "a.n")',
    "function": 'keyed(a.groupBy("who").applyInPandasWithState(counted, *TYPES), "at", "n")',
    "stateless": 'keyed(a, "t", "n")',
}
"""What a query computes, of the stream ``a``, or also ``b``."""

OF_ROWS: Mapping[str, str] = {
    "none": "q",
    "row less": 'q.where(f"NOT ({FIRST})")',
    "row more": 'q.withColumn("_", F.expr(f"explode(if({FIRST}, array(1, 2), array(1)))")).drop("_")',
    "other value": 'q.withColumn("n", F.expr(f"if({FIRST}, n + 1, n)"))',
    "null for a value": 'q.withColumn("n", F.expr(f"if({FIRST}, null, n)"))',
    "null for empty": 'q.withColumn("e", F.expr(f"if({FIRST}, null, e)"))',
    "null for an empty array": 'q.withColumn("l", F.expr(f"if({FIRST}, null, l)"))',
    "null in an array": 'q.withColumn("l", F.expr(f"if({FIRST}, array(cast(null as int)), l)"))',
    "minus zero": 'q.withColumn("z", F.expr(f"if({FIRST}, -z, z)"))',
    "NaN": 'q.withColumn("z", F.expr(f"if({FIRST}, double(\'NaN\'), z)"))',
    "tenth decimal": 'q.withColumn("d", F.expr(f"if({FIRST}, d + 1e-10D, d)"))',
    "a microsecond": 'q.withColumn("at", F.expr("at + INTERVAL 1 MICROSECOND"))',
    "a space": 'q.withColumn("e", F.expr(f"if({FIRST}, \' \', e)"))',
    "case of a name": 'q.withColumnRenamed("n", "N")',
    "type": 'q.withColumn("n", F.col("n").cast("decimal(20,0)"))',
    "order of columns": "q.select(*reversed(q.columns))",
}
"""What the newer version does with a query ``q``."""

OF_WRITER: Mapping[str, str] = {
    "output mode": 'w.outputMode("update")',
    "trigger": 'w.trigger(processingTime="7 seconds")',
    "sink": 'w.format("console")',
    "option": 'w.option("compression", "none")',
    "name": 'w.queryName("other")',
    "foreachBatch": "w.foreachBatch(lambda frame, batch: frame.limit(1).count())",
    "foreach": "w.foreach(print)",
}
"""What it does with a writer ``w``."""

OF_PROGRAM: Mapping[str, tuple[str, str]] = {
    "delay": ('DELAY = "20 minutes"', ""),
    "option of a source": ('OPTIONS = {"maxFilesPerTrigger": 1}', ""),
    "other source": ('A = "others"', ""),
    "time zone": ('spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")', ""),
    "time zone of the process": (
        'os.environ["TZ"] = "Asia/Kolkata"; time.tzset(); spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")',
        "",
    ),
    "filter after": ("AFTER = True", ""),
    "query more": ("", 'a.select("who").writeStream.start("/more")'),
    "query of a thread": (
        "",
        'spawned = threading.Thread(target=a.select("who").writeStream.start, args=["/more"]); spawned.start(); spawned.join()',
    ),
    "query of a thread that waits": ("", "threading.Timer(1, lambda: a.writeStream.start('/late')).start()"),
    "query by py4j": (
        "",
        'a.select("who")._jdf.writeStream().format("console").option("checkpointLocation", "/more").start()',
    ),
    "swallowed exception": (
        "",
        'try:\n        a.groupBy("who").count().writeStream.start("/x")\n    except Exception:\n        pass',
    ),
    "query less": ("QUERIES = 1", ""),
    "sort": ("DESCENDING = True", ""),
}
"""What it does before it builds the queries, and after."""


@dataclass(frozen=True)
class Program:
    """Queries of kinds, each with its way; ``whole`` is the way in which the exit code must notice that the program differs."""

    queries: tuple[tuple[str, str], ...]
    whole: str = ""

    @property
    def text(self) -> str:
        before, after = OF_PROGRAM.get(self.whole, ("", ""))
        lines = [HEAD, 'A, DELAY, OPTIONS, QUERIES, AFTER, DESCENDING = "a", "10 minutes", {}, 2, False, False']
        lines += [f"if NEW:\n    {before}"] if before else []
        lines += [
            f'{name} = read({place}, **OPTIONS).withWatermark("t", DELAY)' for name, place in (("a", "A"), ("b", '"b"'))
        ]
        if self.whole == "filter after":
            lines += ["seen = a if AFTER else a.where(\"who <> 'zed'\")"]
            lines += ['q = seen.groupBy(TEN, "who").agg(F.count("*").alias("n"), F.max("who").alias("m"))']
            lines += ["q = q.where(\"m <> 'zed'\")", 'q.writeStream.start("/0")']
        elif self.whole == "sort":
            lines += ['q = a.groupBy("who").count()', 'q = q.orderBy(F.desc("who") if DESCENDING else F.asc("who"))']
            lines += ['q.writeStream.outputMode("complete").format("console").start()']
        for number, (kind, way) in enumerate(self.queries):
            lines += [f"q = {KINDS[kind]}"]
            lines += [f"if NEW:\n    q = {OF_ROWS[way]}"] if way in OF_ROWS else []
            mode = "update" if kind == "function" else "append"
            lines += [f'w = q.writeStream.outputMode("{mode}").format("json").option("path", "/out/{number}")']
            lines += [f"if NEW:\n    w = {OF_WRITER[way]}"] if way in OF_WRITER else []
            lines += [f"if QUERIES > {number}:\n    w.start()"] if self.whole else ["w.start()"]
        lines += [f"if NEW:\n    {after}"] if after else []
        return "\n".join(lines) + "\n"


def sample(draw: random.Random) -> str:
    """Draw rows that come in the order of their time, some of them twice; the first is the same in every sample, so that joins emit it."""
    at = datetime(2026, 3, 1, 12, 1)
    rows: list[str] = []
    while at < datetime(2026, 3, 1, 13, 10):
        row = {
            "t": f"{at:%Y-%m-%d %H:%M:%S}",
            "who": draw.choice(["ada", "bob", "zed"]) if rows else "ada",
            "n": draw.randrange(100),
        }
        rows += [json.dumps({**row, "x": draw.random()})] * draw.choice([1, 1, 1, 2])
        at += timedelta(minutes=draw.choice([1, 2, 5, 8]), seconds=draw.randrange(1, 59))
    return "\n".join(rows) + "\n"


WAYS = [way for way in (*OF_ROWS, *OF_WRITER) if way != "none"]
"""The ways of a query."""


def some_queries(seed: int, number: int) -> Program:
    """Draw a program of five queries, one of which does not differ."""
    draw = drawn(seed, number)
    return Program(tuple(zip(draw.sample([*KINDS], 5), (*draw.sample(WAYS, 4), "none"), strict=True)))


def one_way(seed: int, number: int) -> Program:
    """Draw a program that differs as a whole, or has a single query that does; as many numbers as there are ways have each once."""
    every = [*OF_PROGRAM, *WAYS]
    rounds, at = divmod(number, len(every))
    way, draw = drawn(seed, -1 - rounds).sample(every, len(every))[at], drawn(seed, number)
    if way in WAYS:
        return Program(((draw.choice([*KINDS]), way),), way)
    kinds = draw.sample([*KINDS], 2) if way not in ("filter after", "sort") else []
    return Program(tuple((kind, "none") for kind in kinds), way)


def attempt(program: Callable[[int, int], Program], seed: int, number: int) -> Iterator[Try]:
    """Check a drawn program; each query of it is a try, or the program as a whole."""
    draw, made = drawn(seed, number), program(seed, number)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "job.py").write_text(made.text, encoding="utf-8")
        for name in ("a", "b", "others"):
            (folder / f"{name}.jsonl").write_text(sample(draw), encoding="utf-8")
        said = checked(folder, made)
    yield from _tries(number, made, said)


def checked(folder: Path, made: Program) -> Answer:
    options = "--json --accept-lost --no-repeat-rows --no-silent-streams --batches 2"
    options += " --conf spark.sql.streaming.stateStore.stateSchemaCheck=false"
    names = ["a", *(["b"] if any("join" in kind for kind, _ in made.queries) else [])]
    samples = [part for name in names for part in ("--sample", f"{name}={name}.jsonl")]
    command = [sys.executable, "-m", "conformance.cli.main", "check", "job.py", "--from", BEFORE, "--to", AFTER]
    command += [*samples, *options.split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


def _tries(number: int, made: Program, said: Answer) -> Iterator[Try]:
    if made.whole or said.code > 1:
        held = said.code != 0 or (made.whole == "sort" and "order" in said.out)
        what = made.whole or "; ".join(f"{kind}, {way}" for kind, way in made.queries)
        yield Try(number, "check, the program", what, "" if held and not said.unforeseen else said.last)
        return
    answered = json.loads(said.out)
    verdicts = answered.get("queries", [answered])
    for (kind, way), verdict in zip(made.queries, verdicts, strict=True):
        same = verdict["answer"] == "same"
        door = "check, the same query" if way == "none" else "check, another query"
        yield Try(number, door, f"{kind}, {way}", "" if same == (way == "none") else json.dumps(verdict)[:400])
