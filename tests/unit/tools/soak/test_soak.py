"""What is asked, for which version, and what a person gets to read."""

import io
import subprocess
import sys

import pytest
from rich.console import Console

from conformance.core.versions import SparkVersion
from conformance.runner.resources import working_folder
from harness.runtimes import program
from tests.support.miniature.target import SPARK_359
from tests.unit.tools.soak.engines import FakeEngines
from tools.soak.__main__ import app
from tools.soak.engine import CODE, SoakEngine
from tools.soak.invariants import INVARIANTS, judge
from tools.soak.record import SoakRecord
from tools.soak.run import late_by, settings, stream
from tools.soak.terminal import show

MULTIPLE = "spark.sql.streaming.statefulOperator.allowMultiple"


@pytest.mark.parametrize(
    ("version", "conf", "late"),
    [
        ("3.3.4", {}, "own batch"),
        ("3.4.0", {}, "batch before"),
        ("4.3.0", {}, "batch before"),
        ("4.3.0", {MULTIPLE: "false"}, "own batch"),
        ("4.3.0", {MULTIPLE: "true"}, "batch before"),
    ],
)
def test_by_whose_watermark_rows_are_late(version, conf, late):
    assert late_by(SparkVersion.parse(version), conf) == late


@pytest.mark.parametrize(
    ("rows", "batches"), [(1000, 12), (50_000, 12), (500_000, 50), (10_000_000, 100), (10**9, 100)]
)
def test_micro_batches_of_a_stream(rows, batches):
    assert stream(rows, 1, 4).batches == batches


def test_settings_that_somebody_wishes_count_most():
    found = settings(stream(1000, 1, 4), {"spark.sql.shuffle.partitions": "7", "spark.x": "y"})
    assert found["spark.sql.shuffle.partitions"] == "7"
    assert found["spark.x"] == "y"
    assert int(found["spark.sql.streaming.minBatchesToRetain"]) > 10_000


def test_what_is_staged_can_be_imported_and_nothing_else(tmp_path):
    work = program.stage(SPARK_359, tmp_path, CODE)
    staged = {path.relative_to(work / "engine").as_posix() for path in (work / "engine").glob("*/*")}
    assert {"harness/driver", "soak_driver/__main__.py"} <= staged
    assert [path for path in staged if path.startswith("harness/")] == ["harness/driver"]
    assert "soak_driver/__pycache__" not in staged
    imports = "import sys; sys.path.insert(0, 'engine'); import soak_driver.__main__, soak_driver.tables"
    subprocess.run([sys.executable, "-I", "-c", imports], cwd=work, check=True)
    other = program.stage(SPARK_359, tmp_path)
    assert (other / "engine" / "driver" / "jobs" / "program.py").is_file()


def record(**changes):
    holds = tuple(judge(law, 5) for law in INVARIANTS)
    values = {
        "command": "python -m tools.soak",
        "started": "2026-11-21T00:00:00Z",
        "target": "spark-3.5.9",
        "spark": "3.5.9",
        "java": "17",
        "master": None,
        "rows": 100,
        "seed": 7,
        "kills_wanted": 3,
        "kills": 3,
        "seconds": 2.0,
        "arrived": 100,
        "counted": 90,
        "late": 9,
        "in_state": 1,
        "laws": holds,
    }
    return SoakRecord.model_validate(values | changes)


BROKEN = judge(INVARIANTS[0], 5, ("window_end", "sensor", "times", "first_batch"), ((1704067500000, 3, 2, 4),))
SILENT = judge(INVARIANTS[1], 0)


@pytest.mark.parametrize(
    ("changes", "exit_code"),
    [
        ({}, 0),
        ({"laws": (SILENT,)}, 0),
        ({"laws": (BROKEN,)}, 1),
        ({"counted": 89}, 1),
        ({"kills": 2}, 3),
        ({"kills": 2, "laws": (BROKEN,)}, 1),
    ],
)
def test_exit_codes(changes, exit_code):
    assert record(**changes).exit_code == exit_code


def told(found):
    console = Console(record=True, width=300, file=io.StringIO())
    show(found, console)
    return console.export_text().splitlines()


def test_what_is_printed():
    holds = judge(INVARIANTS[2], 5000)
    assert told(record(laws=(holds, SILENT, BROKEN))) == [
        "● no window is emitted before the watermark has reached its end  (5,000 emitted rows, in any attempt)",
        "– a replayed micro-batch emits the same rows as its first attempt  (0 replayed micro-batches whose first output was complete)",
        "✗ no window is emitted twice  (5 emitted rows)",
        "    window_end 2024-01-01 00:05:00, sensor 3, times 2, first_batch 4",
        f"    {INVARIANTS[0].source}",
        "100 rows = 90 counted + 9 late + 1 in state",
        "Spark 3.5.9, seed 7: 100 rows in 2 s, 50 rows per second, 3 of 3 kills",
    ]
    assert "100 rows ≠ 89 counted + 9 late + 1 in state" in told(record(counted=89))


