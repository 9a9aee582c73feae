"""What ``conformance check`` of a job costs: micro-batches, CPU time, wall time and memory, by what they are for.

``python benchmarks/check_job.py [--job bought|three] [--rows 1000] [--from 3.5] [--to 4.3] [-- OPTIONS OF check …]``: ``bought`` is the job
of docs/your-own-job.md, a left outer join of two streams whose checkpoint 4.x refuses; ``three`` an inner join of three streams with
``--rows`` rows in all, and ``count`` a window of one. CPU time is that of the command and of everything that it starts. With
``--of REVISION``, the command of an earlier revision of this checkout runs before and after it, and the last line has the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import psutil

from benchmarks.results_at_scale import earlier_tree

JOBS = """
from pyspark.sql import functions as F


def bought(spark, orders, clicks):
    orders = orders.withWatermark("order_time", "10 minutes").alias("o")
    clicks = clicks.withWatermark("click_time", "10 minutes").alias("c")
    soon = F.expr("o.who = c.who AND order_time BETWEEN click_time AND click_time + INTERVAL 5 MINUTES")
    return clicks.join(orders, soon, "leftOuter").select("c.who", "page", "amount")


def three(spark, orders, clicks, payments):
    orders = orders.withWatermark("order_time", "10 minutes").alias("o")
    clicks = clicks.withWatermark("click_time", "10 minutes").alias("c")
    payments = payments.withWatermark("paid_at", "10 minutes").alias("p")
    seen = F.expr("o.id = c.id AND click_time BETWEEN order_time - INTERVAL 5 MINUTES AND order_time")
    paid = F.expr("o.id = p.id AND paid_at BETWEEN order_time AND order_time + INTERVAL 5 MINUTES")
    return orders.join(clicks, seen).join(payments, paid).select("o.id", "page", "amount", "paid")


def count(spark, orders):
    orders = orders.withWatermark("order_time", "10 minutes")
    return orders.groupBy(F.window("order_time", "10 minutes"), "who").agg(F.sum("amount").alias("sum"))
"""
ORDERS = "12:01 ada 7,12:04 bob 3,12:09 ada 5,12:21 cy 4,12:22 bob 9,12:38 ada 2"
CLICKS = "12:00 ada home,12:03 bob sale,12:07 ada sale,12:20 bob home,12:37 ada home,12:40 cy sale"
COUNTED = """
import json, sys, time
from harness.engine.driver_engine import DriverEngine
from conformance.cli.main import main

observe, log = DriverEngine.observe, sys.argv.pop(1)

def counted(engine, request, **options):
    began = time.monotonic()
    seen = observe(engine, request, **options)
    what = "handed over" if request.restore else "steps before a handoff" if request.save else "whole job"
    batches = sum(len(step.batches) for step in seen.steps)
    with open(log, "a") as file:
        file.write(json.dumps([engine.identity.spark, what, batches, time.monotonic() - began]) + "\\n")
    return seen

