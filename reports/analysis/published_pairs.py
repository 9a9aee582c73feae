"""What is known of each two published releases, derived when results are published: the gate reads neither results nor cases."""

from __future__ import annotations

import lzma
from itertools import islice

from pydantic import TypeAdapter

from conformance.core.versions import SparkVersion, named
from reports.analysis.gate import KnownPair
from reports.results.published import BASELINES

PAIRS = BASELINES / "pairs.xz"
"""The names of the pairs, from ``python -m tools.publish_pairs``, then a line for each of them: in one file, as they resemble each
other, and the newest first, as it is read no further than to the line that is asked for."""


def published_pair(before: str, after: str) -> KnownPair | None:
    """Return what is known of two releases, named as for ``reports.results.lookup.find``; None if it is not published."""
    if not PAIRS.exists():
        return None
    with lzma.open(PAIRS) as lines:
        pairs = [tuple(pair.split("..")) for pair in next(lines).decode().split()]
        known = [*map(SparkVersion.parse, {end for pair in pairs for end in pair})]
        ends = (
            named(end, known, lambda release: release, lambda release: (str(release), f"spark-{release}"))
            for end in (before, after)
        )
        asked = tuple(str(release) for end in ends for release in end)
        line = next(islice(lines, pairs.index(asked), None)) if asked in pairs else None
    return TypeAdapter(KnownPair).validate_json(line) if line is not None else None
