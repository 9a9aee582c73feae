"""Which of expectation, engine and model is probably wrong; a wrong model stands in for the engine."""

from conformance.core.versions import SparkVersion
from conformance.judging.verdict import judge
from conformance.model.catalogue import rules_of
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.cross_check import notes_of_the_model
from conformance.oracle.prediction import predict
from tests.support.whole_suite import whole_suite

CASES = {case.id: case for case in whole_suite().cases}
NEWEST = SparkVersion(4, 3, 0)
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


def test_a_wrong_engine_is_alone() -> None:
    case = CASES[OPEN]
    side, step = said(case, engine(case, "the delay is one millisecond too long"))
    assert side == "The model agrees with the expectation; the engine is probably wrong."
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


def test_an_error_has_its_place() -> None:
    case = CASES["event-time-column/second-watermark-on-a-branch-is-refused"]
    side, step = said(case, engine(case, "a watermark may be defined twice"))
    assert side == "The model agrees with the expectation; the engine is probably wrong."
    assert step.startswith(
        "The model predicts for step 1: fails at run: AnalysisException: Redefining watermark is disallowed."
    )
