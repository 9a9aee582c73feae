"""What is refused when a query starts, by its output mode and its operators."""

from __future__ import annotations

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

    def stream(self, name: str = "a", *, watermark: bool = True) -> Frame:
        frame = Frame.read(name, SCHEMA, self.rules, self.ids)
        frame = frame.with_watermark("t", "10 seconds") if watermark else frame
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
        ("4.3.0", "inner", "append", None),
        ("4.3.0", "inner", "update", None),
        ("4.3.0", "leftSemi", "update", None),
        ("4.3.0", "leftOuter", "update", "join in update or complete mode"),
        ("4.3.0", "fullOuter", "update", "join in update or complete mode"),
        ("4.1.4", "inner", "update", "inner join in update mode"),
        ("4.1.4", "leftSemi", "update", "join in update or complete mode"),
        ("4.1.4", "inner", "append", None),
        ("3.0.3", "fullOuter", "append", "full outer join"),
        ("3.0.3", "leftSemi", "append", "left semi join"),
        ("3.1.3", "fullOuter", "append", None),
        ("3.1.3", "leftSemi", "append", None),
    ],
)
def test_joins_by_output_mode(version, how, mode, name) -> None:
    assert refusal(Queries(version).joined(how), mode) == name


@pytest.mark.parametrize("version", ["3.5.9", "4.3.0"])
def test_no_join_runs_in_complete_mode_even_below_an_aggregation(version) -> None:
    queries = Queries(version)
    assert refusal(queries.windowed(queries.joined("inner")), "complete") == "join in update or complete mode"


@pytest.mark.parametrize(
    ("how", "on", "refused"),
    [
        ("inner", "ka = kb", False),
        ("leftOuter", "ka = kb", True),
        ("rightOuter", "ka = kb", True),
        ("fullOuter", "ka = kb", True),
        ("leftOuter", "ka = kb AND ta = tb", False),
        ("leftOuter", "ka = kb AND ta > tb", False),
        ("leftOuter", "ka = kb AND ta < tb", True),
        ("leftSemi", "ka = kb AND ta > tb", False),
        ("leftSemi", "ka = kb AND ta < tb", True),
        ("rightOuter", "ka = kb AND ta > tb", True),
        ("rightOuter", "ka = kb AND ta < tb", False),
        ("fullOuter", "ka = kb AND ta > tb", False),
        ("fullOuter", "ka = kb AND ta < tb", False),
    ],
)
def test_an_outer_join_needs_a_lower_bound_for_the_side_that_it_preserves(how, on, refused) -> None:
    # `UnsupportedOperationChecker.checkForStreamStreamJoinWatermark`: `getStateValueWatermark` of that side is defined
    name = refusal(Queries("4.3.0").joined(how, on), "append")
    assert name == ("outer join without bound" if refused else None)


@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_a_windowed_aggregation_runs_in_every_mode(mode) -> None:
    queries = Queries("4.3.0")
    assert refusal(queries.windowed(queries.stream()), mode) is None


def test_append_mode_needs_an_event_time_among_the_keys_of_the_topmost_aggregation() -> None:
    queries = Queries("4.3.0")
    assert refusal(queries.stream().group_by(["ka"], ["count(*) AS n"]), "append") == "append without watermark"
    assert refusal(queries.stream().group_by(["ka"], ["count(*) AS n"]), "update") is None
    assert refusal(queries.windowed(queries.stream(watermark=False)), "append") == "append without watermark"
    above = queries.windowed(queries.stream()).group_by(["n"], ["count(*) AS m"])
    assert refusal(above, "append") == "append without watermark"


def test_complete_mode_needs_an_aggregation() -> None:
    queries = Queries("4.3.0")
    assert refusal(queries.stream(), "complete") == "complete without aggregation"
    assert refusal(queries.stream(), "update") is None
    assert refusal(queries.stream().drop_duplicates("ka"), "complete") == "complete without aggregation"


def test_sessions_do_not_run_in_update_mode() -> None:
    queries = Queries("4.3.0")
    sessions = queries.stream().group_by(["session_window(ta, '10 seconds')", "ka"], ["count(*) AS n"])
    assert refusal(sessions, "update") == "update of sessions"
    assert refusal(sessions, "append") is None
    assert refusal(sessions, "complete") is None


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


def test_deduplications() -> None:
    old, new = Queries("3.3.4"), Queries("4.3.0")
    assert refusal(old.windowed(old.stream()).drop_duplicates("n"), "append") == "deduplication after aggregation"
    assert refusal(new.windowed(new.stream()).drop_duplicates("n"), "append") is None
    name = "deduplication within the watermark without watermark"
    assert refusal(new.stream(watermark=False).drop_duplicates("ka", within_watermark=True), "append") == name
    assert refusal(new.stream().drop_duplicates("ka", within_watermark=True), "append") is None
    assert refusal(new.stream(watermark=False).drop_duplicates("ka"), "append") is None


def test_limits() -> None:
    queries = Queries("4.3.0")
    assert refusal(queries.stream().limit(3), "append") is None
    assert refusal(queries.stream().limit(3), "update") == "limit in update mode"
    assert refusal(queries.windowed(queries.stream()).limit(3), "complete") is None
