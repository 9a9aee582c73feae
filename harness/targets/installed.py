"""The pyspark that is importable where the command runs, found without importing it."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from importlib import invalidate_caches, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, runtime_checkable

from harness.errors import HarnessError


@dataclass(frozen=True)
class InstalledSpark:
    """A pyspark on the path of this interpreter, whoever built it."""

    version: str
    """As it says itself, a vendor's addition included: ``3.5.0-amzn-1``, ``4.0.0.dev1``."""
    package: Path
    """The directory that ``import pyspark`` would load."""
    home: Path
    """SPARK_HOME: where its ``jars`` are."""


class NoPyspark(HarnessError):
    """Nothing called pyspark can be imported here."""

    def __init__(self) -> None:
        super().__init__(
            f"No pyspark can be imported by {sys.executable}, so there is no `installed` target.\n"
            'Install one beside this command: pip install "watermark-conformance[spark]", or pyspark==<version>.'
        )


class UnusablePyspark(HarnessError):
    """A pyspark is there, and it cannot be tested.

    Attributes:
        package: where it is.
    """

    def __init__(self, package: Path, why: str) -> None:
        super().__init__(f"The pyspark in {package} cannot be tested: {why}")
        self.package = package


class NoSparkThere(HarnessError):
    """A folder that was said to be a Spark is none.

    Attributes:
        home: the folder.
    """

    def __init__(self, home: Path, lacks: str) -> None:
        super().__init__(
            f"{home} is no unpacked Spark: it lacks {lacks}. A build of one's own is made by dev/make-distribution.sh --pip."
        )
        self.home = home


def adopt(home: Path, environ: MutableMapping[str, str] | None = None) -> None:
    """Make the pyspark of an unpacked Spark the installed one, for this process and what it starts.

    As Spark's own ``bin/pyspark`` does: its ``python`` folder and the py4j beside it come first.

    Args:
        home: where its ``bin``, ``jars`` and ``python`` are.
        environ: the variables of this process, changed in place.

    Raises:
        NoSparkThere: one of them is missing.
    """
    environ = os.environ if environ is None else environ
    home = home.resolve()
    for part in ("bin", "jars", "python/pyspark"):
        if not (home / part).is_dir():
            raise NoSparkThere(home, part)
    bridges = sorted((home / "python" / "lib").glob("py4j-*-src.zip"))
    if not bridges:
        raise NoSparkThere(home, "python/lib/py4j-*-src.zip")
    paths = [str(home / "python"), *map(str, bridges)]
    sys.path[:0] = paths
    invalidate_caches()
    environ["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [environ.get("PYTHONPATH")])])
    environ["SPARK_HOME"] = str(home)


def find(environ: Mapping[str, str] | None = None) -> InstalledSpark:
    """Find it.

    Raises:
        NoPyspark: there is none.
        UnusablePyspark: it does not say its version, or has no jars (the client of Spark Connect has none).
    """
    environ = os.environ if environ is None else environ
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise NoPyspark
    package = Path(spec.origin).parent
    version = _version(package, spec.loader)
    if version is None:
        raise UnusablePyspark(package, "it does not say its version")
    # The package and what is around it first (SPARK_HOME/python/pyspark, SPARK_HOME/python/lib/pyspark.zip/pyspark): a
    # SPARK_HOME left over from another installation is no part of what `import pyspark` loads.
    said = [Path(environ["SPARK_HOME"])] if environ.get("SPARK_HOME") else []
    for home in (package, *list(package.parents)[:4], *said):
        if (home / "jars").is_dir() and (home / "bin").is_dir():
            return InstalledSpark(version, package, home)
    raise UnusablePyspark(
        package,
        f"it is {version} without jars, as the client of Spark Connect is. Install the whole pyspark=={version}, "
        "or set SPARK_HOME to the Spark it belongs to.",
    )


@runtime_checkable
class _Reads(Protocol):
    """A loader that gives the bytes of a file, from a folder or a zip."""

    def get_data(self, path: str) -> bytes: ...


def _version(package: Path, loader: object) -> str | None:
    # The file before the metadata: what is imported counts, and a vendor's pyspark on PYTHONPATH has no metadata.
    try:
        # Through the loader, since the package may be inside a zip.
        text = loader.get_data(str(package / "version.py")) if isinstance(loader, _Reads) else b""
        module = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        module = ast.Module(body=[], type_ignores=[])
    for statement in module.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id="__version__")], value=ast.Constant(value=str(version)))
                | ast.AnnAssign(target=ast.Name(id="__version__"), value=ast.Constant(value=str(version)))
            ):
                return version
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return None
