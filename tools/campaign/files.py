"""Faults of the machine at the files of a command, and whether it ends with the right answer, or with one message and nothing lost.

`of_calls` carries out a command in a process in which a call that reads or writes fails: the n-th, or that and all after it, as on a full
disk; or the clock jumps back. `of_bytes` damages a file that a command reads. `of_two` lets two runs share one cache, and kills one.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import NamedTuple

from conformance.runner import resources
from tests.support.checkpoints import written_by
from tests.support.miniature.runtime import MiniatureRuntime
from tools.campaign.results import AFTER, PAIR, base, sealed, value, written
from tools.campaign.tries import Answer, Try, answer, drawn

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
static long calls = 0, failing = -1, back = 0;
static int code = 0, lasting = 0, reading = 0;
void campaign_fail(long at, int error, int all, long seconds, int reads) {
  calls = 0; failing = at; code = error; lasting = all; back = seconds; reading = reads;
}
long campaign_calls(void) { return calls; }
__attribute__((constructor)) static void by_environment(void) {
  if (getenv("CAMPAIGN_AT")) {
    campaign_fail(atol(getenv("CAMPAIGN_AT")), atoi(getenv("CAMPAIGN_ERROR")), 0, atol(getenv("CAMPAIGN_BACK")), 0);
    unsetenv("CAMPAIGN_AT");
  }
}
static int fails(int reads) {
  if (reads != reading) return 0;
  long at = calls++;
  if (failing < 0 || back || !(at == failing || (lasting && at > failing))) return 0;
  errno = code;
  return 1;
}
#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)
ssize_t read(int fd, void *into, size_t size) { REAL(read); return fd > 2 && fails(1) ? -1 : real(fd, into, size); }
ssize_t write(int fd, const void *from, size_t size) { REAL(write); return fd > 2 && fails(0) ? -1 : real(fd, from, size); }
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) { REAL(pwrite64); return fails(0) ? -1 : real(fd, from, size, at); }
int fsync(int fd) { REAL(fsync); return fails(0) ? -1 : real(fd); }
int fdatasync(int fd) { REAL(fdatasync); return fails(0) ? -1 : real(fd); }
int rename(const char *a, const char *b) { REAL(rename); return fails(0) ? -1 : real(a, b); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); return fails(0) ? -1 : real(path, mode); }
int open64(const char *path, int flags, ...) {
  REAL(open64);
  va_list more;
  va_start(more, flags);
  mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return fails(!(flags & (O_WRONLY | O_RDWR))) ? -1 : real(path, flags, mode);
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
OF_WRITING = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS)
OF_READING = (errno.EIO, errno.EACCES, errno.EMFILE, errno.ESTALE)
SPARK = "3.5.9"
"""The version of the miniature engines."""
PRELOADED = "CAMPAIGN_SHIM"
MINIATURE = Path(__file__).parents[2] / "tests" / "support" / "miniature" / "cases" / "late-drops" / "windows.yaml"


def shim(folder: Path) -> Path:
    """Compile what lets calls fail."""
    source, made = folder / "shim.c", folder / "shim.so"
    source.write_text(SHIM, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl"], check=True)
    return made


def preload(folder: Path) -> None:
    """Begin this process again, with the shim; do nothing if it has it already."""
    if PRELOADED not in os.environ:
        made = str(shim(folder).resolve())
        environ = {**os.environ, "LD_PRELOAD": made, PRELOADED: made}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)
    with tempfile.TemporaryDirectory() as place:  # the processes of the tries have all modules then
        inputs = _inputs(Path(place), drawn(0, 0))
        os.environ["CONFORMANCE_ANSWERS"] = str(inputs / "answers.sqlite")
        here = Path.cwd()
        for command in COMMANDS.values():
            os.chdir(inputs)
            answer(*command)
        os.chdir(here)


# What is disturbed.

_EXPORTS = "".join(
    f"export {kind}: case export {kind} x.jsonl -o out/new.{kind}\n" for kind in ("junit", "json", "badge", "summary")
)
_COMMANDS = f"""\
maintain combine: maintain combine x.jsonl -o out/new.jsonl
maintain combine, xz: maintain combine x.jsonl -o out/new.jsonl.xz
gate --draft: gate x.jsonl {" ".join(PAIR)} --draft out/new.yaml
report --single-file: report x.jsonl --single-file -o out
report, one upgrade: report x.jsonl {" ".join(PAIR)} -o out
run: run cases --spark {SPARK} -o out/run.jsonl
gate: gate x.jsonl {" ".join(PAIR)}
gate --accept: gate x.jsonl {" ".join(PAIR)} --accept accepted.yaml
maintain diff: maintain diff before.jsonl x.jsonl
case validate: case validate cases
checkpoint inspect: checkpoint inspect checkpoint --to {AFTER}
"""
COMMANDS = {name: tuple(words.split()) for name, words in re.findall("(.+): (.+)\n", _EXPORTS + _COMMANDS)}
RUN = COMMANDS["run"]
READS = dict.fromkeys(("gate", "maintain diff", "maintain combine", "report --single-file", "export json"), "x.jsonl")
READS |= {
    "gate --accept": "accepted.yaml",
    "case validate": "cases",
    "run": "answers.sqlite",
    "checkpoint inspect": "checkpoint",
}
"""The file, or the folder of it, that a command reads and `of_bytes` damages."""


def _inputs(folder: Path, draw: random.Random) -> Path:
    """Fill a folder with what the commands read; ``before.jsonl`` and ``x.jsonl`` differ in a value."""
    for name in ("tmp", "out", "work", "cases/late-drops"):
        (folder / name).mkdir(parents=True)
    lines = base(draw, 2)
    written(folder / "before.jsonl", lines)
    value(next(line for line in lines if line["record"] == "cell"), draw)
    written(folder / "x.jsonl", sealed(lines))
    (folder / "accepted.yaml").write_text(
        "accepted:\n  - {case: late-drops/none, because: a reason}\n", encoding="utf-8"
    )
    for minutes in ("25", "26"):
        text = MINIATURE.read_text(encoding="utf-8").replace("25 minutes", f"{minutes} minutes")
        (folder / "cases" / "late-drops" / f"of-{minutes}.yaml").write_text(text, encoding="utf-8")
    name = draw.choice(["outer_join-hdfs", "outer_join-rocksdb"])
    written_by(draw.choice(["3.5.9", AFTER]), name, folder).rename(folder / "checkpoint")
    resources.runtime_for = lambda *_, **__: MiniatureRuntime(folder / "work", "right", fingerprint="a miniature")  # type: ignore
    return folder


# Calls that fail.


def of_calls(seed: int, number: int) -> Iterator[Try]:
    """Let calls of a command fail, one after the other; needs `preload`."""
    draw = drawn(seed, number)
    name = draw.choice([*COMMANDS])
    reads = "-o" not in COMMANDS[name] or draw.random() < 0.3
    with tempfile.TemporaryDirectory() as place:
        folder = _inputs(Path(place), draw)
        command, out = COMMANDS[name], folder / "out"
        _in_a_process(folder, tuple("before.jsonl" if part == "x.jsonl" else part for part in command))
        out.rename(folder / "old")
        old = _contents(folder / "old")
        shutil.copytree(folder / "old", out)
        _forget(folder)
        whole, calls = _in_a_process(folder, command, Fault(reads=reads))
        new = _contents(out)
        for _ in range(FAULTS):
            shutil.rmtree(out)
            shutil.copytree(folder / "old", out)
            _forget(folder)
            back, error = draw.choice([0, 0, 0, 0, 3600, 40_000_000]), draw.choice(OF_READING if reads else OF_WRITING)
            at, lasting = draw.randrange(max(1, calls)), draw.random() < 0.5
            said, _ = _in_a_process(folder, command, Fault(at, error, lasting, back, reads))
            fell = "" if said.code in (whole.code, 2, 3) and not said.unforeseen else said.last
            if name == "run":
                fell = fell or _of_run(folder, said, old)
            else:
                now = _contents(out)
                wrong = [path for path in {*now, *old, *new} if now.get(path) not in {old.get(path), new.get(path)}]
                # A case that cannot be read counts as the strictest, and the gate says that it is not at hand.
                done = said.code == whole.code and not back and "not at hand" not in said.out
                if wrong or (done and (now, said.out) != (new, whole.out)):
                    fell = f"{said.last}; {sorted(wrong)}; {said.out[-300:]}"
            left = _left(folder)
            kind = f"{os.strerror(error)} at call {at} of {calls}{', reading' * reads}"
            kind = f"the clock goes back {back} s" if back else kind
            yield Try(number, name, kind, fell or (f"left {left}" if left else ""))


def _of_run(folder: Path, said: Answer, old: Mapping[str, bytes]) -> str:
    """Why results of a run are not right: they are whole, those of before, or said to be incomplete."""
    if said.code != 0 and _contents(folder / "out") == old:
        return ""
    compared = answer("maintain", "diff", folder / "old" / "run.jsonl", folder / "out" / "run.jsonl")
    return "" if compared.code == 0 or (said.code != 0 and not compared.unforeseen) else f"{said.last}; {compared.last}"


def _left(folder: Path) -> list[str]:
    """What is left in the temporary folder when the next run has removed what a run that failed could not."""
    if any((folder / "tmp").iterdir()):
        _in_a_process(folder, RUN)
    return sorted(_contents(folder / "tmp"))


def _forget(folder: Path) -> None:
    """Remove the answers of earlier runs."""
    for path in folder.glob("answers.sqlite*"):
        path.unlink()


class Fault(NamedTuple):
    """What the shim lets fail: the call ``at``, or all from it on; with ``back``, seconds, the clock jumps there instead."""

    at: int = -1
    error: int = 0
    lasting: bool = False
    back: int = 0
    reads: bool = False


def _in_a_process(folder: Path, command: tuple[str, ...], fault: Fault = Fault()) -> tuple[Answer, int]:  # noqa: B008 — it is frozen
    """Carry out a command in a process of its own, with a fault; also return how many calls it made."""
    said = folder / f"said-{os.getpid()}.json"
    if (child := os.fork()) == 0:
        loaded = ctypes.CDLL(os.environ[PRELOADED])
        os.chdir(folder)
        os.environ["CONFORMANCE_ANSWERS"] = str(folder / "answers.sqlite")
        tempfile.tempdir = str(folder / "tmp")
        loaded.campaign_fail(
            ctypes.c_long(fault.at), fault.error, fault.lasting, ctypes.c_long(fault.back), fault.reads
        )
        answered, count = answer(*command), loaded.campaign_calls()
        loaded.campaign_fail(ctypes.c_long(-1), 0, 0, ctypes.c_long(0), 0)
        said.write_text(json.dumps([answered, count]), encoding="utf-8")
        os._exit(0)
    os.waitpid(child, 0)
    answered, count = json.loads(said.read_text(encoding="utf-8"))
    said.unlink()
    return Answer(*answered), count


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Bytes that are not those that were written.

STREAMS = (
    bytes.fromhex(
        "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f7249"
    ),
    b"\x80\x04cposix\nsystem\n(S'touch out/pwned'\ntR.",
    b"!!python/object/apply:os.system ['touch out/pwned']\n",
    b"\x00" * 4096,
    b"\xef\xbb\xbf",
    b"[" * 100_000,
)
"""Objects of Java, of Python and of YAML, and what is no text."""


def damaged(content: bytes, draw: random.Random) -> tuple[str, bytes]:
    """Damage the content of a file in one way; return which."""
    at = draw.randrange(len(content) + 1)
    match draw.choice(["bits", "bits", "bits", "cut", "zeros", "stream", "stream", "twice"]):
        case "bits" if content:
            changed = bytearray(content)
            for _ in range(draw.choice([1, 1, 4, 32])):
                changed[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            return "flipped bits", bytes(changed)
        case "cut":
            return f"cut at {at} of {len(content)}", content[:at]
        case "zeros":
            return "a block of zeros", content[:at] + b"\0" * 512 + content[at + 512 :]
        case "twice":
            return "a part twice", content + content[at:]
    stream = draw.randrange(len(STREAMS))
    return f"stream {stream}", STREAMS[stream] + (content if draw.random() < 0.5 else b"")


def of_bytes(seed: int, number: int) -> Iterator[Try]:
    """Damage a file that a command reads; needs `preload`."""
    draw = drawn(seed, number)
    name = draw.choice([*READS])
    with tempfile.TemporaryDirectory() as place:
        folder = _inputs(Path(place), draw)
        if name == "run":
            _in_a_process(folder, RUN)
            (folder / "out").rename(folder / "old")
        files = sorted(path for path in (folder / READS[name], *(folder / READS[name]).rglob("*")) if path.is_file())
        file = draw.choice(files)
        how, content = damaged(file.read_bytes(), draw)
        file.write_bytes(content)
        said, _ = _in_a_process(folder, COMMANDS[name])
        fell = said.last if said.unforeseen or said.code not in (0, 1, 2, 3) else ""
        if name == "run":
            fell = fell or ("" if said.code == 0 else said.last) or _of_run(folder, said, {})
        left = _left(folder)
        obeyed = (folder / "out" / "pwned").exists()
        yield Try(number, f"{name}, damaged", f"{file.name}: {how}", fell or (f"left {left}" if left or obeyed else ""))


def of_two(seed: int, number: int) -> Iterator[Try]:
    """Let two runs share one cache of answers, and kill one; the other, and the next, have the right answers; needs `preload`."""
    draw = drawn(seed, number)
    with tempfile.TemporaryDirectory() as place:
        folder = _inputs(Path(place), draw)
        _in_a_process(folder, RUN)
        (folder / "out").rename(folder / "old")
        if draw.random() < 0.7:
            _forget(folder)
        if (twin := os.fork()) == 0:
            os.setpgid(0, 0)
            _in_a_process(folder, (*RUN[:-1], draw.choice(["twin.jsonl", "out/run.jsonl"])))
            os._exit(0)
        delay = draw.uniform(0, 2)
        killer = Timer(delay, _kill_group, [twin])
        killer.start()
        both = [_in_a_process(folder, RUN)[0] for _ in range(2)]
        killer.join()
        os.waitpid(twin, 0)
        fell = next((said.last for said in both if said.unforeseen or said.code not in (0, 2)), "")
        fell = fell or _of_run(folder, both[1], {})
        yield Try(number, "run, two at once", f"one killed after {delay:.1f} s", fell)


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
