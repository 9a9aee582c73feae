"""``conformance run --spark model``: cases on policies as a column of their own, and what cannot run there."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from reports.results.reading import Results

CASES = Path(__file__).parents[4] / "cases"


@pytest.fixture
def run(tmp_path):
    def run(*arguments):
        done = CliRunner().invoke(app, ["run", *map(str, arguments), "--output", str(tmp_path / "r.jsonl")])
        return done.exit_code, " ".join(done.output.replace("│", " ").split())

    return run


@pytest.mark.parametrize("arguments", [("--spark", "model"), ()])
def test_cases_on_policies_run_on_the_model(run, tmp_path, arguments):
    code, said = run(CASES / "policies", *arguments)
    assert code == 0, said
    found = Results.read(tmp_path / "r.jsonl")
    assert [target.name for target in found.header.targets] == ["model"]
    assert len(found.cells) == len(list((CASES / "policies").glob("*.yaml")))
    assert "0 violate" in said


def test_where_no_case_is_named_the_smoke_cases_run(run, tmp_path):
    code, said = run("--spark", "model")
    assert code == 0, said
    all_cases = len(list((CASES / "policies").glob("*.yaml")))
    found = Results.read(tmp_path / "r.jsonl")
    assert 0 < len(found.cells) < all_cases
    smoke = f"{len(found.cells)} of {all_cases} cases, those tagged smoke; `conformance run --all` runs all of them"
    assert smoke in said


@pytest.mark.parametrize(
    ("family", "spark", "says"),
    [
        ("policies", "3.5", "run on the model, not on Spark: pass --spark model"),
        ("late-drops", "model", "conformance explain"),
    ],
)
def test_they_run_on_no_spark_and_cases_for_spark_not_on_the_model(run, family, spark, says):
    code, said = run(CASES / family, "--spark", spark)
    assert code == 2
    assert says in said
