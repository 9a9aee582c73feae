"""Explanations: what an engine did, from its observation, for code that no model predicts; and what the model says that it does."""

import json

import pytest

from conformance.account.explanation import (
    divergence_lines,
    divergence_record,
    explanation_lines,
    observed_lines,
    observed_record,
    record,
)
from conformance.core.observation import OwnCodeError, SourceRead
from conformance.core.versions import SparkVersion
from conformance.core.wording import duration
from conformance.language import case_from
from conformance.oracle.prediction import predict
from conformance.oracle.version_divergence import version_divergence
from tests.support.observations import NEWEST, batch, case, failed, ms, observed, step, window

OLD = SparkVersion.parse("3.3.4")
SEEN = observed(
    step(1, batch(0, window("12:00", "12:10", 1), next_watermark=ms(11, 50))),
    step(
        2,
        batch(
            1,
            watermark=ms(11, 50),
            next_watermark=ms(12, 5),
            dropped=2,
            state=(3,),
            progress={"stateOperators": [{"operatorName": "stateStoreSave", "numRowsDroppedByWatermark": 2}]},
        ),
        batch(2, watermark=ms(12, 5), next_watermark=ms(12, 5), dropped=1, kind="no-data", event_time=None, sources=()),
    ),
)


def lines(seen=SEEN, version=NEWEST):
    return [str(line) for line in observed_lines(case(None, None, names={2: "late rows"}), version, seen)]


def test_it_says_batch_by_batch_what_arrived_was_late_was_kept_and_came_out():
    assert lines() == [
        "A row behind the watermark still counts while its window is open",
        "late-drops/window-still-open on Spark 4.3.0, as it ran",
        "",
        "step 1",
        "  micro-batch 0 (data), watermark 00:00",
        "    → events: [12:00, 1]",
        "    · operator 1 keeps 1 row",
        "    ← emits [12:00, 12:10, 1]",
        "    ◷ watermark: event times 12:00 to 12:00; advances from 00:00 to 11:50",
        "",
        "step 2 “late rows”",
        "  micro-batch 1 (data), watermark 11:50",
        "    → events: [12:00, 1]",
        "    ✗ late by watermark 00:00, and dropped: which rows is not known",
        "      Spark counts 2: an aggregation counts groups, not rows",
        "      rule: Lateness is decided by the watermark of the previous micro-batch. (SPARK-40925)",
        "    · stateStoreSave keeps 3 rows, counts 2 as late",
        "    ← emits nothing",
        "    ◷ watermark: event times 12:00 to 12:00; advances from 11:50 to 12:05",
        "  micro-batch 2 (no-data), watermark 12:05",
        "    ✗ late by watermark 11:50, and dropped: which rows is not known",
        "      Spark counts 1: an aggregation counts groups, not rows",
        "      rule: Lateness is decided by the watermark of the previous micro-batch. (SPARK-40925)",
        "    · operator 1 keeps 1 row",
        "    ← emits nothing",
        "    ◷ watermark: stays at 12:05",
    ]


def test_the_rule_is_that_of_the_version():
    old = lines(version=OLD)
    assert "    ✗ late by watermark 11:50, and dropped: which rows is not known" in old
    assert "      rule: Lateness is decided by the watermark of the same micro-batch. (SPARK-40925)" in old


@pytest.mark.parametrize(
    ("window", "rows", "said"),
    [
        (
            "window(t, '10 minutes', '5 minutes')",
            [["12:47", 3], ["01:05", 4]],
            ["[01:05, 4]", "Spark counts 2: an aggregation counts groups, not rows"],
        ),
        (
            "window(t, '10 minutes')",
            [["12:47", 3], ["01:01", 4], ["01:02", 4]],
            [
                "[01:01, 4] [01:02, 4]",
                "Spark counts 1: an aggregation counts groups, not rows",
            ],
        ),
        ("window(t, '10 minutes')", [["12:47", 3], ["01:01", 4]], ["[01:01, 4]"]),
        (
            "window(t, '10 minutes', '5 minutes')",
            [["11:53", 4]],
            [
                "no row from all of its windows",
                "Spark counts 1: an aggregation counts groups, not rows",
            ],
        ),
    ],
    ids=["one row in two windows", "two rows of one window", "one row", "a row in one of its windows"],
)
def test_the_metric_of_late_rows_counts_groups_and_the_rows_are_named(window, rows, said):
    grouped = {"groupBy": [window], "agg": ["count(*) AS n"]}
    query = [*read("events", "t", "10 minutes"), grouped]
    late = case_of(query, {"add": {"events": [["12:05", 1]]}}, {"add": {"events": rows}})
    texts = [str(line) for line in observed_lines(late, NEWEST, predict(late, NEWEST).observation)]
    at = texts.index(f"    ✗ late by watermark 11:55, and dropped: {said[0]}")
    rule = "rule: Lateness is decided by the watermark of the previous micro-batch. (SPARK-40925)"
    assert [line.strip() for line in texts[at + 1 :][: len(said)]] == [*said[1:], rule]


