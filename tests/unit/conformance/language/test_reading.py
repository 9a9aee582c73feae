"""What a valid file becomes."""

import contextlib
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from conformance.core.case import Add, Backlog, Case, ExpectedError, Idle, Partitioned, Restart, Start
from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion, VersionRange
from conformance.language import InvalidCase, read_case
from conformance.language.reader import case_from
from conformance.query import read_query
from harness.engine.request import request_for

VALID = Path(__file__).parent / "valid"


@pytest.fixture(scope="module")
def example() -> Case:
    return read_case(VALID / "example.yaml", "late-drops/window-still-open")


@pytest.fixture(scope="module")
def every() -> Case:
    return read_case(VALID / "every-notation.yaml", "every-notation")


def test_the_example_of_the_contract(example: Case) -> None:
    assert example.id == "late-drops/window-still-open"
    assert example.family == "late-drops"
    assert example.path == VALID / "example.yaml"
    assert example.title == "A row behind the watermark still counts while its window is open"
    assert example.behaviour == ("late-predicate", "evict-predicate")
    assert example.strength == "documented"
    assert example.links[0] == "SPARK-18124"
    assert example.streams == {"events": parse_schema("event_time TIMESTAMP, count INT")}
    assert example.output_mode == "update"
    assert example.trigger == "default"
    assert example.spark is None
    assert example.applies_to(SparkVersion(3, 0, 0))
    assert [operation.name for operation in example.query.walk()] == ["from", "withWatermark", "groupBy", "select"]
    first = example.steps[0]
    assert first.number == 1
    assert first.name == "the first row opens the first window"
    assert first.action == Add(streams={"events": Partitioned(partitions=((("12:00", 1),),))})
    assert first.expect.rows == (("12:00", "12:10", 1),)
    assert first.expect.model_fields_set == {"rows", "watermark"}


def test_lines_say_where_things_stand(example: Case) -> None:
    assert example.lines["title"] == 2
    assert example.lines["steps.3"] == 28
    assert example.lines["steps.3.expect.dropped"] == 32


def test_lines_of_differs(every: Case) -> None:
    text = every.path.read_text().splitlines()
    assert text[every.lines["differs.2"] - 1].startswith("  - spark:")
    assert text[every.lines["differs.2.steps.the last"] - 1].strip().startswith("the last:")


def test_conf_reaches_spark_as_text(every: Case) -> None:
    assert every.conf == {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.a.b-c": "text",
        "spark.d": "0.5",
    }


def test_rows_stay_as_they_were_written(every: Case) -> None:
    action = every.steps[1].action
    assert isinstance(action, Add)
    (rows,) = action.streams["events"].partitions
    assert rows[1][0] == 30.0009
    assert rows[0][9] == 9007199254740993
    assert math.isnan(rows[1][5][0][1])
    assert rows[2]["local"] == "2024-03-01 12:05"
    assert action.streams["clicks"].partitions == ((("12:05", "1"),), (), ((-1.5, None),))


def test_every_entry_of_a_backlog_names_every_stream(every: Case) -> None:
    action = every.steps[2].action
    nothing = Partitioned(partitions=((),))
    assert isinstance(action, Backlog)
    assert action.entries == ({"events": nothing, "clicks": nothing},) * 3


def test_actions(every: Case) -> None:
    actions = [step.action for step in every.steps]
    assert actions[0] == Start()
    assert actions[3] == Idle()
    expected = ["graceful", "crash-before-commit", "kill", "graceful"]
    assert [action.how for action in actions if isinstance(action, Restart)] == expected
    changed = actions[7]
    assert isinstance(changed, Restart)
    assert "trigger" in changed.change.model_fields_set
    killed = actions[6]
    assert isinstance(killed, Restart)
    assert (killed.at, killed.batch, killed.damage) == ("emitted", 2, {"truncated": "commit", "gone": "metadata"})
    assert killed.add["events"].partitions == ((),)
    assert not killed.change.model_fields_set
    assert changed.change.conf == {"spark.sql.x": "1000.0"}
    assert changed.change.output_mode == "update"
    assert changed.change.trigger == "default"
    assert changed.change.query.streams() == {"events"}


def test_null_and_absent_are_told_apart(every: Case) -> None:
    expect = every.steps[1].expect
    assert expect.dropped is None
    assert "dropped" in expect.model_fields_set
    assert "watermark" in expect.batches[0].model_fields_set
    assert expect.batches[1].model_fields_set == set()
    assert "dropped" not in every.steps[2].expect.model_fields_set


def test_an_error_takes_one_class_or_many(every: Case) -> None:
    first = every.differs[0].expect
    last = every.steps[8].expect
    assert first.error.classes == ("AnalysisException",)
    assert last.error.classes == ("STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", "AnalysisException")
    assert last.error.stage == "run"


