"""Checkpoints of several operators and both state stores, damaged by a seed, and whether Spark resumes each; runs in an engine's Python.

Writes each damaged checkpoint to ``damaged/N`` below the folder that is named, and to ``damages.json`` what was done to it and the error
with which a copy of it failed, or null.
"""

import json
import random
import re
import shutil
import sys
from pathlib import Path

import pandas
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr, session_window
from pyspark.sql.functions import window as windows

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
ROWS = ["12:01", "12:30"]


def window(read):
    return read("a").groupBy(windows("t", "5 minutes")).count()


def session(read):
    return read("a").groupBy("n", session_window("t", "5 minutes")).count()


def deduplication(read):
    return read("a").dropDuplicates(["n", "t"])


def once_within(read):
    return read("a").dropDuplicatesWithinWatermark(["n"])


def chained(read):
    return window(lambda source: deduplication(read))


def join(read, how="inner"):
    one, two = read("a").alias("x"), read("b").alias("y")
    return one.join(two, expr("x.n = y.n AND y.t BETWEEN x.t AND x.t + INTERVAL 5 MINUTES"), how)


def outer_join(read):
    return join(read, "left_outer")


def function(read):
    def counted(key, frames, state):
        state.update((sum(map(len, frames)) + (state.get[0] if state.exists else 0),))
        yield pandas.DataFrame({"n": [key[0]], "count": [state.get[0]]})

    of_key = read("a").groupBy("n")
    return of_key.applyInPandasWithState(counted, "n INT, count INT", "count INT", "append", "NoTimeout")


def stateless(read):
    return read("a").select("n")


STATEFUL = [window, session, deduplication, once_within, chained, join, outer_join, function]


def remove(folder, path, draw):
    path.unlink()


def empty(folder, path, draw):
    path.write_bytes(b"")


def cut(folder, path, draw):
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content) or 1)])


def flip(folder, path, draw):
    content = bytearray(path.read_bytes())
    if content:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(bytes(content))


def without_folder(folder, path, draw):
    shutil.rmtree(str(path.parent if path.parent != folder else folder / "offsets"))


def without_newest(folder, path, draw):
    log = folder / draw.choice(["offsets", "commits"])
    numbers = sorted(int(entry.name) for entry in log.iterdir() if entry.name.isdigit())
    for number in numbers[-draw.randint(1, 2) :]:
        (log / str(number)).unlink()


def other_version(folder, path, draw):
    logs = [entry for log in ("offsets", "commits", "sources") for entry in (folder / log).rglob("*")]
    entry = draw.choice(sorted(e for e in logs if e.is_file() and not e.name.endswith(".crc")))
    entry.write_text(re.sub("^v[0-9]", draw.choice(["v0", "v3", "v9", "w1", ""]), entry.read_text()))


def other_setting(folder, path, draw):
    entry = max((e for e in (folder / "offsets").iterdir() if e.name.isdigit()), key=lambda e: int(e.name))
    lines = entry.read_text().split("\n")
    metadata = json.loads(lines[1])
    if "stateFormatVersion" in (key := draw.choice(sorted(metadata["conf"]))):
        key = "spark.sql.shuffle.partitions"
    metadata["conf"][key] = draw.choice(["abc", "-1", "", "evil.X"])
    entry.write_text("\n".join([lines[0], json.dumps(metadata), *lines[2:]]))


def java_object(folder, path, draw):
    """An empty `java.util.ArrayList`, as Java's serialisation writes it; a reader that deserialises it is at fault."""
    stream = "aced0005737200136a6176612e7574696c2e41727261794c6973747881d21d99c7619d03000149000473697a6578700000000077040000000078"
    path.write_bytes(bytes.fromhex(stream))


DAMAGES = [remove, empty, cut, flip, without_folder, without_newest, other_version, other_setting, java_object]


def main(root, seed, number):
    root = Path(root)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
    # Spark's default starts a process for each file, without Hadoop's native library.
    package = "checkpointing." if pyspark.__version__ > "4.1" else ""
    manager = f"org.apache.spark.sql.execution.streaming.{package}FileSystemBasedCheckpointFileManager"
    builder = builder.config("spark.sql.streaming.checkpointFileManagerClass", manager)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for source in "ab":
        (root / source).mkdir(parents=True)

    def arrives(name, time):
        for source in "ab":
            row = {"t": f"2026-03-01 {time}:00", "n": 1}
            (root / source / name).write_text(json.dumps(row) + "\n")

    def read(source):
        rows = spark.readStream.schema("t TIMESTAMP, n INT").option("maxFilesPerTrigger", 1).json(str(root / source))
        return rows.withWatermark("t", "5 minutes")

    def run(query, provider, checkpoint):
        spark.conf.unset("spark.sql.streaming.stateStore.providerClass")
        if provider:
            spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
        started = query(read).writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
        try:
            started.processAllAvailable()
        finally:
            started.stop()

    checkpoints = [(query, store) for query in STATEFUL for store in ("", ROCKSDB)]
    checkpoints.append((stateless, ""))
    for at, time in enumerate(ROWS):
        arrives(f"{at}.json", time)
    for at, (query, store) in enumerate(checkpoints):
        run(query, store, root / "whole" / str(at))
    arrives("more.json", "13:40")
    draw, told = random.Random(seed), []
    for at in range(number):
        which = at % len(checkpoints)
        folder, copy = root / "damaged" / str(at), root / "run" / str(at)
        shutil.copytree(str(root / "whole" / str(which)), str(folder))
        checked = draw.random() < 0.5
        for sums in [] if checked else folder.rglob("*.crc"):
            sums.unlink()
        damage = DAMAGES[draw.randrange(len(DAMAGES))] if at else None
        path = draw.choice(sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".crc"))
        if damage is not None:
            damage(folder, path, draw)
        shutil.copytree(str(folder), str(copy))
        query, store = checkpoints[which]
        try:
            run(query, store, copy)
            error = None
        except Exception as raised:
            error = str(raised)[:500]
        name = damage.__name__ if damage else "nothing"
        what = [query.__name__, store.rpartition(".")[2], name, str(path.relative_to(folder)), checked]
        told.append({"damaged": str(folder), "what": what, "error": error})
        (root / "damages.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
