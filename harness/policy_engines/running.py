"""The real engines of ``engines.yaml``, and one that runs: a JVM that answers questions, one line each."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import as_file, files
from pathlib import Path
from typing import IO, Any

from conformance.core.child_process import start
from conformance.core.data import read_data
from conformance.core.errors import WrongUsage
from conformance.policies.engines import POLICIES
from conformance.policies.replay import PolicyAnswer, PolicyQuestion
from harness.environments import jars
from harness.environments.jars import Jar
from harness.environments.java import OPTION_VARIABLES, Java, find
from harness.errors import HarnessError
from harness.progress import ProgressCallback, ignore_progress
from harness.targets.targets import JavaRequirement

ALL = "all"


@dataclass(frozen=True)
class PolicyEngine:
    """An engine whose own classes answer for its watermark policies."""

    name: str
    """The name of its column: ``flink-1.20.5``."""
    title: str
    program: str
    """The Java source file that drives it."""
    policies: tuple[str, ...]
    decides: str
    """What its classes decide about an entry of a trace, for the reader."""
    jars: tuple[Jar, ...]
    release: str | None = None
    """The value that the policies' parameter ``release`` must have."""

    def has(self, policy: str, given: Mapping[str, Any]) -> bool:
        """Whether the engine has a policy with these parameters."""
        if policy not in self.policies or self.release is None:
            return policy in self.policies
        return bool(given.get("release", POLICIES[policy].parameters["release"].default) == self.release)


def select(names: Sequence[str]) -> tuple[PolicyEngine, ...]:
    """The engines with these names, in the order of the catalogue, each once.

    Args:
        names: ``flink-1.20.5``, the same without its version, or ``all``.

    Raises:
        WrongUsage: no engine has one of them.
    """
    chosen: set[str] = set()
    for name in names:
        named = {engine for engine in ENGINES if name in (ALL, engine) or engine.startswith(f"{name}-")}
        if not named:
            near = get_close_matches(name, ENGINES, 1, 0.4)
            hint = f"did you mean {near[0]}?" if near else f"use {ALL}, or one of {', '.join(ENGINES)}"
            raise WrongUsage(f"no policy engine is called {name!r}: {hint}")
        chosen |= named
    return tuple(engine for name, engine in ENGINES.items() if name in chosen)


def _engine(name: str, jars: Mapping[str, str], policies: Sequence[str], **about: Any) -> PolicyEngine:
    return PolicyEngine(name=name, jars=tuple(Jar(*jar) for jar in jars.items()), policies=tuple(policies), **about)


ENGINES: Mapping[str, PolicyEngine] = {
    name: _engine(name, **entry) for name, entry in read_data("harness.policy_engines", "engines.yaml").items()
}
"""Name → engine, in the order of columns."""
JDK = JavaRequirement(majors=(11, 17, 21), modules=("jdk.compiler",))
"""Java compiles the program when it starts it."""
_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TMP", "TEMP", *OPTION_VARIABLES)
_OPTIONS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Traces are short: starting fast is worth more than running fast."""
_SECONDS_FOR_AN_ANSWER = 300
"""A trace takes milliseconds; an engine that has not answered by then hangs."""
_TAIL = 2_000
"""Characters of what an engine printed that an error shows."""


class PolicyEngineFailed(HarnessError):
    """A policy engine did not start, ended, or wrote something that is no answer."""

    def __init__(self, engine: PolicyEngine, why: str, printed: str) -> None:
        said = f" It printed:\n{printed.strip()[-_TAIL:]}" if printed.strip() else ""
        super().__init__(f"{engine.title} {why}.{said}")


class RunningPolicyEngine:
    """A running engine, which answers questions in order; ``started`` makes it."""

    def __init__(self, engine: PolicyEngine, java: Java, process: subprocess.Popen[str], printed: IO[str]) -> None:
        self.engine = engine
        self.java = java
        self._process = process
        self._printed = printed

    def answer(self, question: PolicyQuestion) -> PolicyAnswer:
        """What the engine makes of a trace.

        Raises:
            PolicyEngineFailed: it does not answer. What a trace does to the engine's classes is an answer: ``PolicyAnswer.failure``.
        """
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        late = threading.Timer(_SECONDS_FOR_AN_ANSWER, self._process.kill)
        late.start()
        try:
            asked.write(json.dumps(question.record()) + "\n")
            asked.flush()
            line = answers.readline()
        except OSError:
            line = ""
        finally:
            late.cancel()
        if not line:
            self._process.wait()
            raise self._failed(f"ended with exit code {self._process.returncode}")
        try:
            return _answer(json.loads(line), question)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise self._failed(f"wrote what is no answer: {line.strip()[:200]}") from None

    def _failed(self, why: str) -> PolicyEngineFailed:
        self._printed.seek(0)
        return PolicyEngineFailed(self.engine, why, self._printed.read())


@contextmanager
def started(
    engine: PolicyEngine, *, environ: Mapping[str, str] = os.environ, on_progress: ProgressCallback = ignore_progress
) -> Iterator[RunningPolicyEngine]:
    """Run an engine until the block ends. Jars that are missing are downloaded first.

    Raises:
        NoSuchJava: this machine has no JDK that fits.
        NoJar: a jar cannot be had.
    """
    java = find(JDK, environ)
    class_path = os.pathsep.join(str(jars.fetch(jar, environ, on_progress=on_progress)) for jar in engine.jars)
    with (
        as_file(files("harness.policy_engines") / "java" / engine.program) as program,
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed,
        tempfile.TemporaryDirectory() as folder,
        start(
            [str(java.home / "bin" / "java"), *_OPTIONS, f"-Djava.io.tmpdir={folder}", "-cp", class_path, str(program)],
            stderr=printed,
            encoding="utf-8",
            errors="strict",
            cwd=Path(folder).absolute(),
            environ={name: value for name, value in environ.items() if name in _PASSED},
        ) as process,
    ):
        try:
            yield RunningPolicyEngine(engine, java, process, printed)
        finally:
            # It holds nothing that must be kept.
            process.kill()


def obstacle(environ: Mapping[str, str] = os.environ) -> HarnessError | None:
    """Why no engine can run on this machine; None if they can, once their jars are there."""
    try:
        find(JDK, environ)
    except HarnessError as error:
        return error
    return None


def _answer(record: Mapping[str, Any], question: PolicyQuestion) -> PolicyAnswer:
    steps = tuple(
        {key: tuple(value) if isinstance(value, list) else value for key, value in step.items()}
        for step in record["steps"]
    )
    failure = record.get("failure")
    if failure is None and len(steps) != len(question.trace.entries):
        raise ValueError("not one step for each entry")
    return PolicyAnswer(steps, failure)
