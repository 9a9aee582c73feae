"""A few commands of the weekly soak, and what it must notice: each broken promise ends it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_soak import ROOT, Answered, Asked, Command, CommandSoak, SoakFailure, read

GREEN = Answered((("spark-4.0.5", "conforms"),), (1,), upgrade=False)


@pytest.fixture
def soak(tmp_path: Path) -> Iterator[CommandSoak]:
    soak = CommandSoak(tmp_path, seed=1)
    yield soak
    soak.close()


def test_a_few_commands_keep_every_promise() -> None:
    command = [sys.executable, "-m", "tests.support.command_soak", "--seed", "38", "--commands", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "commands in" in done.stdout


def results(*statuses: str) -> bytes:
    cells = [{"record": "cell", "target": "spark-4.0.5", "status": status} for status in statuses]
    header = {"record": "header", "command": "conformance run --step-timeout 60.000001"}
    return b"".join(json.dumps(each).encode() + b"\n" for each in (header, *cells, {"record": "footer"}))


def ended(soak: CommandSoak, said: str, code: int = 0, *others: str | None) -> None:
    path = soak.logs / "said"
    path.write_text(said, encoding="utf-8")
    process = subprocess.Popen(["true"])
    process.wait()
    soak.check_ended(Command(Asked(["gate"], frozenset({1})), process, path), code, "nothing", None, others)


def test_a_file_that_another_command_writes_may_change_while_it_is_read(soak: CommandSoak) -> None:
    said = "conformance: out/a.jsonl: the file changed while it was read; try again when no run writes it"
    ended(soak, said, 3, "out/a.jsonl")
    for others in ((), (None,), ("out/b.jsonl",)):
        with pytest.raises(SoakFailure, match="exit code 3 is none of"):
            ended(soak, said, 3, *others)


def test_results_are_read_without_the_program() -> None:
    assert read(results("conforms", "broken")) == Answered(
        (("spark-4.0.5", "conforms"), ("spark-4.0.5", "broken")), (1,), upgrade=False
    )
    assert read(results("conforms")[:-5]) is None


@pytest.mark.parametrize(
    ("said", "code", "why"),
    [
        ("all is well", 0, r"exit code 0 is none of \[1\]"),
        ("Traceback (most recent call last):", 1, "a traceback"),
        ("conformance: a defect of this program: KeyError", 1, "a traceback or a defect"),
    ],
)
def test_a_wrong_exit_code_and_a_traceback_end_it(soak: CommandSoak, said: str, code: int, why: str) -> None:
    ended(soak, "nothing", 1)
    with pytest.raises(SoakFailure, match=why):
        ended(soak, said, code)


@pytest.mark.parametrize(("mode", "disturbed"), [("keeps-late-rows", True), ("dies", True)])
def test_results_of_a_wrong_engine_are_never_green(soak: CommandSoak, mode: str, disturbed: bool) -> None:
    soak.check_answers("a.jsonl", GREEN, {"spark-4.0.5": "right"}, disturbed)
    with pytest.raises(SoakFailure, match=mode):
        soak.check_answers("a.jsonl", GREEN, {"spark-4.0.5": mode}, disturbed)


@pytest.mark.parametrize(
    ("now", "writes", "why"),
    [
        (None, "a.jsonl", "is lost"),
        (results("conforms")[:-5], "a.jsonl", "was complete"),
        (results("violates"), None, "was changed by a command that does not write it"),
    ],
)
def test_a_file_that_is_lost_cut_off_or_changed_by_another_ends_it(
    soak: CommandSoak, now: bytes | None, writes: str | None, why: str
) -> None:
    before = {"a.jsonl": results("conforms")}
    soak.known["a.jsonl"] = GREEN
    if now is not None:
        (soak.disk / "out" / "a.jsonl").write_bytes(now)
    process = subprocess.Popen(["true"])
    process.wait()
    with pytest.raises(SoakFailure, match=f"a.jsonl {why}"):
        soak.check_files(before, [Command(Asked(["run"], frozenset(), writes), process, soak.logs)], [3], "nothing")


def test_a_process_that_is_left_and_a_temporary_folder_end_it(soak: CommandSoak) -> None:
    soak.check_processes(killed=False)
    with subprocess.Popen(["sleep", "60"], env={"SOAK": soak.mark, "PATH": "/usr/bin:/bin"}) as left:
        while not soak.processes():  # it has its own variables once it has become `sleep`
            time.sleep(0.01)
        with pytest.raises(SoakFailure, match=r"processes are left: .*sleep 60"):
            soak.check_processes(killed=False)
        left.kill()
    soak.check_left(None)
    (soak.disk / "tmp" / "conformance-1").mkdir()
    with pytest.raises(SoakFailure, match="conformance-1"):
        soak.check_left(None)
