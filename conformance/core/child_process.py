"""Starts programs. Nothing else in the product does, so that none runs code of the checkout in which the user stands.

Many programs obey their working directory: Python imports modules from it, uv reads ``uv.toml`` and ``pyproject.toml`` there and in each
folder above. So whoever starts a program says where it runs and which environment variables it gets; only a program whose purpose is a
folder runs there. A program and the folder have absolute paths, because a relative one means another file elsewhere.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from conformance.core.errors import ended_by_stop

if sys.platform == "linux":
    import resource

OUTSIDE = Path(os.sep).absolute()
"""The top of the file system, where programs run that need no folder: no folder above it can hold settings, and few may write it."""
_FOLDERS_AND_FILES = frozenset(
    {
        *("UV_CONFIG_FILE", "UV_FIND_LINKS", "UV_CONSTRAINT", "UV_BUILD_CONSTRAINT"),
        *("UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR"),
        *("PIP_CONFIG_FILE", "PIP_FIND_LINKS", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_CACHE_DIR", "PIP_CONSTRAINT"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC"),
        *("DOCKER_CONFIG", "DOCKER_CERT_PATH", "DIST_EXTRA_CONFIG"),
        *("TMPDIR", "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"),
    }
)
"""Variables that name a file or a folder."""
_SEVERAL = ("_FIND_LINKS", "_CONSTRAINT")
"""How the names of those end that name several, with spaces or commas between them."""


def start(
    command: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    stdin: int = subprocess.PIPE,
    stdout: int | IO[str] = subprocess.PIPE,
    stderr: int | IO[str] = subprocess.PIPE,
    encoding: str | None = None,
    errors: str = "replace",
    new_session: bool = False,
) -> subprocess.Popen[str]:
    """Start a program, whose path and working directory are absolute; raise `OSError` if that fails.

    It runs `OUTSIDE`, or in a folder that is its purpose; with ``new_session`` in a process group of its own, which no Ctrl-C in a
    terminal ends. The ``encoding`` of its streams is by default that of the locale."""
    if not (Path(command[0]).is_absolute() and cwd.is_absolute()):
        raise ValueError(f"{command[0]} in {cwd}: both must be absolute")
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environ,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        text=True,
        encoding=encoding,
        errors=errors,
        start_new_session=new_session,
    )
    if sys.platform == "linux" and _of_programs is not None:
        with suppress(OSError):  # it has ended already
            resource.prlimit(process.pid, resource.RLIMIT_AS, _of_programs)
    return process


_of_programs: tuple[int, int] | None = None
"""The limits of memory that programs get while this process has less."""


@contextmanager
def limited_memory(more: int) -> Iterator[None]:
    """Let this process take ``more`` bytes of memory than it has, and each program that it starts what it likes; only on Linux."""
    global _of_programs
    if sys.platform != "linux":
        yield
        return
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _of_programs = soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limits = [limit for limit in (taken + more, soft) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, _of_programs)
        _of_programs = None


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    timeout: float | None = None,
    merged: bool = False,
    errors: str = "replace",
) -> subprocess.CompletedProcess[str]:
    """Run a program as `start` does, without input, to its end, and keep what it writes, its errors ``merged`` into its output or not;
    after ``timeout`` seconds kill it and raise `subprocess.TimeoutExpired`."""
    errors_to = subprocess.STDOUT if merged else subprocess.PIPE
    with start(command, cwd=cwd, environ=environ, stdin=subprocess.DEVNULL, stderr=errors_to, errors=errors) as process:
        try:
            with ended_by_stop(process.kill):
                output, said = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, said)


# Source: prctl(2), PR_SET_PDEATHSIG = 1. The parent may be gone before that.
_DYING_WITH = (
    "import ctypes, os, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGKILL);"
    " os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)


def run_streaming(
    command: Sequence[str], environ: Mapping[str, str], on_line: Callable[[str], str | None], *, keep: int
) -> tuple[str, ...] | None:
    """Run a program `OUTSIDE` as `start` does, without input, its errors merged into its output. On Linux it dies with this process,
    whatever ends that.

    ``on_line`` takes each line as it comes, without trailing whitespace, and returns the text to keep, or None. Return None on success,
    else the last ``keep`` texts."""
    tail: deque[str] = deque(maxlen=keep)
    if sys.platform == "linux" and os.access(command[0], os.X_OK):
        command = [sys.executable, "-I", "-S", "-c", _DYING_WITH, str(os.getpid()), *command]
    stdin, stderr = subprocess.DEVNULL, subprocess.STDOUT
    with (
        start(command, cwd=OUTSIDE, environ=environ, stdin=stdin, stderr=stderr) as process,
        ended_by_stop(process.kill),
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if (kept := on_line(line.rstrip())) is not None:
                tail.append(kept)
    return tuple(tail) if process.returncode else None


def which(program: str, environ: Mapping[str, str]) -> str | None:
    """Return the absolute path of the first program of a name on PATH, as `every`."""
    return next(every(program, environ), None)


def every(program: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the absolute paths of all programs of a name on PATH, without its relative and empty folders, in the working directory."""
    for folder in environ.get("PATH", "").split(os.pathsep):
        if Path(folder).is_absolute() and (path := shutil.which(program, path=folder)):
            yield path


def as_seen_from_here(environ: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables for a program that runs elsewhere: relative paths in them are made absolute, and PATH has none."""
    moved = dict(environ)
    for name in _FOLDERS_AND_FILES & environ.keys():
        places = re.split(r"([\s,]+)", environ[name]) if name.endswith(_SEVERAL) else [environ[name]]
        moved[name] = "".join(
            str(Path(place).absolute()) if place and Path(place).exists() else place for place in places
        )
    if "PATH" in environ:
        folders = environ["PATH"].split(os.pathsep)
        moved["PATH"] = os.pathsep.join(folder for folder in folders if Path(folder).is_absolute())
    return moved
