"""The Javas of this machine, and the choice of one for a target."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from conformance.core.child_process import OUTSIDE, run, which
from harness.errors import HarnessError, machine_cause
from harness.targets.targets import JavaRequirement

_SECONDS_TO_ANSWER = 60
OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Variables whose content every Java takes as options."""
_OF_A_MAJOR = re.compile(r"JAVA_HOME_(\d+)(?:_\w+)?|JAVA(\d+)_HOME")
"""Variables with the home of one major version: ``JAVA_HOME_8``, ``JAVA_HOME_17_X64`` (GitHub's runners), ``JAVA8_HOME``."""
_INSTALLED_UNDER = (
    "/usr/lib/jvm/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.asdf/installs/java/*",
)


@dataclass(frozen=True)
class Java:
    home: Path
    version: str
    """What it reports: ``17.0.15``, ``1.8.0_392``."""
    modules: frozenset[str] = field(repr=False)
    """Empty for Java 8, which has no modules."""

    @property
    def major(self) -> int:
        """8, 11, 17 …"""
        return major(self.version)

    def shortcoming(self, need: JavaRequirement) -> str | None:
        """Why it does not meet the requirement; None if it does."""
        if self.major not in need.majors:
            return f"is Java {self.version}"
        if missing := [module for module in need.modules if module not in self.modules]:
            return f"is Java {self.version} without the module {', '.join(missing)}"
        return None


class NoSuchJava(HarnessError):
    """No Java of this machine meets the requirement."""

    def __init__(self, need: JavaRequirement, unfit: Mapping[str, str]) -> None:
        """``unfit``: each place that has a Java, and why that Java does not meet the requirement."""
        places = "\n".join(f"  {place} {why}" for place, why in unfit.items()) or "  no Java"
        super().__init__(
            f"{need} is needed. Looked in JAVA_HOME, on PATH and in the usual directories, and found:\n{places}\n"
            f"Install a full JDK {need.majors[-1]} and point JAVA_HOME or JAVA_HOME_{need.majors[-1]} at it."
        )


class BadJavaOptions(HarnessError):
    """A Java works, but not with the options that the environment gives to every Java: no other Java would."""

    exit_code = 2


class NotAJava(Exception):
    """A file is not a working Java; the text says why: ``fails with exit code 1: …``."""


def major(version: str) -> int:
    """8, 11, 17 … of ``1.8.0_392``, ``11.0.13``, ``17.0.15``."""
    first, *rest = re.split(r"[._-]", version)
    return int(rest[0] if first == "1" and rest else first)


def find(need: JavaRequirement, environ: Mapping[str, str] = os.environ) -> Java:
    """The first Java of this machine that meets the requirement.

    Looked for in JAVA_HOME, on PATH, in variables with the home of one major version (newest first), and in the usual directories.

    Raises:
        NoSuchJava: none does.
        BadJavaOptions: one would, without the options in the environment.
        HarnessError: one does not start for lack of memory or files.
    """
    unfit: dict[str, str] = {}
    for place, binary in candidates(environ):
        try:
            java = inspect(binary)
        except NotAJava as error:
            if machine_cause(str(error)):
                raise HarnessError(f"{binary} {error} (see `ulimit -a`)") from None
            unfit[place] = str(error)
        else:
            if (why := java.shortcoming(need)) is None:
                return java
            unfit[place] = why
    raise NoSuchJava(need, unfit)


def candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Possible Javas: the name of each place, and the binary there; each binary once."""
    known: set[Path] = set()
    for place, binary in _places(environ):
        if (real := binary.resolve()) not in known:
            known.add(real)
            yield place, binary


def _places(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield f"JAVA_HOME={home}", Path(home) / "bin" / "java"
    if on_path := which("java", environ):
        yield on_path, Path(on_path)
    of_a_major = [(-int(named[1] or named[2]), name) for name in environ if (named := _OF_A_MAJOR.fullmatch(name))]
    for _, name in sorted(of_a_major):
        if environ[name]:
            yield f"{name}={environ[name]}", Path(environ[name]) / "bin" / "java"
    for pattern in _INSTALLED_UNDER:
        start, _, below = pattern.partition("/")
        root = environ.get("HOME") if start == "~" else "/"
        for installed in sorted(Path(root).glob(below)) if root else ():
            if (installed / "bin" / "java").exists():
                yield str(installed), installed / "bin" / "java"


def inspect(binary: Path) -> Java:
    """Run a Java to get its home, version and modules. Each binary is run once per process.

    Raises:
        NotAJava: it does not exist, fails, or does not answer like a Java.
        BadJavaOptions: it works without the options in the environment.
    """
    options = {name: os.environ[name] for name in OPTION_VARIABLES if os.environ.get(name)}
    result = _inspected(binary, tuple(options.items()))
    if isinstance(result, Exception):
        raise result
    return result


@cache
def _inspected(binary: Path, options: tuple[tuple[str, str], ...]) -> Java | NotAJava | BadJavaOptions:
    """``options``: what the environment gives to every Java, on which the answer depends."""
    try:
        return _run(binary, os.environ)
    except NotAJava as error:
        if not options:
            return error
        try:
            _run(binary, {name: value for name, value in os.environ.items() if name not in OPTION_VARIABLES})
        except NotAJava:
            return error
        variables = " and ".join(name for name, _ in options)
        return BadJavaOptions(f"no Java starts with the options in {variables}: {error}. Correct or unset them.")


def _run(binary: Path, environ: Mapping[str, str]) -> Java:
    settings = _output(binary, environ, "-XshowSettings:properties", "-version")
    properties = dict(re.findall(r"^\s+(java\.home|java\.version) = (.+?)\s*$", settings, re.MULTILINE))
    if properties.keys() != {"java.home", "java.version"}:
        raise NotAJava(f"does not answer like a Java: {_tail(settings)}")
    version = properties["java.version"]
    listed = _output(binary, environ, "--list-modules").split() if major(version) >= 9 else ()
    return Java(Path(properties["java.home"]), version, frozenset(line.split("@")[0] for line in listed))


def _output(binary: Path, environ: Mapping[str, str], *arguments: str) -> str:
    command = [str(binary.absolute()), *arguments]
    try:
        answer = run(command, cwd=OUTSIDE, environ=environ, timeout=_SECONDS_TO_ANSWER, merged=True)
    except FileNotFoundError:
        raise NotAJava(f"has no {binary}") from None
    except subprocess.TimeoutExpired:
        raise NotAJava(f"did not answer within {_SECONDS_TO_ANSWER} s") from None
    except OSError as error:
        raise NotAJava(f"does not start: {error.strerror}") from None
    if answer.returncode:
        raise NotAJava(f"fails with exit code {answer.returncode}: {_tail(answer.stdout)}")
    return answer.stdout


def _tail(text: str) -> str:
    return machine_cause(text) or (text.strip().splitlines() or ["no output"])[-1].strip()


def can_wrap() -> bool:
    """Whether this system runs a shell script in place of ``bin/java``."""
    return os.name == "posix"


def wrap(home: Path, jdk: Path, without: Sequence[str]) -> None:
    """Make a JAVA_HOME of links to a JDK, whose ``java`` ignores requests for modules that the JDK does not have.

    Spark 4's launcher always asks for ``jdk.incubator.vector``, which only speeds up linear algebra. JDKs packaged for PyPI leave it
    out, and the JVM then refuses to start. The wrapper starts the same JVM without that argument.
    """
    (home / "bin").mkdir(parents=True)
    for entry in (*jdk.iterdir(), *(jdk / "bin").iterdir()):
        if entry not in (jdk / "bin", jdk / "bin" / "java"):
            (home / entry.relative_to(jdk)).symlink_to(entry)
    unwanted = "|".join(shlex.quote(f"--add-modules={module}") for module in without)
    java = home / "bin" / "java"
    java.write_text(
        f"""\
#!/bin/sh
# The JDK of this wrapper has no {", ".join(without)}; Spark's launcher asks for it but does not need it.
for argument do
  shift
  case $argument in
    {unwanted}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {shlex.quote(str(jdk / "bin" / "java"))} "$@"
""",
        encoding="utf-8",
    )
    java.chmod(0o755)
