"""A job on two miniature engines: real processes, no JVM. One query, and faults of the later version."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pytest

from conformance.core.case import Case, Restart
from conformance.core.errors import WrongUsage
from conformance.own_job.job_case import (
    check_function,
    is_silent,
    own_function,
    through_topics,
    with_expectations,
    write_job,
)
from conformance.own_job.job_run import (
    CellAnswer,
    JobRun,
    JobRuns,
    depends_on_ansi,
    expecting,
    next_cells,
    shuffles_itself,
)
from conformance.own_job.records import record, write_results
from conformance.own_job.sample import Sample, read_sample
from conformance.own_job.statements import statements, summary
from conformance.own_job.verdict import judge_job
from conformance.runner.resources import EngineUse
from harness.engine.request import looks_at_plans
from harness.scheduling.cell_run import CellRun
from harness.scheduling.kept_engines import KeptEngines
from harness.targets.targets import Target
from reports.results.reading import Results
from tests.support.miniature.two_versions import NEW, OLD, TwoVersions
from tests.support.observations import batch, observed, step

ROWS = [(f"1970-01-01 {12 + minute // 60}:{minute % 60:02d}", 1) for minute in range(0, 120, 7)]


class Silent:
    def __getattr__(self, _):
        return lambda *_: None


def whole_run(case, runtime, files=None):
    """Everything that a verdict needs, on these engines."""
    with closing(KeptEngines(runtime)) as kept:
        options = EngineUse(kept=kept)
        (run,) = JobRuns([JobRun.of(case, OLD, NEW, options, files)]).complete(options, Silent())
        return run


def sample_in(folder: Path) -> Sample:
    """The rows, from a file of the folder."""
    file = folder / "events.jsonl"
    file.write_text("".join(json.dumps({"event_time": time, "count": n}) + "\n" for time, n in ROWS))
    return read_sample("events", file)


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Case]:
    return lambda **options: write_job(own_function("jobs:build"), [sample_in(tmp_path)], tmp_path, **options)


@pytest.fixture
def tried(tmp_path: Path, job: Callable[..., Case]):
    """The verdict on a job whose later version has a fault."""

    def run(new: str, old: str = "right"):
        case = job(again=True)
        runtime = TwoVersions(Path(mkdtemp(dir=tmp_path)), {OLD.name: old, NEW.name: new})
        return judge_job(expecting(whole_run(case, runtime), tmp_path))

    return run


def test_a_job_that_does_the_same(tried, tmp_path: Path) -> None:
    verdict = tried("right")
    assert (verdict.answer, verdict.exit_code) == ("same", 0)
    assert [(group.verdict.outcome, group.steps) for group in verdict.handoffs] == [("resumed", (3, 5))]
    assert verdict.without_handoff == (2, 4)
    (told,) = (each.text for each in statements(verdict) if each.text.startswith("not handed over"))
    assert told == "not handed over before steps 2, 4, since the other checkpoints did alike"
    more = replace(verdict, without_handoff=(2, 3, 4, 5, 9, 10))
    assert any("before steps 2–5, 9, 10, since" in each.text for each in statements(more))
    assert summary(verdict) == "3.5.9 → 4.0.5: same rows; the checkpoint resumes"
    write_results(verdict, tmp_path / "results.jsonl", "conformance check")
    results = Results.read(tmp_path / "results.jsonl")
    assert [cell.status for cell in results.cells] == ["conforms", "conforms"]


def test_what_a_restart_alone_changes_is_no_change_of_the_upgrade(tried) -> None:
    both = tried("forgets-on-resume", "forgets-on-resume")
    assert [group.verdict.outcome for group in both.handoffs] == ["resumed"]


@pytest.mark.parametrize(
    ("mode", "outcome", "said"),
    [
        ("forgets-on-resume", "other rows", "other rows"),
        ("refuses-to-resume", "refused", "the checkpoint is refused"),
    ],
)
def test_a_checkpoint_that_is_not_resumed_as_it_should_be(tried, mode: str, outcome: str, said: str) -> None:
    verdict = tried(mode)
    assert (verdict.answer, verdict.exit_code) == ("same", 1)
    worst = verdict.handoffs[0].verdict
    assert (worst.outcome, record(verdict)["checkpoints"][0]["outcome"]) == (outcome, outcome)
    assert (bool(worst.difference), worst.error is not None) == (outcome == "other rows", outcome == "refused")
    assert said in summary(verdict)


def test_the_checkpoint_before_the_step_in_which_only_the_later_version_fails_is_handed_over(tried) -> None:
    verdict = tried("refuses-step-4")
    assert [(group.verdict.outcome, group.steps) for group in verdict.handoffs] == [
        ("fails later", (2, 3, 4)),
        ("resumed", (5,)),
    ]
    assert "the checkpoint resumes, then the query fails" in summary(verdict)


def test_a_version_without_an_answer(tried) -> None:
    verdict = tried("dies")
    assert (verdict.answer, verdict.exit_code) == ("unknown", 3)
    assert [target.name for target, _ in verdict.failures] == [NEW.name]


def test_rows_from_topics_are_without_handoff(tmp_path: Path, job: Callable[..., Case]) -> None:
    """A topic is not copied with a checkpoint; what each version does with it is compared."""
    case = job(silent=True)
    (from_topics,) = through_topics(case)
    cells = next_cells(JobRun.of(from_topics, OLD, NEW, EngineUse()))
    assert [(cell.cut, cell.keep) for cell in cells] == [(None, ()), (None, ())]
    from_files = next_cells(JobRun.of(case, OLD, NEW, EngineUse()))
    assert from_files[0].keep != ()
    assert not {cell.key for cell in cells} & {cell.key for cell in from_files}, "one of them would not run"
    seen = observed(*(step(each.number) for each in case.steps))
    expecting = with_expectations(from_topics, tmp_path, seen)
    assert (expecting.id, expecting.topics) == (from_topics.id, from_topics.topics) != (case.id, {})


def test_cases_under_other_conditions_run_beside_what_the_first_still_needs(
    tmp_path: Path, job: Callable[..., Case]
) -> None:
    whole, silent = job(again=True), job(batches=2, silent=True)

    def asked(**modes: str) -> tuple[list[list[tuple[bool, int | None]]], list[str]]:
        """The cells that become ready at a time: whether their streams are silent, and what they resume; and the engines that start."""
        ready: list[list[tuple[bool, int | None]]] = []
        runtime = TwoVersions(Path(mkdtemp(dir=tmp_path)), modes)
        with closing(KeptEngines(runtime)) as kept:
            options = EngineUse(kept=kept)
            cases = [JobRun.of(case, OLD, NEW, options) for case in (whole, silent)]
            JobRuns(cases, lambda cells: ready.append([(is_silent(cell.case), cell.cut) for cell in cells])).complete(
                options, Silent()
            )
        return [cells for cells in ready if cells], runtime.started

    (first, second, *others), started = asked()
    assert first == [(False, None)] * 2
    assert second == [(False, 3), (False, 5), (True, None), (True, None)]
    assert sorted(others) == [[(False, 6)], [(True, 2), (True, 4)]]
    assert sorted(started) == [OLD.name, NEW.name]
    cells, _ = asked(**{NEW.name: "dies"})
    assert not any(silent for some in cells for silent, _ in some), "only one version has an answer"


@pytest.mark.parametrize(
    ("plan", "state", "shuffles"),
    [
        ("RepartitionByExpression [user_id#3]", 2, True),
        ("RepartitionByExpression [user_id#3], 5", 2, False),
        ("RepartitionByExpression [user_id#3]", None, False),
        ("Exchange hashpartitioning(user_id#3, 1)", 2, False),
    ],
)
def test_a_shuffle_of_the_author_asks_for_other_partitions(
    job: Callable[..., Case], plan: str, state: int | None, shuffles: bool
) -> None:
    case = job(partitions=True)
    assert case.conf == {"spark.sql.shuffle.partitions": "2"}
    restart = next(each.action for each in case.steps if isinstance(each.action, Restart))
    assert restart.change.conf == {"spark.sql.shuffle.partitions": "3"}
    seen = observed(step(1, batch(0, state=(state,) if state else ())).model_copy(update={"plan": plan}))
    run = JobRun.of(case, OLD, NEW, EngineUse())
    task = run.whole(OLD)
    answered = replace(run, answers=(CellAnswer(task, CellRun(task, (seen,), None, seconds=0.1)),))
    assert shuffles_itself(answered) is shuffles


@pytest.mark.parametrize(
    ("plan", "asks"),
    [
        ("Project [cast(amount#3 as int) AS amount#5]", True),
        ("Project [to_timestamp(at#3, Some(yyyy), TimestampType, Some(UTC), false) AS t#5]", True),
        ("Project [(a#1 / b#2) AS c#3]", True),
        ("Project [tags#1[0] AS first#2]", True),
        ("Project [cast(value#1 as string) AS value#2]", False),
        ("Project [user_id#3, count#4L]", False),
        ("CASE WHEN (((precisetimestampconversion(at#2) - 0) % 600000000) < cast(0 as bigint)) THEN", False),
        ("Project [(a#1 % 60) AS c#3, cast(b#2 as int) AS d#4]", True),
    ],
)
def test_rows_that_do_not_fit_are_tried_where_ansi_mode_may_refuse_them(
    job: Callable[..., Case], plan: str, asks: bool
) -> None:
    seen = observed(step(1, batch(0)).model_copy(update={"plan": plan}))
    run = JobRun.of(job(), OLD, NEW, EngineUse())
    task = run.whole(OLD)
    answered = replace(run, answers=(CellAnswer(task, CellRun(task, (seen,), None, seconds=0.1)),))
    assert depends_on_ansi(answered) is asks
    assert not depends_on_ansi(replace(answered, conf={"spark.sql.ansi.enabled": "false"}))
    assert not depends_on_ansi(replace(answered, after=OLD))


# What the text of a module shows before an engine starts.


@pytest.fixture
def jobs(tmp_path: Path):
    def written(text: str) -> list[Path]:
        (tmp_path / "jobs.py").write_text(text)
        return [tmp_path]

    return written


TWO = "import os\nfrom a import b as c\nLIMIT = 3\n\ndef build(spark, orders, clicks, by='x'): ...\n"


def test_a_misspelt_function_is_named_with_the_one_that_is_meant(jobs) -> None:
    with pytest.raises(WrongUsage, match=r"jobs.py: unknown function 'biuld': did you mean 'build'\?"):
        check_function("jobs:biuld", ["orders", "clicks"], jobs(TWO))


@pytest.mark.parametrize(
    "text",
    [
        "from a import biuld",
        "from a import *",
        "biuld = 3",
        "def __getattr__(name): ...",
        "globals().update(made())",
        "def (",
        "",
    ],
)
def test_what_the_text_does_not_show_is_left_to_python(jobs, text: str) -> None:
    assert check_function("jobs:biuld", ["orders"], jobs(text)) == ()
    assert check_function("other:biuld", ["orders"], jobs(TWO)) == ()


def test_the_number_of_streams_is_that_of_the_parameters(jobs) -> None:
    with pytest.raises(
        WrongUsage, match=r"jobs.py:5: build\(spark, orders, clicks, by\) takes the session and 3 DataFrames; 1 stream"
    ):
        check_function("jobs:build", ["orders"], jobs(TWO))
    assert check_function("jobs:build", ["a", "b", "c"], jobs("def build(spark, *frames): ...")) == ()


def test_streams_in_another_order_are_refused_and_other_names_told(jobs) -> None:
    with pytest.raises(WrongUsage, match=r"the streams are given in another order, clicks, orders"):
        check_function("jobs:build", ["clicks", "orders"], jobs(TWO))
    assert check_function("jobs:build", ["orders", "clicks"], jobs(TWO)) == ()
    assert check_function("jobs:build", ["orders", "pay"], jobs(TWO)) == ("pay is the parameter clicks",)


@pytest.mark.parametrize("side", [None, OLD, NEW])
def test_a_version_behind_connect_is_asked_for_no_plan_and_the_other_is(
    job: Callable[..., Case], side: Target | None
) -> None:
    case = job()
    assert not looks_at_plans(case)
    before, after = (replace(target, through_connect=target is side) for target in (OLD, NEW))
    cells = next_cells(JobRun.of(case, before, after, EngineUse()))
    assert [looks_at_plans(cell.case) for cell in cells] == [side is not OLD, side is not NEW]
