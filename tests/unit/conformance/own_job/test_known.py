"""What the published results say to somebody whose query uses some features."""

from __future__ import annotations

from functools import cache

import pytest

from conformance.core.versions import SparkVersion
from conformance.own_job.verdict import Known, concerned, known
from reports.analysis.features import features
from reports.analysis.published import published_results
from tests.support.whole_suite import whole_suite

JOIN = ("append mode", "outer join", "several watermarks")


@cache
def about(before: str, after: str, uses: tuple[str, ...]) -> Known:
    found = known(published_results(), whole_suite(), SparkVersion.parse(before), SparkVersion.parse(after), uses)
    assert found is not None
    return found


def test_bugs_that_such_a_query_can_meet_with_the_versions_that_have_them() -> None:
    links = {bug.bug.link: bug.spark for bug in about("3.5.9", "4.3.0", JOIN).bugs}
    assert links["SPARK-58904"] == ("3.5.9", "4.3.0")
    assert "SPARK-38593" not in links  # of session windows


def test_what_only_a_setting_shows_is_known_of_a_job_with_that_setting() -> None:
    """Two changes and four bugs could never be shown, because no job had ``RocksDB``."""
    deduplicating = ("append mode", "window aggregation", "deduplication", "chained operators")
    case = "chained-aggregations/rocksdb-deduplication-by-the-keys-of-the-aggregation"

    def told(uses: tuple[str, ...]) -> set[str]:
        found = about("3.5.9", "4.3.0", uses)
        return {change.case for change in found.changes} | {id for bug in found.bugs for id in bug.cases}

    assert case not in told(deduplicating)
    assert case in told((*deduplicating, "RocksDB"))


def test_sql_is_only_a_way_to_write_the_query() -> None:
    """A plan does not show it, so no job has it."""
    (case,) = [
        case for case in whole_suite().cases if case.id == "several-watermarks/sql-union-follows-the-slower-stream"
    ]
    needed = features(case)
    assert "SQL" in needed
    uses = frozenset(feature for feature in needed if feature != "SQL")
    assert [*concerned([case], uses, {})] == [case.id]


def test_a_case_with_another_setting_concerns_no_job_without_it() -> None:
    """Every job was told of a change that only a query with enforced names of sinks meets."""
    (case,) = [case for case in whole_suite().cases if case.id == "unsupported/sink-without-a-name"]
    uses = frozenset({*features(case), "window aggregation"})
    assert [*concerned([case], uses, {})] == []
    assert [*concerned([case], uses, case.conf)] == [case.id]


@pytest.mark.parametrize(
    ("case_id", "watermark"),
    [
        ("event-time-column/nested-field-is-refused", None),
        ("event-time-column/window-column-gives-a-senseless-watermark", "window"),
    ],
)
def test_a_watermark_on_a_window_or_a_nested_field_concerns_no_job_with_another(
    case_id: str, watermark: str | None
) -> None:
    (case,) = [case for case in whole_suite().cases if case.id == case_id]
    uses = frozenset({*features(case), "window aggregation"})
    assert [*concerned([case], uses, {}, ("order_time",))] == []
    if watermark is not None:
        assert [*concerned([case], uses, {}, (watermark,))] == [case_id]


def test_another_patch_release_is_told_of_the_newest_of_its_line() -> None:
    found = about("3.5.3", "4.3.0", JOIN)
    assert (found.before.title, found.after.title) == ("3.5.9", "4.3.0")


def test_a_query_of_which_no_plan_was_seen_is_told_of_no_bug() -> None:
    assert about("3.5.9", "4.3.0", ()).bugs == ()


@pytest.mark.parametrize("version", ["2.4.8", "9.9.9"])
def test_a_line_without_results(version: str) -> None:
    assert known(published_results(), whole_suite(), SparkVersion.parse(version), SparkVersion(4, 3, 0), JOIN) is None