def test_an_error_ends_it_and_a_mistake_shows_its_lines():
    assert lines(observed(failed(1, "AnalysisException", stage="analysis", message="no\nplan")))[-1] == (
        "  ✗ fails at analysis: AnalysisException: no"
    )
    wrong = failed(1, "KeyError")
    own = OwnCodeError(raised="KeyError('k')", at="jobs.py:2", during="in a UDF", traceback="a\nb")
    error = wrong.error.model_copy(update={"own_code": own})
    said = lines(observed(wrong.model_copy(update={"error": error})))
    assert said[-3:] == ["  ✗ your code raised KeyError('k') at jobs.py:2, in a UDF", "    a", "    b"]


def test_an_observation_says_what_was_read_again_and_what_was_not_committed():
    """A replay counts the records that are left; a source that did not move is not listed."""
    gone = [{"stream": "events", "rows": 0, "moved": True}, {"stream": "others", "rows": 2, "moved": False}]
    read = [{"stream": "events", "rows": 1, "moved": False}, {"stream": "others", "rows": 2, "moved": True}]
    said = lines(
        observed(
            step(1, batch(0, sources=[SourceRead(**of) for of in gone], next_watermark=None)),
            step(2, batch(1, sources=[SourceRead(**of) for of in read], watermark=None, state=())),
            step(3, batch(2, kind="no-data", dropped=None, watermark=ms(12), next_watermark=ms(12), state=(0, 2))),
        )
    )
    assert said[4:] == [
        "  micro-batch 0 (data), watermark 00:00",
        "    → events: 0 rows",
        "    · operator 1 keeps 1 row",
        "    ← emits nothing",
        "    ◷ watermark: event times 12:00 to 12:00; the micro-batch was not committed",
        "",
        "step 2 “late rows”",
        "  micro-batch 1 (data)",
        "    → events: [12:00, 1]",
        "    → others: 2 rows",
        "    ← emits nothing",
        "",
        "step 3",
        "  micro-batch 2 (no-data), watermark 12:00",
        "    → events: 1 row",
        "    · operator 1 keeps nothing",
        "    · operator 2 keeps 2 rows",
        "    ← emits nothing",
        "    ◷ watermark: event times 12:00 to 12:00; stays at 12:00",
    ]


def test_an_operator_without_a_name_has_its_number():
    progress = {"stateOperators": [{}, {"operatorName": "dedupe", "numRowsDroppedByWatermark": 1}]}
    said = lines(observed(step(1, batch(0, state=(2, 1), dropped=1, progress=progress))))
    expected = ["    · operator 1 keeps 2 rows", "    · dedupe keeps 1 row, counts 1 as late"]
    assert [line for line in said if "keeps" in line] == expected


def test_the_epoch_is_a_time_as_any_other():
    case = case_of(read("events", "t", "10 minutes"), {"add": {"events": [["00:10", 1]]}})
    assert explained(case)[-1] == "    ◷ watermark: max 00:10 − 10 min = 00:00, stays at 00:00"
    case = case_of(read("events", "t", "10 minutes"), {"add": {"events": [["00:00", 1]]}})
    assert explained(case)[-1] == "    ◷ watermark: max 00:00 − 10 min = 1969-12-31 23:50, stays at 00:00"


def test_a_query_without_event_time_has_no_watermark_to_explain():
    case = case_of([{"from": "events"}], {"add": {"events": [["12:01", 1]]}})
    expected = ["  micro-batch 0 (data), watermark 00:00", "    → events: [12:01, 1]", "    ← emits [12:01, 1]"]
    assert explained(case)[4:] == expected


def test_as_json():
    found = json.loads(json.dumps(observed_record(case(None, None), NEWEST, SEEN)))
    assert found["steps"][1]["batches"][0] == {
        "id": 1,
        "kind": "data",
        "watermark": "11:50",
        "read": {"events": 1},
        "operators": [{"operator": "stateStoreSave", "state": 3, "late": 2}],
        "dropped": 2,
        "emitted": [],
        "next_watermark": "12:05",
    }


def read(stream, column, delay):
    return [{"from": stream}, {"withWatermark": [column, delay]}]


