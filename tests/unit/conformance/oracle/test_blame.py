"""Which of expectation, engine and model is probably wrong; a wrong model stands in for the engine."""

from conformance.core.versions import SparkVersion
from conformance.judging.verdict import judge
from conformance.language import case_from
from conformance.model.catalogue import rules_of
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.cross_check import notes_of_the_model
from conformance.oracle.prediction import predict
from tests.support.whole_suite import whole_suite

CASES = {case.id: case for case in whole_suite().cases}
OLD, NEWEST = SparkVersion(3, 5, 9), SparkVersion(4, 3, 0)
OPEN = "late-drops/window-still-open"


def engine(case, name=None):
    """What an engine shows that is right, or wrong as the model of that name is."""
    rules = rules_of(NEWEST)
    if name is not None:
        rules = next(wrong for wrong in WRONG_MODELS if wrong.name == name).of(rules)
    return predict(case, NEWEST, rules).observation


def expecting_otherwise(case):
    """The case with another watermark expected of its second step."""
    first, second, *rest = case.steps
    wrong = second.model_copy(update={"expect": second.expect.model_copy(update={"watermark": "12:07"})})
    return case.model_copy(update={"steps": (first, wrong, *rest)})


def said(case, observation):
    verdict = judge(case, NEWEST, observation)
    assert verdict.status == "violates"
    return notes_of_the_model(case, verdict, observation)


def test_an_engine_is_not_blamed_by_the_model_alone() -> None:
    case = CASES[OPEN]
    side, step = said(case, engine(case, "the delay is one millisecond too long"))
    assert side == "The model agrees with the expectation and not with the engine; which is wrong is not known."
    assert step == "The model predicts for step 1: emits [12:00, 12:10, 1]; watermark 11:35; dropped 0; state [1]"


def test_a_wrong_expectation_is_alone() -> None:
    case = expecting_otherwise(CASES[OPEN])
    side, step = said(case, engine(case))
    assert side == "The model agrees with the engine; the expectation is probably wrong."
    assert step.startswith("The model predicts for step 2: emits [12:30, 12:40, 1]; watermark 12:05")


def test_three_different_answers() -> None:
    case = expecting_otherwise(CASES[OPEN])
    assert (
        said(case, engine(case, "there is no delay"))[0]
        == "The model agrees with neither the expectation nor the engine."
    )


def test_a_test_of_sparks_own_is_a_second_source_and_an_error_has_its_place() -> None:
    case = CASES["event-time-column/second-watermark-on-a-branch-is-refused"]
    side, step = said(case, engine(case, "a watermark may be defined twice"))
    assert side == (
        "The model agrees with the expectation and not with the engine; so does Spark's own test T019; "
        "the engine is probably wrong."
    )
    assert step.startswith(
        "The model predicts for step 1: fails at run: AnalysisException: Redefining watermark is disallowed."
    )


RANGE = "left_key = right_key AND right_time >= left_time AND right_time <= left_time + INTERVAL 5 MINUTES"
OTHER = [{"from": "right"}, {"withWatermark": ["right_time", "10 minutes"]}]
RESTARTED_JOIN = {
    "title": "A join goes on after a restart in which one side has nothing new",
    "streams": {"left": "left_time TIMESTAMP, left_key STRING", "right": "right_time TIMESTAMP, right_key STRING"},
    "query": [{"from": "left"}, {"withWatermark": ["left_time", "10 minutes"]}, {"join": OTHER, "on": RANGE}],
    "steps": [
        {
            "add": {"left": [["12:00", "a"]], "right": [["12:01", "a"]]},
            "expect": {"rows": [["12:00", "a", "12:01", "a"]]},
        },
        {"restart": "graceful"},
        {"add": {"left": [["12:02", "b"]]}},
    ],
}


def test_a_known_bug_is_named_instead_of_the_expectation() -> None:
    case = case_from(RESTARTED_JOIN, "joins/restarted")
    observation = predict(case, OLD).observation
    verdict = judge(case, OLD, observation)
    assert (verdict.status, judge(case, NEWEST, predict(case, NEWEST).observation).status) == ("violates", "conforms")
    side, step = notes_of_the_model(case, verdict, observation)
    assert side == (
        "The model agrees with the engine, and the expectation with other versions. On 3.5.9: A join fails after a restart if a "
        "column is nullable that was NOT NULL in the first micro-batch, because another stream has new rows now (SPARK-57003). "
        "A key that must not be null for a join is NOT NULL in the schema of its state (SPARK-57003). "
        "The case lacks a `differs` entry that says so, with `bug` if it is one."
    )
    assert step.startswith("The model predicts for step 3: fails at run: StateSchemaNotCompatible")
