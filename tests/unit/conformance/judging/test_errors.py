"""Expected errors, unexpected errors, and errors that did not come."""

from typing import Any

import pytest

from conformance.judging.finding import ErrorDiffers
from conformance.judging.verdict import judge
from tests.support.observations import NEWEST, batch, case, expect, failed, observed, step, window

CLASSES = ("AnalysisException", "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", "Py4JJavaError")
MESSAGE = "Append output mode not supported\nwhen there are streaming aggregations"


@pytest.mark.parametrize(
    ("error", "mismatches"),
    [
        ({"class": ["AnalysisException"]}, ()),
        ({"class": ["NoSuch", "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"]}, ()),
        ({"class": ["STREAMING_OUTPUT_MODE"]}, ("class",)),
        ({"class": ["StreamingQueryException"]}, ("class",)),
        ({"message": "not supported"}, ()),
        ({"message": "streaming (joins|aggregations)$"}, ()),
        ({"message": "^streaming"}, ("message",)),
        ({"stage": "start"}, ()),
        ({"stage": "run"}, ("stage",)),
        ({"class": ["AnalysisException"], "message": "Append", "stage": "start"}, ()),
        ({"class": ["Other"], "message": "Update", "stage": "run"}, ("class", "message", "stage")),
    ],
)
def test_class_message_and_stage(error: dict[str, Any], mismatches: tuple[str, ...]) -> None:
    seen = observed(failed(1, *CLASSES, stage="start", message=MESSAGE))
    verdict = judge(case(expect(error=error)), NEWEST, seen)
    if not mismatches:
        assert (verdict.status, verdict.findings) == ("conforms", ())
        return
    (finding,) = verdict.findings
    assert isinstance(finding, ErrorDiffers)
    assert finding.mismatches == mismatches


QUALIFIED = "Traceback: Py4JError: java.lang.IllegalStateException: Spark failed at org.apache.spark.StateStore$Missing"
IN_BRACKETS = "[STREAM_FAILED] Query [ID = 0195e4b0] ended: [UNSUPPORTED_FEATURE.STATE_STORE] not here"
"""As an error comes through Connect."""


@pytest.mark.parametrize(
    ("message", "name", "matches"),
    [
        (QUALIFIED, "IllegalStateException", True),
        (QUALIFIED, "java.lang.IllegalStateException", True),
        (QUALIFIED, "StateStore$Missing", False),
        (QUALIFIED, "Missing", True),
        (QUALIFIED, "Illegal", False),
        (QUALIFIED, "Spark", False),
        (IN_BRACKETS, "STREAM_FAILED", True),
        (IN_BRACKETS, "UNSUPPORTED_FEATURE.STATE_STORE", True),
        (IN_BRACKETS, "UNSUPPORTED_FEATURE", False),
        (IN_BRACKETS, "ID", False),
    ],
)
def test_a_qualified_name_or_a_condition_in_brackets_in_the_text_counts(message: str, name: str, matches: bool) -> None:
    verdict = judge(case(expect(error={"class": [name]})), NEWEST, observed(failed(1, "Error", message=message)))
    assert (verdict.status == "conforms") is matches


def test_the_other_keys_of_the_step_are_not_checked() -> None:
    wanted = expect(error={"stage": "run"}, rows=[["12:00", "12:10", 1]], dropped=7, state=9, watermark="12:00")
    assert judge(case(wanted), NEWEST, observed(failed(1, "X"))).status == "conforms"


def test_the_case_ends_at_an_expected_error() -> None:
    of_two = case(expect(error={"stage": "run"}), expect(rows=[["12:00", "12:10", 1]]))
    assert judge(of_two, NEWEST, observed(failed(1, "X"))).status == "conforms"


def test_an_expected_error_that_does_not_happen() -> None:
    of_two = case(expect(error={"class": ["AnalysisException"]}), expect())
    (finding,) = judge(of_two, NEWEST, observed(step(1, batch(0)), step(2))).findings
    assert finding.describe() == (
        "step 1 (late-drops/window-still-open.yaml:16), micro-batch 0\n"
        "  error: expected AnalysisException, observed none"
    )


def test_an_error_that_nothing_expects_fails_any_step() -> None:
    seen = observed(step(1), failed(2, "StreamingQueryException", "SparkException", message="a\n\nb\nc\nd\ne"))
    (finding,) = judge(case(None, None, None, None, None), NEWEST, seen).findings
    assert finding.describe() == (
        "step 2 (late-drops/window-still-open.yaml:20)\n"
        "  error: expected none, observed StreamingQueryException < SparkException at run\n"
        "    a\n"
        "    b\n"
        "    c\n"
        "    d\n"
        "    … 1 more line\n"
        "    steps 3–5 not reached"
    )


@pytest.mark.parametrize(("length", "shown"), [(160, "x" * 160), (161, "x" * 159 + "…")])
def test_a_line_of_a_message_is_shown_up_to_160_characters(length: int, shown: str) -> None:
    (finding,) = judge(case(None), NEWEST, observed(failed(1, "X", message="x" * length))).findings
    assert list(finding.body())[1] == f"  {shown}"


def test_an_error_before_the_expected_one_fails() -> None:
    of_two = case(expect(), expect(error={"class": ["X"]}))
    assert judge(of_two, NEWEST, observed(failed(1, "X"))).status == "violates"
    assert judge(of_two, NEWEST, observed(step(1), failed(2, "X"))).status == "conforms"


def test_an_observation_that_continues_after_an_error_is_broken() -> None:
    verdict = judge(case(expect(), expect()), NEWEST, observed(failed(1, "X"), step(2)))
    assert verdict.notes == ("step 1 failed, and the observation continues after it",)


def test_earlier_findings_are_kept_beside_the_error() -> None:
    seen = observed(step(1, batch(0, window("12:00", "12:10", 1))), failed(2, "X"))
    assert [finding.aspect for finding in judge(case(None, None), NEWEST, seen).findings] == ["rows", "error"]
