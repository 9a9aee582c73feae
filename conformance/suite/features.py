"""The features that a query uses, in the terms users would filter by, and which cases concern a query that uses some."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Literal, TypeAlias

from conformance.core.case import Case, Restart
from conformance.core.errors import WrongUsage
from conformance.core.wording import unknown
from conformance.query import read_query
from conformance.query.reading import JoinKind, QueryReading, read_plan

_JOINS: Mapping[JoinKind, str] = {
    "inner": "inner join",
    "leftOuter": "outer join",
    "rightOuter": "outer join",
    "fullOuter": "outer join",
    "leftSemi": "semi join",
    "leftAnti": "semi join",
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
UNSEEN = ("SQL",)
"""What a plan cannot show: SQL is only a way to write the query."""

RULE = {"modes": MODES, "stateful": STATEFUL, "implied": dict(IMPLIED), "always": ALWAYS}
"""What ``relevance`` depends on, for ``report.js``, which ranks by the same rule."""

Relevance: TypeAlias = Literal["all", "some", "none"]
"""Whether a query has all features that a case needs, some of them, or none."""


_IN_OTHER_WORDS = {
    **dict.fromkeys(("left-outer-join", "right-outer-join", "full-outer-join"), "outer-join"),
    **dict.fromkeys(("left-semi-join", "left-anti-join"), "semi-join"),
    **dict.fromkeys(("tumbling-window", "sliding-window"), "window-aggregation"),
    **dict.fromkeys(("dropduplicates", "distinct"), "deduplication"),
    **dict.fromkeys(("transformwithstate", "applyinpandaswithstate", "flatmapgroupswithstate"), "arbitrary-state"),
}
"""Names that Spark gives to features → the feature."""


def named_features(texts: Sequence[str]) -> frozenset[str]:
    """The features in ``outer-join,dedup``; the beginning of a name is enough if only one has it, else WrongUsage."""
    spelled = {feature.lower().replace(" ", "-"): feature for feature in FEATURES}
    features = set()
    for asked in (part.strip().lower().replace(" ", "-") for text in texts for part in text.split(",")):
        fitting = [asked] if asked in spelled else [name for name in spelled if asked and name.startswith(asked)]
        if len(fitting) != 1:
            raise WrongUsage(f"--uses: {unknown('feature', asked, list(spelled), _IN_OTHER_WORDS)}")
        features.add(spelled[fitting[0]])
    return frozenset(features)


def relevance(needs: Iterable[str], uses: frozenset[str]) -> Relevance:
    """How much of what a case needs a query uses.

    A query of which no output mode is known may have any, and every query may be restarted. An output mode alone, which many
    cases share, makes no case relevant unless the query has no other feature.
    """
    modes = uses.intersection(MODES)
    used = uses.union(*(IMPLIED.get(feature, ()) for feature in uses))
    if len(uses.intersection(STATEFUL)) > 1:
        used |= {"chained operators"}
    needed = set(needs) - {*ALWAYS, *(() if modes else MODES)}
    if needed <= used:
        return "all"
    shared = needed & used
    return "some" if shared - modes or (shared and uses == modes) else "none"


def features(case: Case) -> tuple[str, ...]:
    return _of_case(case, _readings(case))


def needs(cases: Iterable[Case]) -> dict[str, tuple[str, ...]]:
    """Case id → its features; without the cases of which a part, such as own code, cannot be read: they may need any feature."""
    read = ((case, _readings(case)) for case in cases)
    return {case.id: _of_case(case, queries) for case, queries in read if not any(query.unread for query in queries)}


def _of_case(case: Case, readings: Sequence[QueryReading]) -> tuple[str, ...]:
    features = _features(readings, case, case.conf)
    if any(isinstance(step.action, Restart) for step in case.steps):
        features.add("restart")
    if "rocksdb" in case.tags:
        features.add("RocksDB")
    return _in_order(features)


def features_of_job(plan: str, case: Case, conf: Mapping[str, str]) -> tuple[str, ...]:
    """The features of a job by the extended plan of a micro-batch, the case that tries it, and the engine's other settings."""
    reading = read_plan(plan)
    features = _features([reading], case, {**conf, **case.conf})
    # Spark refuses transformWithState with another state store.
    if any(function.operation.startswith("TransformWithState") for function in reading.state_functions):
        features.add("RocksDB")
    return _in_order(features)


def _in_order(features: Set[str]) -> tuple[str, ...]:
    return tuple(feature for feature in FEATURES if feature in features)


def _readings(case: Case) -> list[QueryReading]:
    return [read_query(pipeline, case.streams) for pipeline in case.pipelines()]


def _features(readings: Sequence[QueryReading], case: Case, conf: Mapping[str, str]) -> set[str]:
    features = {f"{case.output_mode} mode"}
    for reading in readings:
        for aggregation in reading.aggregations:
            kinds = {window.kind for window in aggregation.windows}
            features.add("window aggregation" if kinds - {"session"} else "aggregation")
            features.update(["session windows"] if "session" in kinds else [])
        features.update(_JOINS[join.kind] for join in reading.joins if join.stateful)
        for feature, uses in (
            ("deduplication", reading.deduplications),
            ("arbitrary state", reading.state_functions),
            ("union", reading.unions),
            ("SQL", reading.uses_sql),
            ("chained operators", len(reading.stateful) > 1),
            ("several watermarks", len(reading.watermarks) > 1),
            ("named sources", any(source.name for source in reading.sources)),
        ):
            if uses:
                features.add(feature)
    if any("rocksdb" in str(value).lower() for value in conf.values()):
        features.add("RocksDB")
    if case.in_real_time:
        features.add("real-time mode")
    elif case.trigger not in ("default", "processingTime"):  # every job may have timers that its own clock drives
        features.add(f"trigger {case.trigger}")
    return features