def test_the_record_is_read_as_it_was_written():
    found = record(laws=(BROKEN, SILENT))
    assert SoakRecord.model_validate_json(found.text) == found


def exit_code_of(*arguments):
    with pytest.raises(SystemExit) as ended:
        app(arguments)
    return ended.value.code


@pytest.fixture
def fake_engines(monkeypatch, tmp_path):
    """Engines of a few lines in place of Spark."""
    monkeypatch.chdir(tmp_path)

    def put(**kind):
        engines = FakeEngines(**kind)
        monkeypatch.setattr(SoakEngine, "start", lambda *_: engines.start())
        return engines

    return put


def test_a_soak_from_the_command_to_the_file(fake_engines, tmp_path, capsys):
    engines = fake_engines(rows=50)
    assert exit_code_of("--spark", "3.5", "--rows", "1000", "--kills", "2", "--seed", "7") == 0
    said = capsys.readouterr()
    assert "1,000 rows, seed 7, 2 kills, on spark-3.5.9; into soak.json" in said.err
    assert "kill 2: engine 3 resumes" in said.err
    assert len([line for line in said.out.splitlines() if line.startswith("● ")]) == len(INVARIANTS)
    found = SoakRecord.model_validate_json((tmp_path / "soak.json").read_text())
    assert (found.kills, found.seed, found.exit_code) == (2, 7, 0)
    # Three engines read, and a fourth answers.
    assert [request["kind"] for request in engines.transports[3].requests] == ["ask"]
    assert engines.transports[3].requests[0]["late"] == "batch before"
    assert all(transport.closed for transport in engines.transports)


def test_a_broken_law_fails_the_command(fake_engines, capsys):
    fake_engines(breaks="nothing-lost")
    assert exit_code_of("--spark", "3.5", "--rows", "1000") == 1
    assert "✗ every emitted window counts exactly the rows that were not late" in capsys.readouterr().out


def test_too_few_kills_are_said(fake_engines, capsys):
    # The stream is read to its end before its first moment comes.
    fake_engines(batches=0)
    assert exit_code_of("--spark", "3.5", "--rows", "1000", "--kills", "1") == 3
    assert "only 0 of 1 kill hit the query before it ended" in capsys.readouterr().err


def test_an_engine_that_dies_gives_no_verdict(fake_engines, tmp_path, capsys):
    fake_engines(dies_at=3)
    assert exit_code_of("--spark", "3.5", "--rows", "1000") == 3
    assert "OutOfMemoryError" in capsys.readouterr().err
    assert not (tmp_path / "soak.json").exists()


JVM_IS_GONE = """Traceback (most recent call last):
  File "/work/harness/driver/serve.py", line 80, in serve
    answer(channel, backend, message)
  File "/py4j/clientserver.py", line 538, in send_command
    raise Py4JNetworkError("Answer from Java side is empty")
py4j.protocol.Py4JNetworkError: Answer from Java side is empty
"""


def test_a_killed_jvm_is_a_message_and_no_traceback(fake_engines, tmp_path, capsys):
    engines = fake_engines(fails=JVM_IS_GONE)
    assert exit_code_of("--spark", "3.5", "--rows", "1000") == 3
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert 'File "' not in said
    assert "Py4JNetworkError: Answer from Java side is empty" in said
    assert "soak.json is not written" in said
    assert all(transport.closed for transport in engines.transports)
    assert not (tmp_path / "soak.json").exists()


def test_one_version_only(capsys):
    assert exit_code_of("--spark", "lines") == 2
    assert "a soak runs on one version" in capsys.readouterr().err


def test_a_folder_with_something_in_it_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").touch()
    assert exit_code_of("--spark", "3.5", "--work", str(tmp_path)) == 2
    assert "not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_cluster_elsewhere_needs_a_folder_that_it_shares(capsys):
    assert exit_code_of("--master", "spark://cluster.example:7077") == 2
    assert "--storage" in capsys.readouterr().err


def test_a_working_folder_that_was_named_is_kept(tmp_path):
    with working_folder(tmp_path / "mine") as folder:
        (folder / "file").touch()
    assert (tmp_path / "mine" / "file").exists()
    with working_folder(storage=tmp_path) as folder:
        assert folder.parent == tmp_path
    assert not folder.exists()
