"""The workflows people copy: every command in them is one there is, with options it has."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import typer
import yaml

from conformance.cli.main import app

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "conformance.yml"
GITLAB = ROOT / "docs" / "ci.md"


def of_github():
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    return [line for job in jobs.values() for step in job["steps"] for line in step.get("run", "").splitlines()]


def of_gitlab():
    (text,) = re.findall(r"```yaml\n(.*?)```", GITLAB.read_text(), re.DOTALL)
    jobs = yaml.safe_load(text)
    return [line for job in jobs.values() if isinstance(job, dict) for line in job.get("script", ())]


def commands():
    for line in (*of_github(), *of_gitlab()):
        found = re.search(r"\bconformance (?P<rest>[^|>]*)", re.sub(r"\$\{\{.*?\}\}|\$\w+", "3.5", line))
        if found:
            yield pytest.param(shlex.split(found["rest"]), id=line.strip()[:60])


@pytest.mark.parametrize("arguments", [*commands()])
def test_a_command_is_one_there_is(arguments):
    command = typer.main.get_command(app)
    context = click.Context(command, info_name="conformance")
    while isinstance(command, click.Group):
        _, command, arguments = command.resolve_command(context, list(arguments))
        # Parses the arguments of a command, and does not carry it out.
        context = command.make_context(command.name, list(arguments), parent=context)
        arguments = context.args


def test_there_are_commands():
    assert len([*commands()]) >= 6


TARGETS = [
    {"target": "spark-3.5.3", "spark": "3.5.3", "image": "x"},
    {"target": "spark-3.5.9", "spark": "3.5.9", "image": "x"},
    {"target": "spark-4.0.5", "spark": "4.0.5", "image": None},
    {"target": "installed-4.0.5", "spark": "4.0.5", "image": None},
]


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ([], 'spark=["3.5.9", "4.0.5"]\n'),
        (["1"], 'spark=["4.0.5"]\n'),
        (["--without-image"], "4.0.5\n"),
    ],
)
def test_the_list_of_versions(tmp_path, wish, said):
    (tmp_path / "targets.json").write_text(json.dumps(TARGETS[: 3 if wish else 4]))
    program = [sys.executable, str(ROOT / ".github" / "versions.py"), str(tmp_path / "targets.json")]
    assert subprocess.run([*program, *wish], capture_output=True, text=True, check=True).stdout == said


def test_every_job_is_needed_by_somebody_or_is_the_end():
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    assert {job: spec.get("needs") for job, spec in jobs.items()} == {
        "versions": None,
        "run": "versions",
        "matrix": "run",
        "publish": "matrix",
    }
