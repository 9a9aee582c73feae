"""The catalogue of targets, and the choice of some of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, ClassVar, TypeAlias

import yaml
from packaging.specifiers import SpecifierSet

from conformance.core.versions import NotARange, NotAVersion, SparkVersion, VersionRange, releases
from harness.errors import HarnessError
from harness.targets import installed
from harness.targets.java_need import JavaNeed
from harness.targets.target import Target

__all__ = ["Choice", "NothingRuns", "Target", "Targets", "UnknownTarget"]

WORDS = ("all", "lines", "newest", "installed")
"""What may be asked for besides versions and ranges."""


Obstacle: TypeAlias = Callable[[Target], str | None]
"""Why a target cannot run on this machine; None where it can."""


def runs_anywhere(_target: Target) -> None:
    """The ``Obstacle`` of a machine that can run every target."""


class UnknownTarget(ValueError):
    """What was asked for is no target.

    Attributes:
        spec: what was asked for.
        known: the versions there are, oldest first.
        nearest: what may have been meant, best first.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, spec: str, known: Sequence[SparkVersion], nearest: Sequence[str], why: str) -> None:
        meant = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
        super().__init__(
            f"{spec!r} {why}.{meant}\n"
            f"Targets: {', '.join(map(str, known))}\n"
            f"Also: a line such as {known[-1].line}, a range such as '>={known[-1].line}', {', '.join(WORDS)}"
        )
        self.spec = spec
        self.known = tuple(known)
        self.nearest = tuple(nearest)


class NothingRuns(HarnessError):
    """`newest` was asked for, and this machine can run no target at all."""

    def __init__(self, why: str) -> None:
        super().__init__(f"This machine can run none of the targets. The newest needs what it does not have:\n{why}")


@dataclass(frozen=True)
class Choice:
    """The targets that were chosen, oldest first, each once."""

    targets: tuple[Target, ...]
    notes: tuple[str, ...] = ()
    """What whoever asked should know: that `newest` is not the newest there is, and why."""


