"""The gate over results at hand, in one call."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.core.case import Case
from reports.analysis.gate import Gate, in_baseline, known_pair
from reports.results.reading import Results


def gate(
    results: Results,
    before: str,
    after: str,
    *,
    cases: Sequence[Case] = (),
    left_out: Sequence[str] = (),
    baseline: Results | None = None,
    needs: Mapping[str, Sequence[str]] | None = None,
    **options: Any,
) -> Gate:
    """Compare two versions by `known_pair`, with the features that cases need, and decide with the options of `KnownPair.ruled`."""
    known = replace(known_pair(results, before, after, cases, left_out=left_out), needs=needs or {})
    return known.ruled(earlier=in_baseline(baseline, before, after), **options)
