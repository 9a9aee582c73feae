"""What is known of each two published releases, derived when results are published: the gate reads neither results nor cases."""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from itertools import islice

from pydantic import TypeAdapter

from conformance.core.versions import SparkVersion, named
from reports.analysis.gate import KnownPair
from reports.results.published import BASELINES

PAIRS = BASELINES / "pairs"
"""A file for each release, from ``python -m tools.publish_pairs``: the later releases, the newest first, then a line for each of them."""
SUFFIX = ".jsonl.xz"


def published_pair(before: str, after: str) -> KnownPair | None:
    """Return what is known of two releases, named as for ``reports.results.lookup.find``; None if it is not published."""
    origin = _named(before, [path.name.removesuffix(SUFFIX) for path in PAIRS.glob(f"*{SUFFIX}")])
    if origin is None:
        return None
    with lzma.open(PAIRS / f"{origin}{SUFFIX}") as lines:
        ends = next(lines).decode().split()
        end = _named(after, ends)
        line = next(islice(lines, ends.index(end), None)) if end is not None else None
    return TypeAdapter(KnownPair).validate_json(line) if line is not None else None


def _named(text: str, releases: Iterable[str]) -> str | None:
    known = map(SparkVersion.parse, releases)
    found = named(text, known, lambda release: release, lambda release: (str(release), f"spark-{release}"))
    return str(found[0]) if len(found) == 1 else None
