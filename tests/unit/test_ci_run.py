"""``.ci/run``: what a command in the background prints is shown, that it fails is noticed, and none outlives the script."""

import os
import re
import subprocess
import time
from pathlib import Path

import psutil

from conformance.suite.selection import Shard
from harness.scheduling.cell_run import CellTask
from harness.scheduling.scheduler import CellBatch
from harness.targets.targets import Targets
from tests.support.whole_suite import whole_suite

RUN = Path(__file__).parents[2] / ".ci" / "run"
LIMIT_S = 600


def run(folder, script):
    text = RUN.read_text(encoding="utf-8")
    functions = text[text.index("declare -A running") : text.index("install_packages() {")]
    program = f"set -euo pipefail\n{functions}\n{script}\necho at the end"
    environ = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(["bash", "-c", program], cwd=folder, env=environ, capture_output=True, text=True, check=False)


def test_a_command_is_awaited_and_what_it_printed_is_shown(tmp_path):
    done = run(tmp_path, "work() { echo pulled; }\nbeside images work\nready images")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == ["== images: in the background", "images: pulled"]
    assert done.stdout.splitlines()[-1] == "at the end"
    assert [*tmp_path.iterdir()] == []


def test_a_command_that_fails_ends_the_script(tmp_path):
    done = run(tmp_path, "work() { echo no route; (exit 7); echo unreached; }\nbeside images work\nready images")
    assert (done.returncode, done.stderr) == (7, "images failed with exit code 7\n")
    assert "images: no route\n" in done.stdout
    assert "unreached" not in done.stdout
    assert "at the end" not in done.stdout


def test_a_command_ends_with_the_script_and_so_does_what_it_started(tmp_path):
    work = "work() { sleep 3600 & echo $! >started; mv started child; wait; }"
    done = run(tmp_path, f"{work}\nbeside images work\nwhile [ ! -e child ]; do :; done\nexit 5")
    assert done.returncode == 5
    child = int((tmp_path / "child").read_text())
    begun = time.monotonic()
    while runs(child):
        assert time.monotonic() - begun < LIMIT_S
        time.sleep(0.01)


def test_the_cases_that_make_a_class_archive_give_their_engine_no_jars():
    """An engine with jars of its own writes none, and all engines of the tests would start slower in silence."""
    (family,) = re.findall(r"suite cases/(\S+) --shard", RUN.read_text(encoding="utf-8"))
    cases = [case for case in whole_suite().cases if case.family == family]
    assert cases
    assert not [case.id for case in cases if case.topics or case.table_formats or case.jars or case.calls_main]


def test_the_part_of_the_suite_has_every_family_and_every_kind_of_engine():
    """Engines with each format of tables, with kills and with real-time queries, and plain ones."""
    (shard,) = re.findall(r"suite --all --shard (\S+) --spark newest", RUN.read_text(encoding="utf-8"))
    (newest,) = Targets.load().select(["newest"])

    def kinds(cases):
        slots = [CellBatch((CellTask(case, (newest,)),)).slot for case in cases]
        engines = {(slot.needs.tables, slot.needs.real_time) for slot in slots} | {slot.for_kills for slot in slots}
        return engines | {case.family for case in cases}

    assert kinds(Shard.parse(shard).among(whole_suite().cases)) == kinds(whole_suite().cases)


def runs(number):
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
