"""A query of a real Spark, restarted from some images of a crash; and the commands of the page that say so."""

import re
import shlex
from pathlib import Path

import pytest

from reports.results.crash import CrashRecords
from tests.engine.typed import conformance
from tests.support.effort import full_run_only

ROOT = Path(__file__).parents[2]
COMMAND, OF_A_SINK, WITH_REMOVALS = re.findall(
    r"```sh\n(conformance maintain crash .*)\n```", (ROOT / "docs" / "crash-images.md").read_text(encoding="utf-8")
)


def test_a_window_aggregation_survives_its_crashes(tmp_path):
    done = conformance(ROOT, *shlex.split(COMMAND)[1:], "-o", str(tmp_path / "crashes.jsonl"))
    assert done.returncode == 0, done.stdout + done.stderr
    records = CrashRecords.read(tmp_path / "crashes.jsonl").records
    assert len(records) == int(re.findall(r"--at-most (\d+)", COMMAND)[0])
    assert {record.outcome for record in records if record.fault == "killed"} == {"resumed"}
    assert {record.outcome for record in records} <= {"resumed", "refused", "fails later", "unclear"}
    # Torn, lost and unsynced files are among them, and some of these are refused: a check that finds nothing finds no damage either.
    assert {record.outcome for record in records if record.fault != "killed"} > {"resumed"}
    assert f"{len(records)} images" in done.stdout


@full_run_only
def test_logs_are_compacted_and_purged_in_the_micro_batch_that_crashes(tmp_path):
    words = re.sub(r"--at-most \d+", "--fault killed --fault arrived", WITH_REMOVALS)
    done = conformance(ROOT, *shlex.split(words)[1:], "-o", str(tmp_path / "crashes.jsonl"))
    assert done.returncode == 0, done.stdout + done.stderr
    records = CrashRecords.read(tmp_path / "crashes.jsonl").records
    assert {record.outcome for record in records} == {"resumed"}
    operations = "\n".join(record.operation for record in records)
    assert re.search(r"remove checkpoint/offsets/\d", operations)
    assert re.search(r"remove checkpoint/commits/\d", operations)
    assert re.search(r"to checkpoint/sources/0/\d+\.compact", operations)


@full_run_only
@pytest.mark.parametrize(
    ("sink", "log"),
    [("files", "sink/_spark_metadata"), ("delta", "sink/_delta_log"), ("iceberg", "sink/metadata")],
)
def test_a_sink_has_each_row_once_wherever_the_query_was_killed(tmp_path, sink, log):
    """Also between the commit of the sink and that of Spark, where the sink skips what is replayed."""
    words = shlex.split(OF_A_SINK.replace(".files.", f".{sink}."))[1:]
    done = conformance(ROOT, *words, "--at-most", "12", "-o", str(tmp_path / "crashes.jsonl"))
    assert done.returncode == 0, done.stdout + done.stderr
    records = CrashRecords.read(tmp_path / "crashes.jsonl").records
    assert {record.outcome for record in records} == {"resumed"}
    assert any(log in record.operation for record in records)