def case_of(query, *steps, streams="t TIMESTAMP, id INT", mode="append"):
    streams = {"events": streams} if isinstance(streams, str) else streams
    return case_from({"title": "A", "streams": streams, "query": query, "steps": [*steps], "outputMode": mode}, "a/b")


def explained(case):
    return [str(line) for line in explanation_lines(case, predict(case, NEWEST))]


BY_WINDOW = {"groupBy": ["window(t, '10 minutes')"], "agg": ["count(*) AS n"]}
LATE = case_of(
    [*read("events", "t", "10 minutes"), BY_WINDOW],
    {"add": {"events": [["12:01", 1], ["12:31", 2]]}},
    {"add": {"events": [["12:02", 3], ["12:03", 4], ["12:32", 5]]}},
    {"restart": "kill"},
    {"name": "a null is 00:00", "add": {"events": [[None, 6]]}},
    mode="update",
)
TWO_INPUTS = case_of(
    [
        *read("fast", "t", "10 minutes"),
        {"union": read("slow", "t", "90 seconds")},
        BY_WINDOW,
        {"dropDuplicates": ["window"]},
    ],
    {"add": {"fast": [["12:30"]], "slow": []}},
    {"name": "both", "add": {"fast": [["12:20"]], "slow": [["12:40"], ["12:41"]]}},
    streams={"fast": "t TIMESTAMP", "slow": "t TIMESTAMP"},
)


def test_the_model_says_which_groups_are_late_and_which_windows_close():
    assert explained(LATE) == [
        "A",
        "a/b on Spark 4.3.0",
        "",
        "step 1",
        "  micro-batch 0 (data), watermark 00:00",
        "    → events: [12:01, 1] [12:31, 2]",
        "    · aggregation by window keeps 2: [window 12:00–12:10, n 1] [window 12:30–12:40, n 1]",
        "    ← emits [12:00–12:10, 1] [12:30–12:40, 1]",
        "    ◷ watermark: max 12:31 − 10 min = 12:21, advances from 00:00",
        "  micro-batch 1 (no-data), watermark 12:21",
        "    Rows of windows ending by 00:00 are late; windows ending by 12:21 close",
        "    ▣ closed: window 12:00–12:10: 12:10 ≤ watermark 12:21",
        "    · aggregation by window keeps 1: [window 12:30–12:40, n 1]",
        "    ← emits nothing",
        "    ◷ watermark: no rows, stays at 12:21",
        "",
        "step 2",
        "  micro-batch 2 (data), watermark 12:21",
        "    → events: [12:02, 3] [12:03, 4] [12:32, 5]",
        "    ✗ late: window 12:00–12:10 (2 rows): 12:10 ≤ watermark 12:21",
        "    · aggregation by window keeps 1: [window 12:30–12:40, n 2]",
        "    ← emits [12:30–12:40, 2]",
        "    ◷ watermark: max 12:32 − 10 min = 12:22, advances from 12:21",
        "  micro-batch 3 (no-data), watermark 12:22",
        "    Rows of windows ending by 12:21 are late; windows ending by 12:22 close",
        "    · aggregation by window keeps 1: [window 12:30–12:40, n 2]",
        "    ← emits nothing",
        "    ◷ watermark: no rows, stays at 12:22",
        "",
        "step 3",
        "  the query stops (kill) and restarts from its checkpoint",
        "  no micro-batch runs",
        "",
        "step 4 “a null is 00:00”",
        "  micro-batch 4 (data), watermark 12:22",
        "    → events: [null, 6]",
        "    · aggregation by window keeps 1: [window 12:30–12:40, n 2]",
        "    ← emits nothing",
        "    ◷ watermark: max 00:00 − 10 min = 1969-12-31 23:50, stays at 12:22",
    ]


@pytest.mark.parametrize(
    ("operator", "rule"),
    [
        (
            {"groupBy": ["window(t, '10 minutes') AS w"], "agg": ["count(*) AS n"]},
            "Rows of windows ending by 00:00 are late; windows ending by 12:21 close",
        ),
        ({"dropDuplicates": ["t", "id"]}, "Rows up to 00:00 are late; state up to 12:21 is removed"),
    ],
    ids=["a window of any name", "rows"],
)
def test_the_rule_names_what_is_compared_with_the_watermark(operator, rule):
    added = {"add": {"events": [["12:01", 1], ["12:31", 2]]}}
    assert f"    {rule}" in explained(case_of([*read("events", "t", "10 minutes"), operator], added))


