"""Which Apache Spark the runtimes of vendors contain, as their vendors say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from conformance.core.data import read_data
from conformance.core.errors import WrongUsage


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
