"""``conformance check`` of jobs of the kinds people write, each verdict held against plain PySpark doing the real thing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.engine.jobs.agreement import Answer, check, disagreements
from tests.engine.jobs.catalogue import AFTERS, BEFORE, JOBS, Job
from tests.engine.jobs.plain import Plain, PlainSpark, Resumed
from tests.support.effort import full_run_only

# One worker has all of them, because one JVM answers for many jobs.
pytestmark = pytest.mark.xdist_group("jobs of users")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, str], Plain]:
    return PlainSpark(tmp_path_factory.mktemp("plain")).compare(JOBS, BEFORE, AFTERS)


@full_run_only
@pytest.mark.parametrize(
    ("job", "after"),
    [pytest.param(job, after, id=f"{job.name} to {after}") for job in JOBS for after in AFTERS],
)
def test_a_verdict_is_what_plain_pyspark_does(
    job: Job, after: str, plain: Mapping[tuple[str, str], Plain], tmp_path: Path
) -> None:
    assert [*disagreements(plain[job.name, after], check(job, BEFORE, after, tmp_path / "check"))] == []


REFUSED = Plain(
    rows="same",
    same_columns=False,
    checkpoints=(Resumed(2, "refused", ("KEY_SCHEMA",)), Resumed(4, "no answer")),
    workarounds={"a=1": (Resumed(2, "resumed"),), "b=1": (Resumed(2, "other rows"),)},
    errors=("", ""),
    operators=frozenset({"dedupe"}),
)
TRUE_OF_IT: Answer = {
    "rows": "same",
    "change": None,
    "columns": ["column 1: a double on 3.5.9, a bigint on 4.3.0"],
    "checkpoints": [
        {
            "outcome": "refused",
            "fails_anyway": False,
            "error": "KEY_SCHEMA",
            "because": ["state of the deduplication, column a: double in the checkpoint, bigint wanted"],
            "workaround": "a=1",
            "tried": [
                {"setting": "a=1", "outcomes": ["resumed"]},
                {"setting": "b=1", "outcomes": ["other rows", "resumed"]},
            ],
        }
    ],
}


def test_a_true_verdict_is_no_disagreement() -> None:
    assert [*disagreements(REFUSED, TRUE_OF_IT)] == []


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ({"rows": "differs"}, "rows: same, check says differs"),
        ({"columns": []}, "columns: other, check says same"),
        ({"outcome": "resumed", "tried": [], "workaround": None}, "checkpoints: refused, check says resumed"),
        ({"error": "VALUE_SCHEMA"}, "error: KEY_SCHEMA, check says VALUE_SCHEMA"),
        (
            {"because": ["state of the aggregation, column a: double in the checkpoint, bigint wanted"]},
            "reason: the state of dedupe, check says the aggregation",
        ),
        ({"workaround": "b=1"}, "workaround b=1: other rows, check recommends it"),
        ({"tried": [{"setting": "a=1", "outcomes": ["other rows"]}]}, "a=1: resumed, check says other rows"),
        ({"tried": [{"setting": "c=1", "outcomes": ["resumed"]}]}, "c=1: not tried, check says resumed"),
    ],
)
def test_a_wrong_verdict_is_a_disagreement(wrong: Answer, shown: str) -> None:
    (checkpoint,) = TRUE_OF_IT["checkpoints"]
    of_it = {key: value for key, value in wrong.items() if key in checkpoint}
    answer = {**TRUE_OF_IT, **wrong, "checkpoints": [{**checkpoint, **of_it}]}
    assert shown in [*disagreements(REFUSED, answer)]


def test_a_job_that_ends_with_an_error_of_a_row_may_do_so_at_any_checkpoint() -> None:
    plain = Plain("differs", True, (Resumed(2, "fails later", ("CAST",)), Resumed(4, "resumed")), {}, ("", "CAST"))
    answer = {"rows": "differs", "change": {"meaning": "refused"}, "columns": [], "checkpoints": []}
    met = {"outcome": "fails later", "fails_anyway": False, "error": "CAST"}
    met |= {"because": [], "workaround": None, "tried": []}
    assert [*disagreements(plain, {**answer, "checkpoints": [met]})] == []
    refused = {**answer, "checkpoints": [{**met, "outcome": "refused"}]}
    assert [*disagreements(plain, refused)] == ["checkpoints: fails later, check says refused"]
    assert [*disagreements(plain, answer)] == ["checkpoints: fails later, check says nothing"]
