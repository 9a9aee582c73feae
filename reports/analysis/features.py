"""The features that a query uses, in the terms users would filter by, and which cases concern a query that uses some."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from conformance.core.case import Case, Restart
from conformance.core.errors import WrongUsage
from conformance.language.problem import unknown

JOINS = {
    "inner": "inner join",
    "leftouter": "outer join",
    "rightouter": "outer join",
    "fullouter": "outer join",
    "leftsemi": "semi join",
}
_OPERATORS = {
    "dropDuplicates": "deduplication",
    "dropDuplicatesWithinWatermark": "deduplication",
    "distinct": "deduplication",
    "applyInPandasWithState": "arbitrary state",
    "transformWithState": "arbitrary state",
    "union": "union",
    "sql": "SQL",
}
MODES = ("append mode", "update mode", "complete mode")
STATEFUL = (
    "aggregation",
    "window aggregation",
    "session windows",
    "inner join",
    "outer join",
    "semi join",
    "deduplication",
    "arbitrary state",
)
"""Features of which two may be chained."""
FEATURES = (
    *MODES,
    *STATEFUL,
    "union",
    "SQL",
    "chained operators",
    "several watermarks",
    "named sources",
    "RocksDB",
    "restart",
    "trigger once",
    "trigger availableNow",
    "real-time mode",
)
"""Every feature, in display order."""
IMPLIED: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("inner join", "outer join", "semi join", "union"), ("several watermarks",)
)
"""What a query with a feature may have, too."""
ALWAYS = ("restart",)
"""What every query may meet."""

RULE = {"modes": MODES, "stateful": STATEFUL, "implied": dict(IMPLIED), "always": ALWAYS}
"""What ``relevance`` depends on, for ``report.js``, which ranks by the same rule."""

Relevance: TypeAlias = Literal["all", "some", "none"]
"""Whether a query has all features that a case needs, some of them, or none."""

_STATEFUL = ("groupBy", "join", "applyInPandasWithState", "transformWithState", "distinct")
_WINDOW = re.compile(r"(?<!_)\bwindow\s*\(")


class UnknownFeature(WrongUsage):
    """No feature has this name."""

    def __init__(self, asked: str) -> None:
        known = [_spelled(feature) for feature in FEATURES]
        super().__init__(f"--uses: {unknown('feature', asked, known)}")
        self.asked = asked


def named_features(texts: Sequence[str]) -> frozenset[str]:
    """The features in lists such as ``outer-join,dedup``; the beginning of a name is enough if it fits one feature only.

    Raises:
        UnknownFeature: a name fits none, or several.
    """
    found = set()
    for asked in (part.strip().lower().replace(" ", "-") for text in texts for part in text.split(",")):
        exact = [feature for feature in FEATURES if _spelled(feature) == asked]
        fitting = exact or [feature for feature in FEATURES if asked and _spelled(feature).startswith(asked)]
        if len(fitting) != 1:
            raise UnknownFeature(asked)
        found.add(fitting[0])
    return frozenset(found)


def relevance(needs: Iterable[str], uses: frozenset[str]) -> Relevance:
    """How much of what a case needs a query uses.

    A query of which no output mode is known may have any, and every query may be restarted. An output mode alone, which many
    cases share, makes no case relevant unless the query has no other feature.
    """
    modes = uses.intersection(MODES)
    used = uses | _implied(uses)
    needed = set(needs) - {*ALWAYS, *(() if modes else MODES)}
    if needed <= used:
        return "all"
    shared = needed & used
    return "some" if shared - modes or (shared and uses == modes) else "none"


def _implied(uses: frozenset[str]) -> frozenset[str]:
    chained = {"chained operators"} if len(uses.intersection(STATEFUL)) > 1 else set()
    return frozenset(chained.union(*(IMPLIED.get(feature, ()) for feature in uses)))


def _spelled(feature: str) -> str:
    return feature.lower().replace(" ", "-")


def features(case: Case) -> tuple[str, ...]:
    """In a fixed order, each once."""
    return tuple(dict.fromkeys(_features(case)))


def _features(case: Case) -> Iterator[str]:
    yield f"{case.output_mode} mode"
    operations = [*case.operations()]
    text = repr([operation.arguments for operation in operations])
    if any(operation.name == "groupBy" for operation in operations):
        yield "window aggregation" if _WINDOW.search(text) else "aggregation"
    if "session_window" in text:
        yield "session windows"
    for operation in operations:
        if operation.name == "join":
            yield JOINS[str(operation.arguments.get("how", "inner")).lower().replace("_", "")]
    yield from (_OPERATORS[operation.name] for operation in operations if operation.name in _OPERATORS)
    stateful = [op for op in case.query.walk() if op.name in _STATEFUL or op.name.startswith("dropDuplicates")]
    if len(stateful) > 1:
        yield "chained operators"
    if sum(operation.name == "withWatermark" for operation in case.query.walk()) > 1:
        yield "several watermarks"
    if any(operation.name == "from" and "name" in operation.arguments for operation in operations):
        yield "named sources"
    if any("rocksdb" in str(value).lower() for value in case.conf.values()) or "rocksdb" in case.tags:
        yield "RocksDB"
    if any(isinstance(step.action, Restart) for step in case.steps):
        yield "restart"
    if case.in_real_time:
        yield "real-time mode"
    elif case.trigger != "default":
        yield f"trigger {case.trigger}"
