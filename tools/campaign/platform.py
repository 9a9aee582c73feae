"""What runs the queries is killed in any phase of a command, and whether the command soon names it, keeps its answers and leaves nothing.

A master or workers of a standalone cluster, a Spark Connect server, the broker of a run, an engine's driver or its JVM.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from harness.environments.provision import prepare
from harness.progress import ignore_progress
from harness.runtimes.own_code import with_requirements
from harness.targets.targets import Targets
from reports.results.errors import UnusableResults
from reports.results.reading import Results
from reports.results.status import DOES_NOT_CONFORM
from tests.engine.own_job import COUNTED, COUNTING
from tests.engine.served import Served
from tests.engine.standalone import Standalone
from tools.campaign.engines import started, still_alive
from tools.campaign.results import AFTER, BEFORE
from tools.campaign.tries import Answer, Try, drawn

CASES = sorted(Path(__file__).parents[2].glob("cases/late-drops/[gr]*.yaml"))
"""Some that run from files and topics, on a cluster and through Connect."""
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "run": ("run", "--spark", AFTER, "--fresh", "-o", "results.jsonl"),
    "upgrade": ("upgrade", "--from", BEFORE, "--to", AFTER, "-o", "results.jsonl"),
    "check": ("check", "j:f", "--from", BEFORE, "--to", AFTER, "--sample", "a=a.csv", "--batches", "2"),
}
NAMED: Mapping[str, str] = {
    "master": r"spark://127\.0\.0\.1:\d+",
    "workers": r"spark://127\.0\.0\.1:\d+|executor|worker",
    "server": r"sc://localhost:\d+",
    "broker": r"broker|127\.0\.0\.1:\d+",
    "driver": r"SIGKILL|killed|signal 9|engine|driver",
    "JVM": r"JVM|Java|killed|engine|driver",
}
"""What a message names whose command has no whole answer, by what was killed."""
WITHOUT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("master", "workers", "one worker"), ("upgrade",)),
    "broker": ("upgrade", "check"),
}
"""The commands that use no such thing."""
UNHARMED = ("one worker",)
"""What changes no answer when it is killed."""
SECONDS, SECONDS_TO_NAME = 600, float(os.environ.get("CAMPAIGN_SECONDS", "15"))


def attempt(seed: int, number: int) -> Iterator[Try]:
    """Kill something of a command while it runs."""
    draw = drawn(seed, number)
    victim = draw.choice([*NAMED, *UNHARMED])
    command = draw.choice([name for name in COMMANDS if name not in WITHOUT.get(victim, ())])
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place)
        options, kill = _disturbed(victim, command, folder, draw, stack)
        words = [*COMMANDS[command], *(() if command == "check" else map(str, CASES)), *options]
        environ = {**os.environ, "TMPDIR": str(folder / "tmp"), "CONFORMANCE_ANSWERS": str(folder / "answers.sqlite")}
        (folder / "tmp").mkdir()
        (folder / "j.py").write_text(COUNTING, encoding="utf-8")
        (folder / "a.csv").write_text(COUNTED, encoding="utf-8")
        process = started(words, folder, environ)
        after = draw.uniform(0.5, 40)
        with suppress(subprocess.TimeoutExpired):
            process.wait(after)
        ended = process.poll() is not None
        killed = not ended and kill(process.pid) is not False
        begun = time.monotonic()
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = 124
        seconds = time.monotonic() - begun
        said = Answer(code, *((folder / name).read_text("utf-8", "replace") for name in ("out", "out.err")))
        alive = still_alive(folder / "tmp")
        left = [path.name for path in (folder / "tmp").iterdir()]
        failed = said.last if said.code else ""
        fell = _fell(victim, said, seconds, _kept(folder / "results.jsonl", command)) if killed else failed
        if left or alive:
            fell = f"{fell or said.last}; left {left}, {[one.name() for one in alive]}"
    yield Try(number, command, f"{victim} after {after:.0f} s{'' if killed else ', too late'}", fell)


def _fell(victim: str, said: Answer, seconds: float, kept: bool) -> str:
    text = f"{said.out}\n{said.err}"
    if said.unforeseen or said.code not in (0, 3) or not kept:
        return f"{said.last}, answers kept: {kept}"
    if said.code == 0:
        return ""
    if victim in UNHARMED:
        return f"it changed the answer: {said.last}"
    if seconds > SECONDS_TO_NAME and victim in ("master", "workers", "server"):
        return f"{seconds:.0f} s until the end: {said.last}"
    return "" if re.search(NAMED[victim], text) else f"not named: {said.last}"


def _kept(file: Path, command: str) -> bool:
    """Whether the results file can be read, and no cell of it is judged wrongly."""
    if command == "check" or not file.exists():
        return True
    try:
        cells = Results.read(file).cells
    except UnusableResults:
        return False
    return all(cell.status not in DOES_NOT_CONFORM for cell in cells)


def _disturbed(
    victim: str, command: str, folder: Path, draw: random.Random, stack: ExitStack
) -> tuple[list[str], Callable[[int], bool | None]]:
    """Start what the command needs; return the options that name it, and what kills it and says whether it did."""
    (target,) = Targets.load().select([AFTER])
    (folder / "there").mkdir()
    match victim:
        case "server":
            client = with_requirements(target, target.connect)
            server = Served(prepare(client, on_progress=ignore_progress), folder / "there")
            stack.callback(server.close)
            return ["--connect", server.url], lambda _: server.kill()
        case "master" | "workers" | "one worker":
            cluster = Standalone(prepare(target, on_progress=ignore_progress), folder / "there")
            stack.callback(cluster.close)

            def kill(_: int) -> None:
                if victim == "master":
                    cluster.kill_master()
                for worker in {"one worker": [0], "workers": [0, 1]}.get(victim, []):
                    cluster.kill(worker)

            side = ["--master-side", "to"] if command == "check" else []
            return ["--master", cluster.master, "--storage", str(folder), *side], kill
    source = ["--source", "kafka"] if victim == "broker" else []
    return source, lambda pid: _killed_child(pid, victim, draw)


def _killed_child(pid: int, victim: str, draw: random.Random) -> bool:
    """Kill a process below the command; False if there is none of its kind."""
    kinds = []
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            words, java = " ".join(child.cmdline()), child.name() == "java"
            kind = "broker" if "kafka" in words and "SparkSubmit" not in words else "JVM" if java else "driver"
            kinds += [child] if kind == victim and (java or victim == "driver") else []
    if kinds:
        with suppress(psutil.NoSuchProcess):
            draw.choice(kinds).send_signal(signal.SIGKILL)
            return True
    return False
