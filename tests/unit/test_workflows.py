"""The workflows people copy: every command in them is one there is, with options it has."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml

from conformance.cli.main import app

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "conformance.yml"
FUZZ = WORKFLOW.with_name("fuzz.yml")
GITLAB = ROOT / "docs" / "ci.md"


def of_github():
    jobs = [job for workflow in (WORKFLOW, FUZZ) for job in yaml.safe_load(workflow.read_text())["jobs"].values()]
    return [line for job in jobs for step in job["steps"] for line in step.get("run", "").splitlines()]


def of_gitlab():
    (text,) = re.findall(r"```yaml\n(.*?)```", GITLAB.read_text(), re.DOTALL)
    jobs = yaml.safe_load(text)
    return [line for job in jobs.values() if isinstance(job, dict) for line in job.get("script", ())]


def commands():
    for line in (*of_github(), *of_gitlab()):
        found = re.search(r"\bconformance (?P<rest>[^|>]*)", re.sub(r"\$\{\{.*?\}\}|\$\w+", "3.5", line))
        if found:
            yield pytest.param(shlex.split(found["rest"]), id=line.strip()[:60])


def parse(arguments):
    """Take a command line apart as the program would, and do nothing of it."""
    command = typer.main.get_command(app)
    context = command.make_context("conformance", list(arguments))
    while hasattr(command, "commands"):
        rest = [*context._protected_args, *context.args]
        if not rest and command.invoke_without_command:
            return
        _, command, rest = command.resolve_command(context, rest)
        context = command.make_context(command.name, list(rest), parent=context)


@pytest.mark.parametrize("arguments", [*commands()])
def test_a_command_is_one_there_is(arguments):
    parse(arguments)


@pytest.mark.parametrize("line", ["reprot x.jsonl", "run --sprak 3.5", "targets biuld 3.5", "combine"])
def test_a_command_that_is_none_would_be_seen(line):
    with pytest.raises(Exception, match=r"No such|Missing parameter"):
        parse(line.split())


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


def test_the_weekly_hunt_proposes_what_it_found():
    jobs = yaml.safe_load(FUZZ.read_text())["jobs"]
    assert {job: spec.get("needs") for job, spec in jobs.items()} == {
        "versions": None,
        "hunt": "versions",
        "propose": "hunt",
    }
    assert jobs["propose"]["permissions"] == {"contents": "write", "pull-requests": "write"}
    assert any("gh pr create" in step.get("run", "") for step in jobs["propose"]["steps"])
