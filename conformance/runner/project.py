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
from conformance.core.wording import unknown
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.own_code import Jar, JarPackage, OwnCode, requirements_in

PYPROJECT = "pyproject.toml"
TABLE = "[tool.conformance]"
_LONGEST = 1_000_000
"""The file may have this many bytes."""
_DEEPEST = 60
"""The name of a setting may have this many parts."""
_KEYS = ("code", "requirements", "packages", "jars", "conf", "spark")


@dataclass(frozen=True)
class ProjectSettings:
    """The settings of a project; paths are absolute."""

    root: Path
    file: Path | None = None
    code: tuple[Path, ...] = ()
    requirements: Path | None = None
    packages: tuple[JarPackage, ...] = ()
    jars: tuple[str, ...] = ()
    """As `Jar.parse` reads them."""
    conf: Mapping[str, str] = field(default_factory=dict)
    spark: tuple[str, ...] = ()
    """A run that names no version runs on these."""

    @classmethod
    def read(cls, folder: Path) -> ProjectSettings:
        """The project of the nearest ``pyproject.toml`` in a folder or above, else the folder; WrongUsage if the file is wrong."""
        path = next((above / PYPROJECT for above in (folder, *folder.parents) if (above / PYPROJECT).is_file()), None)
        if path is None:
            return cls(folder)
        try:
            with path.open("rb") as file:
                content = file.read(_LONGEST + 1)
            # A pull request may make the file as long and as deep as it likes.
            if len(content) > _LONGEST:
                raise ValueError(f"it has more than {_LONGEST:,} bytes")
            tool = tomllib.loads(content.decode()).get("tool")
        except (OSError, ValueError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise WrongUsage(f"{path}: cannot be read: {why}") from None
        return _project(path, tool.get("conformance", {}) if isinstance(tool, dict) else {})

    def needs_permission(self) -> tuple[str, ...]:
        """The keys that count only with ``--allow-code``."""
        return tuple(name for name in _KEYS if name != "spark" and getattr(self, name))


def own_job(
    project: ProjectSettings,
    *,
    allow_code: bool,
    code: Sequence[Path] = (),
    requirements: Path | None = None,
    packages: Sequence[str] = (),
    jars: Sequence[str] = (),
    conf: Mapping[str, str] | None = None,
) -> RuntimeOptions:
    """What engines need for the user's own code: options replace keys of the project, ``conf`` is laid over its own.

    Raises WrongUsage: ``code`` without ``allow_code``, or an option or a key is wrong.
    """
    if code and not allow_code:
        raise WrongUsage("--code: cases run your code only with --allow-code: add it")
    trusted = project if allow_code else ProjectSettings(project.root)
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
        jars=tuple(map(Jar.parse, jars))
        or tuple(Jar.parse(jar, f"{trusted.file}: {TABLE} jars", project.root) for jar in trusted.jars),
        conf={**trusted.conf, **(conf or {})},
    )


def _project(file: Path, table: Any) -> ProjectSettings:
    in_table = f"{file}: {TABLE}"

    def wrong(key: str, what: str) -> WrongUsage:
        return WrongUsage(f"{in_table} {key} is not {what}")

    def texts(key: str, written: Any, what: str) -> list[str]:
        listed = [written] if isinstance(written, str) else written
        if not isinstance(listed, list) or not all(isinstance(text, str) and text for text in listed):
            raise wrong(key, what)
        return listed

    def entries(key: str, example: str) -> Iterator[tuple[str, Any]]:
        written = table.get(key, {})
        if not isinstance(written, dict):
            raise wrong(key, f"a table such as {example}")
        return _flat(written)

    def conf(key: str, value: Any) -> str:
        if not re.fullmatch(r"spark\.\S+", key) or not isinstance(value, str | int | float | bool):
            raise wrong(f"conf.{key!r}", "a Spark setting, spark.…, with a text, a number or a boolean")
        return str(value).lower() if isinstance(value, bool) else str(value)

    if not isinstance(table, dict):
        raise WrongUsage(f"{in_table} is not a table")
    for key in table:
        if key not in _KEYS:
            raise WrongUsage(f"{in_table} has an {unknown('key', key, _KEYS)}")
    root, requirements = file.parent, table.get("requirements")
    if requirements is not None and not isinstance(requirements, str):
        raise wrong("requirements", "the name of a file")
    packages = '{"3.5" = ["io.delta:delta-spark_2.12:3.2.0"]}'
    return ProjectSettings(
        root,
        file,
        code=tuple(root / folder for folder in texts("code", table.get("code", []), "a list of folders")),
        requirements=root / requirements if requirements else None,
        packages=tuple(
            JarPackage.parse(f"{spark}={package}", f"{in_table} packages")
            for spark, written in entries("packages", packages)
            for package in texts("packages", written, f"a table such as {packages}")
        ),
        jars=tuple(texts("jars", table.get("jars", []), "a list of files, such as target/jobs.jar or 2.12=jobs.jar")),
        conf={key: conf(key, value) for key, value in entries("conf", '{"spark.sql.extensions" = "…"}')},
        spark=tuple(texts("spark", table.get("spark", []), "a list of versions")),
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
