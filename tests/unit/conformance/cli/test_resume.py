"""``conformance checkpoint resume``: which query of which job it resumes a checkpoint with, before an engine runs it."""

import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.core.data import Json
from conformance.judging.checkpoint_verdict import resumed_at
from conformance.own_job import program as programs
from conformance.own_job import resumption
from conformance.own_job.job_case import OwnQuery
from conformance.own_job.resumption import Resumption
from conformance.own_job.sample import Sample
from harness.engine.protocol import ProgramSeen, QuerySeen
from tests.support.checkpoints import small
from tests.unit.conformance.own_job.test_program import CLICKS, ORDERS
from tests.unit.conformance.own_job.test_resumption import CHECKPOINT, RAN, TARGET, Observation

MAIN = ("--jar", "jobs.jar", "--main", "acme.Main")
WHICH = "--call a program, a file of SQL, a function or a method of --jar, or --main a class of --jar"


def query(name: str | None = None, *reads: str) -> QuerySeen:
    return QuerySeen(name=name, output_mode="update", trigger="once", sink="noop", at="Main.java:9", reads=reads)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The command, with an engine to which the program shows these queries; the checkpoint has one source."""
    monkeypatch.chdir(tmp_path)
    small(tmp_path / "checkpoint")
    (tmp_path / "job.py").write_text("")
    (tmp_path / "x.csv").write_text("")
    (tmp_path / "job.sql").write_text("SELECT count(*) FROM orders")
    with zipfile.ZipFile(tmp_path / "jobs.jar", "w") as archive:
        archive.writestr("acme/Main.class", "")
        archive.writestr("acme/Jobs.class", "")

    def run(*options: str, queries: Sequence[QuerySeen] = (query(),)):
        def made(survey: programs.Survey, _: object, **__: object) -> ProgramSeen:
            return ProgramSeen(
                kind="program", case=survey.program.path, sources=(ORDERS, CLICKS), queries=tuple(queries)
            )

        monkeypatch.setattr(programs.Survey, "made", made)
        command = ["checkpoint", "resume", "checkpoint", "--to", "4.3", *options]
        return CliRunner().invoke(app, command, env={"COLUMNS": "200"})

    return run


@pytest.fixture
def resumed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Json, list[str]]]:
    """What `call` says of each query that is resumed, and the streams that it reads; each resumes."""
    calls: list[tuple[Json, list[str]]] = []

    def resume(given: object, job: OwnQuery, samples: Sequence[Sample], *_: object) -> Resumption:
        calls.append((job.called, [*(job.only or (sample.stream for sample in samples))]))
        seen = Observation.of("case", (), [RAN])
        return Resumption(CHECKPOINT, TARGET, seen, resumed_at(1, seen), ())

    monkeypatch.setattr(resumption, "resume", resume)
    return calls


JVM = {"jvm": "acme.Jobs.f"}
SQL = ("--call", "job.sql", "--schema", "orders=t TIMESTAMP")


@pytest.mark.parametrize(
    ("options", "called"),
    [
        (MAIN, {"main": "acme.Main"}),
        ((*MAIN, "--", "--day", "1"), {"main": "acme.Main", "arguments": ["--day", "1"]}),
        (("--call", "job.py", "--", "x"), {"program": "job.py", "arguments": ["x"]}),
        (("--call", "job.py", "--jar", "jobs.jar"), {"program": "job.py"}),
        (("--call", "acme.Jobs.f", "--jar", "jobs.jar", *SQL[2:]), JVM),
        (("--call", "jobs:f", *SQL[2:]), "jobs:f"),
        (("--call", "jobs:f", "--jar", "jobs.jar", *SQL[2:]), "jobs:f"),
        (SQL, {"sql": ["SELECT count(*) FROM orders"]}),
        ((*SQL, "--jar", "jobs.jar"), {"sql": ["SELECT count(*) FROM orders"]}),
    ],
)
def test_a_job_is_named_in_each_of_the_ways(asked, resumed, options: Sequence[str], called: Json) -> None:
    answer = asked(*options)
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.startswith("● the checkpoint resumes on 4.3.0\n")
    ((of, _),) = resumed
    assert of == called


def test_one_of_several_queries_is_named_and_reads_its_sources_only(asked, resumed) -> None:
    several = (query(), query("bought", "clicks", "orders"), query("counts", "orders"))
    answer = asked(*MAIN, queries=several)
    assert answer.exit_code == 2
    for line in ("--query 1   # acme.Main, query 1 of 3", "--query 3   # acme.Main, query 3 of 3 (counts)"):
        assert line in answer.stderr
    assert asked(*MAIN, "--query", "3", queries=several).exit_code == 0
    assert resumed == [({"main": "acme.Main", "query": 3}, ["orders"])]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), WHICH),
        ((*MAIN, "--call", "job.py"), WHICH),
        (("--main", "acme.Main"), "acme.Main is a class of a jar: --jar is missing"),
        (
            ("--jar", "jobs.jar", "--main", "acme.Mian"),
            "jobs.jar: unknown class 'acme.Mian': did you mean 'acme.Main'?",
        ),
        (("--jar", "jobs.jar", "--call", "acme.Main.f", "--", "x"), "a function gets no arguments: omit them"),
        ((*MAIN, "--output-mode", "append"), "the program says it itself: omit it"),
        ((*MAIN, "--sample", "click=x.csv"), "unknown source 'click' of acme.Main: did you mean 'clicks'?"),
        ((*MAIN, "--query", "2"), "name one of these queries:"),
        (MAIN, "of a query with 1 source, but acme.Main reads 2 streams here (orders, clicks): is the checkpoint of"),
        (
            ("--call", "j:f", "--schema", "a=n INT", "--schema", "b=n INT"),
            "but j:f reads 2 streams here (a, b): give each",
        ),
    ],
)
def test_what_is_wrong_is_one_line(asked, options: Sequence[str], says: str) -> None:
    answer = asked(*options)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert says in answer.stderr


def test_a_container_does_not_see_the_copy(asked) -> None:
    result = asked("--call", "job.py", "--runtime", "container")
    assert result.exit_code == 2
    assert "a container does not see the copy of the checkpoint, which is on this machine" in result.output


def test_a_query_with_another_number_of_sources_may_be_another_of_the_program(asked) -> None:
    answer = asked(*MAIN, "--query", "1", queries=(query("bought"), query("counts", "orders")))
    assert "reads 2 streams here (orders, clicks): is another of its queries meant, with --query?" in answer.stderr


def test_a_folder_that_is_no_checkpoint_is_said_before_the_program_is_asked(asked, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "checkpoint")
    answer = asked(*MAIN)
    assert answer.exit_code == 2
    assert answer.stderr == "conformance: checkpoint: there is no such folder\n"
