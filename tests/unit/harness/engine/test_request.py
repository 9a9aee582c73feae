"""What a case becomes on its way to the driver."""

import pytest

from conformance.core.case import Advance, FileSource, Idle, KafkaSource, Partitioned, Restart, Step
from conformance.core.operations import read_pipeline
from harness.engine.request import request_for, segments_of
from tests.support.runs import case_named

WINDOW = "window(event_time, '10 minutes')"


def sent(*operations):
    """The operations that the driver gets for the query of a case."""
    query = read_pipeline([*operations])
    return request_for(case_named("windows/named").model_copy(update={"query": query}), "/x").query


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (WINDOW, f"{WINDOW} AS window"),
        (" Session_Window (t, '5 (' ) ", " Session_Window (t, '5 (' )  AS session_window"),
        (f"{WINDOW} AS slot", f"{WINDOW} AS slot"),
        (f"{WINDOW}.end", f"{WINDOW}.end"),
        (f"f({WINDOW})", f"f({WINDOW})"),
        ("window", "window"),
        ("window(t, '1 day') = window(u, '1 day')", "window(t, '1 day') = window(u, '1 day')"),
    ],
)
def test_a_window_has_the_name_that_only_newer_versions_give_it(written, named):
    assert sent({"groupBy": ["k", written], "agg": ["count(*)"]}) == [{"groupBy": ["k", named], "agg": ["count(*)"]}]


def test_windows_are_named_wherever_a_pipeline_nests():
    inner, named = [{"from": "a"}, {"select": [WINDOW]}], [{"from": "a"}, {"select": [f"{WINDOW} AS window"]}]
    assert sent({"union": inner}, {"sql": WINDOW, "as": "x", "views": {"agg": inner}}, {"where": WINDOW}) == [
        {"union": named},
        {"sql": WINDOW, "as": "x", "views": {"agg": named}},
        {"where": WINDOW},
    ]


def test_a_stream_has_the_options_that_its_case_gives_it():
    case = case_named("windows/named")
    (name,) = case.streams
    assert request_for(case, "/x").streams[name].options is None
    chosen = {name: FileSource(max_files_per_trigger=2, latest_first=True, clean_source="delete")}
    options = {"maxFilesPerTrigger": "2", "latestFirst": "true", "cleanSource": "delete"}
    assert request_for(case.model_copy(update={"files": chosen}), "/x").streams[name].options == options
    topics = {name: KafkaSource(partitions=2, min_partitions=4, fail_on_data_loss=False)}
    topic = request_for(case.model_copy(update={"topics": topics}), "/x").streams[name].topic
    assert topic.options == {"minPartitions": "4", "failOnDataLoss": "false", "startingOffsets": "earliest"}


def test_a_restart_says_with_which_rows_a_source_is_made_again():
    case = case_named("windows/named")
    (name,) = case.streams
    rows = Partitioned(partitions=((["12:00", 1],), ()))
    made = case.model_copy(update={"steps": (Step(number=1, action=Restart(how="graceful", recreated={name: rows})),)})
    (asked,) = request_for(made, "/x").steps
    (values, nothing) = asked.recreated[name]
    assert (next(iter(values[0].values())), nothing) == ("1970-01-01T12:00:00.000000Z", ())


def test_a_process_that_takes_over_goes_on_with_the_time_of_the_clock():
    actions = (Advance(ms=20), Idle(), Restart(how="kill"), Advance(ms=5))
    steps = tuple(Step(number=number, action=action) for number, action in enumerate(actions, 1))
    about = {"steps": steps, "trigger": "processingTime", "interval_ms": 10}
    driven = case_named("clocks/driven").model_copy(update=about)
    first, second = (request_for(driven, "/x", segment=segment) for segment in segments_of(driven))
    assert (first.interval, first.clock, second.clock) == (10, 0, 20)
    assert [(step.action, step.advance) for step in first.steps] == [("advance", 20), ("idle", 0), ("kill", 0)]
    assert [(step.action, step.advance) for step in second.steps] == [("restart", 0), ("advance", 5)]
