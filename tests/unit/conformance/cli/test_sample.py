"""``conformance sample``: a file for each source that a program reads, and none that is there is written over."""

import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.core.data import Json
from conformance.own_job import program as programs
from harness.engine.protocol import ProgramSeen, SourceSeen
from tests.unit.conformance.own_job.test_program import CLICKS, ORDERS, TABLE


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.py").write_text("")

    def run(*options: str, sources: tuple[SourceSeen, ...] = (ORDERS, CLICKS), job: tuple[str, ...] = ("job.py",)):
        def made(survey: programs.Survey, _: object) -> ProgramSeen:
            called.append(survey.program.called)
            return ProgramSeen(kind="program", case="job.py", sources=sources, queries=())

        monkeypatch.setattr(programs.Survey, "made", made)
        return CliRunner().invoke(app, ["sample", *job, "--from", "3.5", *options], env={"COLUMNS": "200"})

    called: list[dict[str, Json]] = []
    run.called = called

    return run


def test_each_source_gets_a_file_which_stays_the_next_time(asked, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/clicks.jsonl").write_text("mine\n")
    answer = asked("-o", "in")
    assert answer.exit_code == 0
    assert answer.stdout == "--sample orders=in/orders.jsonl --sample clicks=in/clicks.jsonl\n"
    assert "in/orders.jsonl: 3 rows with made-up values; replace them by yours" in answer.stderr
    assert "in/clicks.jsonl exists already, and stays" in answer.stderr
    assert (tmp_path / "in/orders.jsonl").read_text().splitlines()[1] == '{"t": "2026-03-01 12:10:00", "n": 1}'
    assert (tmp_path / "in/clicks.jsonl").read_text() == "mine\n"


def test_a_source_whose_columns_nobody_says_needs_a_schema(asked, tmp_path: Path) -> None:
    answer = asked(sources=(ORDERS, TABLE))
    assert answer.exit_code == 2
    assert "only the source itself says its columns: add --schema 'sales=t TIMESTAMP, …'" in answer.stderr
    assert asked("--schema", "sales=d DATE", sources=(TABLE,)).exit_code == 0
    assert (tmp_path / "sales.jsonl").read_text().startswith('{"d": "2026-03-01"}\n')


RECORDED = SourceSeen(
    name="orders",
    format="delta",
    ddl="`who` string, `n` bigint",
    rows=('{"who": "ada", "n": 1}', '{"who": null, "n": 2}'),
)
UNREAD = SourceSeen(name="ticks", format="rate", ddl="`t` timestamp", unread="rate is no source of a DataFrame")


def test_rows_of_the_source_itself_are_written_masked_or_it_says_why_not(asked, tmp_path: Path) -> None:
    answer = asked("--record", "5", "--mask", "orders=who", sources=(RECORDED, UNREAD))
    assert answer.exit_code == 0
    assert answer.stdout == (
        "--sample orders=orders.jsonl --schema 'orders=`who` string, `n` bigint' --sample ticks=ticks.jsonl\n"
    )
    assert "orders.jsonl: 2 rows of the source" in answer.stderr
    assert "ticks: rate is no source of a DataFrame" in answer.stderr
    assert "ticks.jsonl: 3 rows with made-up values" in answer.stderr
    first, second = (tmp_path / "orders.jsonl").read_text().splitlines()
    assert first.startswith('{"who": "masked-')
    assert second == '{"who": null, "n": 2}'


def test_a_main_method_is_asked_too_with_its_arguments(asked, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "jobs.jar", "w") as archive:
        archive.writestr("acme/Main.class", "")
    main = ("--jar", "jobs.jar", "--main", "acme.Main")
    answer = asked("--", "--day", "1", sources=(ORDERS,), job=main)
    assert (answer.exit_code, answer.stdout) == (0, "--sample orders=orders.jsonl\n")
    assert asked.called == [{"main": "acme.Main", "arguments": ["--day", "1"]}]
    assert "acme.Main: asking 3.5.9 what it reads" in answer.stderr


@pytest.mark.parametrize(
    ("options", "job", "says"),
    [
        (("--mask", "orders=who"), "job.py", "add --record N"),
        (("--record", "5", "--mask", "order=who"), "job.py", "unknown source 'order': did you mean 'orders'?"),
        ((), "jobs:build", "only a program says what it reads"),
        (("--main", "acme.Main"), None, "acme.Main is a class of a jar: --jar is missing"),
        ((), None, "a module, or --main a class of --jar"),
    ],
)
def test_what_is_wrong_is_said(asked, options, job, says) -> None:
    answer = asked(*options, sources=(RECORDED,), job=(job,) if job else ())
    assert answer.exit_code == 2
    assert says in answer.stderr
