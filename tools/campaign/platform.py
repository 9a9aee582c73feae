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
from collections import Counter
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
    "master": r"(?s)spark://127\.0\.0\.1:\d+.*(refused|no executor)",
    "workers": r"spark://127\.0\.0\.1:\d+ gives no executor",
    "server": r"(?s)sc://localhost:\d+.*refused",
    "broker": r"the Kafka broker did not start: it ended with signal SIGKILL|the Kafka broker 127\.0\.0\.1:\d+ takes no connection",
    "driver": r"SIGKILL|killed|signal 9",
    "JVM": r"JVM.*(ended|stopped|killed|gone)|Java gateway process exited",
}
"""What a message says that names the cause whose command has no whole answer, by what was killed."""
WITHOUT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("master", "workers", "one worker"), ("upgrade",)),
    "broker": ("upgrade", "check"),
}
"""The commands that use no such thing."""
UNHARMED = ("one worker",)
"""What changes no answer when it is killed."""
START, STARTING, ANSWERING = "at its start", "while an engine starts", "after the first answer"
"""The phases of a command."""
_ANSWER = re.compile(r"^\[ *\d+/\d+\] (?!.*not-applicable)", re.MULTILINE)
_CONFORMS = re.compile(r"● conforms +([^\s,]+)")
KINDS = [
    (victim, command, phase)
    for phase in (START, STARTING, ANSWERING)
    for victim in (*NAMED, *UNHARMED)
    for command in COMMANDS
    if command not in WITHOUT.get(victim, ())
]
SECONDS, SECONDS_TO_NAME = 600, float(os.environ.get("CAMPAIGN_SECONDS", "15"))


def attempt(seed: int, number: int) -> Iterator[Try]:
    """Kill something of a command while it runs. The numbers of a seed go through all kinds before one comes again."""
    draw = drawn(seed, number)
    turn, which = divmod(number, len(KINDS))
    victim, command, phase = drawn(seed, -1 - turn).sample(KINDS, len(KINDS))[which]
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place)
        options, kill = _disturbed(victim, command, folder, draw, stack)
        words = [*COMMANDS[command], *(() if command == "check" else map(str, CASES)), *options]
        environ = {**os.environ, "TMPDIR": str(folder / "tmp"), "CONFORMANCE_ANSWERS": str(folder / "answers.sqlite")}
        (folder / "tmp").mkdir()
        (folder / "j.py").write_text(COUNTING, encoding="utf-8")
        (folder / "a.csv").write_text(COUNTED, encoding="utf-8")
        process = started(words, folder, environ)
        begun = time.monotonic()
        _reached(phase, process, folder, draw)
        killed = False
        while process.poll() is None and not (killed := kill(process.pid) is not False):
            time.sleep(0.1)  # the process to kill has not started yet
        after, named = time.monotonic() - begun, _named_after(process, folder, NAMED.get(victim))
        code = process.poll()
        if code is None:
            process.kill()
        said = Answer(124 if code is None else code, *(_read(folder / name) for name in ("out", "out.err")))
        alive = still_alive(folder / "tmp")
        left = [path.name for path in (folder / "tmp").iterdir()]
        fell = (
            _fell(victim, said, named, _kept(folder / "results.jsonl", command, said.err))
            if killed
            else said.last * bool(said.code)
        )
        if left or alive:
            fell = f"{fell or said.last}; left {left}, {[one.name() for one in alive]}"
        if fell:
            fell += f"\n{_said(folder)[-3000:]}"
    told = "" if named is None else f", named {named:.1f} s later"
    yield Try(number, command, f"{victim} {phase}, after {after:.0f} s{'' if killed else ', too late'}{told}", fell)


def _reached(phase: str, process: subprocess.Popen[bytes], folder: Path, draw: random.Random) -> None:
    """Wait until the command is somewhere in the phase, or has ended."""
    if phase != START:
        while process.poll() is None and not (
            _java(process.pid) if phase == STARTING else re.search(_ANSWER, _said(folder))
        ):
            time.sleep(0.1)
    with suppress(subprocess.TimeoutExpired):
        process.wait(draw.uniform(0, {START: 1.5, STARTING: 8, ANSWERING: 6}[phase]))


def _java(pid: int) -> bool:
    with suppress(psutil.Error):
        return any(child.name() == "java" for child in psutil.Process(pid).children(recursive=True))
    return False


def _read(file: Path) -> str:
    return file.read_text("utf-8", "replace")


def _said(folder: Path, since: Mapping[str, int] = {}) -> str:
    """What a command has printed since its files had so many characters."""
    return "".join(_read(folder / name)[since.get(name, 0) :] for name in ("out.err", "out"))


def _named_after(process: subprocess.Popen[bytes], folder: Path, cause: str | None) -> float | None:
    """Wait for the end of a command, and return the seconds from now until it named the cause; None if it did not."""
    begun, named = time.monotonic(), None
    before = {name: len(_read(folder / name)) for name in ("out", "out.err")}
    while time.monotonic() - begun < SECONDS:
        ended = process.poll() is not None
        if named is None and cause and re.search(cause, _said(folder, before)):
            named = time.monotonic() - begun
        if ended:
            break
        time.sleep(0.2)
    return named


def _fell(victim: str, said: Answer, named: float | None, kept: bool) -> str:
    if said.unforeseen or said.code not in (0, 3) or not kept:
        return f"{said.last}, answers kept: {kept}"
    if said.code == 0:
        return ""
    if victim in UNHARMED:
        return f"it changed the answer: {said.last}"
    if named is None:
        return f"not named: {said.last}"
    return f"{named:.0f} s until it was named: {said.last}" if named > SECONDS_TO_NAME else ""


def _kept(file: Path, command: str, said: str) -> bool:
    """Whether the results file has every answer that the command has shown, and judges none wrongly."""
    shown = Counter(_CONFORMS.findall(said))
    if command == "check" or not file.exists():
        return not shown
    try:
        results = Results.read(file)
    except UnusableResults:
        return False
    cells = [*results.cells, *results.upgrades]
    kept = Counter(cell.case for cell in cells if cell.status == "conforms")
    return shown == kept and all(cell.status not in DOES_NOT_CONFORM for cell in cells)


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
