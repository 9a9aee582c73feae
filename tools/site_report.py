"""The published results and their specification, read once for all pages of the site."""

from __future__ import annotations

from functools import cache

from conformance.suite import discovery
from reports.analysis.report import Report
from reports.analysis.specification import Specification
from reports.results.published import patch_results, published_results


@cache
def report() -> Report:
    """Return the report on the published results, with those of patch releases."""
    return Report.of(published_results(), discovery.load(), patches=patch_results())


@cache
def specification() -> Specification:
    """Return the specification of the suite with the published results."""
    return Specification.of(report())