DriverEngine.observe = counted
main()
"""
EVERY_S = 0.1


def samples(job: str, rows: int) -> dict[str, Iterator[str]]:
    """The lines of each stream's file."""
    if job == "bought":
        return {
            "orders": (f"2026-03-01 {at}:00,{who},{n}" for at, who, n in (each.split() for each in ORDERS.split(","))),
            "clicks": (f"2026-03-01 {at}:00,{who},{p}" for at, who, p in (each.split() for each in CLICKS.split(","))),
        }
    first = datetime(2026, 3, 1)

    def lines(text: str, streams: int, later: int) -> Iterator[str]:
        for number in range(rows // streams):
            yield f"{first + timedelta(seconds=number + later)},{text.format(number, number % 97)}"

    if job == "count":
        return {"orders": lines("w{1},{0}", 1, 0)}
    return {"orders": lines("{0},{1}", 3, 60), "clicks": lines("{0},p{1}", 3, 0), "payments": lines("{0},{1}", 3, 120)}


HEADERS = {
    "bought": {"orders": "order_time,who,amount", "clicks": "click_time,who,page"},
    "three": {"orders": "order_time,id,amount", "clicks": "click_time,id,page", "payments": "paid_at,id,paid"},
    "count": {"orders": "order_time,who,amount"},
}


class Watched(threading.Thread):
    """CPU seconds of a process and of everything below it, and the largest memory of any of them by its program, in bytes."""

    def __init__(self, process: int, every: float = EVERY_S) -> None:
        super().__init__(daemon=True)
        self._every = every
        self._root = psutil.Process(process)
        self._cpu: dict[tuple[str, int], float] = {}
        self.memory: Counter[str] = Counter()
        self.start()

    @property
    def cpu(self) -> Counter[str]:
        """Seconds by program."""
        return sum((Counter({name: seconds}) for (name, _), seconds in self._cpu.items()), Counter[str]())

    def run(self) -> None:
        while self._root.is_running() and self._root.status() != psutil.STATUS_ZOMBIE:
            try:
                tree = [self._root, *self._root.children(recursive=True)]
            except psutil.Error:
                break
            for process in tree:
                try:
                    times, name = process.cpu_times(), process.name() if process != self._root else "conformance"
                    self._cpu[name, process.pid] = times.user + times.system
                    if name == "java":  # it starts processes that end at once
                        self._cpu[name, process.pid] += times.children_user + times.children_system
                    self.memory[name] = max(self.memory[name], process.memory_info().rss)
                except psutil.Error:
                    continue
            time.sleep(self._every)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", default="three", choices=HEADERS)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--from", dest="before", default="3.5")
    parser.add_argument("--to", dest="after", default="4.3")
    parser.add_argument("--of", help="an earlier revision, to run by turns with this one")
    parser.add_argument("options", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        (folder / "jobs.py").write_text(JOBS)
        command = [sys.executable, "-c", COUNTED, "log", "check", f"jobs:{options.job}", "--code", "."]
        command += ["--from", options.before, "--to", options.after, *options.options]
        if options.job != "bought":
            command += ["--rows", str(options.rows)]
        for stream, lines in samples(options.job, options.rows).items():
            with (folder / f"{stream}.csv").open("w") as file:
                file.write(HEADERS[options.job][stream] + "\n")
                file.writelines(f"{line}\n" for line in lines)
            command += ["--sample", f"{stream}={stream}.csv"]
        earlier = [_earlier(options.of, folder, command[4:])] if options.of else []
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=folder)
        watched = Watched(process.pid)
        code = process.wait()
        wall = time.monotonic() - began
        earlier += [_earlier(options.of, folder, command[4:])] if options.of else []
        asked = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    by_part: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for spark, what, batches, seconds in asked:
        by_part.setdefault((what, spark), []).append((batches, seconds))
    for (what, spark), runs in sorted(by_part.items()):
        batches, seconds = (sum(each) for each in zip(*runs, strict=True))
        print(f"{what} on {spark}: {len(runs)} runs, {batches} micro-batches, {seconds:.1f} s")
    print(f"exit code {code}, {sum(each[2] for each in asked)} micro-batches in {len(asked)} runs")
    by_program = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in watched.cpu.most_common(4))
    print(f"wall {wall:.1f} s, CPU {watched.cpu.total():.1f} s: {by_program}")
    for name, most in watched.memory.items():
        if name in ("conformance", "java"):  # a process that Java starts has its name and memory last
            print(f"memory of {name}: {most / 1e6:.0f} MB")
    if earlier:
        before, cpu = (min(each) for each in zip(*earlier, strict=True))
        share = f"{wall / before:.2f} of the {before:.1f} s by the clock and {watched.cpu.total() / cpu:.2f} of the {cpu:.1f} s of CPU time"
        print(f"{wall:.1f} s, {watched.cpu.total():.1f} s of CPU time: {share} of {options.of}")


def _earlier(revision: str, folder: Path, words: list[str]) -> tuple[float, float]:
    """Run the same command of an earlier revision; return its seconds by the clock and of CPU time."""
    tree = earlier_tree(revision, folder)
    began = time.monotonic()
    command = [sys.executable, "-m", "conformance.cli.main", *words, "--output", "earlier"]
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(tree)})
    watched = Watched(process.pid)
    process.wait()
    return time.monotonic() - began, watched.cpu.total()


if __name__ == "__main__":
    main()
