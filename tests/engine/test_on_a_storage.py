"""Cases whose files are in an HDFS: the same answers as on a disk, and nothing left behind."""

from pathlib import Path

import pytest

from harness.runtimes.cluster import StorageUrl
from harness.runtimes.local import LocalRuntime
from reports.results.reading import Results
from tests.engine.here import first_of_each_family
from tests.engine.remembering import Remembering
from tests.engine.typed import conformance
from tests.support.effort import full_run_only, number, sample
from tests.support.whole_suite import whole_suite

ROOT = Path(__file__).parents[2]
CASE = ROOT / "cases" / "late-drops" / "window-still-open.yaml"
ALTERED = sample(
    (
        "recovery/killed-at-rest-goes-on-with-watermark-and-state",
        "recovery/truncated-commit-is-refused",
        "recovery/state-delta-gone-is-refused",
        "recovery/late-filter-after-restart-uses-the-last-batch-watermark",
    ),
    1,
)
"""An engine is killed; in a full run checkpoints are spoilt, and have a commit taken back, too."""


def test_the_same_answers_as_on_a_disk(tmp_path, target, hdfs, here):
    altered = [case for case in whole_suite().cases if case.id in ALTERED]
    cases = (*first_of_each_family(here, lambda case: case.id not in ALTERED, few=2), *altered)
    runtime = LocalRuntime(tmp_path, storage=StorageUrl(hdfs.url).unique_directory())
    seen = Remembering().asked(runtime, target, cases, side_by_side=2)
    assert len(seen) == len(cases) >= number(2, 12) + len(ALTERED)
    assert seen == {case.id: here[case.id] for case in cases}
    assert hdfs.names() == []


@full_run_only
@pytest.mark.parametrize(
    ("storage", "why"),
    [
        ("hdfs://localhost:9/tests", "ConnectException: Connection refused"),
        ("nofs://here/tests", 'UnsupportedFileSystemException: No FileSystem for scheme "nofs"'),
        ("file:///proc/tests", "cannot make file:///proc/tests/"),
    ],
)
def test_a_storage_that_is_not_writable_is_reported(tmp_path, storage, why):
    done = conformance(tmp_path, "run", str(CASE), "--spark", "3.5", "--storage", storage)
    assert done.returncode == 3
    assert f"cannot write to {storage}/conformance-" in done.stdout
    assert why in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    (cell,) = Results.read(tmp_path / "results.jsonl").cells
    assert cell.status == "broken"