def test_of_several_inputs_and_operators_each_has_its_lines():
    """An input without rows counts as the epoch, so that the minimum waits for it."""
    said = explained(TWO_INPUTS)
    assert said[3:17] == [
        "step 1",
        "  micro-batch 0 (data), watermark 00:00",
        "    → fast: [12:30]",
        "    → slow: no rows",
        "    deduplication by window",
        "      Rows of windows ending by 00:00 are late; windows ending by 00:00 close",
        "      · it keeps nothing",
        "    aggregation by window",
        "      Rows of windows ending by 00:00 are late; windows ending by 00:00 close",
        "      · it keeps 1: [window 12:30–12:40, n 1]",
        "    ← emits nothing",
        "    ◷ t: max 12:30 − 10 min = 12:20",
        "    ◷ t: no rows yet, counts as 00:00",
        "    ◷ watermark: min of 2 inputs: stays at 00:00",
    ]
    assert [line for line in said[17:] if "◷" in line] == [
        "    ◷ t: max 12:20 − 10 min = 12:10, stays at 12:20",
        "    ◷ t: max 12:41 − 1 min 30 s = 12:39:30",
        "    ◷ watermark: min of 2 inputs: 12:20, advances from 00:00",
        "    ◷ t: no rows, stays at 12:20",
        "    ◷ t: no rows, stays at 12:39:30",
        "    ◷ watermark: min of 2 inputs: stays at 12:20",
    ]


@pytest.mark.parametrize(("count", "more"), [(8, False), (9, True)])
def test_more_than_eight_rows_are_counted(count, more):
    case = case_of(
        [*read("events", "t", "10 minutes"), {"dropDuplicates": ["t", "id"]}],
        {"add": {"events": [[f"12:0{n}", n] for n in range(count)]}},
        {"add": {"events": [["12:01", 1], ["12:30", 30]]}},
    )
    said = explained(case)
    listed = " ".join(f"[12:0{n}, {n}]" for n in range(8)) + f" … ({count} in all)" * more
    kept = " ".join(f"[t 12:0{n}, id {n}]" for n in range(8)) + f" … ({count} in all)" * more
    assert said[5:8] == [
        f"    → events: {listed}",
        f"    · deduplication by t, id keeps {count}: {kept}",
        f"    ← emits {listed}",
    ]
    assert "    1 duplicate dropped" in said
    closed = [f"    ▣ closed: t 12:0{n}, id {n}: 12:0{n} ≤ watermark 12:20" for n in range(8)]
    assert [line for line in said if "▣" in line] == [*closed, *["    ▣ … 1 more"] * more]


def test_a_query_that_the_model_refuses_says_the_class_and_the_message():
    case = case_of([{"from": "events"}, BY_WINDOW], {"add": {"events": [["12:01", 1]]}})
    (error,) = explained(case)[4:]
    assert error.startswith("  ✗ fails at start: ")
    assert "AnalysisException" in error
    assert record(case, predict(case, NEWEST))["steps"][0]["error"].keys() == {"stage", "classes", "message"}


def test_the_explanation_as_json():
    said = json.loads(json.dumps(record(TWO_INPUTS, predict(TWO_INPUTS, NEWEST))))
    assert (said["case"], said["spark"], said["columns"]) == ("a/b", "4.3.0", ["window", "n"])
    told = [(step["number"], step["name"], step["error"]) for step in said["steps"]]
    assert told == [(1, None, None), (2, "both", None)]
    aggregation = {
        "operator": "stateStoreSave",
        "title": "aggregation by window",
        "late_watermark": "00:00",
        "eviction_watermark": "00:00",
        "late": [],
        "over": [],
        "dropped": 0,
        "held": 1,
        "state": [{"window": ["12:30", "12:40"], "n": 1}],
    }
    deduplication = {"operator": "dedupe", "title": "deduplication by window", "held": 0, "state": []}
    assert said["steps"][0]["batches"] == [
        {
            "id": 0,
            "kind": "data",
            "watermark": "00:00",
            "read": {"fast": [["12:30"]], "slow": []},
            "operators": [{**aggregation, **deduplication}, aggregation],
            "emitted": [],
            "inputs": [
                {"column": "t", "delay": "10 min", "max": "12:30", "watermark": "12:20"},
                {"column": "t", "delay": "1 min 30 s", "max": None, "watermark": "00:00"},
            ],
            "next_watermark": "00:00",
        }
    ]
    late = record(LATE, predict(LATE, NEWEST))["steps"]
    window = {"row": {"window": ["12:00", "12:10"]}, "time": "12:10", "watermark": "12:21"}
    assert late[1]["batches"][0]["operators"][0]["late"] == [{**window, "rows": 2}]
    assert late[1]["batches"][0]["operators"][0]["dropped"] == 1
    assert late[0]["batches"][1]["operators"][0]["over"] == [{**window, "rows": 1}]


