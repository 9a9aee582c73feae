"""The user's project: the folder of its ``pyproject.toml``, and what ``[tool.conformance]`` says there.

Only ``spark`` counts without ``--allow-code``: a pull request may change the file, and each of the other keys can run a program.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.core.errors import WrongUsage
from conformance.language.source import unknown
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.own_code import JarPackage, OwnCode, requirements_in

PYPROJECT = "pyproject.toml"
TABLE = "[tool.conformance]"
_LONGEST = 1_000_000
"""Bytes of the file."""
_DEEPEST = 60
"""Parts of the name of a setting."""
_KEYS = ("code", "requirements", "packages", "conf", "spark")


class NotAProject(WrongUsage):
    """``[tool.conformance]`` has a problem."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(f"{file}: {why}")


@dataclass(frozen=True)
class Project:
    """The settings of a project; paths are absolute."""

    root: Path
    file: Path | None = None
    """Its ``pyproject.toml``; None if there is none."""
    code: tuple[Path, ...] = ()
    requirements: Path | None = None
    packages: tuple[JarPackage, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)
    spark: tuple[str, ...] = ()
    """The versions of a run that names none."""

    @classmethod
    def read(cls, folder: Path) -> Project:
        """The project of a folder: the nearest ``pyproject.toml`` there or above; the folder itself if there is none.

        Raises:
            NotAProject: the file cannot be read, or a key of its table is wrong.
        """
        found = next((above / PYPROJECT for above in (folder, *folder.parents) if (above / PYPROJECT).is_file()), None)
        if found is None:
            return cls(folder)
        try:
            with found.open("rb") as file:
                content = file.read(_LONGEST + 1)
            # A pull request may make the file as long and as deep as it likes.
            tool = tomllib.loads(content.decode()).get("tool") if len(content) <= _LONGEST else None
        except (OSError, ValueError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise NotAProject(found, f"cannot be read: {why}") from None
        if len(content) > _LONGEST:
            raise NotAProject(found, f"cannot be read: it has more than {_LONGEST:,} bytes")
        return _project(found, tool.get("conformance", {}) if isinstance(tool, dict) else {})

    def needs_permission(self) -> tuple[str, ...]:
        """The keys that count only with ``--allow-code``."""
        given = {"code": self.code, "requirements": self.requirements, "packages": self.packages, "conf": self.conf}
        return tuple(name for name, value in given.items() if value)


def own_job(
    project: Project,
    *,
    allow_code: bool,
    code: Sequence[Path] = (),
    requirements: Path | None = None,
    packages: Sequence[str] = (),
    conf: Mapping[str, str] | None = None,
) -> RuntimeOptions:
    """What engines need to run the user's own code, by the options of a command and the settings of the project.

    An option replaces the key; ``conf`` is laid over it.

    Raises:
        WrongUsage: ``code`` without ``allow_code``, or an option or a key is wrong.
    """
    if code and not allow_code:
        raise WrongUsage("--code: cases run your code only with --allow-code: add it")
    trusted = project if allow_code else Project(project.root)
    file = requirements or trusted.requirements
    folders = (
        OwnCode.at(code)
        if code
        else OwnCode.at(trusted.code, f"{trusted.file}: {TABLE} code")
        if trusted.code
        else OwnCode.of_project(project.root)
    )
    return RuntimeOptions(
        own_code=folders if allow_code else None,
        requirements=requirements_in(file) if file else (),
        packages=tuple(JarPackage.parse(text) for text in packages) or trusted.packages,
        conf={**trusted.conf, **(conf or {})},
    )


def _project(file: Path, table: Any) -> Project:
    """The project of a file with this ``[tool.conformance]``."""

    def wrong(key: str, what: str) -> NotAProject:
        return NotAProject(file, f"{TABLE} {key} is not {what}")

    def texts(key: str, what: str) -> tuple[str, ...]:
        written = table.get(key, [])
        found = [written] if isinstance(written, str) else written
        if not isinstance(found, list) or not all(isinstance(text, str) and text for text in found):
            raise wrong(key, what)
        return tuple(found)

    def packages() -> Iterator[JarPackage]:
        written = table.get("packages", {})
        what = 'a table such as {"3.5" = ["io.delta:delta-spark_2.12:3.2.0"]}'
        if not isinstance(written, dict):
            raise wrong("packages", what)
        for spark, coordinates in _flat(written):
            listed = [coordinates] if isinstance(coordinates, str) else coordinates
            if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
                raise wrong("packages", what)
            for one in listed:
                yield JarPackage.parse(f"{spark}={one}", f"{file}: {TABLE} packages")

    def conf() -> Iterator[tuple[str, str]]:
        written = table.get("conf", {})
        if not isinstance(written, dict):
            raise wrong("conf", 'a table such as {"spark.sql.extensions" = "…"}')
        for key, value in _flat(written):
            if not re.fullmatch(r"spark\.\S+", key) or not isinstance(value, str | int | float | bool):
                raise wrong(f"conf.{key!r}", "a Spark setting, spark.…, with a text, a number or a boolean")
            yield key, str(value).lower() if isinstance(value, bool) else str(value)

    if not isinstance(table, dict):
        raise NotAProject(file, f"{TABLE} is not a table")
    for key in table:
        if key not in _KEYS:
            raise NotAProject(file, f"{TABLE} has an {unknown('key', key, _KEYS)}")
    root, requirements = file.parent, table.get("requirements")
    if requirements is not None and not isinstance(requirements, str):
        raise wrong("requirements", "the name of a file")
    return Project(
        root,
        file,
        code=tuple(root / folder for folder in texts("code", "a list of folders")),
        requirements=root / requirements if requirements else None,
        packages=tuple(packages()),
        conf=dict(conf()),
        spark=texts("spark", "a list of versions"),
    )


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The entries of a table; ``spark.sql.extensions`` and ``3.5`` without quotes are tables inside tables."""
    left: list[tuple[tuple[str, ...], Any]] = [((str(key),), value) for key, value in reversed([*table.items()])]
    while left:
        names, value = left.pop()
        if not isinstance(value, dict) or len(names) == _DEEPEST:
            yield ".".join(names), value
        else:
            left += [((*names, str(key)), below) for key, below in reversed(value.items())]
