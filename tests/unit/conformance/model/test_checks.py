"""What earlier versions refused when a query starts; the cases hold what the newest does."""

import pytest

from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.checks import check_start
from conformance.model.columns import Ids
from conformance.model.errors import Refused
from conformance.model.frame import Frame

SCHEMA = parse_schema("t TIMESTAMP, k STRING")


class Queries:
    """Frames on one version."""

    def __init__(self, version: str) -> None:
        self.rules = rules_of(SparkVersion.parse(version))
        self.ids = Ids()

    def stream(self, name: str = "a") -> Frame:
        frame = Frame.read(name, SCHEMA, self.rules, self.ids).with_watermark("t", "10 seconds")
        return frame.select("t AS t" + name, "k AS k" + name)

    def joined(self, how: str, on: str = "ka = kb AND ta = tb") -> Frame:
        return self.stream("a").join(self.stream("b"), on, how)  # type: ignore[arg-type]

    def windowed(self, frame: Frame) -> Frame:
        return frame.group_by(["window(ta, '10 seconds')"], ["count(*) AS n"])


def refusal(frame: Frame, mode: str, *, check_correctness: bool = True) -> str | None:
    try:
        check_start(frame.plan, mode, frame.rules, check_correctness=check_correctness)  # type: ignore[arg-type]
    except Refused as refused:
        return refused.name if refused.stage == "start" else f"{refused.name} at {refused.stage}"
    return None


@pytest.mark.parametrize(
    ("version", "how", "mode", "name"),
    [
        ("4.1.4", "inner", "update", "inner join in update mode"),
        ("4.1.4", "leftSemi", "update", "join in update or complete mode"),
        ("3.0.3", "fullOuter", "append", "full outer join"),
        ("3.0.3", "leftSemi", "append", "left semi join"),
        ("3.1.3", "fullOuter", "append", None),
        ("3.1.3", "leftSemi", "append", None),
    ],
)
def test_joins_by_output_mode(version, how, mode, name) -> None:
    assert refusal(Queries(version).joined(how), mode) == name


@pytest.mark.parametrize(
    ("version", "mode", "name"),
    [
        ("3.0.3", "append", "several aggregations"),
        ("3.3.4", "append", "several aggregations"),
        ("3.4.4", "append", None),
        ("3.4.4", "update", "stateful after update or complete aggregation"),
        ("4.3.0", "complete", "stateful after update or complete aggregation"),
    ],
)
def test_an_aggregation_above_another(version, mode, name) -> None:
    queries = Queries(version)
    above = queries.windowed(queries.stream()).group_by(["window"], ["max(n) AS most"])
    assert refusal(above, mode) == name
    unchecked = None if name == "stateful after update or complete aggregation" else name
    assert refusal(above, mode, check_correctness=False) == unchecked


@pytest.mark.parametrize("version", ["3.0.3", "3.1.3", "3.3.4", "3.4.4", "4.3.0"])
def test_an_aggregation_above_a_join(version) -> None:
    queries = Queries(version)
    assert refusal(queries.windowed(queries.joined("inner")), "append") is None
    name = "stateful after outer join" if version in ("3.1.3", "3.3.4") else None
    assert refusal(queries.windowed(queries.joined("leftOuter")), "append") == name


@pytest.mark.parametrize(
    ("version", "name"), [("3.3.4", None), ("3.4.4", "stateful after time-interval join"), ("3.5.9", None)]
)
def test_an_aggregation_above_a_join_over_a_range(version, name) -> None:
    queries = Queries(version)
    joined = queries.joined("inner", "ka = kb AND ta BETWEEN tb AND tb + INTERVAL 5 SECONDS")
    assert refusal(queries.windowed(joined), "append") == name


@pytest.mark.parametrize("condition", ["ta > TIMESTAMP'1970-01-01 00:00:05'", "tb > TIMESTAMP'1970-01-01 00:00:05'"])
def test_a_condition_on_the_event_time_of_one_side_is_not_a_range(condition) -> None:
    queries = Queries("3.4.4")
    joined = queries.joined("inner", f"ka = kb AND ta = tb AND {condition}")
    assert refusal(queries.windowed(joined), "append") is None


def test_a_deduplication_above_an_aggregation_was_refused() -> None:
    old = Queries("3.3.4")
    assert refusal(old.windowed(old.stream()).drop_duplicates("n"), "append") == "deduplication after aggregation"
