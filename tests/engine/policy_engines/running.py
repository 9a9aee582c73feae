"""The engines of ``engines.yaml``, and one that runs: a JVM that answers questions, one line each."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml

from conformance.core.child_process import start
from conformance.policies.engines import POLICIES
from harness.environments.cache_directory import cache_dir, make_once
from harness.environments.jars import CENTRAL
from harness.environments.java import OPTION_VARIABLES, Java, find
from harness.progress import ignore_progress
from harness.targets.targets import JavaRequirement
from tests.engine.policy_engines.questions import PolicyAnswer, PolicyQuestion


@dataclass(frozen=True)
class Jar:
    """A jar of Maven Central."""

    coordinates: str
    """``group:artifact:version``."""
    sha256: str

    def fetched(self) -> Path:
        """The path of the jar in the cache directory; one that is missing is downloaded, by one process at a time."""
        group, artifact, version = self.coordinates.split(":")
        path = cache_dir(os.environ) / "jars" / f"{artifact}-{version}.jar"

        def intact() -> Path | None:
            return path if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256 else None

        def download() -> Path:
            address = f"{CENTRAL}/{group.replace('.', '/')}/{artifact}/{version}/{path.name}"
            with urllib.request.urlopen(address, timeout=60) as answer:
                path.with_suffix(".part").write_bytes(answer.read())
            return path.with_suffix(".part").replace(path)

        make_once(path, intact, download, ignore_progress)
        found = intact()
        assert found is not None, f"{path} has another SHA-256 than {self.sha256}"
        return found


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


FOLDER = Path(__file__).parent


def _engine(name: str, jars: Mapping[str, str], policies: Sequence[str], **about: Any) -> PolicyEngine:
    return PolicyEngine(name=name, jars=tuple(Jar(*jar) for jar in jars.items()), policies=tuple(policies), **about)


ENGINES: Mapping[str, PolicyEngine] = {
    name: _engine(name, **entry)
    for name, entry in yaml.safe_load((FOLDER / "engines.yaml").read_text(encoding="utf-8")).items()
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
            RuntimeError: it does not answer. What a trace does to the engine's classes is an answer: ``PolicyAnswer.failure``.
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

    def _failed(self, why: str) -> RuntimeError:
        self._printed.seek(0)
        return RuntimeError(f"{self.engine.title} {why}. It printed:\n{self._printed.read()[-_TAIL:]}")


@contextmanager
def started(engine: PolicyEngine) -> Iterator[RunningPolicyEngine]:
    """Run an engine until the block ends. Jars that are missing are downloaded first.

    Raises:
        NoSuchJava: this machine has no JDK that fits.
        NoJar: a jar cannot be had.
    """
    java, program = find(JDK, os.environ), FOLDER / "java" / engine.program
    class_path = os.pathsep.join(str(jar.fetched()) for jar in engine.jars)
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed,
        tempfile.TemporaryDirectory() as folder,
        start(
            [str(java.home / "bin" / "java"), *_OPTIONS, f"-Djava.io.tmpdir={folder}", "-cp", class_path, str(program)],
            stderr=printed,
            encoding="utf-8",
            errors="strict",
            cwd=Path(folder).absolute(),
            environ={name: value for name, value in os.environ.items() if name in _PASSED},
        ) as process,
    ):
        try:
            yield RunningPolicyEngine(engine, java, process, printed)
        finally:
            # It holds nothing that must be kept.
            process.kill()


def _answer(record: Mapping[str, Any], question: PolicyQuestion) -> PolicyAnswer:
    steps = tuple(
        {key: tuple(value) if isinstance(value, list) else value for key, value in step.items()}
        for step in record["steps"]
    )
    failure = record.get("failure")
    if failure is None and len(steps) != len(question.trace.entries):
        raise ValueError("not one step for each entry")
    return PolicyAnswer(steps, failure)