def test_differs_names_steps_by_number_and_by_name(every: Case) -> None:
    entry = every.differs_on(SparkVersion(3, 5, 3))
    assert entry is every.differs[1]
    assert entry.spark == VersionRange((">=3.4,<3.4.4", ">=3.5,<3.5.4"))
    assert set(entry.steps) == {2, 9, 10}
    assert entry.steps[2].unchecked == ("state", "batches")
    assert entry.steps[9].error is None
    assert "error" in entry.steps[9].model_fields_set
    assert every.differs_on(SparkVersion(3, 5, 4)) is None
    assert every.differs[2].unsupported == "it did not exist"
    assert every.differs[2].error == ExpectedError.model_validate(
        {"class": ("AttributeError",), "message": "dropDuplicatesWithinWatermark", "stage": "analysis"}
    )


def test_nested_pipelines(every: Case) -> None:
    join = next(operation for operation in every.query.operations if operation.name == "join")
    (other,) = join.nested
    assert other.streams() == {"clicks"}
    assert join.how == "leftOuter"
    assert every.query.streams() == {"events", "clicks"}


def test_views_of_a_sql_query(every: Case) -> None:
    sql = next(operation for operation in every.query.operations if operation.name == "sql")
    assert [view.streams() for view in sql.nested] == [{"clicks"}, {"events", "clicks"}]


def test_upgrades(every: Case) -> None:
    refused, otherwise = every.upgrades
    assert refused.error.classes == ("STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",)
    assert refused.workaround == "spark.sql.streaming.stateStore.stateSchemaCheck=false"
    old, new = SparkVersion(3, 5, 9), SparkVersion(4, 0, 5)
    assert every.upgrade_between(old, new, 3) is refused
    assert every.upgrade_between(new, old, 3) is None
    assert every.upgrade_between(new, old, 2) is otherwise
    assert otherwise.steps[9].unchecked == ("rows",)
    assert every.keeps_state


def test_a_case_is_frozen(example: Case) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        example.title = "Another"  # type: ignore[misc]


MINIMAL = """title: A title
streams: {events: "event_time TIMESTAMP, count INT"}
query: [from: events]
steps:
  - add: {events: [["12:00", 1]]}
    expect: {watermark: 0, dropped: 0}
"""


def read(tmp_path: Path, text: str | bytes) -> Case:
    path = tmp_path / "case.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_case(path, "case")


@pytest.mark.parametrize(
    "same",
    [
        "# a comment\n" + MINIMAL,
        MINIMAL.replace("\n", "\r\n"),
        b"\xef\xbb\xbf" + MINIMAL.encode(),
        MINIMAL.replace("{watermark: 0, dropped: 0}", "\n      dropped: 0   # none\n      watermark: 0"),
        MINIMAL.replace('"12:00"', "'12:00'"),
        MINIMAL.replace('"12:00"', "12:00"),
        "\n".join(reversed(MINIMAL.splitlines()[:3])) + "\n" + "\n".join(MINIMAL.splitlines()[3:]),
    ],
    ids=["comment", "carriage returns", "byte order mark", "block style", "quotes", "no quotes", "order of keys"],
)
def test_formatting_does_not_change_the_digest(tmp_path: Path, same: str | bytes) -> None:
    assert read(tmp_path, same).digest == read(tmp_path, MINIMAL).digest


@pytest.mark.parametrize(
    "other",
    [
        MINIMAL.replace("A title", "Another"),
        MINIMAL.replace("dropped: 0", "dropped: 1"),
        MINIMAL.replace("dropped: 0", "dropped: null"),
        MINIMAL.replace("12:00", "12:01"),
        MINIMAL.replace(", 1]", ", 1], ['12:00', 1]"),
        MINIMAL + "outputMode: append\n",
    ],
)
def test_content_is(tmp_path: Path, other: str) -> None:
    assert read(tmp_path, other).digest != read(tmp_path, MINIMAL).digest


def test_aliases_repeat_a_value(tmp_path: Path) -> None:
    case = read(tmp_path, MINIMAL + '  - add: &more {events: [["12:01", 2]]}\n  - add: *more\n')
    assert case.steps[1].action == case.steps[2].action


def test_an_error_expected_by_most_versions_may_have_steps_behind_it(tmp_path: Path) -> None:
    text = MINIMAL.replace("{watermark: 0, dropped: 0}", "{error: {class: X}}") + (
        "  - idle: {}\ndiffers:\n  - {spark: <3.4, because: it was let through, steps: {1: {error: null}}}\n"
    )
    assert len(read(tmp_path, text).steps) == 2


def test_a_replayed_batch_may_belong_to_idle(tmp_path: Path) -> None:
    text = MINIMAL.replace("steps:", "trigger: availableNow\nsteps:") + (
        "  - restart: crash-before-commit\n  - idle: {}\n    expect: {batches: [{kind: data}]}\n"
    )
    assert read(tmp_path, text).steps[2].expect is not None


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidCase, match="cannot read the file") as caught:
        read_case(tmp_path / "none.yaml", "none")
    assert caught.value.problems[0].line == 0


