"""What `record` takes from an answer: never a mistake in the author's own code."""

from __future__ import annotations

import pytest

from conformance.core.observation import OwnCodeError
from conformance.runner.observe import NoObservation, observation_in
from tests.support.cells import CALM, CASE, FAILED, results, seen
from tests.support.observations import case

MISTAKE = OwnCodeError(
    raised="KeyError('k')", at="jobs.py:2", during="in a UDF", traceback="File \"jobs.py\", line 2, in f\nKeyError: 'k'"
)


def taken(path, answer):
    results(path, {CASE: {"3.5.9": answer}})
    return observation_in(path, case(None, id=CASE), "3.5.9")


def test_an_error_of_spark_is_taken(tmp_path):
    assert taken(tmp_path / "r.jsonl", FAILED).steps[0].error.name == "SparkException"
    assert taken(tmp_path / "r.jsonl", CALM).steps[0].error is None


def test_a_mistake_in_the_authors_code_is_not(tmp_path):
    error = FAILED.steps[0].error.model_copy(update={"own_code": MISTAKE})
    with pytest.raises(NoObservation) as caught:
        taken(tmp_path / "r.jsonl", seen(FAILED.steps[0].model_copy(update={"error": error})))
    assert str(caught.value) == (
        f"{CASE}: no answer from Spark (your code raised KeyError('k') at jobs.py:2, in a UDF\n"
        "  File \"jobs.py\", line 2, in f\n  KeyError: 'k'); nothing was recorded"
    )