@dataclass(frozen=True)
class Targets:
    """Every target of the catalogue, oldest first."""

    entries: tuple[Target, ...]

    @classmethod
    def load(cls) -> Targets:
        """Read ``harness/targets/targets.yaml``."""
        catalogue: dict[str, Any] = yaml.safe_load(
            (files("harness.targets") / "targets.yaml").read_text(encoding="utf-8")
        )
        lines = catalogue["lines"]
        entries = (_entry(entry, lines) for entry in catalogue["targets"])
        return cls(tuple(sorted(entries, key=lambda target: target.version)))

    def select(self, specs: Iterable[str], *, obstacle: Obstacle = runs_anywhere) -> list[Target]:
        """What the specs mean, oldest first, each once: `choose` without its notes."""
        return list(self.choose(specs, obstacle=obstacle).targets)

    def choose(self, specs: Iterable[str], *, obstacle: Obstacle = runs_anywhere) -> Choice:
        """What the specs mean.

        Args:
            specs: each a version (``3.5.9``, ``spark-3.5.9``), a line (``3.5``: its newest patch), a range
                (``>=3.4,<4``), or ``all``, ``lines`` (the newest patch of each), ``newest`` (that this machine can
                run), ``installed``.
            obstacle: why a target cannot run here, None where it can: ``readiness.obstacle``. Only ``newest`` asks it.

        Raises:
            UnknownTarget: a spec means nothing.
            NothingRuns: ``newest``, and nothing runs here.
            NoPyspark, UnusablePyspark: ``installed``, and there is none.
        """
        chosen: dict[str, Target] = {}
        notes: list[str] = []
        for spec in _one_by_one(specs):
            found, note = self._newest(obstacle) if spec == "newest" else (self._meant(spec), None)
            chosen |= {target.name: target for target in found}
            notes += [note] if note else []
        ordered = sorted(chosen.values(), key=lambda target: (target.version, target.installed is not None))
        return Choice(tuple(ordered), tuple(dict.fromkeys(notes)))

    def lines(self) -> tuple[Target, ...]:
        """The newest patch of every line."""
        return tuple({target.version.line: target for target in self.entries}.values())

    def nearest(self, version: SparkVersion) -> Target:
        """The target that says best what another version needs: of its line, else the line before, else the oldest."""
        before = [
            target
            for target in self.entries
            if (target.version.major, target.version.minor) <= (version.major, version.minor)
        ]
        return before[-1] if before else self.entries[0]

    def with_releases(self, specs: Iterable[str]) -> Targets:
        """The same with every release of Spark that is asked for by its number, with the needs of its line."""
        entries = {target.version: target for target in self.entries}
        for text in (spec.removeprefix("spark-") for spec in _one_by_one(specs)):
            version = next((one for one in releases() if str(one) == text), None)
            if version is not None and version not in entries:
                entries[version] = replace(self.nearest(version), version=version, image=None)
        return Targets(tuple(sorted(entries.values(), key=lambda target: target.version)))

    def installed(self) -> Target:
        """The pyspark importable where the command runs. Its needs are those of its line.

        Raises:
            NoPyspark, UnusablePyspark: see `harness.targets.installed`.
        """
        found = installed.find()
        try:
            version = SparkVersion.parse(found.version)
        except NotAVersion:
            raise installed.UnusablePyspark(
                found.package, f"its version {found.version!r} is not one of Spark"
            ) from None
        return replace(self.nearest(version), version=version, image=None, installed=found)

    def _meant(self, spec: str) -> tuple[Target, ...]:
        if spec == "all":
            return self.entries
        if spec == "lines":
            return self.lines()
        if spec == "installed":
            return (self.installed(),)
        text = spec.removeprefix("spark-")
        for target in (*self.lines(), *self.entries):
            if text in (target.version.line, str(target.version)):
                return (target,)
        if _is_range(text):
            return self._within(spec)
        raise self._unknown(spec)

    def _within(self, spec: str) -> tuple[Target, ...]:
        try:
            wanted = VersionRange.parse(spec)
        except NotARange:
            raise UnknownTarget(
                spec, self._versions(), (), "is no range of versions; write PEP 440, like '>=3.4,<4'"
            ) from None
        found = tuple(target for target in self.entries if target.version in wanted)
        if not found:
            raise UnknownTarget(spec, self._versions(), (), "holds no target")
        return found

    def _newest(self, obstacle: Obstacle) -> tuple[tuple[Target, ...], str | None]:
        first: str | None = None
        newest = self.entries[-1]
        for target in reversed(self.entries):
            why = obstacle(target)
            if why is None:
                note = first and f"newest means {target} here: this machine cannot run {newest}.\n{first}"
                return (target,), note
            first = first or why
        raise NothingRuns(first or "")

    def _versions(self) -> list[SparkVersion]:
        return [target.version for target in self.entries]

    def _unknown(self, spec: str) -> UnknownTarget:
        versions = self._versions()
        text = spec.removeprefix("spark-")
        try:
            version = SparkVersion.parse(text)
        except NotAVersion:
            names = [*WORDS, *(target.version.line for target in self.lines()), *map(str, versions)]
            nearest = difflib.get_close_matches(text, names, n=1 if text.isalpha() else 2)
            return UnknownTarget(spec, versions, nearest, "is no target")
        siblings = [str(known) for known in versions if known.line == version.line]
        if version in releases():
            return UnknownTarget(spec, versions, siblings, "is a Spark release, and none of the targets")
        return UnknownTarget(
            spec,
            versions,
            siblings or difflib.get_close_matches(text, map(str, versions), n=2),
            "is no Spark release the suite knows",
        )


def _one_by_one(specs: Iterable[str]) -> Iterable[str]:
    """``3.4, 3.5`` is two, ``>=3.4,<4`` is one."""
    for spec in specs:
        yield from ([spec.strip()] if _is_range(spec) else (part.strip() for part in spec.split(",")))


def _is_range(text: str) -> bool:
    return re.match(r"\s*[<>=!~]", text) is not None


def _entry(entry: dict[str, Any], lines: dict[str, dict[str, Any]]) -> Target:
    version = SparkVersion.parse(entry["spark"])
    said = lines.get(version.line, {}) | entry
    java = said["java"]
    return Target(
        version=version,
        python=SpecifierSet(said["python"]),
        java=JavaNeed(
            majors=tuple(java["majors"]),
            modules=tuple(java.get("modules", ())),
            embedded=java.get("embedded"),
            embedded_lacks=tuple(java.get("embedded_lacks", ())),
        ),
        packages=tuple(said.get("packages", ())),
        connect=tuple(said.get("connect", ())),
        connect_lacks=tuple(said.get("connect_lacks", {}).items()),
        image=said["image"] and said["image"].format(spark=version),
        base=said["build"]["base"],
        base_java=said["build"]["java"],
    )
