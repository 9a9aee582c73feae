"""Each command, started in a checkout that a stranger has filled, runs nothing of it: there is no canary afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.cli.main import app
from tests.support.hostile_checkout import hostile_checkout

CASE = """\
title: Counts
why: A test.
streams: {s: event_time TIMESTAMP}
"""
# Commands that start no process at all are only imported, with --help: a shadowed module would run then.
COMMANDS = [
    "new case.yaml",
    "validate cases",
    "schema --help",
    "record --help",
    "explain --help",
    "eviction --help",
    "run cases --spark 3.5.9",
    "run cases --spark 3.5.9 --runtime container",
    "run --all --list --since HEAD",
    "soak --spark 3.5.9 --time 1s",
    "crash --help",
    "fuzz --spark 3.5.9 --time 1s",
    "check json:build --from 3.5.9 --to 4.3.0",
    "gate --help",
    "diff --help",
    "upgrade --help",
    "checkpoint explain cases",
    "report --help",
    "specification --help",
    "export json results.jsonl",
    "combine results.jsonl -o combined.jsonl",
    "columns --help",
    "targets prepare 3.5.9",
    "targets build 3.5.9",
    "targets clean",
    "policies --help",
]
ALL_IN_ONE_PROCESS = """\
import contextlib, json, os, sys
from conformance.cli.main import app
for command in json.loads(sys.argv[1]):
    print("COMMAND", command, flush=True)
    try:
        app(command.split(), standalone_mode=False)
    except (SystemExit, Exception) as problem:
        print("ENDED", repr(problem), flush=True)
"""
"""As the console script starts them: a file outside the checkout, whose own folder comes first on Python's path."""


def test_each_command_is_tried() -> None:
    names = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    names |= {str(group.name) for group in app.registered_groups}
    assert names - {command.split()[0] for command in COMMANDS} == set()


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


@pytest.fixture
def checkout(tmp_path: Path, canary: Path) -> Path:
    root = hostile_checkout(tmp_path / "checkout", canary)
    (root / "cases").mkdir()
    (root / "cases" / "counts.yaml").write_text(CASE, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def test_no_command_runs_code_of_the_checkout(checkout: Path, canary: Path, tmp_path: Path) -> None:
    program = tmp_path / "programs" / "conformance_commands.py"
    program.parent.mkdir()
    program.write_text(ALL_IN_ONE_PROCESS, encoding="utf-8")
    (tmp_path / "home").mkdir()
    environ = {
        "PATH": ":./bin:/usr/bin:/bin:bin",
        "HOME": str(tmp_path / "home"),
        "CONFORMANCE_CACHE": str(tmp_path / "cache"),
        "PIP_CONFIG_FILE": "/dev/null",
        "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple",
        "UV_HTTP_RETRIES": "0",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_PYTHON_INSTALL_DIR": "./bin",
        "DOCKER_HOST": "tcp://127.0.0.1:9",
    }
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
    assert not canary.exists(), canary.read_text()
