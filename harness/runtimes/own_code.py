"""The programs and modules that an engine sees: the harness's own, and the folders of the user's code."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from conformance.core.errors import WrongUsage
from conformance.core.wording import is_secret
from harness.engine.transport import SubprocessTransport
from harness.environments.environment import Environment
from harness.runtimes.cluster import Cluster
from harness.runtimes.storage import StorageUrl
from harness.targets.targets import Target

_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages"}
_READ_BY_CODE = (".py", ".sql", ".json", ".yaml", ".yml", ".toml", ".txt", ".csv")
"""Modules, and what a module may read that lies beside it."""
_LARGEST = 1 << 20
"""Bytes of a file that is copied, if it is no module."""
_ZIP = "own_code.zip"


class NoSuchFolder(WrongUsage):
    """A folder of the user's code does not exist."""

    def __init__(self, folder: Path, where: str) -> None:
        super().__init__(f"{where}: {folder} is not a folder; name the folder that holds your modules, such as src")
        self.folder = folder


@dataclass(frozen=True)
class OwnCode:
    """The modules that ``call`` may name."""

    folders: tuple[Path, ...]
    """Absolute paths, in the order in which Python looks."""

    @classmethod
    def at(cls, folders: Iterable[Path], where: str = "--code") -> OwnCode:
        """The code in these folders.

        Args:
            folders: relative to the working directory, or absolute.
            where: what names them, for the error.

        Raises:
            NoSuchFolder: one is not a folder.
        """
        found = []
        for folder in folders:
            if not folder.is_dir():
                raise NoSuchFolder(folder, where)
            found.append(folder.resolve())
        return cls(tuple(dict.fromkeys(found)))

    @classmethod
    def of_project(cls, root: Path) -> OwnCode:
        """The code of a project, unless somebody says where it is: the working directory, as for ``python -m``, the root and ``src``."""
        return cls.at(folder for folder in (Path.cwd(), root, root / "src") if folder.is_dir())

    def paths(self) -> tuple[str, ...]:
        return tuple(map(str, self.folders))

    def files(self) -> Iterator[tuple[str, Path, tuple[Path, ...]]]:
        """Each folder with the name of its copy on another machine, and the files to copy."""
        for number, folder in enumerate(self.folders):
            yield f"code/{number}", folder, tuple(modules(folder))

    def zipped(self, into: Path) -> Path:
        """A zip of all modules, which Python imports from; the first folder wins.

        Args:
            into: a folder for it.
        """
        path = into / _ZIP
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            written: set[str] = set()
            for _, folder, files in self.files():
                for file in files:
                    name = file.relative_to(folder).as_posix()
                    if name not in written:
                        written.add(name)
                        archive.write(file, name)
        return path


def worker_settings(folders: Iterable[str]) -> dict[str, str]:
    """The setting with which Python workers find modules: they get this variable beside that of the JVM."""
    path = os.pathsep.join(folders)
    return {"spark.executorEnv.PYTHONPATH": path} if path else {}


def modules(folder: Path) -> Iterator[Path]:
    """Every module below a folder, and small files that it may read; not in hidden folders and virtual environments."""
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _SKIPPED_FOLDERS and not Path(here, name, "pyvenv.cfg").exists()
        )
        for name in sorted(files):
            path = Path(here, name)
            if name.endswith(_READ_BY_CODE) and (name.endswith(".py") or path.stat().st_size <= _LARGEST):
                yield path


START_SECONDS = 180.0
"""How long an engine may take to introduce itself."""


def stage(target: Target, root: Path, *parts: str, into: str = "") -> Path:
    """Make and return a directory for an engine, with parts of the harness in its ``engine``: no other code of the host is importable.

    Args:
        root: holds the directories of engines.
        parts: files or folders of ``harness``.
        into: the package that they are in there.
    """
    work = Path(tempfile.mkdtemp(prefix=f"{target.key}-", dir=root))
    for part in parts:
        with resources.as_file(resources.files("harness") / part) as source:
            copy = work / "engine" / into / part
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy)
    return work


def start(
    module: str,
    environment: Environment,
    work: Path,
    settings: Mapping[str, str],
    cluster: Cluster | None,
    *,
    storage: StorageUrl | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> SubprocessTransport:
    """Start ``python -m MODULE WORK KEY=VALUE …``; the storage and settings that are secrets go into variables.

    Args:
        module: a staged module.
        work: the engine's directory, and its working directory.
        cluster: provides executors; None for the process itself.
        storage: holds the files of cases; None for ``work``.
        variables: additional environment variables; use them for secrets, because every user of the machine can read arguments.
    """
    environ = environment.environ(elsewhere=cluster is not None and not cluster.on_this_machine)
    # `environ` has a PYTHONPATH only if the installed Spark is found through it.
    path = os.pathsep.join(filter(None, [str(work / "engine"), environ.get("PYTHONPATH")]))
    hidden = {key: value for key, value in settings.items() if is_secret(key, value)}
    assignments = (f"{key}={value}" for key, value in settings.items() if key not in hidden)
    secrets = {"CONFORMANCE_SETTINGS": json.dumps(hidden)} if hidden else {}
    if storage is not None:
        secrets["CONFORMANCE_STORAGE"] = str(storage)
    return SubprocessTransport(
        [str(environment.python), "-m", module, str(work), *assignments],
        cwd=work,
        env={**environ, "PYTHONPATH": path, **secrets, **variables},
    )
