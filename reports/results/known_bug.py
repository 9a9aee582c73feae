"""A known bug that a version shows: its ticket, and the release that fixed it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from conformance.core.versions import NotAVersion, SparkVersion, VersionRange, falling_into, releases
from conformance.core.wording import ticket
from reports.results.records import Cell


@dataclass(frozen=True)
class KnownBug:
    """As the case documents it."""

    link: str | None
    """The ticket that reports it."""
    gone_in: str | None
    """The first later release without it; None if every one has it."""
    introduced_by: str | None = None
    """The ticket that introduced it, if no ticket reports it."""

    @classmethod
    def of(cls, cell: Cell | None, spark: str) -> KnownBug | None:
        """The bug that a cell of the matrix shows, None if it shows none; ``spark``: its version, with any vendor suffix."""
        if cell is None or cell.status != "bug" or cell.differs is None:
            return None
        try:
            later = gone_in(cell.differs.spark, SparkVersion.parse(spark))
        except NotAVersion:
            later = None
        return cls(cell.differs.link, str(later) if later is not None else None, cell.differs.introduced_by)

    @property
    def ticket(self) -> str:
        """Where it is reported, as ``conformance.core.wording.ticket``."""
        return ticket(self.link, self.introduced_by, bug=True)

    def __str__(self) -> str:
        return f"known bug, fixed in {self.gone_in}" if self.gone_in else "known bug, not fixed in any release"


@lru_cache(maxsize=4096)
def gone_in(ranges: str, version: SparkVersion) -> SparkVersion | None:
    """The first later release that an entry of ``differs`` does not cover, None if it covers all.

    Args:
        ranges: of the entry, as in a record.
        version: one that the entry covers.
    """
    concerned = set(falling_into(VersionRange.parse(ranges.split(" or "))))
    return next((release for release in releases() if release > version and release not in concerned), None)
