"""The user's own code: the folders of its modules, how an engine finds them, and which Python and Java packages the code needs."""

import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion
from harness.targets.targets import Target

_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages"}
_READ_BY_CODE = (".py", ".sql", ".json", ".yaml", ".yml", ".toml", ".txt", ".csv")
"""Modules, and what a module may read that lies beside it."""
_LARGEST = 1 << 20
"""Bytes of a file that is copied, if it is no module."""


@dataclass(frozen=True)
class OwnCode:
    """The modules that ``call`` may name."""

    folders: tuple[Path, ...]
    """Absolute paths, in the order in which Python looks."""

    @classmethod
    def at(cls, folders: Iterable[Path], where: str = "--code") -> Self:
        """The code in these folders; raises ``WrongUsage`` if one is not a folder. ``where``: what names them, for the error."""
        named = tuple(folders)
        for folder in named:
            if not folder.is_dir():
                raise WrongUsage(
                    f"{where}: {folder} is not a folder; name the folder that holds your modules, such as src"
                )
        return cls(tuple(dict.fromkeys(folder.resolve() for folder in named)))

    @classmethod
    def of_project(cls, root: Path) -> Self:
        """The code of a project, unless somebody says where it is: the working directory, as for ``python -m``, the root and ``src``."""
        return cls.at(folder for folder in (Path.cwd(), root, root / "src") if folder.is_dir())

    def paths(self) -> tuple[str, ...]:
        return tuple(map(str, self.folders))

    def jar(self, text: str) -> "Jar":
        """A jar that a case names, ``jobs.jar`` or ``2.12=jobs.jar``, in the first folder that has it. Raises ``WrongUsage``."""
        name = _SCALA.sub("", text)
        root = next((folder for folder in self.folders if (folder / name).is_file()), None)
        if root is None:
            raise WrongUsage(
                f"a case names the jar {name}, which is in none of the folders of your code, "
                f"{', '.join(self.paths())}: build it, or say with --code where it is"
            )
        return Jar.parse(text, "a case", root)

    def files(self) -> Iterator[tuple[str, Path, tuple[Path, ...]]]:
        """Each folder with the name of its copy on another machine, and the files to copy."""
        for number, folder in enumerate(self.folders):
            yield f"code/{number}", folder, tuple(modules(folder))

    def zipped(self, into: Path) -> Path:
        """Write a zip of all modules into a folder, for Python to import from; the first folder of the code wins."""
        path = into / "own_code.zip"
        entries = [(file.relative_to(folder).as_posix(), file) for _, folder, files in self.files() for file in files]
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, file in dict(reversed(entries)).items():
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


JARS = "spark.jars.packages"
"""https://spark.apache.org/docs/latest/configuration.html#runtime-environment"""

_COORDINATE = re.compile(r"[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+:[A-Za-z0-9_.+-]+")
_SCALA = re.compile(r"^(\d+\.\d+)=")
_SPARK = frozenset({"pyspark", "pyspark-client", "pyspark-connect"})


@dataclass(frozen=True)
class JarPackage:
    spark: str
    """A version, a line or ``all``."""
    coordinate: str
    """``io.delta:delta-spark_2.12:3.2.0``"""

    @classmethod
    def parse(cls, text: str, where: str = "--package") -> Self:
        """Parse ``3.5=io.delta:delta-spark_2.12:3.2.0``; raises ``WrongUsage`` for a text of another form."""
        spark, _, coordinate = text.partition("=")
        if not re.fullmatch(r"\d+\.\d+(\.\d+)?|all", spark.strip()) or not _COORDINATE.fullmatch(coordinate.strip()):
            raise WrongUsage(
                f"{where}: {text!r} is not VERSION=GROUP:ARTIFACT:VERSION, such as 3.5=io.delta:delta-spark_2.12:3.2.0; "
                "the first VERSION is a Spark version, a line or all"
            )
        return cls(spark.strip(), coordinate.strip())

    def is_for(self, version: SparkVersion) -> bool:
        return self.spark in ("all", version.line, str(version))


def jar_settings(packages: Iterable[JarPackage], version: SparkVersion, given: str = "") -> dict[str, str]:
    """The setting with which Spark fetches the packages for its version, beside the ``given`` value; nothing if there are none."""
    wanted = [package.coordinate for package in packages if package.is_for(version)]
    return {JARS: with_jars(given, wanted)} if wanted else {}


def with_jars(given: str, more: Iterable[object]) -> str:
    """A list of jars as Spark's settings have it, each once: those that the user gives, and more."""
    return ",".join(dict.fromkeys([*filter(None, given.split(",")), *map(str, more)]))


LOCAL_JARS = "spark.jars"
"""https://spark.apache.org/docs/latest/configuration.html#runtime-environment"""


@dataclass(frozen=True)
class Jar:
    path: Path
    """Absolute."""
    scala: str | None = None
    """The version of Scala that it is built for, ``2.12``; None for any."""

    @classmethod
    def parse(cls, text: str, where: str = "--jar", root: Path = Path()) -> Self:
        """Parse ``jobs.jar`` or ``2.12=jobs.jar``, relative to ``root``; raises ``WrongUsage`` if there is no such jar."""
        scala = _SCALA.match(text)
        path = root / (text[scala.end() :] if scala else text)
        if not path.is_file():
            raise WrongUsage(f"{where}: there is no file {path}")
        if not zipfile.is_zipfile(path):
            raise WrongUsage(f"{where}: {path} is not a jar: it is not a zip of classes")
        return cls(path.resolve(), scala[1] if scala else None)

    def classes(self) -> frozenset[str]:
        """The names of its classes, ``acme.Jobs``; an object of Scala has that of its class."""
        with zipfile.ZipFile(self.path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".class")]
        return frozenset(name.removesuffix(".class").removesuffix("$").replace("/", ".") for name in names)


def local_jar_settings(jars: Sequence[Jar], scala: str, given: str = "") -> dict[str, str]:
    """The setting with the jars for this Scala, beside the ``given`` value; none without jars. Raises ``WrongUsage`` if no jar fits."""
    fitting = [jar.path for jar in jars if jar.scala in (None, scala)]
    if jars and not fitting:
        raise WrongUsage(
            f"no jar is for Scala {scala}, which a Spark of this run has: add --jar {scala}=FILE, or {scala}=FILE to the jars of the case; "
            f"given for {', '.join(sorted({str(jar.scala) for jar in jars}))}"
        )
    return {LOCAL_JARS: with_jars(given, fitting)} if fitting else {}


def requirements_in(file: Path) -> tuple[str, ...]:
    """The requirements in a file, in order; without pyspark itself. Raises ``WrongUsage`` if it cannot be read or a line is none."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None
    requirements = []
    for number, line in enumerate(lines, 1):
        if not (text := re.sub(r"(^|\s)#.*", "", line).strip()):
            continue
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            raise WrongUsage(
                f"{file}:{number}: {text!r} is not a requirement such as pandas==2.2.3; options of pip are not read"
            ) from None
        if canonicalize_name(requirement.name) not in _SPARK:
            requirements.append(text)
    return tuple(requirements)


def with_requirements(target: Target, requirements: Sequence[str]) -> Target:
    """The target with these Python packages: its environment is one of its own, for exactly these."""
    return replace(target, packages=tuple(dict.fromkeys((*target.packages, *requirements)))) if requirements else target
