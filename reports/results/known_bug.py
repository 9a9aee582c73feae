"""A known bug that a version shows: its ticket, the release that fixed it, and the one that is clean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from conformance.core.versions import NotAVersion, SparkVersion, VersionRange, falling_into, releases
from conformance.core.wording import ticket
from reports.results.records import Cell, DocumentedDifference
from reports.results.workarounds import Workaround, workaround


@dataclass(frozen=True)
class KnownBug:
    """As the case documents it."""

    link: str | None
    """The ticket that reports it."""
    gone_in: str | None
    """The first later release on which the case shows no bug; None if every one has it or another one."""
    introduced_by: str | None = None
    """The ticket that introduced it, if no ticket reports it."""
    fixed_in: str | None = None
    """The first later release without this one; the case may show another one there."""

    @classmethod
    def of(cls, cell: Cell | None, spark: str, bugs: Iterable[DocumentedDifference] = ()) -> KnownBug | None:
        """The bug that a cell of the matrix shows, None if it shows none.

        Args:
            cell: None if there is none.
            spark: its version, with any vendor suffix.
            bugs: all bugs that the case shows on some version.
        """
        if cell is None or cell.status != "bug" or cell.differs is None:
            return None
        own = cell.differs
        same = (one for one in bugs if (one.link, one.introduced_by) == (own.link, own.introduced_by))
        return cls(own.link, _later((own, *bugs), spark), own.introduced_by, _later((own, *same), spark))

    @property
    def ticket(self) -> str:
        """Where it is reported, as ``conformance.core.wording.ticket``."""
        return ticket(self.link, self.introduced_by, bug=True)

    @property
    def workaround(self) -> Workaround | None:
        """What one can do about it, if that is known."""
        return workaround(self.link, self.introduced_by)

    def __str__(self) -> str:
        if self.gone_in == self.fixed_in:
            return f"known bug, fixed in {self.gone_in}" if self.gone_in else "known bug, not fixed in any release"
        until = f"up to {self.gone_in}, which has none" if self.gone_in else "in every later release"
        return f"known bug, fixed in {self.fixed_in}, followed by another one {until}"


def identity(entry: DocumentedDifference) -> tuple[str | None, ...]:
    """What entries about one bug have in common: a ticket or, without one, what the case says."""
    return entry.link, entry.introduced_by, None if entry.link or entry.introduced_by else entry.because


def _later(entries: Iterable[DocumentedDifference], spark: str) -> str | None:
    """The first release later than ``spark`` that no entry covers."""
    try:
        found = gone_in(" or ".join(entry.spark for entry in entries), SparkVersion.parse(spark))
    except NotAVersion:
        return None
    return str(found) if found is not None else None


@lru_cache(maxsize=4096)
def gone_in(ranges: str, version: SparkVersion) -> SparkVersion | None:
    """The first later release that an entry of ``differs`` does not cover, None if it covers all.

    Args:
        ranges: of the entry, as in a record.
        version: one that the entry covers.
    """
    concerned = set(falling_into(VersionRange.parse(ranges.split(" or "))))
    return next((release for release in releases() if release > version and release not in concerned), None)
