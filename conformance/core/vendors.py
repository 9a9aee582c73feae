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

    def __str__(self) -> str:
        return f"{self.title} contains Apache Spark {self.spark} ({self.source}, {self.as_of}); what its vendor changed is not tested"


def vendor_runtime(text: str) -> VendorRuntime | None:
    """Return the runtime that a text such as ``dbr-15.4`` names, None if it names no vendor; raise `WrongUsage` for an unknown release."""
    prefix, dash, release = text.partition("-")
    vendors: dict[str, _Vendor] = read_data("conformance.core", "vendors.yaml") if dash else {}
    vendor = vendors.get(prefix)
    if vendor is None:
        return None
    if release not in vendor["releases"]:
        known = ", ".join(f"{prefix}-{release}" for release in vendor["releases"])
        raise WrongUsage(
            f"{text}: it is not known which Apache Spark this {vendor['name']} contains; known are {known}. "
            "Name Apache's release instead, such as 3.5.0"
        )
    title = f"{vendor['name']} {release}"
    return VendorRuntime(text, title, vendor["releases"][release], vendor["source"], vendor["asOf"])
