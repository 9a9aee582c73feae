"""Faults of the machine at a `check` on real engines, and whether it ends with the right answer, or with one message and nothing left.

One of its processes is killed, or gets no more memory; its disk is full; a call of the program fails or its clock jumps back; bits of a jar
are flipped in a copy of an environment; two checks share a cache, and one of them is killed.
"""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from harness.environments.cache_directory import cache_dir
from harness.environments.provision import prepare
from harness.targets.targets import Targets
from tools.campaign import jobs
from tools.campaign.files import damaged, shim
from tools.campaign.results import AFTER, BEFORE
from tools.campaign.tries import Answer, Try, drawn

SECONDS, SECONDS_TO_END = 420, 20
INTERRUPTED = 130
"""The exit code after any signal that asks a command to end."""
GROUPS = {Path("/sys/fs/cgroup/memory"): "memory.limit_in_bytes", Path("/sys/fs/cgroup"): "memory.max"}
"""Where the kernel's groups of processes with a limit of memory are, and the file with the limit: of version 1, or 2."""
CHECK = (
    f"check job.py --from {BEFORE} --to {AFTER} --sample a=a.jsonl --accept-lost --no-repeat-rows --batches 2".split()
)
KINDS = "SIGKILL SIGKILL SIGTERM SIGINT memory group group disk call clock jar jar two"


def attempt(seed: int, number: int) -> Iterator[Try]:
    """Disturb a `check` of a query that does the same on both versions."""
    draw = drawn(seed, number)
    kind = draw.choice(KINDS.split())
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place)
        tmp = stack.enter_context(_disk(folder, kind, draw))
        environ = {**os.environ, "TMPDIR": str(tmp), "CONFORMANCE_ANSWERS": str(folder / "answers.sqlite")}
        environ.pop("LD_PRELOAD", None)
        if kind in ("call", "clock"):
            fault = {"AT": draw.randrange(600), "BACK": draw.choice([3600, 40_000_000]) if kind == "clock" else 0}
            fault["ERROR"] = draw.choice([errno.ENOSPC, errno.EIO])
            environ |= {"LD_PRELOAD": str(shim(folder)), **{f"CAMPAIGN_{name}": str(of) for name, of in fault.items()}}
        victim = _flipped(folder, environ, draw) if kind == "jar" else kind
        (folder / "job.py").write_text(jobs.Program((("window", "none"),)).text, encoding="utf-8")
        (folder / "a.jsonl").write_text(jobs.sample(draw), encoding="utf-8")
        process = started(CHECK, folder, environ)
        twin = started(CHECK, folder, environ, "twin") if kind == "two" else process
        time.sleep(draw.uniform(0.5, 45))
        if kind not in ("call", "clock", "jar"):
            victim = _disturb(twin.pid, kind, draw, stack)
        try:
            code = process.wait(SECONDS)
            twin.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = 124
        said = Answer(code, *((folder / name).read_text("utf-8", "replace") for name in ("out", "out.err")))
        alive = still_alive(folder)
        killed = victim == "the program" and kind in ("SIGKILL", "two")  # the next run cleans up
        left = [] if killed else [path.name for path in tmp.iterdir()]
    allowed = {0, 3, *((2,) if kind in ("memory", "call") else ()), *((1, 2) if kind == "jar" else ())}
    if kind in ("SIGTERM", "SIGINT"):
        allowed.add(INTERRUPTED)
    if victim == "the program" and kind == "SIGKILL":
        allowed = {-signal.SIGKILL, 0}  # it may have ended before
    fell = ""
    if said.unforeseen or (code == 0 and "same rows" not in said.out) or code not in allowed:
        fell = f"{said.last} {said.out[-200:]}"
    elif left or alive:
        fell = f"{said.last}; left {left}, {len(alive)} processes"
    yield Try(number, "check", f"{kind}, {victim}", fell)


