"""What other repositories run of ours in their CI, in a checkout that a stranger has filled: no code of it runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.hostile_checkout import hostile_checkout, pyspark_wheel

ROOT = Path(__file__).parents[1].parent
ACTION = ROOT / "action.yml"
TEMPLATE = ROOT / "templates" / "conformance.yml"
FILES = [
    ACTION,
    TEMPLATE,
    ROOT / ".pre-commit-hooks.yaml",
    ROOT / "docs" / "ci.md",
    *(ROOT / ".github" / "workflows").glob("*.yml"),
]


def _script(name: str) -> str:
    steps = yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]
    (found,) = (step["run"] for step in steps if step.get("name") == name)
    return str(found)


def _run(script: str, cwd: Path, **environ: str) -> None:
    """As GitHub starts it."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_action_installs_with_nothing_of_the_checkout(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    checkout = hostile_checkout(tmp_path / "checkout", canary)
    pyspark_wheel(tmp_path / "mirror", "1.0")
    _run(
        _script("Install the suite in an environment of its own"),
        checkout,
        PATH=f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin",
        HOME=str(tmp_path),
        RUNNER_TEMP=str(tmp_path / "temporary"),
        PACKAGE=str(tmp_path / "mirror" / "pyspark-1.0-py3-none-any.whl"),
        PIP_NO_INDEX="1",
        PIP_CONFIG_FILE="/dev/null",
    )
    assert not canary.exists(), canary.read_text()


def test_the_action_takes_no_option_for_a_path_and_no_path_for_an_option(tmp_path: Path) -> None:
    programs = tmp_path / "temporary" / "watermark-conformance" / "bin"
    programs.mkdir(parents=True)
    (programs / "conformance").write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > "{tmp_path}/arguments"\n', encoding="utf-8"
    )
    (programs / "conformance").chmod(0o755)
    _run(
        _script("Run the cases"),
        tmp_path,
        PATH="/usr/bin:/bin",
        RUNNER_TEMP=str(tmp_path / "temporary"),
        GITHUB_OUTPUT=str(tmp_path / "output"),
        CASES="cases --allow-code",
        SPARK="3.5",
        ALLOW_CODE="false",
        OPTIONS="--all",
    )
    arguments = (tmp_path / "arguments").read_text(encoding="utf-8").splitlines()
    assert arguments[-3:] == ["--", "cases", "--allow-code"]
    assert {"--all", "--spark", "-o"} <= {*arguments[:-3]}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_module_is_looked_for_in_the_checkout(path: Path) -> None:
    """``python -m`` looks in the working directory first; ``tools`` are our own, and run only in our own checkout."""
    found = re.findall(r"python3? (?:-\w )*-m \w+", path.read_text(encoding="utf-8"))
    assert [line for line in found if "-P" not in line and not line.endswith("-m tools")] == []


def test_no_input_of_the_component_is_part_of_a_script() -> None:
    """GitLab replaces inputs in the text, so that a shell would read what they say."""
    body = TEMPLATE.read_text(encoding="utf-8").partition("\n---\n")[2]
    jobs = yaml.safe_load(re.sub(r"\$\[\[ inputs\.(\w+) \]\]", r"input-\1", body))
    lines = [line for job in jobs.values() for line in (*job["before_script"], *job["script"])]
    assert len(lines) > 8
    assert [line for line in lines if "input-" in line] == []
