"""A vendor's pyspark with ten settings changed: each violation is explained by the settings that cause it, and none by the engine."""

from __future__ import annotations

from pathlib import Path

from reports.results.reading import Results
from tests.engine.typed import ROOT, conformance
from tests.support.effort import sample

CHANGED = {
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.multipleWatermarkPolicy": "max",
    "spark.sql.streaming.minBatchesToRetain": "5",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.streaming.stateStore.rocksdb.compactOnCommit": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.acme.mode": "fast",
    "spark.executor.memory": "2g",
    "spark.acme.level": "7",
}
NO_DATA, POLICY = (
    "spark.sql.streaming.noDataMicroBatches.enabled=false",
    "spark.sql.streaming.multipleWatermarkPolicy=max",
)
CASES = {
    "no-data-batches/one-per-advance": (NO_DATA,),
    "several-watermarks/lowest-watermark-counts": (POLICY, NO_DATA),
    "output-modes/complete-emits-every-group-every-batch": (),
    "join-delays/unmatched-row-behind-the-evicting-watermark-gets-its-null-row": (POLICY,),
}
"""What explains that a case violates; empty where it conforms."""


def test_each_difference_of_a_vendors_pyspark_is_explained(unpacked: Path, tmp_path: Path) -> None:
    (unpacked / "conf").mkdir()
    lines = {**CHANGED, "spark.acme.password": "sesame"}
    (unpacked / "conf" / "spark-defaults.conf").write_text("".join(f"{key} {of}\n" for key, of in lines.items()))
    cases = dict(sample([*CASES.items()], 3))
    files = [str(ROOT / "cases" / f"{case}.yaml") for case in cases]
    done = conformance(tmp_path, "run", *files, "--spark-home", str(unpacked), "--label", "acme", "-o", "acme.jsonl")
    results = Results.read(tmp_path / "acme.jsonl")
    assert {cell.case: cell.explained_by for cell in results.cells} == cases, done.stdout + done.stderr
    assert {cell.case for cell in results.cells if cell.status == "violates"} == {case for case in cases if cases[case]}
    (target,) = results.header.targets
    own = {setting.partition(" (by default")[0] for setting in (*target.settings, *target.fixed)}
    assert own == {f"{key}={value}" for key, value in CHANGED.items()}
    assert [setting.partition("=")[0] for setting in target.fixed] == ["spark.acme.level", "spark.executor.memory"]
    assert done.returncode == 1
    assert f"explained by {NO_DATA}" in done.stdout
    assert "probably wrong" not in done.stdout + (tmp_path / "acme.jsonl").read_text(encoding="utf-8")
    assert "sesame" not in (tmp_path / "acme.jsonl").read_text(encoding="utf-8") + done.stdout + done.stderr
