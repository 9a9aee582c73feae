"""``conformance check`` of jobs of the kinds people write, each verdict held against plain PySpark doing the real thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.engine.jobs.agreement import Answer, check, check_program, disagreements, right_answer, wrong_exit_code
from tests.engine.jobs.catalogue import AFTERS, BEFORE, JOBS, Job
from tests.engine.jobs.drawn import DRAWN, REASONS, Drawn, programs
from tests.engine.jobs.plain import Lost, Plain, PlainSpark, Resumed, arrivals
from tests.support.effort import full_run_only

# One worker has all of them, because one JVM answers for many jobs.
pytestmark = pytest.mark.xdist_group("jobs of users")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, str], Plain]:
    spark = PlainSpark(tmp_path_factory.mktemp("plain"))
    # What loses rows does so on every version; the newest is enough.
    return {**spark.compare(JOBS, BEFORE, AFTERS), **spark.compare(DRAWN, BEFORE, AFTERS[-1:])}


@full_run_only
@pytest.mark.parametrize(
    ("job", "after"),
    [pytest.param(job, after, id=f"{job.name} to {after}") for job in JOBS for after in AFTERS],
)
def test_a_verdict_is_what_plain_pyspark_does(
    job: Job, after: str, plain: Mapping[tuple[str, str], Plain], tmp_path: Path
) -> None:
    assert [*disagreements(plain[job.name, after], check(job, BEFORE, after, tmp_path / "check"))] == []


@full_run_only
@pytest.mark.parametrize("jobs", [pytest.param(jobs, id=jobs[0].variant) for jobs in programs()])
def test_the_rows_that_a_program_loses_are_those_that_plain_pyspark_loses(
    jobs: tuple[Drawn, ...], plain: Mapping[tuple[str, str], Plain], tmp_path: Path
) -> None:
    done = [plain[job.name, AFTERS[-1]] for job in jobs]
    answers, code = check_program(jobs, BEFORE, AFTERS[-1], tmp_path)
    found = [
        (job.name, each) for job, *of_job in zip(jobs, done, answers, strict=True) for each in disagreements(*of_job)
    ]
    assert [*found, *wrong_exit_code(done, code)] == []
    # Else the job is not what its name says.
    lost = [any(of_version.late or of_version.untimed for of_version in each.lost) for each in done]
    assert lost == [not job.mended for job in jobs]


REFUSED = Plain(
    rows="same",
    same_columns=False,
    checkpoints=(Resumed(2, "refused", ("KEY_SCHEMA",)), Resumed(4, "no answer")),
    workarounds={"a=1": (Resumed(2, "resumed"),), "b=1": (Resumed(2, "other rows"),)},
    errors=("", ""),
    operators=frozenset({"dedupe"}),
    lost=(Lost(0, {"dedupe": 2}, 7), Lost(1, {}, 8)),
)
TRUE_OF_IT: Answer = {
    "from": "3.5.9",
    "to": "4.3.0",
    "answer": "differs",
    "exit_code": 1,
    "lost": [
        {
            "spark": "3.5.9",
            "late": ["the deduplication dropped 2 late rows, with watermarks up to …"],
            "without_event_time": None,
            "out": 7,
        },
        {"spark": "4.3.0", "late": [], "without_event_time": "to_timestamp(t)", "out": 8},
    ],
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
        ({"answer": "lost"}, "answer: differs, check says lost"),
        ({"exit_code": 0}, "exit code: 1, check gives 0"),
        ({"lost": TRUE_OF_IT["lost"][:1]}, "without event time on 4.3.0: 1, check says None"),
        ({"lost": TRUE_OF_IT["lost"][1:]}, "late on 3.5.9: {'deduplication': 2}, check says {}"),
        ({"lost": [{**each, "out": 7} for each in TRUE_OF_IT["lost"]]}, "out on 4.3.0: 8, check says 7"),
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


def test_where_no_row_came_after_a_checkpoint_on_one_side_a_resumption_on_the_other_is_no_disagreement() -> None:
    silent = replace(REFUSED, checkpoints=(Resumed(2, "no answer"),), workarounds={}, same_columns=False)
    (refused,) = TRUE_OF_IT["checkpoints"]
    resumed = {**refused, "outcome": "resumed", "error": None, "because": [], "tried": [], "workaround": None}
    assert [*disagreements(silent, {**TRUE_OF_IT, "checkpoints": [resumed]})] == []
    assert "checkpoints: nothing, check says refused" in [*disagreements(silent, TRUE_OF_IT)]
    unknown = {**TRUE_OF_IT, "checkpoints": [{**resumed, "outcome": "no answer"}]}
    assert [*disagreements(replace(silent, checkpoints=(Resumed(2, "resumed"),)), unknown)] == []
    assert [*disagreements(replace(silent, checkpoints=(Resumed(2, "other rows"),)), unknown)] != []


def test_a_job_that_ends_with_an_error_of_a_row_may_do_so_at_any_checkpoint() -> None:
    plain = Plain("differs", True, (Resumed(2, "fails later", ("CAST",)), Resumed(4, "resumed")), {}, ("", "CAST"))
    answer = {"rows": "differs", "change": {"meaning": "refused"}, "columns": [], "checkpoints": [], "lost": []}
    answer |= {"from": "3.5.9", "to": "4.3.0", "answer": "differs"}
    met = {"outcome": "fails later", "fails_anyway": False, "error": "CAST"}
    met |= {"because": [], "workaround": None, "tried": []}
    assert [*disagreements(plain, {**answer, "checkpoints": [met]})] == []
    refused = {**answer, "checkpoints": [{**met, "outcome": "refused"}]}
    assert [*disagreements(plain, refused)] == ["checkpoints: fails later, check says refused"]
    assert [*disagreements(plain, answer)] == ["checkpoints: fails later, check says nothing"]


SAME = Plain("same", True, (), {}, ("", ""))


@pytest.mark.parametrize(
    ("queries", "answer", "code"),
    [
        ([SAME], "same", 0),
        ([replace(SAME, lost=(Lost(), Lost(2)))], "lost", 1),
        ([REFUSED, SAME], "differs", 1),
        ([replace(REFUSED, same_columns=True)], "refused", 1),
        ([replace(SAME, rows="fails")], "fails", 2),
        ([replace(SAME, rows="unknown")], "unknown", 3),
    ],
)
def test_an_answer_and_an_exit_code_say_whether_something_changes_or_is_lost(
    queries: list[Plain], answer: str, code: int
) -> None:
    assert right_answer(queries[0]) == answer
    assert [each for each in range(4) if not [*wrong_exit_code(queries, each)]] == [code]


def test_each_reason_is_drawn_as_two_jobs_that_lose_rows_and_two_that_lose_none() -> None:
    assert (len(REASONS), len({job.name for job in DRAWN}), len({s for job in DRAWN for s in job.streams})) == (
        10,
        40,
        54,
    )
    assert sorted(job.name for jobs in programs() for job in jobs) == sorted(job.name for job in DRAWN)


@pytest.mark.parametrize("job", [*JOBS, *DRAWN], ids=lambda job: job.name)
def test_rows_arrive_in_the_order_of_their_file(job: Job) -> None:
    arrived = arrivals(job)
    assert {stream: [line for each in arrived for line in each[stream]] for stream in job.streams} == {
        stream: job.lines(stream) for stream in job.streams
    }
