"""Real tables: cases answer through Delta and Iceberg as they do through files, also after a kill, with a backlog and with two streams."""

import pytest

from reports.results.reading import Results
from tests.engine.typed import ROOT, conformance
from tests.support.effort import full_run_only

CASES = (
    "late-drops/guide-example-in-append-mode-without-a-pause",
    "several-watermarks/lowest-watermark-counts",
    "recovery/killed-while-it-runs-counts-no-row-twice",
)


@full_run_only
@pytest.mark.parametrize(
    ("format", "package"),
    [("delta", "delta-spark_2.12 3.3.3"), ("iceberg", "iceberg-spark-runtime-3.5_2.12 1.12.0")],
)
def test_cases_answer_through_a_table_as_through_files(tmp_path, format, package):
    paths = [str(ROOT / "cases" / f"{case}.yaml") for case in CASES]
    done = conformance(tmp_path, "run", *paths, "--source", format, "--spark", "3.5.9")
    assert done.returncode == 0, done.stdout + done.stderr
    results = Results.read(tmp_path / "results.jsonl")
    assert {cell.case for cell in results.cells} == {f"{case}@{format}" for case in CASES}
    assert {cell.status for cell in results.cells} <= {"conforms", "differs"}
    (target,) = results.header.targets
    assert target.tables == package
