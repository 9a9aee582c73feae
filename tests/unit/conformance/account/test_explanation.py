"""What an engine did, explained from its observation: for code that no model predicts."""

from __future__ import annotations

import json

from conformance.account.explanation import observed_lines, observed_record
from conformance.core.observation import OwnCodeError
from conformance.core.versions import SparkVersion
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
        "late-drops/window-still-open on Spark 4.3.0, as it ran",
        "A row behind the watermark still counts while its window is open",
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
        "    ✗ 2 rows late, at or before the time of watermark 00:00, and dropped",
        "      rule: Lateness is decided by the watermark of the previous micro-batch. (SPARK-40925)",
        "    · stateStoreSave keeps 3 rows, drops 2 late rows",
        "    ← emits nothing",
        "    ◷ watermark: event times 12:00 to 12:00; advances from 11:50 to 12:05",
        "  micro-batch 2 (no-data), watermark 12:05",
        "    ✗ 1 row late, at or before the time of watermark 11:50, and dropped",
        "      rule: Lateness is decided by the watermark of the previous micro-batch. (SPARK-40925)",
        "    · operator 1 keeps 1 row",
        "    ← emits nothing",
        "    ◷ watermark: stays at 12:05",
    ]


def test_the_rule_is_that_of_the_version():
    old = lines(version=OLD)
    assert "    ✗ 2 rows late, at or before the time of watermark 11:50, and dropped" in old
    assert "      rule: Lateness is decided by the watermark of the same micro-batch. (SPARK-40925)" in old


def test_an_error_ends_it_and_a_mistake_shows_its_lines():
    assert lines(observed(failed(1, "AnalysisException", stage="analysis", message="no\nplan")))[-1] == (
        "  ✗ fails at analysis: AnalysisException: no"
    )
    wrong = failed(1, "KeyError")
    own = OwnCodeError(raised="KeyError('k')", at="jobs.py:2", during="in a UDF", traceback="a\nb")
    error = wrong.error.model_copy(update={"own_code": own})
    said = lines(observed(wrong.model_copy(update={"error": error})))
    assert said[-3:] == ["  ✗ your code raised KeyError('k') at jobs.py:2, in a UDF", "    a", "    b"]


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