@pytest.mark.parametrize(
    "text",
    [
        "title: !!python/object/apply:os.mkdir [{}]",
        "? !!python/object/apply:os.mkdir [{}]\n: x",
        "title: x\nquery: [from: e, call: 'os:mkdir']\nstreams: {{e: a INT}}\nsteps: [idle: {{}}]\n# {}",
    ],
)
def test_reading_executes_nothing(tmp_path: Path, text: str) -> None:
    made = tmp_path / "made"
    with contextlib.suppress(InvalidCase):
        read(tmp_path, text.format(made))
    assert not made.exists()


def test_bugs_that_no_ticket_reports(every: Case) -> None:
    introduced, always = every.differs[3:5]
    assert (introduced.bug, introduced.link, introduced.introduced_by) == (True, None, "SPARK-51955")
    assert (always.bug, always.link, always.introduced_by) == (True, None, None)


def test_a_sink_is_a_function_of_the_authors_and_needs_permission() -> None:
    written = {"title": "x", "streams": {"a": "n INT"}, "query": [{"from": "a"}], "steps": [{"idle": {}}]}
    found = case_from({**written, "sink": "acme_jobs.sinks:write"}, "x")
    assert found.sink == "acme_jobs.sinks:write"
    assert [one.reason for one in found.needs_code] == ["`sink` runs Python code of the case's author"]
    assert request_for(found, "/work/x").sink == "acme_jobs.sinks:write"
    with pytest.raises(InvalidCase, match="is not files, delta, iceberg or module:function"):
        case_from({**written, "sink": "write"}, "x")


def test_a_program_is_called_with_the_streams_that_it_reads() -> None:
    called = {"program": "jobs/clicked.py", "arguments": ["--day", "1"], "query": 2}
    call = {"call": called, "with": ["orders", "clicks"]}
    written = {"title": "x", "streams": {"orders": "t TIMESTAMP", "clicks": "t TIMESTAMP"}, "steps": [{"idle": {}}]}
    found = case_from({**written, "query": call}, "x")
    assert (found.query.wire(), found.query.streams()) == ([call], {"orders", "clicks"})
    assert [each.reason for each in found.needs_code] == ["`call` runs code of the case's author"]
    assert request_for(found, "/work/x").query == [call]
    other = case_from({**written, "query": {**call, "call": {**called, "query": 1}}}, "x")
    assert other.digest != found.digest
    assert read_query(found.query, found.streams).unread == ("the program jobs/clicked.py",)


def test_own_statements_are_called_with_the_streams_that_they_read() -> None:
    called = {"sql": ["CREATE TEMP VIEW v AS TABLE orders", "TABLE v"], "watermarks": {"orders": ["t", "1 hour"]}}
    call = {"call": called, "with": ["orders"]}
    written = {"title": "x", "streams": {"orders": "t TIMESTAMP"}, "steps": [{"idle": {}}]}
    found = case_from({**written, "query": call}, "x")
    assert request_for(found, "/work/x").query == [call]
    assert found.needs_code
    assert read_query(found.query, found.streams).unread == ("own SQL",)
    for wrong in ({"sql": []}, {"sql": ["TABLE v"], "program": "job.py"}, {"watermarks": {}}):
        with pytest.raises(InvalidCase):
            case_from({**written, "query": {**call, "call": wrong}}, "x")


def test_a_function_gets_the_streams_that_the_query_names() -> None:
    """Written as a mapping, or as the first operation of a list; the streams count as read."""
    call = {"call": "acme_jobs.attribution:build", "with": ["orders", "clicks"]}
    written = {"title": "x", "streams": {"orders": "t TIMESTAMP", "clicks": "t TIMESTAMP"}, "steps": [{"idle": {}}]}
    alone = case_from({**written, "query": call}, "x")
    assert alone.query.wire() == [call]
    assert alone.query.streams() == {"orders", "clicks"}
    assert [one.reason for one in alone.needs_code] == ["`call` runs code of the case's author"]
    listed = case_from({**written, "query": [call]}, "x")
    assert (listed.query, listed.digest) == (alone.query, alone.digest)
    followed = case_from({**written, "query": [call, {"where": "true"}]}, "x")
    assert followed.query.wire() == [call, {"where": "true"}]
    joined = case_from({**written, "query": [{"from": "orders"}, {"union": call}]}, "x")
    assert joined.query.wire() == [{"from": "orders"}, {"union": [call]}]
    assert joined.query.streams() == {"orders", "clicks"}
    assert joined.needs_code
    of_a_restart = {"restart": {"how": "graceful", "change": {"query": call}}}
    changed = case_from({**written, "query": call, "steps": [{"idle": {}}, of_a_restart]}, "x")
    assert [pipeline.wire() for pipeline in changed.pipelines()] == [[call], [call]]
