"""What a user's job needs beside its own code: Python packages, and Java packages from Maven."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion
from harness.targets.targets import Target

JARS = "spark.jars.packages"
"""https://spark.apache.org/docs/latest/configuration.html#runtime-environment"""

_COORDINATE = re.compile(r"[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+:[A-Za-z0-9_.+-]+")
_EVERY = "all"
_SPARK = frozenset({"pyspark", "pyspark-client", "pyspark-connect"})


@dataclass(frozen=True)
class JarPackage:
    """A Java package for some versions of Spark."""

    spark: str
    """A version, a line or ``all``."""
    coordinate: str
    """``io.delta:delta-spark_2.12:3.2.0``"""

    @classmethod
    def parse(cls, text: str, where: str = "--package") -> JarPackage:
        """
        Raises:
            WrongUsage: the text has another form.
        """
        spark, _, coordinate = text.partition("=")
        if not re.fullmatch(r"\d+\.\d+(\.\d+)?|all", spark.strip()) or not _COORDINATE.fullmatch(coordinate.strip()):
            raise WrongUsage(
                f"{where}: {text!r} is not VERSION=GROUP:ARTIFACT:VERSION, such as 3.5=io.delta:delta-spark_2.12:3.2.0; "
                "the first VERSION is a Spark version, a line or all"
            )
        return cls(spark.strip(), coordinate.strip())

    def is_for(self, version: SparkVersion) -> bool:
        return self.spark in (_EVERY, version.line, str(version))


def jar_settings(packages: Iterable[JarPackage], version: SparkVersion, given: str = "") -> dict[str, str]:
    """The setting with which Spark fetches the packages of a version; nothing if there are none.

    Args:
        packages: for any versions.
        version: of Spark.
        given: the value that the user gives the setting, which stays in it.
    """
    wanted = [one.coordinate for one in packages if one.is_for(version)]
    return {JARS: ",".join(dict.fromkeys([*filter(None, given.split(",")), *wanted]))} if wanted else {}


def requirements_in(file: Path) -> tuple[str, ...]:
    """The requirements in a file, in order; without pyspark itself, which is that of each version.

    Raises:
        WrongUsage: it cannot be read, or a line is not a requirement.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None
    found = []
    for number, line in enumerate(lines, 1):
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if not text:
            continue
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            raise WrongUsage(
                f"{file}:{number}: {text!r} is not a requirement such as pandas==2.2.3; options of pip are not read"
            ) from None
        if canonicalize_name(requirement.name) not in _SPARK:
            found.append(text)
    return tuple(found)


def with_requirements(target: Target, requirements: Sequence[str]) -> Target:
    """The target with these Python packages: its environment is one of its own, for exactly these."""
    return replace(target, packages=tuple(dict.fromkeys((*target.packages, *requirements)))) if requirements else target
