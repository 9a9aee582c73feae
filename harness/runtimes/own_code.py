"""The user's own code: the folders of its modules, and how the driver and the Python workers of an engine find them."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from conformance.core.errors import WrongUsage

_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages"}
_READ_BY_CODE = (".py", ".sql", ".json", ".yaml", ".yml", ".toml", ".txt", ".csv")
"""Modules, and what a module may read that lies beside it."""
_LARGEST = 1 << 20
"""Bytes of a file that is copied, if it is no module."""
_ZIP = "own_code.zip"


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
            WrongUsage: one is not a folder.
        """
        found = []
        for folder in folders:
            if not folder.is_dir():
                raise WrongUsage(
                    f"{where}: {folder} is not a folder; name the folder that holds your modules, such as src"
                )
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
