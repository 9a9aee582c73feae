"""A real Spark, the newest that this machine can run: the smoke cases, which are of every family, and each path of the harness once.

Part of what ``pytest`` runs by default; the other tests on real engines are a tier of their own.
"""

import re

import pytest

from conformance.core.case import Restart
from conformance.suite import discovery
from conformance.suite.selection import SMOKE, only_tagged
from harness.engine.request import kills_its_engine
from harness.environments import provision
from harness.targets.targets import Targets
from reports.results.reading import Results
from tests.engine.typed import conformance
from tests.engine.watched import watched
from tests.support.whole_suite import whole_suite

SECRET = "hunter2hunter2"


@pytest.fixture(scope="module")
def newest():
    (target,) = Targets.load().select(["newest"], obstacle=provision.obstacle)
    return target


@pytest.fixture(scope="module")
def chosen(newest):
    """The smoke cases, one that kills its engine and one that restarts after a crash."""
    cases = [case for case in whole_suite().cases if case.applies_to(newest.version)]
    smoke = only_tagged(cases, [SMOKE])
    killing = next(case for case in cases if kills_its_engine(case))
    crashing = next(
        case
        for case in cases
        if any(isinstance(step.action, Restart) and step.action.how == "crash-before-commit" for step in case.steps)
    )
    return list({case.id: case for case in (*smoke, killing, crashing)}.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("smoke")


@pytest.fixture(autouse=True)
def nothing_known_yet(folder, monkeypatch):
    """The commands of this module share one answer cache."""
    monkeypatch.setenv("CONFORMANCE_ANSWERS", str(folder / "answers.sqlite"))


@pytest.fixture(scope="module")
def paths(chosen):
    return [str(discovery.shipped() / f"{case.id}.yaml") for case in chosen]


@pytest.fixture(scope="module")
def results(newest, chosen, paths, folder):
    """What a run of these cases wrote."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONFORMANCE_ANSWERS", str(folder / "answers.sqlite"))
        done = conformance(folder, "run", *paths, "--spark", str(newest.version), "-o", "results.jsonl")
    assert done.returncode == 0, done.stdout + done.stderr
    return Results.read(folder / "results.jsonl")


def test_every_case_is_judged_as_expected(results, chosen):
    assert {cell.case for cell in results.cells} == {case.id for case in chosen}
    assert len(chosen) >= 13
    assert {cell.status for cell in results.cells} <= {"conforms", "differs", "bug", "unsupported"}
    assert not any(cell.reused for cell in results.cells)


def test_the_command_of_the_readme_runs_the_smoke_cases_and_needs_no_engine_now(results, folder):
    done = conformance(folder, "run", "-o", "again.jsonl")
    assert done.returncode == 0, done.stdout + done.stderr
    again = Results.read(folder / "again.jsonl")
    assert all(cell.reused for cell in again.cells)
    smoke = {case.id for case in only_tagged(whole_suite().cases, [SMOKE])}
    assert {(cell.case, cell.behaviour) for cell in again.cells} == {
        (cell.case, cell.behaviour) for cell in results.cells if cell.case in smoke
    }
    assert done.stdout.splitlines()[1].startswith(f"{len(smoke)} of ")


def test_a_checkpoint_is_handed_over(results, newest, chosen, folder):
    """From the version to itself, by way of a saved checkpoint and another process."""
    case = next(case for case in chosen if case.family == "window-eviction")
    version = str(newest.version)
    file = str(discovery.shipped() / f"{case.id}.yaml")
    done = conformance(folder, "upgrade", file, "--from", version, "--to", version, "-o", "upgrades.jsonl")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"1 .*resume", done.stdout), done.stdout


@pytest.fixture(scope="module")
def wrong_run(newest, folder, tmp_path_factory):
    """A run of a case with one wrong row, and with a secret among the settings of its engine."""
    text = (discovery.shipped() / "late-drops" / "window-still-open.yaml").read_text(encoding="utf-8")
    wrong = folder / "wrong" / "cases" / "window-still-open.yaml"
    wrong.parent.mkdir(parents=True)
    wrong.write_text(text.replace('rows: [["12:00", "12:10", 6]]', 'rows: [["12:00", "12:10", 7]]'), encoding="utf-8")
    assert wrong.read_text(encoding="utf-8") != text
    settings = tmp_path_factory.mktemp("home") / "secret.conf"
    settings.write_text(f"spark.hadoop.fs.s3a.secret.key  {SECRET}\n", encoding="utf-8")
    options = ("--spark", str(newest.version), "-o", "wrong.jsonl", "--work", "work")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONFORMANCE_ANSWERS", str(folder / "answers.sqlite"))
        return watched(folder, "run", str(wrong), *options, "--properties-file", str(settings))


def test_a_wrong_expectation_is_seen(wrong_run, folder):
    """A check that cannot fail is a defect: the same case with one wrong row violates, and says which."""
    assert wrong_run.returncode == 1, wrong_run.output
    (cell,) = Results.read(folder / "wrong.jsonl").cells
    assert cell.status == "violates"
    assert "expected, not emitted" in wrong_run.output


def test_a_secret_reaches_the_engine_and_nobody_else(wrong_run, folder):
    assert any("java" in arguments for arguments in wrong_run.arguments)
    assert any(SECRET in variable for variable in wrong_run.variables)
    assert not [arguments for arguments in wrong_run.arguments if SECRET in arguments]
    for command in ("report wrong.jsonl", "case export json wrong.jsonl -o everything.json"):
        done = conformance(folder, *command.split(), "--cases", "wrong/cases")
        assert done.returncode == 0, done.stdout + done.stderr
        assert SECRET not in done.stdout + done.stderr
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"output.txt", "wrong.jsonl", "index.html", "everything.json"} <= {path.name for path in files}
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
