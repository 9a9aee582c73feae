"""Speaks the driver protocol and knows one query: sums per 10-minute window in append mode with a delay of 25 minutes.

``python engine.py MODE``. Every mode but ``right`` is wrong in one way, named after it. It keeps what it knows in the case's directory,
so that another process can go on.
"""

import json
import os
import shutil
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = 60_000
DELAY = 25 * MINUTE
WINDOW = 10 * MINUTE
NO_BROKER = "the Kafka broker a:1 takes no connection: Connection refused"
NO_HEAP = "java.lang.OutOfMemoryError: Java heap space"
IDENTITY = {
    "protocol": 1,
    "spark": "3.5.9",
    "scala": "2.12.18",
    "java": "17",
    "python": "3.11",
    "os": "Linux",
    "apis": [],
}


def milliseconds(text):
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)


def instant(ms):
    return (EPOCH + timedelta(milliseconds=ms)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Query:
    def __init__(self, mode):
        self.mode = mode
        self.watermark = 0
        self.state = {}
        self.batches = 0
        self.held_back = []

    def load(self, directory):
        kept = json.loads(Path(directory, "checkpoint.json").read_text())
        self.watermark, self.batches = kept["watermark"], kept["batches"]
        self.state = {int(start): total for start, total in kept["state"].items()}
        if self.mode == "forgets-on-resume":
            self.state = {}

    def store(self, directory):
        Path(directory).mkdir(parents=True, exist_ok=True)
        kept = {"watermark": self.watermark, "batches": self.batches, "state": self.state}
        Path(directory, "checkpoint.json").write_text(json.dumps(kept))

    def plan(self, directory, rows):
        Path(directory, "planned.json").write_text(json.dumps(rows))

    def replay(self, directory):
        """What an engine had planned and not committed when it was killed."""
        planned = Path(directory, "planned.json")
        if not planned.exists():
            return []
        rows = json.loads(planned.read_text())
        planned.unlink()
        return self.drain(rows)

    def batch(self, rows):
        ran_with, dropped = self.watermark, 0
        if self.mode == "forgets-state":
            self.state = {}
        for time_ms, count in rows or ():
            start = time_ms // WINDOW * WINDOW
            if start + WINDOW <= ran_with and self.mode != "keeps-late-rows":
                dropped += 1
                continue
            self.state[start] = self.state.get(start, 0) + count
        emitted = sorted((start, total) for start, total in self.state.items() if start + WINDOW <= ran_with)
        for start, _ in emitted:
            del self.state[start]
        if rows:
            self.watermark = max(self.watermark, max(time_ms for time_ms, _ in rows) - DELAY)
        out = [[instant(start), instant(start + WINDOW), total] for start, total in emitted]
        if self.mode == "one-batch-late":
            out, self.held_back = self.held_back, out
        if self.mode == "drops-a-column":
            out = [row[:-1] for row in out]
        seen = {
            "id": self.batches,
            "kind": "no-data" if rows is None else "data",
            "sources": [{"stream": "events", "rows": len(rows or ()), "moved": rows is not None}],
            "watermark": ran_with,
            "logged": ran_with + (1 if self.mode == "two-watermarks" else 0),
            "next_watermark": self.watermark,
            "rows": out,
            "dropped": dropped,
            "state": [len(self.state)],
            "event_time": None,
            "duration_ms": 1,
            "progress": {"numInputRows": len(rows or ())},
        }
        self.batches += 1
        return seen

    def drain(self, rows):
        before = self.watermark
        batches = [self.batch(rows)]
        if self.watermark > before:
            batches.append(self.batch(None))
        return batches


def run(request, mode, on_progress):
    query, directory = Query(mode), request["directory"]
    for path in request["discard"]:
        shutil.rmtree(path)
    if "restore" in request:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(request["restore"], directory)
    if request["first"] > 1:
        if mode == "refuses-to-resume":
            refuse(request, on_progress, request["first"])
            return
        query.load(directory)
    if mode == "fails-after-emitting":
        on_progress(json.dumps({"kind": "emitted", "case": request["case"], "batch": 7, "rows": [["lost", "lost", 0]]}))
        refuse(request, on_progress, request["first"])
        return
    last = request["first"] + len(request["steps"]) - 1
    for number, step in enumerate(request["steps"], request["first"]):
        placed = [row for batch in step["batches"] for rows in batch["events"] for row in rows]
        if "files" in step:
            placed = [json.loads(line) for line in Path(step["files"]["events"]).read_text().splitlines()]
        arrived = [(milliseconds(row["event_time"]), row["count"]) for row in placed]
        if "keep" in step:
            shutil.copytree(directory, step["keep"])
        if number == 2 and mode == "dies":
            sys.stderr.write("OutOfMemoryError: there was no more room\n")
            sys.stderr.flush()
            os._exit(137)
        if number == 4 and mode == "refuses-step-4":
            refuse(request, on_progress, number)
            return
        if number == last and mode == "hangs":
            time.sleep(3600)
        if number == 2 and mode == "closes-its-output":
            os.close(1)
            time.sleep(3600)
        while number == last and mode == "emits-for-ever":
            on_progress(json.dumps({"kind": "emitted", "case": request["case"], "batch": 1, "rows": []}))
            time.sleep(0.01)
        while number == 2 and mode == "ends-no-line":
            os.write(1, b"x" * (1 << 20))
        if number == 2 and mode == "babbles":
            on_progress("this is no message")
        if step["action"] == "kill":
            killed(request, step, number, query, arrived, on_progress)
        if step["action"] == "restart":
            batches = query.replay(directory)
        elif mode == "splits-a-batch" and len(arrived) > 1:
            batches = query.drain(arrived[:1]) + query.drain(arrived[1:])
        elif mode == "sees-no-rows":
            batches = []
        else:
            batches = query.drain(arrived) if step["batches"] else []
        seen = {
            "number": number,
            "batches": batches,
            "watermark": query.watermark,
            "plan": None,
            "error": None,
            "wall_ms": 1,
        }
        for _ in range(2 if mode == "repeats-its-steps" else 1):
            on_progress(json.dumps({"kind": "step", "case": request["case"], "step": seen}))
        query.store(directory)
    if "save" in request:
        Path(directory).rename(request["save"])
    else:
        shutil.rmtree(directory)
    columns = columns_of(mode)
    lost = 1 if mode == "loses-executors" else 0
    on_progress(json.dumps({"kind": "done", "case": request["case"], "columns": columns, "executorsLost": lost}))


def killed(request, step, number, query, arrived, on_progress):
    """At ``emitted``, the rows are out and nothing is committed: the next process runs the micro-batch again."""
    batches = []
    if step["at"] == "emitted":
        query.plan(request["directory"], arrived)
        batch = query.batch(arrived)
        rows = batch["rows"] if query.mode != "loses-what-it-emitted" else [["lost", "lost", 0]]
        on_progress(json.dumps({"kind": "emitted", "case": request["case"], "batch": batch["id"], "rows": rows}))
    if step["at"] == "committed":
        batches = [query.batch(arrived)]
        query.store(request["directory"])
    seen = {"number": number, "batches": batches, "watermark": 0, "plan": None, "error": None, "wall_ms": 1}
    missed = query.mode == "always-misses"
    on_progress(json.dumps({"kind": "reached", "case": request["case"], "step": seen, "columns": [], "missed": missed}))
    time.sleep(3600)


def refuse(request, on_progress, number):
    error = {"stage": "run", "classes": ["STATE_NOT_COMPATIBLE"], "message": "written by another"}
    seen = {"number": number, "batches": [], "watermark": 0, "plan": None, "error": error, "wall_ms": 1}
    on_progress(json.dumps({"kind": "step", "case": request["case"], "step": seen}))
    on_progress(json.dumps({"kind": "done", "case": request["case"], "columns": []}))


def columns_of(mode):
    columns = [
        {"name": name, "type": kind}
        for name, kind in (("start", "timestamp"), ("end", "timestamp"), ("total", "bigint"))
    ]
    if mode == "drops-a-column":
        del columns[-1]
    return columns


def answer_the_last_first(requests, on_progress):
    """Several cases at once, their messages in turns."""
    said = []
    for request in reversed(requests):
        said.append([])
        run(request, "right", said[-1].append)
    for messages in zip(*said, strict=True):
        for message in messages:
            on_progress(message)


def main(mode):
    def on_progress(line):
        print(line, flush=True)

    if mode == "does-not-start":
        on_progress(json.dumps({"kind": "failed", "message": "Traceback: no JAVA_HOME"}))
        return
    if mode == "has-no-pyspark":
        on_progress(json.dumps({"kind": "failed", "reason": "pyspark-missing", "message": "no pyspark"}))
        return
    identity = {**IDENTITY, "protocol": 99} if mode == "speaks-another-protocol" else IDENTITY
    if mode.startswith("has"):  # has spark.sql.b: ten settings of its own, of which these make it forget
        own = [f"spark.sql.{letter}=off (by default on)" for letter in "abcdefghi"]
        identity = {**identity, "settings": own, "fixed": ["spark.static=1"]}
    on_progress(json.dumps({"kind": "hello", "identity": identity}))
    if mode == "takes-three-and-answers-the-last-first":
        answer_the_last_first([json.loads(sys.stdin.readline()) for _ in range(3)], on_progress)
        return
    for number, line in enumerate(sys.stdin):
        if mode == "driver-fails":
            on_progress(json.dumps({"kind": "failed", "message": "Traceback: KeyError"}))
        elif mode == "loses-its-jvm":
            on_progress(json.dumps({"kind": "failed", "reason": "engine-lost", "message": "Py4JNetworkError: refused"}))
            os._exit(70)
        elif mode == "loses-its-broker":
            on_progress(json.dumps({"kind": "failed", "reason": "no-broker", "message": NO_BROKER}))
            os._exit(70)
        elif mode == "has-no-heap":
            on_progress(json.dumps({"kind": "failed", "reason": "engine-lost", "message": NO_HEAP}))
            os._exit(70)
        elif mode == "logs-no-heap":
            print(f"{NO_HEAP}\n" + "more\n" * 30, file=sys.stderr, flush=True)
            os._exit(52)
        elif mode == "dies-of-poison":
            request = json.loads(line)
            run(request, "dies" if "poison" in request["case"] else "right", on_progress)
        elif mode == "takes-its-time":
            time.sleep(0.02)
            run(json.loads(line), "right", on_progress)
        elif mode == "is-busy-at-first" and number < 2:
            busy = {"kind": "failed", "case": json.loads(line)["case"], "message": "no time"}
            busy["reason"] = "machine-overloaded"
            on_progress(json.dumps(busy))
        elif mode == "loses-an-executor-at-first":
            run(json.loads(line), "right" if number else "loses-executors", on_progress)
        elif mode == "right-every-other-time":
            run(json.loads(line), "right" if number % 2 == 0 else "keeps-late-rows", on_progress)
        elif mode.startswith("has"):
            request = json.loads(line)
            kept = {*mode.split()[1:]} - {*request["conf"].get("spark.conformance.defaults", "").split()}
            run(request, "forgets-state" if kept else "right", on_progress)
        else:
            run(json.loads(line), mode, on_progress)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except OSError as error:  # the disk is full, or the reader has ended
        sys.exit(f"the engine failed: {error}")
