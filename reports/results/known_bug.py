"""A known bug that a version shows: which ticket it is, and which release no longer has it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from conformance.core.versions import NotAVersion, SparkVersion, VersionRange, falling_into, releases
from reports.results.records import Cell


@dataclass(frozen=True)
class KnownBug:
    """As the case documents it."""

    link: str | None
    """Its ticket."""
    gone_in: str | None
    """The first later release without it; None where no release is."""

    @classmethod
    def of(cls, cell: Cell | None, spark: str) -> KnownBug | None:
        """The bug that a cell shows, None where it shows none.

        Args:
            cell: of the matrix.
            spark: the version it is of, with what a vendor appends.
        """
        if cell is None or cell.status != "bug" or cell.differs is None:
            return None
        try:
            later = gone_in(cell.differs.spark, SparkVersion.parse(spark))
        except NotAVersion:
            later = None
        return cls(cell.differs.link, str(later) if later is not None else None)

    def __str__(self) -> str:
        return f"known bug, gone in {self.gone_in}" if self.gone_in else "known bug, in no release mended"


@lru_cache(maxsize=4096)
def gone_in(ranges: str, version: SparkVersion) -> SparkVersion | None:
    """The first later release that an entry of ``differs`` does not speak of, None where it speaks of all.

    Args:
        ranges: of the entry, as a record has them.
        version: one that the entry speaks of.
    """
    concerned = set(falling_into(VersionRange.parse(ranges.split(" or "))))
    return next((release for release in releases() if release > version and release not in concerned), None)
