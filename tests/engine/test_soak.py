"""A small soak with a kill, every law held; and copies of what it left behind in which one thing is wrong, each caught by its law."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.progress import ignore_progress
from harness.runtimes.options import RuntimeOptions
from tests.support.effort import full_run_only
from tools.soak.engine import SoakEngine
from tools.soak.invariants import INVARIANTS
from tools.soak.run import ask, late_by, settings, stream

ROOT = Path(__file__).parents[2]
(COMMAND,) = re.findall(
    r"```sh\n(python -m tools.soak .*)\n```", (ROOT / "docs" / "soak.md").read_text(encoding="utf-8")
)
"""The command of the page, which is typed once for all these tests."""
ROWS, SEED, PARTITIONS = int(re.findall(r"--rows (\d+)", COMMAND)[0]), 20261121, 2
STREAM = stream(ROWS, SEED, PARTITIONS)


@pytest.fixture(scope="module")
def soaked(tmp_path_factory):
    """The folder of a soak, its record and what was printed."""
    folder = tmp_path_factory.mktemp("soak")
    more = ["--work", "work", "--seed", str(SEED), "--partitions", str(PARTITIONS)]
    done = subprocess.run(
        [sys.executable, *shlex.split(COMMAND)[1:], *more],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "work", json.loads((folder / "soak.json").read_text()), done.stdout


@pytest.fixture(scope="module")
def engine(target, tmp_path_factory):
    engine = SoakEngine.start(
        target,
        tmp_path_factory.mktemp("engine"),
        RuntimeOptions(conf=settings(STREAM, {})),
        patience=600.0,
        on_progress=ignore_progress,
    )
    yield engine
    engine.close()


@full_run_only
def test_every_law_holds_across_a_kill(soaked):
    folder, record, printed = soaked
    assert {law["name"] for law in record["laws"]} == {law.name for law in INVARIANTS}
    assert all(law["status"] == "holds" or law["name"] == "replays-agree" for law in record["laws"]), record["laws"]
    assert "✗" not in printed
    assert (record["kills"], record["kills_wanted"], record["arrived"]) == (1, 1, ROWS)
    assert record["arrived"] == record["counted"] + record["late"] + record["in_state"]
    assert record["late"] > ROWS / 100
    assert record["in_state"] == 1
    assert str(folder.parent) not in json.dumps(record)
    assert subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, check=False).stdout == b""


def outputs(folder):
    """File and line of each row that was emitted in the last attempt at its micro-batch, in order."""
    for batch in sorted((folder / "output").iterdir(), key=lambda path: int(path.name.partition("=")[2])):
        last = max(batch.iterdir(), key=lambda path: int(path.name.partition("=")[2]))
        for path in sorted(last.glob("part-*.json")):
            for number, line in enumerate(path.read_text().splitlines()):
                yield int(batch.name.partition("=")[2]), path, number, line


def rewrite(path, change):
    path.write_text("".join(line + "\n" for line in change(path.read_text().splitlines())))


def a_row_is_lost(folder):
    _, path, number, line = next(outputs(folder))
    row = json.loads(line)
    row["total"] -= 1
    rewrite(path, lambda lines: [*lines[:number], json.dumps(row), *lines[number + 1 :]])


def the_watermark_goes_back(folder):
    newest = max((folder / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    version, metadata, *rest = newest.read_text().splitlines()
    ran = json.loads(metadata)
    ran["batchWatermarkMs"] -= 600_000 * 1000
    newest.write_text("\n".join([version, json.dumps(ran), *rest]))


def a_file_is_passed_over(folder):
    first = min((folder / "input").glob("part-*.parquet"))
    shutil.copy(first, first.with_name("part-99999.parquet"))


def the_state_forgets(folder):
    def change(lines):
        entry = json.loads(lines[-1])
        entry["stateOperators"][0]["numRowsTotal"] -= 1
        return [*lines[:-1], json.dumps(entry)]

    rewrite(folder / "progress" / "1.jsonl", change)


BROKEN = (
    ("nothing-lost", a_row_is_lost),
    ("watermark-never-falls", the_watermark_goes_back),
    ("read-once", a_file_is_passed_over),
    ("state-holds-the-rest", the_state_forgets),
)


@full_run_only
@pytest.mark.parametrize(("law", "wrong"), BROKEN, ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_law_is_caught(soaked, target, engine, tmp_path, law, wrong):
    folder = tmp_path / "copy"
    shutil.copytree(soaked[0], folder, ignore=shutil.ignore_patterns("spark-*", "state", "*.crc"))
    wrong(folder)
    late = late_by(target.version, {})
    chosen = [one for one in INVARIANTS if one.name == law]
    _, (verdict,) = ask(engine, str(folder), STREAM, late, chosen)
    assert verdict.status == "broken"
    assert verdict.rows


@full_run_only
def test_a_soak_that_is_stopped_leaves_no_engine_behind(tmp_path):
    command = [sys.executable, "-m", "tools.soak", "--spark", "3.5", "--work", str(tmp_path / "work")]
    run = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True
    )
    for line in run.stderr:
        if line.startswith("generating"):
            break
    run.send_signal(signal.SIGTERM)
    _, said = run.communicate(timeout=600)
    assert run.returncode == 130, said
    assert "soak.json is not written; no engine is left running" in said
    assert subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, check=False).stdout == b""
