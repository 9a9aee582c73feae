"""``conformance check`` without an engine: what it says about wrong options and files."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli import check
from conformance.cli.main import app
from conformance.core.errors import WrongUsage
from conformance.own_job import program as programs
from conformance.own_job.job_case import own_function
from conformance.own_job.trial import Trial
from conformance.runner.resources import EngineUse
from harness.engine.protocol import ProgramSeen, QuerySeen
from tests.support.observations import case
from tests.unit.conformance.own_job.test_program import ORDERS

RIGHT = ["jobs:build", "--from", "3.5", "--to", "4.1", "--sample", "orders=orders.jsonl"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.sql").write_text("SELECT * FROM orders")
    (tmp_path / "orders.jsonl").write_text('{"t": "2026-03-01 12:00", "n": 1}\n')


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["jobs", *RIGHT[1:]], "'jobs' is not a function: write module:function"),
        (["jobs.build", *RIGHT[1:]], "'jobs.build' is neither a program (.py, .ipynb, .sql), nor module:function"),
        ([*RIGHT, "--sample", "orders=x.csv"], "orders is there twice"),
        ([*RIGHT, "--sample", "x.csv"], "'x.csv' must be STREAM=VALUE"),
        ([*RIGHT, "--sample", "clicks=x.csv"], "x.csv: No such file"),
        (["job.py", *RIGHT[1:5], "--sample", "clicks=x.csv"], "x.csv: No such file"),
        ([*RIGHT[:5], "--sample", "orders.v1=x.csv"], "'orders.v1' is called orders_v1 here: write orders_v1=x.csv"),
        ([*RIGHT[:4], "4.99", *RIGHT[5:]], "'4.99' is not a target. Did you mean 4.3.0?"),
        ([*RIGHT[:4], "4.99.0", *RIGHT[5:]], "'4.99.0' is not a known Spark release. Did you mean 4.3.0?"),
        (
            ["bad.sql", *RIGHT[1:], "--watermark", "orders=10 minuts"],
            "'10 minuts' is not a delay: write orders='10 minutes'",
        ),
        ([*RIGHT, "--event-time", "clicks=t"], "there is no sample clicks; samples are orders"),
        ([*RIGHT, "--event-time", "orders=u"], "orders.jsonl: has no column 'u'; its columns are t, n"),
        ([*RIGHT, "--schema", "orders=t TIMESTAM"], "orders.jsonl: its schema 't TIMESTAM' is wrong at character 3"),
        ([*RIGHT, "--arrival", "random"], "'random' is not file, time or random with a seed, such as random:7"),
        ([*RIGHT, "--output-mode", "apend"], "'apend' is not one of append, update, complete"),
        ([*RIGHT[:4], "3.5.9", *RIGHT[5:]], "3.5 and 3.5.9 are both spark-3.5.9: name two versions"),
        ([*RIGHT[:2], "lines", *RIGHT[3:]], "lines means 10 versions: name one"),
        ([*RIGHT[:2], "9.9", *RIGHT[3:]], "'9.9' is not a"),
        (RIGHT[:5], "--sample: a function needs one of each stream, in the order of its parameters"),
        ([*RIGHT, "--", "--day", "1"], "a function gets no arguments"),
        (["gone.py", *RIGHT[1:]], "there is no file gone.py"),
        (
            ["acme.gone", *RIGHT[1:]],
            "'acme.gone' is neither a program (.py, .ipynb, .sql), nor module:function, nor a module in",
        ),
        (["job.sql", *RIGHT[1:]], "cannot read job.sql: No such file"),
        (["job.sql", *RIGHT[1:], "--", "x"], "a file of SQL gets no arguments: omit them"),
        (RIGHT[1:], "name a program, a file of SQL or a function, or --call a method or --main a class of --jar"),
        (
            [*RIGHT, "--call", "acme.Jobs.f"],
            "name a program, a file of SQL or a function, or --call a method or --main a class of --jar",
        ),
        (["--call", "acme.Jobs.f", *RIGHT[1:]], "if it is a method of Java or Scala, --jar is missing"),
        (["--main", "acme.Main", *RIGHT[1:]], "acme.Main is a class of a jar: --jar is missing"),
        (["--main", "acme.Main", "--run-sinks", *RIGHT[1:]], "functions of a jar are not called: omit it"),
        ([*RIGHT, "--checkpoint", "gone"], "gone: there is no such folder"),
        ([*RIGHT, "--jar", "gone.jar"], "--jar: there is no file gone.jar"),
        ([*RIGHT, "--watermark", "orders=1 hour"], "only for a file of SQL: your code says it itself"),
        (
            ["job.py", *RIGHT[1:], "--schema", "orders=time TIMESTAMP, n INT"],
            "orders.jsonl: no row has the column time",
        ),
        (["job.py", *RIGHT[1:], "--output-mode", "append"], "the program says it itself: omit it"),
    ],
)
def test_what_is_wrong_is_one_clear_message(options: list[str], says: str) -> None:
    answer = CliRunner().invoke(app, ["check", *options], env={"COLUMNS": "200"})
    assert answer.exit_code == 2
    assert says in answer.stderr
    assert not Path("check").exists()


def test_a_case_of_the_user_is_refused_before_an_engine_starts() -> None:
    mine = Path("mine/jobs.build.yaml")
    mine.parent.mkdir()
    mine.write_text("# my own case, with my comments")
    answer = CliRunner().invoke(app, ["check", *RIGHT, "-o", "mine"], env={"COLUMNS": "200"})
    assert answer.exit_code == 2
    assert answer.stderr.startswith("conformance: mine/jobs.build.yaml exists and is not what `check` wrote there")
    assert [*mine.parent.iterdir()] == [mine]


@pytest.mark.parametrize("options", [[], ["--jobs", "2"]])
def test_what_functions_of_a_sink_write_is_written_by_one_run_after_another(
    options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two versions that write one table at the same time fail, or see each other's rows."""
    asked: list[EngineUse] = []

    def queries(named: object, target: object, where: EngineUse, *_: object, **__: object) -> None:
        asked.append(where)
        raise WrongUsage("enough")

    monkeypatch.setattr(check, "queries", queries)
    Path("job.py").touch()
    for more in ((), ("--run-sinks",)):
        CliRunner().invoke(app, ["check", "job.py", *RIGHT[1:], *options, *more])
    side_by_side, one_by_one = (use.concurrency.limits(2) for use in asked)
    assert (one_by_one.jobs, one_by_one.side_by_side, one_by_one.most_side_by_side) == (1, 1, 1)
    assert side_by_side.jobs * side_by_side.most_side_by_side > 1


