"""What the model does with queries that it cannot read: it has no opinion, and ends nothing."""

import pytest

from conformance.core.versions import SparkVersion
from conformance.language import case_from
from conformance.model.checks import PROVIDER
from conformance.model.errors import DEFECT, ModelDefect, Unpredictable
from conformance.model.parsing import syntax
from conformance.model.sql import run
from conformance.oracle import prediction
from conformance.oracle.prediction import predict
from conformance.query.syntax import NotReadable, statement
from tests.support.whole_suite import whole_suite

VERSIONS = [SparkVersion.parse(text) for text in ("3.0.3", "3.5.9", "4.3.0")]


def case_of(*operations, steps=None, mode="append"):
    return case_from(
        {
            "title": "t",
            "streams": {"events": "event_time TIMESTAMP, id INT"},
            "query": [{"from": "events"}, {"withWatermark": ["event_time", "10 minutes"]}, *operations],
            "outputMode": mode,
            "steps": steps or [{"add": {"events": [["12:00", 1], ["12:11", 2], [None, 3]]}}],
        },
        "hostile/a",
    )


IN_PARTITIONS = [{"add": {"events": {"partitions": [[["12:00", 1]], [["12:01", 2]]]}}}]


def counted(*keys):
    return {"groupBy": list(keys), "agg": ["count(*) AS n"]}


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize(
    "operation",
    [
        {"select": ["id", "row_number() OVER (ORDER BY id) AS n"]},
        {"sql": "SELECT 1", "as": "v"},
        counted("window(event_time, '0 minutes')"),
        counted("window(event_time, '-5 minutes')"),
        counted("window(event_time, '10 minutes', '0 minutes')"),
        counted("window(event_time, '10 minutes', '20 minutes')"),
        counted("window(event_time)"),
        counted("window()"),
        counted("session_window(event_time)"),
        {"groupBy": ["event_time"], "agg": ["id + 1"]},
        {"select": ["count(*)"]},
        {"where": "count(*) > 1"},
        {"where": "event_time > INTERVAL 1 DAY"},
        {"where": "event_time > 'noon'"},
        {"select": ["INTERVAL 1 DAY AS t"]},
        {"where": "(" * 3000 + "id" + ")" * 3000},
        {"where": "NOT " * 5000 + "true"},
    ],
    ids=lambda operation: str(operation)[:60],
)
def test_what_the_model_cannot_read_is_not_predicted(operation, version):
    with pytest.raises(Unpredictable) as none:
        predict(case_of(operation), version)
    assert not isinstance(none.value, ModelDefect)


@pytest.mark.parametrize(
    "windows",
    ["window(event_time, '1000 days', '1 microsecond')", "window(event_time, '1001 seconds', '1 second')"],
)
def test_windows_without_number_are_not_built(windows):
    """A case of one row would otherwise take all memory."""
    with pytest.raises(Unpredictable, match="windows of which more than 1,000 contain each row"):
        predict(case_of(counted(windows)), VERSIONS[1])


def test_as_many_windows_as_the_model_predicts():
    case = case_of(counted("window(event_time, '1000 seconds', '1 second')"), mode="complete")
    assert sum(len(batch.behaviour.rows) for batch in predict(case, VERSIONS[1]).observation.steps[0].batches) >= 1000


def test_an_operator_that_makes_too_many_rows_is_not_predicted(monkeypatch):
    monkeypatch.setattr("conformance.model.operators.MOST_ROWS", 10)
    with pytest.raises(Unpredictable, match="operators make more than 10 rows"):
        predict(case_of(counted("window(event_time, '10 seconds', '1 second')"), mode="complete"), VERSIONS[1])


@pytest.mark.parametrize(("length", "predicted"), [(2_998, True), (2_999, False)])
def test_a_long_text_counts_as_many_rows(monkeypatch, length, predicted):
    """A thousand characters of the texts that functions make count as one row; each computed value counts as one character."""
    monkeypatch.setattr("conformance.model.operators.MOST_ROWS", 2)
    select = {"select": [f"concat('{'a' * (length - 1)}', 'b') AS long"]}
    case = case_of(select, mode="append", steps=[{"add": {"events": [["12:00", 1]]}}])
    if predicted:
        assert predict(case, VERSIONS[1]).observation.error is None
        return
    with pytest.raises(Unpredictable, match="operators make more than 2 rows"):
        predict(case, VERSIONS[1])


def test_a_join_that_makes_too_many_rows_is_not_predicted(monkeypatch):
    monkeypatch.setattr("conformance.model.operators.MOST_ROWS", 8)
    rows = [["12:00", 1]] * 3
    case = case_from(
        {
            "title": "t",
            "streams": {"a": "event_time TIMESTAMP, id INT", "b": "time TIMESTAMP, other INT"},
            "query": [{"from": "a"}, {"join": [{"from": "b"}], "on": "id = other"}],
            "steps": [{"add": {"a": rows, "b": rows}}],
        },
        "hostile/b",
    )
    with pytest.raises(Unpredictable, match="operators make more than 8 rows"):
        predict(case, VERSIONS[1])


@pytest.mark.parametrize("text", ["`id = 1", "id`", "id + ", "(id", "'"])
def test_text_that_is_not_an_expression_is_not_predicted(text):
    with pytest.raises(Unpredictable):
        syntax(text)


