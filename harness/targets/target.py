"""One engine a case is run on: a Spark version, and what it needs around it."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from conformance.core.versions import SparkVersion
from harness.targets.installed import InstalledSpark
from harness.targets.java_need import JavaNeed


@dataclass(frozen=True)
class Target:
    """A Spark version of the catalogue, or the pyspark installed beside the command."""

    version: SparkVersion
    python: SpecifierSet
    """The CPythons it runs with."""
    java: JavaNeed
    packages: tuple[str, ...] = ()
    """What is installed beside it, for state functions over pandas frames: PyPI requirements."""
    connect: tuple[str, ...] = ()
    """What pyspark's client of Spark Connect needs beside those; nothing where its Connect runs no streaming query."""
    connect_lacks: tuple[tuple[str, str], ...] = ()
    """Operations that its Connect does not take over a stream though Spark does, each with its ticket."""
    image: str | None = None
    """The official container image by its long tag, None where there is none."""
    base: str = ""
    """The image ``targets build`` starts from: a Debian whose own Python and Java this Spark runs with."""
    base_java: int = 17
    """The major version of the Java installed there, where the base has none."""
    installed: InstalledSpark | None = None
    """The pyspark that was found, where this target is the installed one and not Apache's release."""
    label: str | None = None
    """What its user calls it, where that is not its version."""

    @property
    def name(self) -> str:
        """What its column is called: its label, else its ``key``. Unique within a run."""
        return self.label or self.key

    @property
    def key(self) -> str:
        """``spark-3.5.9``; ``installed-3.5.0-amzn-1`` for the installed one. Fit for the name of a file."""
        return f"spark-{self.version}" if self.installed is None else f"installed-{self.installed.version}"

    @property
    def requirement(self) -> str:
        """What is asked of the package index: ``pyspark==3.5.9``."""
        return f"pyspark=={self.version}"

    def __str__(self) -> str:
        return self.name
