"""Metrics that only some Spark versions report, listed in ``metrics.yaml``: see ``docs/case-language/expectations.md``."""

from dataclasses import dataclass
from functools import cache

from conformance.core.data import read_data
from conformance.core.versions import SparkVersion

_OF_OPERATORS = "stateOperators."
DROPPED = f"{_OF_OPERATORS}numRowsDroppedByWatermark"
"""The metric behind ``dropped`` (SPARK-24634)."""


@dataclass(frozen=True)
class Metric:
    """A metric of the streaming query progress, with the first feature line that reports it."""

    path: str
    """Dotted path from the root of the progress, without list indices."""
    since: SparkVersion
    link: str | None

    def __str__(self) -> str:
        name = self.path.removeprefix(_OF_OPERATORS)
        return f"{name} is reported since {self.since.line}" + (f" ({self.link})" if self.link else "")


@cache
def missing(path: str, version: SparkVersion) -> Metric | None:
    """Return the metric at or above a dotted path (``stateOperators.0.numRowsRemoved``), if this version does not report it."""
    wanted = [part for part in path.split(".") if not part.isdigit()]
    for metric in metrics():
        parts = metric.path.split(".")
        if wanted[: len(parts)] == parts and version < metric.since:
            return metric
    return None


@cache
def metrics() -> tuple[Metric, ...]:
    """Return every metric that some supported version does not report."""
    written: dict[str, dict[str, str]] = read_data("conformance.core", "metrics.yaml")
    return tuple(
        Metric(
            path=name if name.split(".")[0] in ("sources", "sink") else f"{_OF_OPERATORS}{name}",
            since=SparkVersion.parse(f"{about['since']}.0"),
            link=about.get("link"),
        )
        for name, about in written.items()
    )


@cache
def missing_of_operators(version: SparkVersion) -> frozenset[str]:
    """Return the keys of an operator's progress that this version does not have."""
    lacking = (metric.path.removeprefix(_OF_OPERATORS) for metric in metrics() if version < metric.since)
    return frozenset(key for key in lacking if "." not in key)
