"""uv as the installer of environments: the program, which package index and which hashes it uses, and which Pythons it finds and downloads.

The program is the one that is installed here, or one that pip puts into the cache when an environment is first made.
"""

import configparser
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.core.child_process import OUTSIDE, as_seen_from_here, run, run_streaming, which
from conformance.core.temporary_folder import temporary_folder
from harness.environments.cache_directory import cache_dir, make_once
from harness.errors import HarnessError
from harness.progress import ProgressCallback

FILE = "hashes.txt"
"""The file beside this module that ``tools/package_hashes.py`` writes."""


@cache
def known() -> Mapping[str, str]:
    """Each requirement, such as ``pyspark==3.5.9``, with its line of a requirements file: it and the hashes of its files."""
    lines = (files("harness.environments") / FILE).read_text(encoding="utf-8").splitlines()
    return {line.partition(" ")[0]: line for line in lines if not line.startswith("#")}


def uv() -> str:
    """The requirement of the uv that is installed where there is none: ``uv==0.13.9``."""
    return next(requirement for requirement in known() if requirement.startswith("uv=="))


@contextmanager
def with_hashes(requirements: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The requirements as arguments of uv or pip; those with known hashes are in a file, which is the only place for hashes."""
    hashed = [known()[requirement] for requirement in requirements if requirement in known()]
    if not hashed:
        yield tuple(requirements)
        return
    with temporary_folder() as folder:
        file = folder / "requirements.txt"
        file.write_text("\n".join(hashed) + "\n", encoding="utf-8")
        yield ("-r", str(file), *(requirement for requirement in requirements if requirement not in known()))


_PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "no-index": "UV_NO_INDEX",
    "cert": "SSL_CERT_FILE",
}
_ALSO = {"UV_DEFAULT_INDEX": "UV_INDEX_URL", "UV_INDEX": "UV_EXTRA_INDEX_URL"}
"""uv's own variables with their older names: if one is set, pip's setting is not needed."""


def for_uv(environ: Mapping[str, str]) -> dict[str, str]:
    """uv's variables for what pip's variables and files tell pip; those that are already set for uv are left out."""
    configured = index_settings(environ)
    variables: dict[str, str] = {}
    for setting, variable in _PIP_TO_UV.items():
        value = configured.get(setting, "").strip()
        if not value or environ.get(variable) or environ.get(_ALSO.get(variable, variable)):
            continue
        if setting == "find-links":
            # pip ignores a missing folder, uv fails; a relative one would be of the checkout.
            folders = {place: Path(place).expanduser() for place in value.split()}
            value = ",".join(p for p, at in folders.items() if "://" in p or (at.is_absolute() and at.exists()))
        elif setting == "no-index":
            value = "1" if value.lower() in {"1", "true", "yes", "on"} else ""
        else:
            value = " ".join(value.split())
        if value:
            variables[variable] = value
    return variables


def index_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """pip's settings for package sources, from its variables and files, under the names that its files use."""
    settings: dict[str, str] = {}
    for path in _files(environ):
        parser = configparser.RawConfigParser()
        with suppress(configparser.Error, UnicodeDecodeError):
            parser.read(path, encoding="utf-8")
            for section in filter(parser.has_section, ("global", "install")):
                settings |= {name.replace("_", "-"): value for name, value in parser.items(section) if value}
    for setting in _PIP_TO_UV:
        if value := environ.get("PIP_" + setting.upper().replace("-", "_")):
            settings[setting] = value
    return settings


def _files(environ: Mapping[str, str]) -> Iterator[Path]:
    """pip's configuration files, lowest priority first."""
    chosen = environ.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return
    yield Path("/etc/pip.conf")
    for folder in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep):
        yield Path(folder, "pip", "pip.conf")
    if home := environ.get("HOME"):
        yield Path(home, ".pip", "pip.conf")
        yield Path(home, "Library", "Application Support", "pip", "pip.conf")
    if config := environ.get("XDG_CONFIG_HOME") or (home and f"{home}/.config"):
        yield Path(config, "pip", "pip.conf")
    if appdata := environ.get("APPDATA"):
        yield Path(appdata, "pip", "pip.ini")
    yield Path(sys.prefix, "pip.conf")
    if chosen:
        yield Path(chosen)


