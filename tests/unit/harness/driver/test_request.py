"""The driver parses what the host sends."""

import json

import pytest

from harness.driver.request import CaseRequest, ChangeRequest, StepRequest, StreamRequest, milliseconds
from harness.engine.request import request_for, segments_of
from tests.support.whole_suite import whole_suite


def test_every_request_of_the_suite_is_parsed():
    cases = whole_suite().cases
    for case in cases:
        for segment in segments_of(case):
            sent = request_for(case, "/work", segment=segment)
            parsed = CaseRequest.parse(json.loads(sent.model_dump_json(by_alias=True, exclude_none=True)))
            assert (parsed.case, parsed.first, parsed.tell) == (case.id, segment.first, segment.killed)
            assert [step.action for step in parsed.steps] == [step.action for step in sent.steps]
            assert parsed.output_mode == sent.output_mode
            assert {name: stream.files for name, stream in parsed.streams.items()} == {
                name: stream.files for name, stream in sent.streams.items()
            }
            topics = {name: stream.topic.partitions for name, stream in parsed.streams.items() if stream.topic}
            assert topics == {name: topic.partitions for name, topic in case.topics.items()}
    assert len(cases) >= 70


def test_a_restart_with_its_change():
    step = StepRequest.parse(
        {
            "action": "restart",
            "batches": [],
            "how": "graceful",
            "change": {"outputMode": "update"},
            "damage": {"gone": "metadata"},
            "repartition": 3,
        }
    )
    assert step.repartition == 3
    assert step.change == ChangeRequest(output_mode="update")
    assert (step.how, step.damage, step.nth, step.plan) == ("graceful", {"gone": "metadata"}, 1, False)
    assert StepRequest.parse({"action": "add", "batches": []}).change == ChangeRequest()


def test_a_field_that_the_driver_does_not_know_is_an_error():
    assert StreamRequest(ddl="v INT", files=2).files == 2
    with pytest.raises(TypeError, match="unknown"):
        StepRequest.parse({"action": "add", "batches": [], "unknown": 1})


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        ("1970-01-01T00:00:10.000Z", 10_000),
        ("2026-03-01T12:00:00.123Z", 1_772_366_400_123),
        # Milliseconds read as seconds.
        ("58134-01-21T00:00:00.000Z", 1_772_366_400_000_000),
        ("0000-12-31T00:00:00.000Z", -62_135_683_200_000),
        ("-0400-12-31T00:00:00.000Z", -62_135_683_200_000 - 146_097 * 86_400_000),
    ],
)
def test_an_instant_of_any_year_is_read(instant, expected):
    assert milliseconds(instant) == expected
