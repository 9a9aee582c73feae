"""A checkpoint handed from a classic session to Spark Connect, or back: miniature engines, no server."""

import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.runner import resources
from reports.results.reading import Results
from tests.support.miniature.two_versions import TwoVersions

CASE = Path(__file__).parents[3] / "support" / "miniature" / "cases" / "late-drops" / "windows.yaml"
SERVER = "sc://localhost:15002"
OTHERWISE = """
upgrades:
  - writtenBy: classic
    resumedBy: connect
    because: it forgets
    link: SPARK-57489
    steps: {2: {rows: [], batches: [{kind: data}, {kind: no-data}]}}
"""


@pytest.fixture
def upgrade(tmp_path, monkeypatch):
    """The command on the case with one more key; engines of ``modes`` have faults."""

    def run(*arguments, more="", modes=None, code=0):
        (tmp_path / "cases").mkdir(exist_ok=True)
        (tmp_path / "cases" / "mine.yaml").write_text(CASE.read_text() + textwrap.dedent(more))
        work = tmp_path / str(len(list(tmp_path.iterdir())))
        work.mkdir()
        run.asked = None

        def runtime(options, *_, **__):
            run.asked = options
            return TwoVersions(work, modes or {})

        monkeypatch.setattr(resources, "runtime_for", runtime)
        monkeypatch.chdir(tmp_path)
        done = CliRunner().invoke(app, ["upgrade", "cases", *arguments])
        assert done.exit_code == code, done.output
        return done.output

    run.cells = lambda: Results.read(tmp_path / "upgrades.jsonl").upgrades
    return run


def test_the_same_version_on_both_sides(upgrade):
    said = upgrade("--from", "3.5.9", "--to", "3.5.9", "--connect", SERVER)
    (cell,) = upgrade.cells()
    assert (cell.origin, cell.target, cell.status) == ("spark-3.5.9", "spark-3.5.9-connect", "conforms")
    assert "3.5.9 → 3.5.9 through Connect" in said
    assert (upgrade.asked.beside_connect, str(upgrade.asked.endpoint)) == (True, SERVER)


def test_the_other_way_round_with_the_address_in_the_variable(upgrade, monkeypatch):
    monkeypatch.setenv("CONFORMANCE_CONNECT", f"{SERVER}/;token=sesame-4711")
    said = upgrade("--from", "3.5.9", "--to", "3.5.9", "--to", "4.0.5", "--connect-side", "from")
    expected = [("spark-3.5.9-connect", "spark-3.5.9"), ("spark-3.5.9-connect", "spark-4.0.5")]
    assert [cell.pair for cell in upgrade.cells()] == expected
    assert "sesame" not in said
    assert str(upgrade.asked.endpoint) == SERVER


def test_the_variable_alone_changes_nothing(upgrade, monkeypatch):
    monkeypatch.setenv("CONFORMANCE_CONNECT", SERVER)
    upgrade("--from", "3.5.9", "--to", "4.0.5")
    assert [cell.target for cell in upgrade.cells()] == ["spark-4.0.5"]
    assert upgrade.asked.endpoint is None


def test_an_entry_speaks_of_its_interfaces_only(upgrade):
    forgets = {"spark-4.0.5-connect": "forgets-on-resume", "spark-4.0.5": "forgets-on-resume"}
    upgrade("--from", "3.5.9", "--to", "4.0.5", "--connect", SERVER, more=OTHERWISE, modes=forgets)
    assert [cell.status for cell in upgrade.cells()] == ["differs"]
    assert upgrade.cells()[0].differs.because == "it forgets"
    upgrade("--from", "3.5.9", "--to", "4.0.5", more=OTHERWISE, modes=forgets, code=1)
    assert [cell.status for cell in upgrade.cells()] == ["violates"]
    assert upgrade.cells()[0].differs is None


def test_an_entry_that_is_no_longer_true_is_stale(upgrade):
    said = upgrade("--from", "3.5.9", "--to", "4.0.5", "--connect", SERVER, more=OTHERWISE, code=1)
    assert "stale upgrades entry for 3.5.9 → 4.0.5 through Connect" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--connect-side", "to"], "pass the address of the server, --connect or CONFORMANCE_CONNECT"),
        (["--connect", "localhost:15002"], "--connect takes the address of a Spark Connect server"),
        (["--connect", "sc://elsewhere:15002"], "run this on the machine of the server"),
        (["--connect", SERVER], "name the versions of both sides with --from and --to"),
        (["--connect", SERVER, "--from", "3.5.9", "--to", "3.5.9", "--pairs", "all"], "without --pairs"),
        (
            ["--connect", SERVER, "--from", "3.5.9", "--to", "3.5.9", "--to", "4.0.5"],
            "--to means spark-3.5.9, spark-4.0.5, and the server of --connect runs one version: name that one",
        ),
        (["--connect", SERVER, "--from", "3.5.9", "--to", "3.4.4"], "spark-3.4.4 does not run streaming queries"),
        (["--connect", SERVER, "--runtime", "container"], "a container has its own engine"),
    ],
)
def test_wrong_usage(upgrade, arguments, said):
    code = 3 if "does not run" in said else 2
    printed = " ".join(upgrade(*arguments, code=code).replace("│", " ").split())
    assert said in printed
    assert upgrade.asked is None
