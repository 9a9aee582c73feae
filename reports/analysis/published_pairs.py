"""What is known of each two published releases, derived when results are published: the gate reads neither results nor cases."""

import json
import lzma
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from conformance.core.versions import SparkVersion, named
from reports.analysis.gate import KnownPair
from reports.results.published import BASELINES

PAIRS = BASELINES / "pairs.xz"
"""The pairs, from ``python -m tools.publish_pairs``, as JSON: each with the number of its value, and whose checkpoints answer. Then a
line for each value, which is there once: a text or a number, the numbers of a list's values, or, below zero, the number of the list of
a mapping's keys, then of its values. The first six mean the names of the pair's targets, its versions, and the names of those whose
checkpoints answer, as pairs of other patch releases are much alike."""


def published_pair(before: str, after: str) -> KnownPair | None:
    """Return what is known of two releases, named as for ``reports.results.published.find``; None if it is not published."""
    if not PAIRS.exists():
        return None
    first, *lines = lzma.decompress(PAIRS.read_bytes()).split(b"\n")
    pairs: dict[str, list[Any]] = json.loads(first)
    known = [*map(SparkVersion.parse, {end for pair in pairs for end in pair.split("..")})]
    ends = (
        named(end, known, lambda release: release, lambda release: (str(release), f"spark-{release}"))
        for end in (before, after)
    )
    asked = "..".join(str(release) for end in ends for release in end)
    if asked not in pairs:
        return None
    number, *ran = pairs[asked]
    names = [*(f"spark-{end}" for end in asked.split("..")), *asked.split(".."), *(ran or ("", ""))]

    @cache
    def value(number: int) -> Any:
        if number < len(names):
            return names[number]
        read = json.loads(lines[number - len(names)])
        if not isinstance(read, list):
            return read
        if read and read[0] < 0:
            return dict(zip(value(-read[0]), map(value, read[1:]), strict=True))
        return [*map(value, read)]

    return TypeAdapter(KnownPair).validate_python(value(number))
