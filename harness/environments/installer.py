"""uv, and what is asked of it: make a virtual environment, install into it, download a Python."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from packaging.specifiers import SpecifierSet

from harness.environments import package_index
from harness.environments.pythons import spelled
from harness.environments.subprocess_output import run_telling
from harness.errors import HarnessError
from harness.progress import ProgressCallback, ignore_progress

_TAIL_LINES = 25
# A user's own project, environment or interpreter must not leak into an environment of ours.
_NOT_OURS = (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONHOME",
    "PYTHONPATH",
    "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT",
    "UV_PYTHON",
    "UV_SYSTEM_PYTHON",
    "UV_CONSTRAINT",
    "UV_OVERRIDE",
    "UV_REQUIRE_HASHES",
)
_CERTIFICATE = ("certificate", "unknownissuer")
_NETWORK = ("dns error", "error sending request", "failed to fetch", "connect", "timed out", "operation timed out")


class InstallFailed(HarnessError):
    """uv failed.

    Attributes:
        command: what was run.
        tail: the last lines it wrote.
    """

    def __init__(self, doing: str, command: Sequence[str], tail: Sequence[str]) -> None:
        text = "\n".join(tail).strip() or "(uv wrote nothing)"
        super().__init__(
            f"{doing} failed. uv says:\n" + "\n".join(f"  {line}" for line in text.splitlines()) + f"\n{_advice(text)}"
            f"\nThe command was: {shlex.join(command)}"
        )
        self.command = tuple(command)
        self.tail = tuple(tail)


class NoUv(HarnessError):
    """There is no uv to make environments with."""

    def __init__(self) -> None:
        super().__init__("uv, which makes the environments, is not installed. Install it: pip install uv")


class Installer(Protocol):
    """Makes environments. The one implementation is `Uv`; tests have smaller ones."""

    def venv(self, directory: Path, python: Path, *, on_progress: ProgressCallback) -> None:
        """Make a virtual environment with this interpreter. Raises InstallFailed."""

    def install(self, python: Path, requirements: Sequence[str], *, on_progress: ProgressCallback) -> None:
        """Install into the environment of this interpreter. Raises InstallFailed."""

    def managed_pythons(self) -> tuple[Path, ...]:
        """The interpreters it has downloaded so far."""

    def download_python(self, wanted: SpecifierSet, *, on_progress: ProgressCallback) -> None:
        """Download the newest interpreter in the range. Raises InstallFailed."""


class Uv:
    """The uv that came with this package, or the one on PATH."""

    def __init__(self, environ: Mapping[str, str] | None = None, binary: str | None = None) -> None:
        """Find it, unless told where it is.

        Raises:
            NoUv: there is none.
        """
        host = os.environ if environ is None else environ
        self._binary = binary or _find()
        self._environ = {name: value for name, value in host.items() if name not in _NOT_OURS}
        self._environ |= package_index.for_uv(host)
        self._environ |= {"NO_COLOR": "1", "UV_NO_PROGRESS": "1"}
        # A pyspark is 300 MB and more; behind a slow mirror uv's half minute of silence is not enough.
        self._environ.setdefault("UV_HTTP_TIMEOUT", "300")
        # A file takes milliseconds to compile; on a busy machine uv's minute for one without an answer is not enough.
        self._environ.setdefault("UV_COMPILE_BYTECODE_TIMEOUT", "600")

    def venv(self, directory: Path, python: Path, *, on_progress: ProgressCallback) -> None:
        self._run(
            "Making the environment",
            "venv",
            "--quiet",
            "--no-project",
            "--python",
            str(python),
            str(directory),
            on_progress=on_progress,
        )

    def install(self, python: Path, requirements: Sequence[str], *, on_progress: ProgressCallback) -> None:
        # Without uv's cache: it would keep, for every build of a pyspark, its source, its wheel and that unpacked, 1.5 GB and
        # more, and nobody asks for the same one twice while the environment is there. Compiled once, since engines write nothing
        # into it: pandas and pyspark take a Python worker 4 s from their source and 1 s from bytecode, of the 10 s Spark waits.
        self._run(
            f"Installing {', '.join(requirements)}",
            "pip",
            "install",
            "--no-cache",
            "--compile-bytecode",
            "--python",
            str(python),
            *requirements,
            on_progress=on_progress,
        )

    def managed_pythons(self) -> tuple[Path, ...]:
        # Not managed-only is slow and noisy: uv would ask every interpreter on PATH as well.
        command = [self._binary, "python", "list", "--only-installed", "--managed-python", "--output-format", "json"]
        answer = subprocess.run(
            command, env=self._environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if answer.returncode:
            return ()
        try:
            return tuple(Path(found["path"]) for found in json.loads(answer.stdout) if found.get("path"))
        except (ValueError, TypeError, KeyError):
            return ()

    def download_python(self, wanted: SpecifierSet, *, on_progress: ProgressCallback) -> None:
        self._run(
            f"Downloading CPython {spelled(wanted)}",
            "python",
            "install",
            "--no-bin",
            f"cpython{spelled(wanted)}",
            on_progress=on_progress,
        )

    def _run(self, doing: str, *arguments: str, on_progress: ProgressCallback) -> None:
        command = [self._binary, *arguments]
        tail = self._attempt(command, self._environ, on_progress)
        if tail is not None and any(word in "\n".join(tail).lower() for word in _CERTIFICATE):
            # A proxy that signs with a company's own authority: the system knows it, uv's built-in list does not.
            on_progress("trying again with the certificates of this system")
            tail = self._attempt(command, self._environ | {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}, on_progress)
        if tail is not None:
            raise InstallFailed(doing, command, tail)

    def _attempt(
        self, command: Sequence[str], environ: Mapping[str, str], on_progress: ProgressCallback
    ) -> tuple[str, ...] | None:
        """None where it went well, else the last lines."""

        def hear(line: str) -> str:
            if line.strip() and not line.startswith("Using Python "):
                on_progress(line.strip())
            return line

        return run_telling(command, environ, hear, keep=_TAIL_LINES)


def download(installer: Installer, wanted: SpecifierSet, on_progress: ProgressCallback = ignore_progress) -> str | None:
    """Have an interpreter downloaded. None where it went well, else the reason in one line."""
    try:
        installer.download_python(wanted, on_progress=on_progress)
    except InstallFailed as error:
        # uv says first what failed, and last the cause behind all other causes.
        said = [line.strip().removeprefix("error: ").removeprefix("cause: ") for line in error.tail if line.strip()]
        return ": ".join(dict.fromkeys([said[0], said[-1]])) if said else "uv says nothing"
    return None


def _find() -> str:
    try:
        import uv

        return str(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        if found := shutil.which("uv"):
            return found
        raise NoUv from None


def _advice(text: str) -> str:
    said = text.lower()
    if "no space left" in said:  # first: a download that finds no room speaks of the network as well
        return "The disk is full: point CONFORMANCE_CACHE at a larger one; an environment takes about 500 MB."
    if any(word in said for word in _CERTIFICATE):
        return "The index's certificate is not trusted: point SSL_CERT_FILE at your authority's certificates."
    if any(word in said for word in _NETWORK):
        return "The index was not reached: a mirror is UV_DEFAULT_INDEX (or pip's index-url), a proxy HTTPS_PROXY."
    if "no solution found" in said or "not found in the package registry" in said:
        return "The index does not have it: is your mirror complete, and is there a wheel for this platform?"
    return "Run it again; what is half made is removed first."
