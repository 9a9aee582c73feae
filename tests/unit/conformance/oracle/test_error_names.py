"""The error that the model predicts against the error that a case expects: kind, stage and class count, the wording does not."""

from functools import cache

import pytest

from conformance.core.versions import SparkVersion
from conformance.language import case_from
from conformance.model.errors import Unpredictable, may_be
from conformance.oracle.cross_check import cross_check
from conformance.oracle.prediction import predict
from reports.results.published import published
from reports.results.reading import Results
from tests.support.effort import full_run_only
from tests.support.whole_suite import whole_suite

OLD, NEWEST = SparkVersion(3, 5, 9), SparkVersion(4, 3, 0)
READ = [{"from": "events"}, {"withWatermark": ["t", "10 minutes"]}]
DISTINCT = [*READ, {"groupBy": ["window(t, '1 hour')"], "agg": ["count(DISTINCT n) AS n"]}]


@pytest.mark.parametrize(
    ("stage", "classes", "named", "possible"),
    [
        ("analysis", ["ParseException"], "AnalysisException", True),
        ("analysis", ["ParseException"], "PySparkException", True),
        ("analysis", ["AnalysisException"], "ParseException", False),
        ("analysis", ["AnalysisException"], "ExtendedAnalysisException", True),
        ("start", ["AnalysisException"], "IllegalArgumentException", False),
        ("start", ["AnalysisException"], "_LEGACY_ERROR_TEMP_3102", True),
        ("start", ["AnalysisException"], "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", True),
        ("start", ["UNRESOLVED_COLUMN", "AnalysisException"], "UNRESOLVED_COLUMN.WITH_SUGGESTION", True),
        ("start", ["UNRESOLVED_COLUMN", "AnalysisException"], "PARSE_SYNTAX_ERROR", False),
        ("start", ["AssertionError"], "StreamingQueryException", False),
        ("run", ["AssertionError"], "StreamingQueryException", True),
        ("run", ["AssertionError"], "STREAM_FAILED", True),
        ("run", ["AssertionError"], "IllegalStateException", False),
    ],
)
def test_an_error_has_the_names_of_its_parents_and_of_what_is_around_it(stage, classes, named, possible):
    assert may_be(stage, classes, named) is possible


def expecting(error, query=DISTINCT, **keys):
    steps = [{"add": {"events": [["12:00", 1]]}, "expect": {"error": error} if error else {"rows": []}}]
    written = {"title": "t", "streams": {"events": "t TIMESTAMP, n INT"}, "query": query, "steps": steps, **keys}
    return case_from(written, "a/b")


OTHERWISE = {"class": "AnalysisException", "message": "in the words of another version"}
DIFFERS = [{"spark": "<4", "because": "it has other words", "steps": {1: {"error": {**OTHERWISE, "message": "old"}}}}]


@pytest.mark.parametrize(
    ("case", "agreed"),
    [
        (expecting(OTHERWISE), True),
        (expecting({"message": "in other words", "stage": "start"}), True),
        (expecting({"class": ["ValueError", "AnalysisException"]}), True),
        (expecting(OTHERWISE, differs=DIFFERS), True),
        (expecting({"class": "AnalysisException", "message": "Distinct aggregations"}, differs=DIFFERS), True),
        (expecting({**OTHERWISE, "class": "IllegalArgumentException"}), False),
        (expecting({**OTHERWISE, "class": "ParseException"}), False),
        (expecting({**OTHERWISE, "stage": "run"}), False),
        (expecting(None), False),
        (expecting(OTHERWISE, query=READ), False),
        (expecting({"class": "ValueError"}, differs=DIFFERS), False),
    ],
)
def test_the_kind_the_stage_and_the_class_are_compared_and_the_wording_is_not(case, agreed):
    checked = cross_check([case], [OLD, NEWEST])
    assert checked.cells == 2
    assert (not checked.disagreements) is agreed


def test_a_feature_that_a_version_refuses_in_other_words_is_unsupported():
    query = [*READ, {"dropDuplicatesWithinWatermark": ["n"]}]
    error = {"class": "AttributeError", "message": "in other words"}
    differs = [{"spark": "<3.5", "unsupported": "there is no such method", "error": error}]
    checked = cross_check([expecting(None, query, differs=differs)], [SparkVersion(3, 4, 4)])
    assert (checked.cells, checked.disagreements) == (1, ())
    differs[0]["error"]["class"] = "ValueError"
    assert cross_check([expecting(None, query, differs=differs)], [SparkVersion(3, 4, 4)]).disagreements


@cache
def shown():
    """The published errors of 3.5 and 4.3: case, version, error."""
    targets = {f"spark-{version}": version for version in (OLD, NEWEST)}
    cells = (cell for cell in Results.read_all(list(published())).cells if cell.target in targets)
    errors = ((cell.case, targets[cell.target], cell.observation.error) for cell in cells if cell.observation)
    return tuple(answer for answer in errors if answer[2] is not None)


@full_run_only
def test_every_name_that_an_engine_shows_for_a_predicted_error_may_be_expected():
    cases = {case.id: case for case in whole_suite().cases}
    compared = 0
    for id, version, error in shown():
        try:
            predicted = predict(cases[id], version).observation.error
        except (Unpredictable, KeyError):
            continue
        assert predicted is not None, id
        names = {name for name in error.classes if not may_be(predicted.stage, predicted.classes, name)}
        assert not names, (id, str(version), predicted.classes)
        compared += 1
    assert compared > 40
