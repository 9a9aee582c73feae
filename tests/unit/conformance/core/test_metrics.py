"""Which version lacks which metric."""

import pytest

from conformance.core.metrics import DROPPED, missing
from conformance.core.versions import SparkVersion


@pytest.mark.parametrize(
    ("path", "lacking", "having"),
    [
        (DROPPED, "3.0.3", "3.1.0"),
        ("stateOperators.0.numRowsDroppedByWatermark", "3.0.3", "3.1.0"),
        ("stateOperators.1.customMetrics.numDroppedDuplicateRows", "3.1.3", "3.2.0"),
        ("sources.0.metrics", "3.1.3", "3.2.0"),
        ("sources.0.metrics.anything.below", "3.1.3", "3.2.0"),
        ("sink.metrics", "3.3.4", "3.4.0"),
    ],
)
def test_since_when(path: str, lacking: str, having: str) -> None:
    metric = missing(path, SparkVersion.parse(lacking))
    assert str(metric).endswith(f"is reported since {metric.since.line} ({metric.link})")
    assert missing(path, SparkVersion.parse(having)) is None


@pytest.mark.parametrize(
    "path", ["numInputRows", "stateOperators.0.numRowsTotal", "metrics", "numRowsRemoved", "stateOperators", "sources"]
)
def test_what_every_version_has_or_none(path: str) -> None:
    assert missing(path, SparkVersion.parse("3.0.0")) is None