@pytest.mark.parametrize("text", ["SELECT (", "SELECT `id FROM v", "SELECT '"])
def test_text_that_is_not_a_statement_is_not_predicted(text):
    with pytest.raises(NotReadable):
        statement(text)
    with pytest.raises(Unpredictable):
        run(text, {})


@pytest.mark.parametrize("function", ["first(id)", "FIRST(id)", "Collect_List(id)", "array_agg(id)"])
def test_a_choice_among_rows_of_several_partitions_is_not_predicted(function):
    """``FIRST(id)`` was predicted, with the row of the first partition."""
    case = case_of({"groupBy": [], "agg": [f"{function} AS kept"]}, steps=IN_PARTITIONS, mode="update")
    with pytest.raises(Unpredictable, match="a choice among rows of several partitions"):
        predict(case, VERSIONS[-1])


@pytest.mark.parametrize("operation", [{"limit": 1}, {"sql": "SELECT id FROM v LIMIT 1", "as": "v"}])
def test_a_limit_over_several_partitions_is_not_predicted(operation):
    with pytest.raises(Unpredictable, match="a limit over several partitions"):
        predict(case_of(operation, steps=IN_PARTITIONS), VERSIONS[-1])


def test_a_column_with_the_name_of_a_clause_limits_nothing():
    """The word ``limit`` anywhere in a statement made the case unpredictable."""
    assert predict(case_of({"sql": "SELECT id AS limited FROM v", "as": "v"}, steps=IN_PARTITIONS), VERSIONS[-1])


def test_a_case_that_crashes_the_model_is_not_predicted(monkeypatch):
    def defective(*_):
        raise KeyError("from")

    monkeypatch.setattr(prediction, "CaseSimulation", defective)
    with pytest.raises(ModelDefect, match="KeyError: 'from'") as none:
        predict(case_of({"where": "id = 1"}), VERSIONS[0])
    assert none.value.construct.startswith(DEFECT)
    assert isinstance(none.value.__cause__, KeyError)


def test_a_checkpoint_that_is_moved_before_its_first_micro_batch_begins_in_the_other_folder() -> None:
    id = "recovery/checkpoint-of-a-processor-needs-the-folder-where-it-began.moved"
    case = next(case for case in whole_suite().cases if case.id == id)
    first, moved, last = case.steps
    stopped = moved.model_copy(update={"action": moved.action.model_copy(update={"checkpoint": None})})
    for steps, fails in (((first, moved, last), True), ((moved, first, stopped, last), False)):
        numbered = tuple(step.model_copy(update={"number": number}) for number, step in enumerate(steps, 1))
        seen = predict(case.model_copy(update={"steps": numbered}), SparkVersion.parse("4.3.0")).observation
        assert (seen.error is not None) is fails


def taken_over(initial, function="count_rows", change=None):
    """A count of rows that goes on as a processor with a new checkpoint; the source is read again from its beginning."""
    timeout = "EventTimeTimeout" if function == "count_until_watermark" else "NoTimeout"
    counts = {"applyInPandasWithState": {"by": ["id"], "with": function, "outputMode": "append", "timeout": timeout}}
    goes_on = {"by": ["id"], "with": "count_until_watermark", "outputMode": "append", "timeMode": "EventTime"}
    watermarked = [{"from": "events"}, {"withWatermark": ["event_time", "10 minutes"]}]
    query = [*watermarked, {"transformWithState": {**goes_on, "initialState": initial}}]
    restart = {"how": "graceful", "checkpoint": "new", "change": {"query": query, **(change or {})}}
    return case_from(
        {
            "title": "t",
            "streams": {"events": "event_time TIMESTAMP, id STRING"},
            "query": [*watermarked, counts],
            "conf": {PROVIDER: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"},
            "steps": [
                {"add": {"events": [["12:00", "a"], ["12:01", "b"]]}},
                {"add": {"events": [["12:02", "a"]]}},
                {"restart": restart},
                {"add": {"events": [["12:30", "c"]]}},
            ],
        },
        "hostile/a",
    )


READ = "SELECT key.id, value.groupState.count, timestamp_seconds(0) AS latest FROM state"


def test_a_processor_adds_the_rows_that_are_read_again_to_the_counts_from_before():
    latest = READ.replace("_seconds", "_millis").replace("0", "value.groupState.latest")
    seen = predict(taken_over(latest, "count_until_watermark"), SparkVersion.parse("4.3.0")).observation
    assert [[batch.kind for batch in step.batches] for step in seen.steps[2:]] == [["data", "no-data"]] * 2
    assert [row[:1] + row[2:3] for batch in seen.steps[3].batches for row in batch.rows] == [("b", 2), ("a", 4)]


@pytest.mark.parametrize(
    ("case", "construct"),
    [
        (taken_over(READ.replace("key.id", "*")), "timeouts and partitions"),
        (taken_over(READ.replace("key.id", "partition_id")), "timeouts and partitions"),
        (taken_over(READ.replace("key.id", "value.timeoutTimestamp")), "timeouts and partitions"),
        (taken_over(READ, change={"trigger": "availableNow"}), "a new checkpoint reads again"),
    ],
)
def test_what_a_new_checkpoint_may_read_otherwise_is_not_predicted(case, construct):
    with pytest.raises(Unpredictable, match=construct):
        predict(case, SparkVersion.parse("4.3.0"))
