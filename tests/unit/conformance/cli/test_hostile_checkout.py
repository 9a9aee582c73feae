"""Each command, started in a checkout that a stranger has filled, runs nothing of it: there is no canary afterwards."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.cli import commands
from reports.results.published import BASELINES
from tests.support.hostile_checkout import hostile_checkout, offline

SUPPORT = Path(__file__).parents[4] / "tests" / "support"
CASE = SUPPORT / "miniature" / "cases" / "late-drops" / "windows.yaml"
SAMPLE = SUPPORT.parent / "browser" / "sample"
COMMANDS = [
    "case new case.yaml",
    "case validate cases",
    "case schema",
    "case record cases/windows.yaml --spark 3.5.9",
    "explain cases/windows.yaml",
    "eviction 't BETWEEN u AND u + INTERVAL 1 HOUR' --left 't 1 minute' --right 'u 1 minute'",
    "run cases --spark 3.5.9 -o new.jsonl",
    "run cases --spark 3.5.9 --runtime container -o other.jsonl",
    "run cases --since HEAD",
    "maintain crash cases --spark 3.5.9",
    "maintain fuzz --spark 3.5.9 --time 1s",
    "check job:build --from 3.5.9 --to 4.3.0 --sample s=rows.csv",
    "sample job.py --from 3.5.9",
    "gate results.jsonl --from 3.3.4 --to 3.5.9 --cases sample",
    "maintain diff results.jsonl results.jsonl",
    "upgrade cases --from 3.5.9 --to 4.3.0",
    "checkpoint inspect cases",
    "checkpoint resume cases --call job:build --to 4.3.0 --sample s=rows.csv",
    "report results.jsonl --cases sample -o site",
    "maintain specification results.jsonl --cases sample",
    "case export summary results.jsonl",
    "maintain combine results.jsonl -o combined.jsonl",
    "maintain columns connect-4.3.0.yaml",
    "targets",
    "targets prepare 3.5.9",
    "targets build 3.5.9",
    "targets clean",
    "maintain policies",
]
ALL_IN_ONE_PROCESS = """\
import json, shlex, sys
from conformance.cli.main import app
for command in json.loads(sys.argv[1]):
    print("COMMAND", command, flush=True)
    try:
        app(shlex.split(command), standalone_mode=False)
    except (SystemExit, Exception) as problem:
        print("ENDED", repr(problem), flush=True)
"""
"""As the console script starts them: a file outside the checkout, whose own folder comes first on Python's path."""


def test_each_command_is_tried() -> None:
    tried = {" ".join(words[:count]) for command in COMMANDS for words in (command.split(),) for count in (1, 2)}
    assert commands.COMMANDS.keys() - tried == set()


@pytest.fixture
def checkout(tmp_path: Path, canary: Path) -> Path:
    root = hostile_checkout(tmp_path / "checkout", canary)
    (root / "cases").mkdir()
    shutil.copy(CASE, root / "cases")
    shutil.copy(SAMPLE / "results.jsonl", root)
    shutil.copytree(SAMPLE / "cases", root / "sample")
    for file in BASELINES.glob("columns/connect-4.3.0.*"):
        shutil.copy(file, root)
    job = f"open({str(canary)!r}, 'a').write(__name__)\ndef build(spark, s):\n    return s\n"
    (root / "job.py").write_text(job, encoding="utf-8")
    (root / "rows.csv").write_text("t,n\n2024-01-01 12:00:00,1\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def test_no_command_runs_code_of_the_checkout(checkout: Path, canary: Path, tmp_path: Path) -> None:
    program = tmp_path / "programs" / "conformance_commands.py"
    program.parent.mkdir()
    program.write_text(ALL_IN_ONE_PROCESS, encoding="utf-8")
    environ = offline(tmp_path) | {"PATH": ":./bin:/usr/bin:/bin:bin", "UV_PYTHON_INSTALL_DIR": "./bin"}
    done = subprocess.run(
        [sys.executable, str(program), json.dumps(COMMANDS)],
        cwd=checkout,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout.count("COMMAND ") == len(COMMANDS), done.stdout
    assert "Try '" not in done.stdout, "a command did not get past its options"
    assert not canary.exists(), canary.read_text()
