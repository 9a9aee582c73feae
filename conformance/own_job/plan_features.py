"""The features that a query uses, read from the plan of one of its micro-batches.

The operators are those of Spark's ``statefulOperators.scala`` and ``StreamingSymmetricHashJoinExec``; their names are the same from 3.0
to 4.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reports.analysis.features import JOINS

_OPERATORS = {
    "deduplication": re.compile(r"\bStreamingDeduplicate(WithinWatermark)?\b"),
    "session windows": re.compile(r"\bSessionWindowStateStoreSave\b"),
    "arbitrary state": re.compile(
        r"\b(FlatMapGroupsWithState|FlatMapGroupsInPandasWithState|TransformWithState\w*|MapGroupsWithState)\b"
    ),
    "union": re.compile(r"^[\s:+*()\d-]*Union\b", re.MULTILINE),
}
_AGGREGATION = re.compile(r"^[\s:+*()\d-]*StateStoreSave \[(?P<keys>[^\]]*)", re.MULTILINE)
_JOIN = re.compile(
    r"\bStreamingSymmetricHashJoin \[.*?\], \[.*?\], (?P<type>Inner|LeftOuter|RightOuter|FullOuter|LeftSemi), condition ="
)
_STATEFUL = re.compile(
    r"^[\s:+*()\d-]*(StateStoreSave|SessionWindowStateStoreSave|StreamingSymmetricHashJoin|StreamingDeduplicate\w*"
    r"|FlatMapGroups\w*|TransformWithState\w*|MapGroupsWithState)\b",
    re.MULTILINE,
)
_WATERMARK = re.compile(r"^[\s:+*()\d-]*EventTimeWatermark\b", re.MULTILINE)
PHYSICAL_PLAN = "== Physical Plan =="
"""The head of the part of an extended plan that says what runs."""


def features_of(plan: str, output_mode: str) -> tuple[str, ...]:
    """The features, named as in ``reports.analysis.features.FEATURES``.

    Args:
        plan: the extended plan, as ``explain(extended=True)`` prints it.
        output_mode: of the query.
    """
    return tuple(dict.fromkeys(_features(plan.rpartition(PHYSICAL_PLAN)[2], output_mode)))


def _features(physical: str, output_mode: str) -> Iterator[str]:
    yield f"{output_mode} mode"
    for found in _AGGREGATION.finditer(physical):
        yield "window aggregation" if re.search(r"\bwindow#", found["keys"]) else "aggregation"
    yield from (JOINS[found["type"].lower()] for found in _JOIN.finditer(physical))
    yield from (name for name, pattern in _OPERATORS.items() if pattern.search(physical))
    if len(_STATEFUL.findall(physical)) > 1:
        yield "chained operators"
    if len(_WATERMARK.findall(physical)) > 1:
        yield "several watermarks"