def test_options_without_effect_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def survey(survey: programs.Survey, *_: object) -> ProgramSeen:
        counts = QuerySeen(
            name=None, output_mode="update", trigger="once", sink="noop", at="job.py:9", reads=("orders",)
        )
        return ProgramSeen(kind="program", case=survey.program.path, sources=(ORDERS,), queries=(counts,))

    def answer(trial: Trial, *_: object) -> None:
        trial.listener.begins(own_function("a:b"), case(), (), Path())
        raise WrongUsage("no engine here")

    monkeypatch.setattr(programs.Survey, "_ask", survey)
    monkeypatch.setattr(Trial, "answer", answer)
    Path("job.py").write_text("")
    options = ["--run-sinks", "--jobs", "3", "--package", "3.4=a:b:1", "--package", "4.1=a:b:2"]
    said = CliRunner().invoke(app, ["check", "job.py", *RIGHT[1:], *options], env={"COLUMNS": "200"}).stderr
    for line in (
        "--run-sinks has no effect: no query has a function of foreachBatch or foreach\n",
        "--jobs 3 has no effect beyond 1: functions of sinks are called in one run after another\n",
        "--package 3.4=a:b:1 has no effect: it is for neither 3.5.9 nor 4.1.4\n",
    ):
        assert line in said
    assert "4.1=" not in said
