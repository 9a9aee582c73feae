"""Properties that queries have on any trace, tested with random ones."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion, releases
from conformance.model.catalogue import rules_of
from conformance.model.checkpoint import ModelCheckpoint
from conformance.model.checks import QuerySettings
from conformance.model.columns import Ids
from conformance.model.errors import Refused, Unpredictable
from conformance.model.frame import Frame
from conformance.model.query import Query

SECOND = 1_000_000
SCHEMA = parse_schema("t TIMESTAMP, id STRING")
ROWS = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 100).map(lambda s: s * SECOND)), st.sampled_from("ab")), max_size=4
)
TRACES = st.lists(ROWS, min_size=1, max_size=6)
VERSIONS = st.sampled_from([version for version in releases() if version.line in ("3.0", "3.3", "3.4", "3.5", "4.3")])


def events(version, delay="10 seconds"):
    return Frame.read("events", SCHEMA, rules_of(version), Ids()).with_watermark("t", delay)


def windowed(version):
    return events(version).group_by(["window(t, '10 seconds')"], ["count(*) AS n"]).select("window.end", "n")


def started(frame, mode="append", trigger="default", checkpoint=None, **conf):
    return Query(frame.plan, QuerySettings(mode, trigger, conf), checkpoint or ModelCheckpoint(), frame.rules)


def played(query, trace):
    stories = []
    for rows in trace:
        query.arrive([{"events": rows}])
        stories += query.run()
    return stories


@given(VERSIONS, TRACES)
def test_the_watermark_never_falls_and_each_batch_runs_with_what_the_one_before_left(version, trace) -> None:
    stories = played(started(windowed(version)), trace)
    known = 0
    for story in stories:
        assert story.watermark_ms == known
        assert story.advance.after_ms >= known
        known = story.advance.after_ms


@given(VERSIONS, TRACES)
def test_in_append_mode_a_window_comes_out_once_and_no_row_is_lost(version, trace) -> None:
    stories = played(started(windowed(version)), trace)
    ends = Counter(end for story in stories for end, _ in story.emitted)
    assert max(ends.values(), default=1) == 1
    emitted = sum(count for story in stories for _, count in story.emitted)
    late = sum(one.rows for story in stories for operator in story.operators for one in operator.late)
    state_rows = sum(value for one in stories[-1].operators[0].shown for name, _, value in one.what if name == "n")
    assert emitted + late + state_rows == sum(1 for rows in trace for time, _ in rows if time is not None)


@given(VERSIONS, TRACES)
def test_what_complete_mode_shows_is_every_row(version, trace) -> None:
    stories = played(started(windowed(version), mode="complete"), trace)
    assert sum(count for _, count in stories[-1].emitted) == sum(
        1 for rows in trace for time, _ in rows if time is not None
    )


@given(VERSIONS, TRACES)
def test_a_key_passes_a_deduplication_once(version, trace) -> None:
    frame = events(version).drop_duplicates("id")
    stories = played(started(frame), trace)
    assert max(Counter(id for story in stories for _, id in story.emitted).values(), default=1) == 1


@given(VERSIONS, TRACES, st.integers(0, 5))
def test_a_crash_before_the_commit_changes_nothing(version, trace, after) -> None:
    straight = played(started(windowed(version)), trace)
    query = started(windowed(version))
    seen = played(query, trace[:after])
    if seen:
        query = started(windowed(version), checkpoint=query.checkpoint.without_newest_commit())
        replayed, *more = query.run()
        assert replayed.emitted == seen[-1].emitted
        assert replayed.watermark_ms == seen[-1].watermark_ms
        seen = [*seen[:-1], replayed, *more]
    seen += played(query, trace[after:])
    assert Counter(row for one in seen for row in one.emitted) == Counter(
        row for one in straight for row in one.emitted
    )


@given(VERSIONS, TRACES)
def test_without_a_watermark_nothing_is_late_and_nothing_goes(version, trace) -> None:
    frame = Frame.read("events", SCHEMA, rules_of(version), Ids()).drop_duplicates()
    stories = played(started(frame), trace)
    assert all(story.dropped == 0 and story.watermark_ms == 0 and story.kind == "data" for story in stories)
    assert stories[-1].operators[0].state_rows == len({row for rows in trace for row in rows})


def test_once_runs_one_batch_and_available_now_until_all_is_read() -> None:
    version = SparkVersion(4, 3, 0)
    trace = [{"events": [(5 * SECOND, "a")]}, {"events": [(50 * SECOND, "a")]}]
    for trigger, kinds in (("once", ["data"]), ("availableNow", ["data", "data", "no-data"])):
        query = started(windowed(version), trigger=trigger)
        query.arrive(trace)
        assert [story.kind for story in query.run()] == kinds


@pytest.mark.parametrize("text", ["3.2.4", "3.0.3"])
def test_a_trigger_that_is_not_there_is_refused(text) -> None:
    with pytest.raises(Refused) as refused:
        started(windowed(SparkVersion.parse(text)), trigger="availableNow")
    assert refused.value.stage == "start"


def test_a_conf_the_model_does_not_know_is_named() -> None:
    with pytest.raises(Unpredictable, match=r"my\.conf"):
        started(windowed(SparkVersion(4, 3, 0)), **{"my.conf": "1"})


def test_what_is_refused_is_said_also_where_the_rest_is_not_known() -> None:
    """The checks look at the query as it is written; what the optimiser moves comes after them."""

    def semi(version):
        rules, ids = rules_of(version), Ids()
        left, right = (Frame.read(name, SCHEMA, rules, ids).with_watermark("t", "1 second") for name in ("a", "b"))
        counted = left.group_by(["window(t, '10 seconds')"], ["count(*) AS n"]).select("window")
        return counted.join(right.select("window(t, '10 seconds') AS wanted"), "window = wanted", "leftSemi")

    for text in ("3.0.3", "3.3.4"):
        with pytest.raises(Refused):
            started(semi(SparkVersion.parse(text)))
    with pytest.raises(Unpredictable, match="left semi join that moves"):
        started(semi(SparkVersion(3, 5, 9)))


def test_a_restart_with_another_operator_is_refused_and_both_are_named() -> None:
    version = SparkVersion.parse("4.3.0")
    before = started(events(version).drop_duplicates("t"))
    played(before, [[(0, "a")]])
    after = started(windowed(version), checkpoint=before.checkpoint)
    with pytest.raises(Refused) as refused:
        played(after, [[(SECOND, "a")]])
    assert refused.value.name == "operators other than in the state metadata"
    assert refused.value.message.endswith(
        "in the metadata: [(OperatorId: 0 -> OperatorName: dedupe)]; "
        "Stateful operators in current batch: [(OperatorId: 0 -> OperatorName: stateStoreSave)]."
    )