def started(words: Sequence[str], folder: Path, environ: dict[str, str], name: str = "out") -> subprocess.Popen[bytes]:
    """Start a command line in a folder, with files for what it prints."""
    command = [sys.executable, "-m", "conformance.cli.main", *words]
    with (folder / name).open("wb") as out, (folder / f"{name}.err").open("wb") as err:
        return subprocess.Popen(command, cwd=folder, env=environ, stdout=out, stderr=err)


@contextmanager
def _disk(folder: Path, kind: str, draw: random.Random) -> Iterator[Path]:
    """A folder for temporary files, on a small disk of its own if that is the fault."""
    tmp = folder / "tmp"
    tmp.mkdir()
    if kind == "disk":
        size = draw.choice([64 << 10, 1 << 20, 4 << 20, 16 << 20])
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(tmp)], check=True)
    try:
        yield tmp
    finally:
        if kind == "disk":
            subprocess.run(["umount", "-l", str(tmp)], check=True)


def _flipped(folder: Path, environ: dict[str, str], draw: random.Random) -> str:
    """Make a cache whose environments are those of this user, but for a damaged jar of one; return which. Files are linked, not copied."""
    cache = folder / "cache"
    environ["CONFORMANCE_CACHE"] = str(cache)
    where, jars = cache_dir(), []
    for target in Targets.load().select([BEFORE, AFTER]):
        root = prepare(target).root
        assert root is not None
        copy = cache / root.relative_to(where)
        shutil.copytree(
            root, copy, symlinks=True, copy_function=os.link, ignore=shutil.ignore_patterns("class-archives")
        )
        manifest = (root / "environment.json").read_text(encoding="utf-8")
        (copy / "environment.json").unlink()
        (copy / "environment.json").write_text(manifest.replace(str(where), str(cache)), encoding="utf-8")
        jars += [
            path
            for name in ("spark-sql", "spark-catalyst", "spark-core", "scala-library")
            for path in copy.rglob(f"{name}*.jar")
        ]
    jar = draw.choice(sorted(jars))
    how, content = damaged(jar.read_bytes(), draw)
    jar.unlink()
    jar.write_bytes(content)
    return f"{jar.name}, {how}"


def _disturb(program: int, kind: str, draw: random.Random, stack: ExitStack) -> str:
    """Do it to a process of the command; return which."""
    if kind == "disk":
        return "its temporary files"
    process = psutil.Process(program)
    if kind not in ("SIGTERM", "SIGINT", "two"):
        process = draw.choice([*process.children(recursive=True)] or [process])
    name = "the program" if process.pid == program else process.name()
    with suppress(psutil.Error, ProcessLookupError):
        match kind:
            case "memory":
                resource.prlimit(process.pid, resource.RLIMIT_AS, (1 << 28, 1 << 28))
            case "group":
                stack.enter_context(_little_memory(process.pid, draw.choice([1, 16, 64, 256]) << 20))
            case _:
                process.send_signal(getattr(signal, "SIGKILL" if kind == "two" else kind))
    return name


def still_alive(folder: Path) -> list[psutil.Process]:
    """Kill the processes that know a folder and do not end by themselves, and return them."""
    until = time.monotonic() + SECONDS_TO_END
    while (alive := _processes_of(folder)) and time.monotonic() < until:
        time.sleep(0.5)
    for each in alive:
        with suppress(psutil.Error):
            each.kill()
    return alive


def _processes_of(folder: Path) -> list[psutil.Process]:
    """The processes that know a folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = [*process.cmdline(), *process.environ().values()] if process.pid != os.getpid() else []
            found += [process] if any(str(folder) in word for word in words) else []
    return found


@contextmanager
def _little_memory(pid: int, size: int) -> Iterator[None]:
    """Put a process into a group that may take so many bytes more."""
    groups = next(groups for groups in GROUPS if (groups / "cgroup.procs").exists())
    group = groups / f"campaign-{uuid.uuid4().hex}"
    group.mkdir()
    try:
        (group / GROUPS[groups]).write_text(str(size), encoding="utf-8")
        with suppress(OSError):  # it has ended
            (group / "cgroup.procs").write_text(str(pid), encoding="utf-8")
        yield
    finally:
        for _ in range(50):
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)
