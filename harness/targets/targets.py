"""All targets, the selection of some by what a user wrote, and those that have a state store."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from packaging.specifiers import SpecifierSet

from conformance.core.data import read_data
from conformance.core.errors import WrongUsage
from conformance.core.versions import NotARange, NotAVersion, SparkVersion, StateStore, VersionRange, named, releases
from harness.errors import HarnessError
from harness.targets import installed
from harness.targets.target import JavaRequirement, Target

WORDS = ("all", "lines", "newest", "installed")
"""Selections besides versions and ranges."""


Obstacle: TypeAlias = Callable[[Target], str | None]
"""Why a target cannot run on this machine; None if it can."""


def runs_anywhere(_target: Target) -> None:
    """The ``Obstacle`` of a machine that runs every target."""


class UnknownTarget(WrongUsage):
    """A selection matches no target.

    Attributes:
        spec: the selection.
        known: the versions of the catalogue, oldest first.
        nearest: similar selections, best first.
    """

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
    """`newest` was selected, and this machine can run no target."""

    def __init__(self, why: str) -> None:
        super().__init__(f"This machine cannot run any target. The newest one fails because:\n{why}")


class NoSuchStore(HarnessError):
    """No target has the state store provider."""

    def __init__(self, store: StateStore) -> None:
        super().__init__(f"No chosen version has the state store {store.name!r}; Spark {store.versions} has it.")
        self.store = store


@dataclass(frozen=True)
class Choice:
    """The selected targets, oldest first, each once."""

    targets: tuple[Target, ...]
    notes: tuple[str, ...] = ()
    """Notes for the user: that `newest` is not the newest target, and why."""


@dataclass(frozen=True)
class Targets:
    """Every target of the catalogue, oldest first."""

    entries: tuple[Target, ...]
    spark_home: Path | None = None
    """An unpacked Spark to use as ``installed``; None for the importable pyspark."""

    @classmethod
    def load(cls) -> Targets:
        """Read ``harness/targets/targets.yaml``."""
        catalogue: dict[str, Any] = read_data("harness.targets", "targets.yaml")
        lines = catalogue["lines"]
        entries = (_entry(entry, lines) for entry in catalogue["targets"])
        return cls(tuple(sorted(entries, key=lambda target: target.version)))

    def select(self, specs: Iterable[str], *, obstacle: Obstacle = runs_anywhere) -> list[Target]:
        """The targets of the specs, oldest first, each once: `choose` without its notes."""
        return list(self.choose(specs, obstacle=obstacle).targets)

    def choose(self, specs: Iterable[str], *, obstacle: Obstacle = runs_anywhere) -> Choice:
        """The targets of the specs.

        Args:
            specs: each a version (``3.5.9``, ``spark-3.5.9``: any known release), a line (``3.5``: its newest patch), a
                range of targets (``>=3.4,<4``), or ``all``, ``lines`` (the newest patch of each), ``newest`` (that this
                machine can run), ``installed``. Words leave out the targets that are chosen by name.
            obstacle: why a target cannot run here, None if it can: ``readiness.obstacle``. Only ``newest`` calls it.

        Raises:
            UnknownTarget: a spec matches nothing.
            NothingRuns: ``newest``, and nothing runs here.
            NoPyspark, NotASpark, UnusablePyspark: ``installed``, and there is none.
        """
        chosen: dict[str, Target] = {}
        notes: list[str] = []
        for spec in _split(specs):
            found, note = self._newest(obstacle) if spec == "newest" else (self._matching(spec), None)
            chosen |= {target.name: target for target in found}
            notes += [note] if note else []
        ordered = sorted(chosen.values(), key=lambda target: (target.version, target.installed is not None))
        return Choice(tuple(ordered), tuple(dict.fromkeys(notes)))

    def lines(self) -> tuple[Target, ...]:
        """The newest patch of each line that is not chosen by name."""
        return tuple(_newest_patches(self._unnamed()))

    def every_line(self) -> tuple[Target, ...]:
        """The newest patch of each line."""
        return tuple(_newest_patches(self.entries))

    def nearest(self, version: SparkVersion) -> Target:
        """The target whose needs another version most likely shares: of its line, else the line before, else the oldest."""
        before = [
            target
            for target in self.entries
            if (target.version.major, target.version.minor) <= (version.major, version.minor)
        ]
        return before[-1] if before else self.entries[0]

    def of_release(self, version: SparkVersion) -> Target:
        """A release outside the catalogue, with the needs of its line; whether it has an official image is not known."""
        return replace(self.nearest(version), version=version, image=None)

    def installed(self) -> Target:
        """The installed pyspark, or that of ``spark_home``, with the needs of its line.

        Raises:
            NoPyspark, NotASpark, UnusablePyspark: see `harness.targets.installed`.
        """
        found = installed.find() if self.spark_home is None else installed.unpacked(self.spark_home)
        try:
            version = SparkVersion.parse(found.version)
        except NotAVersion:
            raise installed.UnusablePyspark(found.package, f"{found.version!r} is not a Spark version") from None
        return replace(self.nearest(version), version=version, image=None, installed=found)

    def _matching(self, spec: str) -> tuple[Target, ...]:
        if spec == "all":
            return self._unnamed()
        if spec == "lines":
            return self.lines()
        if spec == "installed":
            return (self.installed(),)
        text = spec.removeprefix("spark-")
        if known := named(text, self.entries, lambda target: target.version, lambda target: (str(target.version),)):
            return known
        if _is_range(text):
            return self._within(spec)
        for version in releases():
            if text == str(version):
                return (self.of_release(version),)
        raise self._unknown(spec)

    def _within(self, spec: str) -> tuple[Target, ...]:
        try:
            wanted = VersionRange.parse(spec)
        except NotARange:
            raise UnknownTarget(
                spec, self._versions(), (), "is not a version range; write it as in PEP 440, like '>=3.4,<4'"
            ) from None
        found = tuple(target for target in self.entries if target.version in wanted)
        if not found:
            raise UnknownTarget(spec, self._versions(), (), "contains no target")
        return found

    def _newest(self, obstacle: Obstacle) -> tuple[tuple[Target, ...], str | None]:
        first: str | None = None
        newest = self.entries[-1]
        for target in reversed(self._unnamed()):
            why = obstacle(target)
            if why is None:
                note = first and f"newest means {target} here: this machine cannot run {newest}.\n{first}"
                return (target,), note
            first = first or why
        raise NothingRuns(first or "")

    def _unnamed(self) -> tuple[Target, ...]:
        return tuple(target for target in self.entries if not target.by_name)

    def _versions(self) -> list[SparkVersion]:
        return [target.version for target in self.entries]

    def _unknown(self, spec: str) -> UnknownTarget:
        versions = self._versions()
        text = spec.removeprefix("spark-")
        try:
            version = SparkVersion.parse(text)
        except NotAVersion:
            names = [*WORDS, *(target.version.line for target in self.every_line()), *map(str, versions)]
            nearest = difflib.get_close_matches(text, names, n=1 if text.isalpha() else 2)
            return UnknownTarget(spec, versions, nearest, "is not a target")
        siblings = [str(known) for known in versions if known.line == version.line]
        return UnknownTarget(
            spec,
            versions,
            siblings or difflib.get_close_matches(text, map(str, versions), n=2),
            "is not a known Spark release",
        )


def having(store: StateStore, targets: Sequence[Target]) -> tuple[Target, ...]:
    """The targets that have this state store provider, in the same order.

    Raises:
        NoSuchStore: none has it.
    """
    found = tuple(target for target in targets if store.on(target.version))
    if not found:
        raise NoSuchStore(store)
    return found


def _newest_patches(targets: Iterable[Target]) -> Iterable[Target]:
    return {target.version.line: target for target in targets}.values()


def _split(specs: Iterable[str]) -> Iterable[str]:
    """``3.4, 3.5`` is two, ``>=3.4,<4`` is one."""
    for spec in specs:
        yield from ([spec.strip()] if _is_range(spec) else (part.strip() for part in spec.split(",")))


def _is_range(text: str) -> bool:
    return re.match(r"\s*[<>=!~]", text) is not None


def _entry(entry: dict[str, Any], lines: dict[str, dict[str, Any]]) -> Target:
    version = SparkVersion.parse(entry["spark"])
    merged = lines.get(version.line, {}) | entry
    java, build = merged["java"], merged["build"]
    return Target(
        version=version,
        python=SpecifierSet(merged["python"]),
        java=JavaRequirement(
            majors=tuple(java["majors"]),
            modules=tuple(java.get("modules", ())),
            embedded=java.get("embedded"),
            embedded_missing=tuple(java.get("embedded_missing", ())),
        ),
        packages=tuple(merged.get("packages", ())),
        connect=tuple(merged.get("connect", ())),
        connect_unsupported=tuple(merged.get("connect_unsupported", {}).items()),
        image=merged["image"] and merged["image"].format(spark=version),
        **({"base": build["base"], "base_java": build["java"]} if build else {}),
        by_name=merged.get("chosen") == "by name",
    )