ACROSS = case_of(
    [*read("events", "t", "10 minutes"), BY_WINDOW],
    {"name": "nothing yet", "idle": {}},
    {"name": "nothing still", "idle": {}},
    {"name": "three", "backlog": [{"events": [[time, 1]]} for time in ("12:31", "12:02", "12:03")]},
)


def test_the_first_difference_shows_both_versions_and_the_rule():
    here, there = (predict(ACROSS, version) for version in (OLD, NEWEST))
    difference = version_divergence(ACROSS, here, there)
    assert [str(line) for line in divergence_lines(ACROSS, here, there, difference)] == [
        "a/b: Spark 3.3.4 and 4.3.0",
        "first difference: step 3 “three”, micro-batch 1",
        "",
        "  Spark 3.3.4",
        "    micro-batch 1 (data), watermark 12:21",
        "      → events: [12:02, 1]",
        "      ✗ late: window 12:00–12:10: 12:10 ≤ watermark 12:21",
        "      · aggregation by window keeps 1: [window 12:30–12:40, n 1]",
        "      ← emits nothing",
        "      ◷ watermark: max 12:02 − 10 min = 11:52, stays at 12:21",
        "",
        "  Spark 4.3.0",
        "    micro-batch 1 (data), watermark 12:21",
        "      → events: [12:02, 1]",
        "      Rows of windows ending by 00:00 are late; windows ending by 12:21 close",
        "      ▣ closed: window 12:00–12:10: 12:10 ≤ watermark 12:21",
        "      · aggregation by window keeps 1: [window 12:30–12:40, n 1]",
        "      ← emits [12:00–12:10, 1]",
        "      ◷ watermark: max 12:02 − 10 min = 11:52, stays at 12:21",
        "",
        "rule that differs: late_watermark (SPARK-40925)",
        "  3.3.4: Lateness is decided by the watermark of the same micro-batch.",
        "  4.3.0: Lateness is decided by the watermark of the previous micro-batch.",
    ]
    said = divergence_record(here, there, difference, ACROSS)
    assert (said["case"], said["spark"], said["against"]) == ("a/b", "3.3.4", "4.3.0")
    parting = said["parting"]
    assert (parting["step"], parting["batch"]) == (3, 1)
    assert [rule["name"] for rule in parting["rules"]] == ["late_watermark"]
    assert [parting[side]["emitted"] for side in ("here", "there")] == [[], [[["12:00", "12:10"], 1]]]


def test_versions_that_agree_have_no_difference():
    here, there = (predict(TWO_INPUTS, SparkVersion.parse(version)) for version in ("4.1.2", "4.3.0"))
    difference = version_divergence(TWO_INPUTS, here, there)
    assert [str(line) for line in divergence_lines(TWO_INPUTS, here, there, difference)][1:] == [
        "no difference: both versions run the same micro-batches"
    ]
    assert divergence_record(here, there, difference, TWO_INPUTS)["parting"] is None


def test_a_version_that_refuses_the_query_differs_by_its_error():
    here, there = (predict(TWO_INPUTS, version) for version in (OLD, NEWEST))  # two stateful operators: SPARK-40940
    difference = version_divergence(TWO_INPUTS, here, there)
    refusal = "dropDuplicates is not supported after aggregation on a streaming DataFrame/Dataset"
    said = [str(line) for line in divergence_lines(TWO_INPUTS, here, there, difference)]
    assert said[1:5] == [
        "first difference: step 1, micro-batch 0",
        "",
        "  Spark 3.3.4",
        f"    ✗ fails at start: AnalysisException: {refusal}",
    ]
    assert said[-3:] == [
        "rule that differs: deduplication after aggregation (SPARK-40940)",
        f"  3.3.4: refused: {refusal}",
        "  4.3.0: not refused",
    ]
    parting = divergence_record(here, there, difference, TWO_INPUTS)["parting"]
    assert set(parting["here"]) == {"error"}
    assert parting["there"]["id"] == 0


@pytest.mark.parametrize(
    ("millis", "said"),
    [
        (0, "0 s"),
        (1, "1 ms"),
        (1_500, "1 s 500 ms"),
        (60_000, "1 min"),
        (90_000, "1 min 30 s"),
        (3_600_000, "1 h"),
        (5_400_000, "1 h 30 min"),
        (90_061_000, "1 d 1 h 1 min 1 s"),
    ],
)
def test_a_duration_is_written_in_its_units(millis, said):
    assert duration(millis, 5) == said
