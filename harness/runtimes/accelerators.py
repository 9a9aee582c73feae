"""Accelerators: plugins that run operators of Spark's plans themselves, and what in a plan shows that they did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion
from conformance.language.source import unknown
from harness.runtimes.line_packages import LinePackage, entries

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
