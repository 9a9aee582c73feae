"""Packages of which each Spark line needs another one, as data says: their jars for an engine, and the settings of its session.

They have table formats, or are accelerators: plugins that run operators of Spark's plans themselves.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from conformance.core.case import TableFormat
from conformance.core.data import read_data
from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion
from conformance.core.wording import unknown
from harness.environments.environment import Environment
from harness.environments.jars import Coordinate, fetch_with_dependencies, known_jars, not_shipped
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes.own_code import LOCAL_JARS, with_jars

_HERE = "harness.runtimes"
LISTS = (LOCAL_JARS, "spark.sql.extensions", "spark.plugins")
"""Settings that name several things: what is added stands beside what the user names."""


@dataclass(frozen=True)
class LinePackage:
    """What an entry of the data says."""

    name: str
    """What users call it: ``Delta Lake``."""
    source: str
    """The page that says which package is for which Spark."""
    conf: Mapping[str, str]
    lines: Mapping[str, str]
    """Spark line → ``group:artifact:version``; the version of Scala follows the artifact."""
    since: Mapping[str, str]
    """Spark line → the first of its releases that has all classes which the package uses."""
    checksums: str
    """The file with the SHA-256 of the jars that were tried."""

    @classmethod
    def of(cls, entry: Mapping[str, Any], checksums: str) -> Self:
        return cls(entry["name"], entry["source"], entry["conf"], entry["lines"], entry.get("since", {}), checksums)

    def lacking(self, version: SparkVersion) -> str | None:
        """The reason why a Spark has no package; None if it has one."""
        first = self.since.get(version.line)
        if first is not None and version < SparkVersion.parse(first):
            return f"the package of {self.name} for Spark {version.line} runs from {first} on: choose a newer one"
        if version.line in self.lines:
            return None
        return f"{self.name} has no package for Spark {version.line}: choose one of {', '.join(self.lines)} ({self.source})"

    def coordinate(self, version: SparkVersion, scala: str) -> Coordinate:
        """The package of a Spark that does not lack it."""
        group, artifact, released = self.lines[version.line].split(":")
        return Coordinate(group, f"{artifact}_{scala}", released)


@dataclass(frozen=True)
class PackageAccess:
    """What an engine needs to have packages."""

    settings: Mapping[str, str]
    description: str


def package_access(
    wanted: Sequence[LinePackage],
    version: SparkVersion,
    environment: Environment,
    given: Mapping[str, str],
    on_progress: ProgressCallback,
) -> PackageAccess:
    """Give an engine packages, fetched if they are not in the cache.

    ``given``: the settings that it has without them; the user's own jars, extensions and plugins stay.

    Raises:
        HarnessError: no package fits this Spark, or its version of Scala is unknown.
        JarsNotFetched: a jar cannot be fetched, or is another than the known one.
    """
    settings: dict[str, str] = {}
    packages = []
    for line_package in wanted:
        if (why := line_package.lacking(version)) is not None:
            raise HarnessError(why)
        known = known_jars(_HERE, line_package.checksums)
        package = line_package.coordinate(version, environment.scala())
        name = f"{package.artifact}-{package.version}"
        jars = fetch_with_dependencies(package, name, environment, known=known, shipped=True, on_progress=on_progress)
        if f"{name}.jar" not in known:
            on_progress(f"no sha256 of {name}.jar is known to this suite: it is used as Maven sends it")
        added = {LOCAL_JARS: ",".join(map(str, not_shipped(jars, environment))), **line_package.conf}
        for key, value in added.items():
            before = settings.get(key, given.get(key, ""))
            settings[key] = with_jars(before, value.split(",")) if key in LISTS else value
        packages.append(f"{package.artifact} {package.version}")
    return PackageAccess(settings, ", ".join(packages))


@cache
def entries(file: str) -> Mapping[str, Mapping[str, Any]]:
    """The entries of a file of data beside this module, by name."""
    content: Mapping[str, Mapping[str, Any]] = read_data(_HERE, file)
    return content


def package_of(format: TableFormat) -> LinePackage:
    return LinePackage.of(entries("tables.yaml")[format], "tables_jars.sha256")


NATIVE = "spark.conformance.native"
"""The setting of an engine with which the driver reports native operators: a regular expression for their names."""


@dataclass(frozen=True)
class Accelerator:
    """An entry of ``accelerators.yaml``."""

    key: str
    package: LinePackage
    native: str
    """A regular expression for the names of operators that it runs itself."""

    @property
    def newest_line(self) -> str:
        """The newest Spark line that has it."""
        return max(self.package.lines, key=lambda line: [*map(int, line.split("."))])

    def check(self, versions: Iterable[SparkVersion]) -> None:
        """Raise WrongUsage if it has no package for one of these."""
        for version in versions:
            if (why := self.package.lacking(version)) is not None:
                raise WrongUsage(f"--with {self.key}: {why}")

    def release(self, version: SparkVersion) -> str:
        """What runs on a Spark that has it, for people: ``Apache DataFusion Comet 0.12.0``."""
        return f"{self.package.name} {self.package.lines[version.line].rpartition(':')[2]}"


def accelerator(name: str) -> Accelerator:
    """The accelerator of this name; raises ``WrongUsage`` if there is none, or it needs what the suite does not set up."""
    known = entries("accelerators.yaml")
    if name not in known:
        raise WrongUsage(f"--with: {unknown('accelerator', name, known)}")
    entry = known[name]
    package = LinePackage.of(entry, "accelerators_jars.sha256")
    if "needs" in entry:
        raise WrongUsage(
            f"--with {name}: {package.name} needs {entry['needs']}, which the suite does not set up; "
            f"give its jar and settings with --package and --conf ({package.source})"
        )
    others = "|".join(entry["not_native"])
    return Accelerator(name, package, rf"(?m)^[\s:+-]*(?:\*\(\d+\) )?(?!(?:{others})\b)({entry['native']}\w+)")
