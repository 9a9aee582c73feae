"""The program uv: the one that is installed here, or one that pip puts into the cache when an environment is first made."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from filelock import FileLock

from conformance.core.child_process import OUTSIDE, as_seen_from_here, run, which
from harness.environments import installer
from harness.environments.cache_directory import cache_dir
from harness.errors import HarnessError
from harness.progress import ProgressCallback

_NAME = "uv.exe" if os.name == "nt" else "uv"


def _no_uv(why: str) -> HarnessError:
    return HarnessError(f"uv, which makes the environments, is not installed, and {why}. Install it: pip install uv")


def find(environ: Mapping[str, str] = os.environ) -> str | None:
    """The uv installed with this package, on PATH, or in the cache; None if there is none."""
    try:
        import uv

        return str(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        cached = _cached(environ)
        return which("uv", environ) or (str(cached) if cached.is_file() else None)


def obtain(environ: Mapping[str, str], on_progress: ProgressCallback) -> str:
    """The same; if there is none, the version in ``hashes.txt`` is downloaded. It takes 40 MB, and who runs no engine needs none.

    Raises:
        HarnessError: there is no pip, it failed, or the index has another file.
    """
    if found := find(environ):
        return found
    program = _cached(environ)
    place = program.parents[1]
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock"):
        if not program.is_file():
            on_progress("downloading uv, which makes the environments")
            _install(place, environ)
    return str(program)


def _cached(environ: Mapping[str, str]) -> Path:
    return cache_dir(environ) / "uv" / "bin" / _NAME


def _install(place: Path, environ: Mapping[str, str]) -> None:
    if find_spec("pip") is None:
        raise _no_uv("there is no pip to download it with")
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="uv-") as folder:
        made = Path(folder) / "uv"
        command = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        # Settings of pip that contradict --target; and an index that only uv was told about.
        settings = {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
        if index := environ.get("UV_DEFAULT_INDEX"):
            settings |= {"PIP_INDEX_URL": environ.get("PIP_INDEX_URL", index)}
        with installer.with_hashes([installer.uv()]) as arguments:
            done = run(
                [*command, "--target", str(made), "--require-hashes", *arguments],
                cwd=OUTSIDE,
                environ=as_seen_from_here(environ) | settings,
            )
        if "DO NOT MATCH THE HASHES" in done.stderr:
            raise _no_uv(f"the index has another file of {installer.uv()} than PyPI has, which was not installed")
        if done.returncode != 0:
            last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no reason given")
            raise _no_uv(f"pip could not download it ({last.strip().removeprefix('ERROR: ')})")
        if not (made / "bin" / _NAME).is_file():
            raise _no_uv("what pip downloaded has no program")
        # What a killed process left has no program in it.
        shutil.rmtree(place, ignore_errors=True)
        made.rename(place)
