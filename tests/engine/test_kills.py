"""SIGKILL at random moments over one long case: nothing is lost, nothing comes twice, and the watermark never goes back.

The input lies there before the first engine starts. What the sink is given is told before it can be committed, so it is known of killed
engines too. What a micro-batch is made of is settled when its offsets are logged and not before: an engine killed between the source's
own log and the offset log leaves a file more to the next, so ids are compared between attempts, and with the run without kills all rows.
No row is late, for whether it were would depend on that.
"""

import json
import os
import random
import threading
from collections import defaultdict
from pathlib import Path

from harness.driver.arrivals import FileArrivals
from harness.driver.files import LocalFiles
from harness.driver.request import StreamRequest
from harness.engine.engine import EngineDied
from harness.engine.protocol import CaseRequest
from harness.progress import ignore_progress
from harness.runtimes.local import LocalRuntime
from tests.support.effort import number

KILLS = int(os.environ.get("CONFORMANCE_KILLS") or number(1, 10))
"""Each costs the start of an engine; ``CONFORMANCE_KILLS=30`` makes thirty."""
MICRO_BATCHES = number(40, 80)
SPARED_AT_THE_END = 5
STREAM = {"ddl": "event_time TIMESTAMP, id STRING", "files": 1}


def arrived(directory, seed):
    """Place all rows, out of order within the delay, of keys in two partitions."""
    chance = random.Random(seed)
    batches = []
    for minute in range(MICRO_BATCHES):
        rows = []
        for _ in range(chance.randint(1, 6)):
            at = max(0, minute - chance.choice([0, 0, 0, 1, 3, 4]))
            instant = f"1970-01-01T{at // 60:02}:{at % 60:02}:00.000000Z"
            rows.append({"event_time": instant, "id": chance.choice("abcdef")})
        batches.append({"events": [rows]})
    arrivals = FileArrivals(f"{directory}/streams", {"events": StreamRequest(**STREAM)}, LocalFiles())
    arrivals.place(arrivals.stage(batches))


def request(directory):
    return CaseRequest.model_validate(
        {
            "case": "kills",
            "directory": str(directory),
            "streams": {"events": STREAM},
            "query": [
                {"from": "events"},
                {"withWatermark": ["event_time", "5 minutes"]},
                {"groupBy": ["window(event_time, '5 minutes') AS window", "id"], "agg": ["count(*) AS total"]},
                {"select": ["window.end", "id", "total"]},
            ],
            "outputMode": "append",
            "trigger": "default",
            "conf": {"spark.sql.shuffle.partitions": "2"},
            "steps": [{"action": "idle"}],
            "tell": True,
        }
    )


def logged(directory, log):
    """Batch id → the metadata of its entry in a log."""
    entries = {}
    for file in Path(directory, "checkpoint", log).glob("[0-9]*"):
        lines = file.read_text().splitlines()
        if len(lines) > 1:
            entries[int(file.name)] = json.loads(lines[1])
    return entries


def kill_at(engine, directory, commits, seconds, done):
    """Kill the engine so many seconds after so many commits, wherever it is then."""
    while len(logged(directory, "commits")) < commits:
        if done.wait(0.01):
            return
    if not done.wait(seconds):
        engine.kill()


def run(runtime, target, directory, kills, seed):
    """Run to the end, killed so often on the way: what each attempt at each micro-batch emitted, and with which watermark it ran."""
    chance = random.Random(seed)
    emitted, watermarks, killed = defaultdict(list), defaultdict(set), 0
    while True:
        engine = runtime.start(target, on_progress=ignore_progress)
        committed = len(logged(directory, "commits"))
        killing = killed < kills and committed < MICRO_BATCHES - SPARED_AT_THE_END
        done = threading.Event()
        # Some commits on, or none: then also before the query runs, and while it starts. The moment after that is anywhere in one.
        moment = committed + chance.randint(0, 4), chance.uniform(0.0, 1.5)
        killer = threading.Thread(target=kill_at, args=(engine, directory, *moment, done), daemon=True)
        try:
            if killing:
                killer.start()
            seen = engine.observe(request(directory), step_timeout=600)
        except EngineDied as death:
            killed += 1
            print(f"kill {killed} of {kills}, {len(logged(directory, 'commits'))} micro-batches committed")
            for batch in death.emitted:
                emitted[batch.id].append(sorted(map(repr, batch.rows)))
            for batch, entry in logged(directory, "offsets").items():
                watermarks[batch].add(entry["batchWatermarkMs"])
            continue
        finally:
            done.set()
            engine.close()
        for batch in seen.steps[0].batches:
            emitted[batch.id].append(sorted(map(repr, batch.rows)))
            watermarks[batch.id].add(batch.logged)
        return emitted, watermarks, killed


def test_kills_lose_nothing_double_nothing_and_never_take_the_watermark_back(target, tmp_path):
    killed, number = 0, 0
    runtime = LocalRuntime(tmp_path)
    while killed < KILLS:
        seed = 20261121 + number
        print(f"seed {seed}")
        directory, whole = tmp_path / f"killed-{number}", tmp_path / f"whole-{number}"
        for each in (directory, whole):
            arrived(each, seed)
        expected, planned, _ = run(runtime, target, whole, 0, seed)
        emitted, watermarks, kills = run(runtime, target, directory, KILLS - killed, seed)
        killed, number = killed + kills, number + 1
        assert sum(len(rows) for (rows,) in expected.values()) > 20
        for batch, attempts in emitted.items():
            assert all(attempt == attempts[0] for attempt in attempts), (seed, batch, attempts)
        once = [row for attempts in emitted.values() for row in attempts[0]]
        assert sorted(once) == sorted(row for (rows,) in expected.values() for row in rows), seed
        assert all(len(seen) == 1 for seen in watermarks.values()), (seed, watermarks)
        in_order = [next(iter(watermarks[batch])) for batch in sorted(watermarks)]
        assert in_order == sorted(in_order)
        assert in_order[-1] == max(max(seen) for seen in planned.values())
