"""The pyspark that this interpreter imports, or that of an unpacked Spark, found without importing it."""

import ast
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.errors import HarnessError


@dataclass(frozen=True)
class InstalledSpark:
    """A pyspark on this machine, from any vendor."""

    version: str
    """What it reports, including a vendor's suffix: ``3.5.0-amzn-1``, ``4.0.0.dev1``."""
    package: Path
    """The directory that ``import pyspark`` would load."""
    home: Path
    """SPARK_HOME: the directory with its ``jars``."""
    python_path: tuple[Path, ...] = ()
    """What an interpreter needs on PYTHONPATH to import it; empty if this interpreter imports it as it is."""


class NoPyspark(HarnessError):
    def __init__(self) -> None:
        super().__init__(
            f"{sys.executable} cannot import pyspark, so there is no `installed` target.\n"
            'Install one in the same environment: pip install "watermark-conformance[spark]", or pyspark==<version>.'
        )


class UnusablePyspark(HarnessError):
    """A pyspark cannot be tested."""

    def __init__(self, package: Path, why: str) -> None:
        super().__init__(f"The pyspark in {package} cannot be tested: {why}")


def unpacked(home: Path) -> InstalledSpark:
    """The pyspark of an unpacked Spark, with what it needs on PYTHONPATH. Raises ``HarnessError`` if a part is missing."""
    home = home.resolve()
    missing = [part for part in ("bin", "jars", "python/pyspark") if not (home / part).is_dir()]
    py4j = sorted((home / "python" / "lib").glob("py4j-*-src.zip"))
    if missing or not py4j:
        raise HarnessError(
            f"{home} is not an unpacked Spark: {[*missing, 'python/lib/py4j-*-src.zip'][0]} is missing. "
            "To make one from a source tree, run dev/make-distribution.sh --pip."
        )
    package, version = _package(PathFinder.find_spec("pyspark", [str(home / "python")]))
    return InstalledSpark(version, package, home, (home / "python", *py4j))


def find(environ: Mapping[str, str] = os.environ) -> InstalledSpark:
    """The pyspark that this interpreter imports.

    Raises:
        NoPyspark: there is none.
        UnusablePyspark: its version is unknown, or it has no jars (as the Spark Connect client).
    """
    package, version = _package(find_spec("pyspark"))
    # Directories around the package first (SPARK_HOME/python/pyspark, SPARK_HOME/python/lib/pyspark.zip/pyspark): a SPARK_HOME left over
    # from another installation does not belong to what `import pyspark` loads.
    named = [Path(environ["SPARK_HOME"])] if environ.get("SPARK_HOME") else []
    for home in (package, *list(package.parents)[:4], *named):
        if (home / "jars").is_dir() and (home / "bin").is_dir():
            return InstalledSpark(version, package, home)
    raise UnusablePyspark(
        package,
        f"it is {version} without jars, like the Spark Connect client. Install the full pyspark=={version}, "
        "or set SPARK_HOME to the Spark it belongs to.",
    )


def _package(spec: ModuleSpec | None) -> tuple[Path, str]:
    """The directory and version of a package."""
    if spec is None or spec.origin is None:
        raise NoPyspark
    package = Path(spec.origin).parent
    if (version := _version(package, spec.loader)) is None:
        raise UnusablePyspark(package, "its version is unknown")
    return package, version


def _version(package: Path, loader: Any) -> str | None:
    # The file before the metadata: a vendor's pyspark on PYTHONPATH has no metadata, and the file is what gets imported.
    with suppress(AttributeError, OSError, SyntaxError, ValueError):
        # Through the loader, because the package may be in a zip.
        for statement in ast.parse(loader.get_data(str(package / "version.py"))).body:
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id="__version__")], value=ast.Constant(value=str(version)))
                    | ast.AnnAssign(target=ast.Name(id="__version__"), value=ast.Constant(value=str(version)))
                ):
                    return version
    with suppress(metadata.PackageNotFoundError):
        return metadata.version("pyspark")
    return None