_UV = "uv.exe" if os.name == "nt" else "uv"


def _no_uv(why: str) -> HarnessError:
    return HarnessError(f"uv, which makes the environments, is not installed, and {why}. Install it: pip install uv")


def find_uv(environ: Mapping[str, str] = os.environ) -> str | None:
    """The uv installed with this package, on PATH, or in the cache; None if there is none."""
    try:
        import uv

        return str(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        cached = cache_dir(environ) / "uv" / "bin" / _UV
        return which("uv", environ) or (str(cached) if cached.is_file() else None)


def obtain_uv(environ: Mapping[str, str], on_progress: ProgressCallback) -> str:
    """The same; else it is downloaded, 40 MB: the version in ``hashes.txt``. Raises ``HarnessError`` if pip is missing or fails."""
    place = cache_dir(environ) / "uv"
    return make_once(place, lambda: find_uv(environ), lambda: _install_uv(place, environ, on_progress), on_progress)


def _install_uv(place: Path, environ: Mapping[str, str], on_progress: ProgressCallback) -> str:
    on_progress("downloading uv, which makes the environments")
    if find_spec("pip") is None:
        raise _no_uv("there is no pip to download it with")
    with temporary_folder(place.parent) as folder:
        made = folder / "uv"
        command = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        # Settings of pip that contradict --target; and an index that only uv was told about.
        settings = {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
        if index := environ.get("UV_DEFAULT_INDEX"):
            settings |= {"PIP_INDEX_URL": environ.get("PIP_INDEX_URL", index)}
        with with_hashes([uv()]) as arguments:
            done = run(
                [*command, "--target", str(made), "--require-hashes", *arguments],
                cwd=OUTSIDE,
                environ=as_seen_from_here(environ) | settings,
            )
        if "DO NOT MATCH THE HASHES" in done.stderr:
            raise _no_uv(f"the index has another file of {uv()} than PyPI has, which was not installed")
        if done.returncode != 0:
            last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no reason given")
            raise _no_uv(f"pip could not download it ({last.strip().removeprefix('ERROR: ')})")
        if not (made / "bin" / _UV).is_file():
            raise _no_uv("what pip downloaded has no program")
        # What a killed process left has no program in it.
        shutil.rmtree(place, ignore_errors=True)
        made.rename(place)
    return str(place / "bin" / _UV)


@dataclass(frozen=True)
class Python:
    executable: Path
    version: Version


def newest(pythons: Iterable[Python], wanted: SpecifierSet) -> Python | None:
    """The newest in the range, the first of equals; None if there is none."""
    # max keeps the first of equals, so the order of PATH decides among builds of the same version.
    fitting = (python for python in pythons if python.version in wanted)
    return max(fitting, key=lambda python: python.version, default=None)


def specifier(wanted: SpecifierSet) -> str:
    """A range with its lower end first: ``>=3.8,<3.12``."""
    return ",".join(map(str, sorted(wanted, key=lambda end: Version(end.version.removesuffix(".*")))))


def search_path(environ: Mapping[str, str]) -> str:
    """The PATH on which uv looks for interpreters: this process's own first, then the host's, then all of pyenv's.

    pyenv's shims are left out: they only work for the versions that the current project has chosen.
    """
    own = Path(sys.base_prefix) if os.name == "nt" else Path(sys.base_prefix, "bin")
    on_path = filter(None, environ.get("PATH", "").split(os.pathsep))
    folders = [str(own), *(folder for folder in on_path if not folder.rstrip("/").endswith("/shims"))]
    for root in (environ.get("PYENV_ROOT"), environ.get("HOME") and f"{environ['HOME']}/.pyenv"):
        if root:
            folders += map(str, sorted(Path(root, "versions").glob("*/bin")))
    return os.pathsep.join(dict.fromkeys(folders))


_TAIL_LINES = 25
# A user's own project, environment or interpreter must not affect our environments.
_REMOVED_VARIABLES = (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONHOME",
    "PYTHONPATH",
    "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT",
    "UV_WORKING_DIR",
    "UV_WORKING_DIRECTORY",
    "UV_PYTHON",
    "UV_SYSTEM_PYTHON",
    "UV_CONSTRAINT",
    "UV_OVERRIDE",
    "UV_REQUIRE_HASHES",
    "UV_NO_VERIFY_HASHES",
)
_CERTIFICATE = ("certificate", "unknownissuer")
_NETWORK = ("dns error", "error sending request", "failed to fetch", "connect", "timed out", "operation timed out")


class InstallFailed(HarnessError):
    """uv failed. ``tail``: the last lines of its output."""

    def __init__(self, doing: str, command: Sequence[str], tail: Sequence[str]) -> None:
        text = "\n".join(tail).strip() or "(no output)"
        super().__init__(
            f"{doing} failed. uv says:\n" + "\n".join(f"  {line}" for line in text.splitlines()) + f"\n{_advice(text)}"
            f"\nThe command was: {shlex.join(command)}"
        )
        self.tail = tuple(tail)


class Uv:
    """Makes environments with uv. ``binary``: its path, from ``find_uv`` or ``obtain_uv``."""

    def __init__(self, binary: str, environ: Mapping[str, str] = os.environ) -> None:
        self._binary = binary
        environ = as_seen_from_here(environ)
        self._environ = {name: value for name, value in environ.items() if name not in _REMOVED_VARIABLES}
        self._environ |= for_uv(environ)
        self._environ |= {"NO_COLOR": "1", "UV_NO_PROGRESS": "1"}
        # A pyspark is 300 MB and more; behind a slow mirror uv's timeout of 30 s is too short.
        self._environ.setdefault("UV_HTTP_TIMEOUT", "300")

    def venv(self, directory: Path, python: Path, *, on_progress: ProgressCallback) -> None:
        """Make a virtual environment with this interpreter. Raises InstallFailed."""
        command = ("venv", "--quiet", "--no-project", "--python", str(python), str(directory))
        self._run("Making the environment", *command, on_progress=on_progress)

    def install(self, python: Path, requirements: Sequence[str], *, on_progress: ProgressCallback) -> None:
        """Install into the environment of this interpreter. Raises ``InstallFailed``, also for another sha256 than the known one."""
        # Without uv's cache: it would keep the source, the wheel and the unpacked wheel of every pyspark, 1.5 GB and more, which are
        # never needed again while the environment exists.
        command = ["pip", "install", "--no-cache", "--verify-hashes", "--python", str(python)]
        if self._environ.get("UV_NO_INDEX") == "1":  # see `for_uv`; uv has no such variable
            command.append("--no-index")
        ours = files("harness.environments")
        with (
            as_file(ours / "setuptools.cfg") as stored,
            as_file(ours / "build-constraints.txt") as constraints,
            with_hashes(requirements) as arguments,
        ):
            # PyPI has the sources of pyspark only, of which uv makes a wheel.
            self._run(
                f"Installing {', '.join(requirements)}",
                *command,
                *arguments,
                on_progress=on_progress,
                more={"DIST_EXTRA_CONFIG": str(stored), "UV_BUILD_CONSTRAINT": str(constraints)},
            )

    def pythons(self) -> tuple[Python, ...]:
        """The CPythons on PATH, of pyenv and of uv. Raises ``InstallFailed`` if uv does not list them, as when it rejects its settings."""
        command = [self._binary, "python", "list", "--only-installed", "--output-format", "json"]
        answer = run(command, cwd=OUTSIDE, environ=self._environ | {"PATH": search_path(self._environ)})
        if answer.returncode:
            raise InstallFailed("Looking for CPython", command, answer.stderr.splitlines()[-_TAIL_LINES:])
        try:
            return tuple(
                Python(Path(entry["path"]), Version(entry["version"]))
                for entry in json.loads(answer.stdout)
                if entry["path"] and entry["implementation"] == "cpython" and entry["variant"] == "default"
            )
        except (ValueError, TypeError, KeyError):
            return ()

    def download_python(self, wanted: SpecifierSet, *, on_progress: ProgressCallback) -> None:
        """Download the newest interpreter in the range. Raises InstallFailed."""
        command = ("python", "install", "--no-bin", f"cpython{specifier(wanted)}")
        self._run(f"Downloading CPython {specifier(wanted)}", *command, on_progress=on_progress)

    def _run(
        self, doing: str, *arguments: str, on_progress: ProgressCallback, more: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """``more``: variables that the user's override."""
        command = [self._binary, *arguments]
        environ = {**more, **self._environ}
        tail = self._stream(command, environ, on_progress)
        if tail is not None and any(word in "\n".join(tail).lower() for word in _CERTIFICATE):
            # A company's proxy signs with its own authority: the system trusts it, uv's built-in list does not.
            on_progress("retrying with the certificates of this system")
            tail = self._stream(command, environ | {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}, on_progress)
        if tail is not None:
            raise InstallFailed(doing, command, tail)

    def _stream(
        self, command: Sequence[str], environ: Mapping[str, str], on_progress: ProgressCallback
    ) -> tuple[str, ...] | None:
        """None on success, else the last lines of output."""

        def on_line(line: str) -> str:
            if line.strip() and not line.startswith("Using Python "):
                on_progress(line.strip())
            return line

        # uv locks an environment by a file among the temporary ones, and leaves it.
        with temporary_folder() as folder:
            return run_streaming(command, {**environ, "TMPDIR": str(folder)}, on_line, keep=_TAIL_LINES)


def download(installer: Uv, wanted: SpecifierSet, on_progress: ProgressCallback) -> str | None:
    """Download an interpreter. None on success, else the reason in one line."""
    try:
        installer.download_python(wanted, on_progress=on_progress)
    except InstallFailed as error:
        # uv's first line says what failed, its last line the root cause.
        lines = [line.strip().removeprefix("error: ").removeprefix("cause: ") for line in error.tail if line.strip()]
        return ": ".join(dict.fromkeys([lines[0], lines[-1]])) if lines else "uv gives no reason"
    return None


def _advice(text: str) -> str:
    """What to do about a failure, guessed from uv's output: its exit code does not tell failures apart."""
    lowered = text.lower()
    if "no space left" in lowered:  # first: a download on a full disk mentions the network as well
        return "The disk is full: point CONFORMANCE_CACHE at a larger one; an environment takes about 500 MB."
    if "hash mismatch" in lowered:
        return (
            "The index has another file of this name than PyPI has, so nothing of it was installed. Ask who keeps the index; "
            "a pyspark that you built yourself runs with --spark installed."
        )
    if any(word in lowered for word in _CERTIFICATE):
        return "The index's certificate is not trusted: point SSL_CERT_FILE at your authority's certificates."
    if any(word in lowered for word in _NETWORK):
        return "The index cannot be reached: set a mirror with UV_DEFAULT_INDEX (or pip's index-url), a proxy with HTTPS_PROXY."
    if "no solution found" in lowered or "not found in the package registry" in lowered:
        return "The index does not have it: is your mirror complete, and is there a wheel for this platform?"
    if "toml" in lowered and "parse" in lowered:
        return "Correct that file; UV_NO_CONFIG=1 leaves out all settings that uv has in files."
    return "Run it again; an incomplete environment is removed first."
