"""A vendor's pyspark with ten settings changed: each violation is explained by the settings that cause it, and none by the engine."""

from __future__ import annotations

from pathlib import Path

from harness.environments.provision import obstacle, prepare
from harness.progress import ignore_progress
from harness.runtimes.own_code import with_requirements
from harness.targets.targets import Targets
from reports.results.reading import Results
from tests.engine.served import TOKEN, Served
from tests.engine.typed import ROOT, conformance
from tests.support.effort import full_run_only, sample

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


def configured(folder: Path) -> str:
    folder.mkdir()
    lines = {**CHANGED, "spark.acme.password": "sesame"}
    (folder / "spark-defaults.conf").write_text("".join(f"{key} {of}\n" for key, of in lines.items()))
    return str(folder)


def check_explained(tmp_path: Path, *engine: str) -> list[str]:
    """Run the cases and check what is said of them; returns all that the engine has of its own."""
    cases = dict(sample([*CASES.items()], 3))
    files = [str(ROOT / "cases" / f"{case}.yaml") for case in cases]
    done = conformance(tmp_path, "run", *files, *engine, "--label", "acme", "-o", "acme.jsonl")
    results = Results.read(tmp_path / "acme.jsonl")
    assert {cell.case: cell.explained_by for cell in results.cells} == cases, done.stdout + done.stderr
    assert {cell.case for cell in results.cells if cell.status == "violates"} == {case for case in cases if cases[case]}
    (target,) = results.header.targets
    assert done.returncode == 1
    assert f"explained by {NO_DATA}" in done.stdout
    written = (tmp_path / "acme.jsonl").read_text(encoding="utf-8")
    assert "probably wrong" not in done.stdout + written
    assert "sesame" not in done.stdout + done.stderr + written
    fixed = {setting.partition("=")[0] for setting in target.fixed}
    assert {"spark.acme.level", "spark.executor.memory"} <= fixed
    assert not fixed & {name for name in CHANGED if name.startswith("spark.sql.")}
    return [setting.partition(" (by default")[0] for setting in (*target.settings, *target.fixed)]


def test_each_difference_of_a_vendors_pyspark_is_explained(unpacked: Path, tmp_path: Path) -> None:
    configured(unpacked / "conf")
    own = check_explained(tmp_path, "--spark-home", str(unpacked))
    assert sorted(own) == sorted(f"{key}={value}" for key, value in CHANGED.items())


@full_run_only
def test_each_difference_of_a_vendors_connect_server_is_explained(tmp_path: Path) -> None:
    """The server has settings of its command line, too."""
    (newest,) = Targets.load().select(["newest"], obstacle=obstacle)
    environment = prepare(with_requirements(newest, newest.connect), on_progress=ignore_progress)
    server = Served(environment, tmp_path, SPARK_CONF_DIR=configured(tmp_path / "conf"))
    try:
        own = check_explained(tmp_path, "--spark", "newest", "--connect", server.url, "--side-by-side", "1")
    finally:
        server.close()
    assert {f"{key}={value}" for key, value in CHANGED.items()} <= {*own}
    assert TOKEN not in (tmp_path / "acme.jsonl").read_text(encoding="utf-8")
