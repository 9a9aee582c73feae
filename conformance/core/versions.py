"""Spark versions and version ranges, and the state store providers that only some versions have.

A range is a PEP 440 specifier (``">=3.4,<3.4.4"``) or several alternatives. The existing releases are data
(``releases.yaml``), so that a range that contains none can be rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from typing import Any, Literal, TypeAlias, TypeVar

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from conformance.core.data import read_data

T = TypeVar("T")


class NotAVersion(ValueError):
    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is not a Spark version: write three numbers, like 3.5.9")


class NotARange(ValueError):
    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is not a version range: write a PEP 440 specifier, like '>=3.4,<3.4.4'")


@dataclass(frozen=True, order=True)
class SparkVersion:
    """A release, ``3.5.9``, without a vendor's suffix (``3.5.0-amzn-1``)."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> SparkVersion:
        """Read ``3.5.9``, ``4.0.0.dev1`` or ``3.5.0-amzn-1``; raise `NotAVersion` if the text does not start with three numbers."""
        return cls(*_numbers(text))

    @property
    def line(self) -> str:
        """The feature line: ``3.5``."""
        return f"{self.major}.{self.minor}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


_LONGEST = 1_000
"""Characters of a range: Python reads no number of thousands of digits."""


@lru_cache(maxsize=1024)
def _numbers(text: str) -> tuple[int, int, int]:
    head = "".join(c if c.isdigit() or c == "." else " " for c in text).split(" ")[0].strip(".")
    try:
        release = Version(head).release
    except ValueError:  # also for a number with thousands of digits
        raise NotAVersion(text) from None
    if len(release) < 3:
        raise NotAVersion(text)
    return release[0], release[1], release[2]


@dataclass(frozen=True)
class VersionRange:
    """Alternative PEP 440 ranges."""

    specifiers: tuple[str, ...]

    @classmethod
    def parse(cls, text: str | Iterable[str]) -> VersionRange:
        """Read a range, or several; raise `NotARange` if any is empty or not a PEP 440 specifier."""
        parts = (text,) if isinstance(text, str) else tuple(text)
        for part in parts or ("",):
            try:
                if len(part) > _LONGEST or not SpecifierSet(part):
                    raise NotARange(part)
            except InvalidSpecifier:
                raise NotARange(part) from None
        return cls(parts)

    def __contains__(self, version: SparkVersion) -> bool:
        return any(_covers(part, version) for part in self.specifiers)

    def __and__(self, other: VersionRange) -> VersionRange:
        return VersionRange(tuple(f"{ours},{theirs}" for ours in self.specifiers for theirs in other.specifiers))

    def __str__(self) -> str:
        return " or ".join(self.specifiers)


@cache
def _covers(specifier: str, version: SparkVersion) -> bool:
    """Keep the answer: it is asked for every case and release, and `packaging` parses the version each time."""
    return _specifier(specifier).contains(str(version), prereleases=True)


@cache
def _specifier(text: str) -> SpecifierSet:
    return SpecifierSet(text)


@cache
def releases() -> tuple[SparkVersion, ...]:
    """Return every known release of Apache Spark since 2.4.0, oldest first."""
    return tuple(_release_dates())


def released_on(version: SparkVersion) -> date | None:
    """Return the day on which the pyspark of a version came to PyPI; None for an unknown version."""
    return _release_dates().get(version)


@cache
def maintained_until(line: str) -> str | None:
    """Return the month until which Spark maintains a line: ``3.5`` → ``2027-11``; None if it is not known."""
    months: dict[str, str] = read_data("conformance.core", "maintained.yaml")
    return months.get(line)


@cache
def _release_dates() -> Mapping[SparkVersion, date]:
    dates: dict[str, date] = read_data("conformance.core", "releases.yaml")
    return dict(sorted((SparkVersion.parse(text), day) for text, day in dates.items()))


@cache
def falling_into(versions: VersionRange) -> tuple[SparkVersion, ...]:
    """Return the known releases in the range, oldest first; asked for every case, of few ranges."""
    return tuple(release for release in releases() if release in versions)


def named(
    text: str, known: Iterable[T], version: Callable[[T], SparkVersion | None], *names: Callable[[T], Iterable[str]]
) -> tuple[T, ...]:
    """Return which targets, columns of results or releases a user's text names; nothing if it is unknown, several if it is ambiguous.

    It is one of their ``names``, or a line such as ``3.5``, which names the newest ``version`` of the line. The first kind of name that
    matches counts: a column may be labelled with a version that it is not.
    """
    candidates = tuple(known)
    for names_of in names:
        if matching := tuple(candidate for candidate in candidates if text in names_of(candidate)):
            return matching
    of_line = [
        (candidate, number) for candidate in candidates if (number := version(candidate)) and number.line == text
    ]
    newest = max((number for _, number in of_line), default=None)
    return tuple(candidate for candidate, number in of_line if number == newest)


StoreName: TypeAlias = Literal["hdfs", "rocksdb"]


@dataclass(frozen=True)
class StateStore:
    """A built-in state store provider of Spark."""

    name: str
    conf: dict[str, str]
    """The setting that selects the store."""
    versions: VersionRange

    @classmethod
    def named(cls, name: StoreName) -> StateStore:
        data: dict[str, Any] = read_data("conformance.core", "state_stores.yaml")
        entry = data["stores"][name]
        return cls(name, {data["setting"]: entry["provider"]}, VersionRange.parse(entry["spark"]))

    def on(self, version: SparkVersion) -> bool:
        return version in self.versions


def has_state_reader(version: SparkVersion) -> bool:
    """Whether Spark has its own reader of state, the data source ``statestore`` (SPARK-45511)."""
    return version in VersionRange.parse(read_data("conformance.core", "state_stores.yaml")["reader"]["spark"])
