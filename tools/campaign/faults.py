"""Faults of the machine, and whether the program ends with the right answer, or with one message and nothing lost.

`of_files` carries out a command that writes files, in a process in which a call that writes fails: the n-th, or that and all after it,
as on a full disk; or the clock jumps back. `of_engines` runs `check`, and kills one of its processes, takes its memory, or fills its disk.
"""

from __future__ import annotations

import ctypes
import errno
import json
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tools.campaign import jobs
from tools.campaign.results import AFTER, BEFORE, PAIR, base, sealed, value, written
from tools.campaign.tries import Answer, Try, answer, drawn

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
static long calls = 0, failing = -1, back = 0;
static int code = 0, lasting = 0;
void campaign_fail(long at, int error, int all, long seconds) { calls = 0; failing = at; code = error; lasting = all; back = seconds; }
long campaign_calls(void) { return calls; }
static int fails(void) {
  long at = calls++;
  if (failing < 0 || back || !(at == failing || (lasting && at > failing))) return 0;
  errno = code;
  return 1;
}
#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)
ssize_t write(int fd, const void *from, size_t size) { REAL(write); return fd > 2 && fails() ? -1 : real(fd, from, size); }
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) { REAL(pwrite64); return fails() ? -1 : real(fd, from, size, at); }
int fsync(int fd) { REAL(fsync); return fails() ? -1 : real(fd); }
int rename(const char *a, const char *b) { REAL(rename); return fails() ? -1 : real(a, b); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); return fails() ? -1 : real(path, mode); }
int open64(const char *path, int flags, ...) {
  REAL(open64);
  va_list more;
  va_start(more, flags);
  mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return (flags & (O_WRONLY | O_RDWR)) && fails() ? -1 : real(path, flags, mode);
}
int clock_gettime(clockid_t id, struct timespec *now) {
  REAL(clock_gettime);
  int ended = real(id, now);
  if (id == CLOCK_REALTIME && calls > failing) now->tv_sec -= back;
  return ended;
}
"""
FAULTS = 8
"""The number of faults of a command, which runs without one first."""
ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS)
PRELOADED = "CAMPAIGN_SHIM"


def preload(folder: Path) -> None:
    """Begin this process again, with the shim that lets calls fail; do nothing if it has it already."""
    if PRELOADED in os.environ:
        x = written(folder / "x.jsonl", base(drawn(0, 0), 1))
        for command in WRITERS.values():  # the processes of the tries have all modules then
            answer(*(str(x) if part == "X" else part.replace("out", str(folder / "out")) for part in command))
        return
    source, shim = folder / "shim.c", folder / "shim.so"
    source.write_text(SHIM, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
    environ = {**os.environ, "LD_PRELOAD": str(shim), PRELOADED: str(shim)}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)


# Files.

WRITERS: Mapping[str, tuple[str, ...]] = {
    "maintain combine": ("maintain", "combine", "X", "-o", "out/new.jsonl"),
    "maintain combine, xz": ("maintain", "combine", "X", "-o", "out/new.jsonl.xz"),
    **{
        f"export {kind}": ("case", "export", kind, "X", "-o", f"out/new.{kind}")
        for kind in ("junit", "json", "badge", "summary")
    },
    "gate --draft": ("gate", "X", *PAIR, "--draft", "out/new.yaml"),
    "report --single-file": ("report", "X", "--single-file", "-o", "out"),
    "report, dossier": ("report", "X", *PAIR, "-o", "out"),
}


def of_files(seed: int, number: int) -> Iterator[Try]:
    """Let calls of a command fail, one after the other; needs `preload`."""
    draw = drawn(seed, number)
    name = draw.choice([*WRITERS])
    with tempfile.TemporaryDirectory() as place:
        folder, command = Path(place), WRITERS[name]
        (folder / "tmp").mkdir()
        lines = base(draw, 2)
        before = written(folder / "before.jsonl", lines)
        value(next(line for line in lines if line["record"] == "cell"), draw)
        after = written(folder / "after.jsonl", sealed(lines))
        whole, calls = _in_a_process(folder, command, after, -1, 0)
        new = _contents(folder / "out")
        shutil.rmtree(folder / "out")
        _in_a_process(folder, command, before, -1, 0)
        old = _contents(folder / "out")
        (folder / "out").rename(folder / "old")
        for _ in range(FAULTS):
            shutil.copytree(folder / "old", folder / "out")
            back, error = draw.choice([0, 0, 0, 0, 3600, 40_000_000]), draw.choice(ERRORS)
            at, lasting = draw.randrange(max(1, calls)), draw.random() < 0.5
            said, _ = _in_a_process(folder, command, after, at, error, lasting, back)
            now, left = _contents(folder / "out"), _contents(folder / "tmp")
            wrong = {path for path in {*now, *old, *new} if now.get(path) not in {old.get(path), new.get(path)}}
            done = said.code == whole.code
            lost = wrong or left or (done and now != new and not back) or said.code not in (whole.code, 2, 3)
            kind = f"the clock goes back {back} s" if back else f"{os.strerror(error)} at call {at} of {calls}"
            yield Try(number, name, kind, f"{said.last}; {sorted(wrong)}" if lost or said.unforeseen else "")
            shutil.rmtree(folder / "out")


def _in_a_process(
    folder: Path, command: tuple[str, ...], x: Path, at: int, error: int, lasting: bool = False, back: int = 0
) -> tuple[Answer, int]:
    told = folder / "told.json"
    if (child := os.fork()) == 0:
        shim = ctypes.CDLL(os.environ[PRELOADED])
        os.chdir(folder)
        tempfile.tempdir = str(folder / "tmp")
        shim.campaign_fail(ctypes.c_long(at), error, int(lasting), ctypes.c_long(back))
        said = answer(*(str(x) if part == "X" else part for part in command))
        calls = shim.campaign_calls()
        shim.campaign_fail(ctypes.c_long(-1), 0, 0, ctypes.c_long(0))
        told.write_text(json.dumps([said, calls]), encoding="utf-8")
        os._exit(0)
    os.waitpid(child, 0)
    said, calls = json.loads(told.read_text(encoding="utf-8"))
    return Answer(*said), calls


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Engines.

MARK = "CAMPAIGN_MARK"
SECONDS = 420


def of_engines(seed: int, number: int) -> Iterator[Try]:
    """Disturb a `check` of a query that does the same on both versions."""
    draw = drawn(seed, number)
    kind = draw.choice(["SIGKILL", "SIGKILL", "SIGTERM", "SIGINT", "memory", "disk"])
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as place, _disk(Path(place), kind, draw) as tmp:
        folder = Path(place)
        (folder / "job.py").write_text(jobs.Program((("window", "none"),)).text, encoding="utf-8")
        (folder / "a.jsonl").write_text(jobs.sample(draw), encoding="utf-8")
        command = [sys.executable, "-m", "conformance.cli.main", "check", "job.py", "--from", BEFORE, "--to", AFTER]
        command += ["--sample", "a=a.jsonl", "--accept-lost", "--no-repeat-rows", "--batches", "2"]
        environ = {**os.environ, MARK: mark, "TMPDIR": str(tmp)}
        environ.pop("LD_PRELOAD", None)
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            process = subprocess.Popen(command, cwd=folder, env=environ, stdout=out, stderr=err)
        time.sleep(draw.uniform(0.5, 45))
        victim = _disturb(process.pid, kind, draw)
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = 124
        said = Answer(code, *((folder / name).read_text(encoding="utf-8", errors="replace") for name in ("out", "err")))
        time.sleep(2)
        left = [path.name for path in tmp.iterdir()] if victim != "the program" or kind != "SIGKILL" else []
        alive = [pid for pid in _processes() if mark.encode() in _read(f"/proc/{pid}/environ")]
        for pid in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    fell = ""
    if (
        said.unforeseen
        or (code == 0 and "same rows" not in said.out)
        or code in (1, *([] if kind == "memory" else [2]), 124)
    ):
        fell = said.last
    elif left or alive:
        fell = f"{said.last}; left {left}, {len(alive)} processes"
    yield Try(number, "check", f"{kind}, {victim}", fell)


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


def _disturb(program: int, kind: str, draw: random.Random) -> str:
    """Do it to a process of the command; return which."""
    if kind == "disk":
        return "its temporary files"
    below = _below(program)
    pid = program if kind in ("SIGTERM", "SIGINT") else draw.choice(below or [program])
    name = "the program" if pid == program else (_read(f"/proc/{pid}/comm").decode().strip() or "an engine")
    with suppress(ProcessLookupError):
        if kind == "memory":
            resource.prlimit(pid, resource.RLIMIT_AS, (1 << 28, 1 << 28))
        else:
            os.kill(pid, getattr(signal, kind))
    return name


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and int(path.name) != os.getpid()]


def _below(program: int) -> list[int]:
    parents = {
        pid: int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1:2][0])
        for pid in _processes()
        if _read(f"/proc/{pid}/stat")
    }
    found = [program]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def _read(path: str) -> bytes:
    with suppress(OSError):
        return Path(path).read_bytes()
    return b""
