"""The versions of Spark on which a variant changes something: ``versions.yaml`` has them with their tickets."""

from __future__ import annotations

from conformance.core.data import read_data
from conformance.core.versions import VersionRange


def versions_of(variant: str) -> VersionRange:
    """Where a variant of ``versions.yaml`` can run."""
    return VersionRange.parse(read_data("conformance.variants", "versions.yaml")[variant]["spark"])
