"""Cases on watermark policies in the matrix: a column of their own, and nothing that counts elsewhere."""

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.judging.verdict import Status
from conformance.runner.cases import MODEL, policy_cells
from conformance.suite.discovery import Suite, load
from reports.analysis.matrix import Matrix
from reports.results.evidence import answers_policies
from reports.results.reading import Results
from reports.results.records import TargetRecord
from reports.results.writing import ResultsWriter
from reports.terminal import matrix
from tests.support.runs import cell, header

SPARK = "spark-3.5.9"
POLICY = "title: x\npolicy: {{stream-time: {{grace: 1}}}}\ntrace: [{{event: 5, expect: {{watermark: {watermark}}}}}]\n"
CASE = "title: x\nstreams: {events: at TIMESTAMP}\nquery: [from: events]\nsteps: [idle: {}]\n"


TARGETS = (SPARK, MODEL.name)


def suite(folder: Path, watermark: int) -> Suite:
    for name, text in (("spark/a", CASE), ("policies/b", POLICY.format(watermark=watermark))):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.yaml").write_text(text)
    return load([folder])


def run(loaded: Suite, path: Path) -> Results:
    everything = tuple(case.id for case in (*loaded.cases, *loaded.policy_cases))
    with ResultsWriter(path, header(everything, TARGETS)) as writer:
        writer.introduce(MODEL)
        for case in loaded.cases:
            writer.write(cell(case.id, SPARK))
        for found in policy_cells(loaded.cases, loaded.policy_cases, [SPARK]):
            writer.write(found)
        writer.finish()
    return Results.read(path)


@pytest.mark.parametrize(("watermark", "status", "code"), [(4, "conforms", 0), (5, "violates", 1)])
def test_every_cell_is_there(tmp_path: Path, watermark: int, status: Status, code: int) -> None:
    results = run(suite(tmp_path, watermark), tmp_path / "results.jsonl")
    assert {(cell.case, cell.target): cell.status for cell in results.cells} == {
        ("spark/a", "spark-3.5.9"): "conforms",
        ("spark/a", "model"): "not-applicable",
        ("policies/b", "spark-3.5.9"): "not-applicable",
        ("policies/b", "model"): status,
    }
    assert Matrix.of(results).exit_code == code


def test_the_matrix_shows_what_disagrees(tmp_path: Path) -> None:
    results = run(suite(tmp_path, 5), tmp_path / "results.jsonl")
    said = "\n".join(row.plain for row in matrix.lines(results, 100))
    assert "policies/b on model: violates" in said
    assert "step 1: expected watermark 5, but it is 4" in said
    assert "1 case × 1 version: 1 conforms; 0 violate" in said, "Spark's cells are counted alone"
    assert "1 case × 1 engine: 0 conform; 1 violates" in said
    assert "1/2" not in said


def test_columns_on_policies_are_a_matrix_of_their_own(tmp_path: Path) -> None:
    both = Matrix.of(run(suite(tmp_path, 5), tmp_path / "results.jsonl"))
    spark, policies = both.parts
    assert (spark.cases, [target.name for target in spark.targets]) == (("spark/a",), ["spark-3.5.9"])
    assert (policies.cases, [target.name for target in policies.targets]) == (("policies/b",), ["model"])
    assert spark.parts == (spark,)
    assert both.exit_code == 1, "what violates in either counts"


def test_a_case_that_applies_to_no_column_stays_with_its_family(tmp_path: Path) -> None:
    whole = Matrix.of(run(suite(tmp_path, 4), tmp_path / "results.jsonl"))
    outside = {
        (name, target): whole.cells["spark/a", "model"] for name in ("policies/c", "spark/d") for target in TARGETS
    }
    spark, policies = replace(
        whole, cases=(*whole.cases, "policies/c", "spark/d"), cells={**whole.cells, **outside}
    ).parts
    assert (spark.cases, policies.cases) == (("spark/a", "spark/d"), ("policies/b", "policies/c"))


def test_only_what_is_no_spark_answers_policies() -> None:
    assert answers_policies(MODEL)
    assert not answers_policies(TargetRecord(name="spark-3.5.9", spark="3.5.9", runtime="model"))
