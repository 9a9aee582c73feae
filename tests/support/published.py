"""The published results with the built-in suite, read once for all tests of a process."""

from functools import cache

from reports.analysis.report import Report
from reports.analysis.specification import Specification
from reports.results.published import published_results
from tests.support.whole_suite import whole_suite


@cache
def published_report() -> Report:
    """A report on the published results, without what a model predicts."""
    return Report.of(published_results(), whole_suite())


@cache
def published_specification() -> Specification:
    """The specification of the suite with the published results."""
    return Specification.of(published_report())
