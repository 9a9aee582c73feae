"""The workflows: each command in them exists and has the options given, and what they run is pinned.

zizmor and actionlint, hooks of pre-commit, look for rights, credentials and expressions in shells.
"""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from conformance.cli.main import app
from harness.environments import installer
from tests.support.environments import script

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "conformance.yml"
CHECKS = WORKFLOW.with_name("checks.yml")
RELEASE = WORKFLOW.with_name("release.yml")
WORKFLOWS = sorted(WORKFLOW.parent.glob("*.y*ml"))
ACTION = ROOT / "action.yml"
PINNED = re.compile(r"(?P<action>[\w.-]+(?:/[\w.-]+)+)@(?P<commit>[0-9a-f]{40}) # v\d+\.\d+\.\d+")
PAGE = ROOT / "docs" / "ci.md"


def of_github():
    return [
        line
        for workflow in (*WORKFLOWS, ACTION)
        for step in steps(workflow)
        for line in step.get("run", "").splitlines()
    ]


def jobs(workflow):
    return yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]


def steps(workflow):
    if workflow == ACTION:
        return yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]
    return [step for job in jobs(workflow).values() for step in job["steps"]]


def uses(text):
    """What stands behind each ``uses:``, with its comment, which no YAML parser keeps; our own action has no pin."""
    return [one for one in re.findall(r"^ *(?:- )?uses: *(.*?) *$", text, re.MULTILINE) if one != "./"]


def of_the_page():
    for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL):
        workflow = yaml.safe_load(text)
        for job in workflow.get("jobs", workflow).values():
            if isinstance(job, dict):
                yield from job.get("script", ())
                yield from (step["run"] for step in job.get("steps", ()) if "run" in step)


def commands():
    for line in (*of_github(), *of_the_page()):
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
    assert len([*commands()]) >= 10


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


def test_unit_tests_run_on_every_python_that_the_package_claims():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    claimed = [name.rpartition(" ")[2] for name in project["classifiers"] if name.startswith(prefix)]
    assert len(claimed) >= 3
    assert jobs(CHECKS)["unit"]["strategy"]["matrix"]["python"] == claimed
    assert jobs(RELEASE)["test"]["strategy"]["matrix"]["python"] == claimed


def test_a_release_is_tested_before_it_is_published():
    release = jobs(RELEASE)
    assert release["publish"]["needs"] == "test"
    assert release["test"]["needs"] == "build"
    build = [step.get("run", "") for step in release["build"]["steps"]]
    for command in (".github/release_notes.py", "python -P -m build --no-isolation", "twine check --strict dist/*"):
        assert any(command in run for run in build)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_job_installs_what_the_lockfile_says(workflow):
    for name, job in jobs(workflow).items():
        text = "\n".join(step.get("run", "") for step in job["steps"])
        # A release is tested with what its user gets, which no lockfile says.
        installed = [
            line.strip() for line in text.splitlines() if re.search(r"\b(pip|uv) (install|sync|tool|run)|uvx", line)
        ]
        assert installed == (["venv/bin/pip install dist/*.whl"] if (workflow, name) == (RELEASE, "test") else [])
        ours = re.search(
            r"^ *(conformance|pytest|coverage|pre-commit|mkdocs|twine|uv) |-m (tools|build)", text, re.MULTILINE
        )
        if ours and not installed:
            assert text.find(".github/install.sh") in range(ours.start()), name


@pytest.mark.parametrize("fails", ["nothing", "pip", "uv"])
def test_the_lockfile_is_installed_by_a_uv_with_a_known_hash(fails, tmp_path):
    for program in ("pip", "uv"):
        text = f'echo {program} "$@" >> "{tmp_path}/called"; test {program} != {fails}'
        script(tmp_path / "bin" / program, text)
    script(tmp_path / "bin" / "python", "echo /opt/python")
    environ = {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_PATH": str(tmp_path / "path"),
    }
    program = [ROOT / ".github" / "install.sh", "--extra", "dev"]
    done = subprocess.run(program, cwd=ROOT, env=environ, check=False)
    called = (tmp_path / "called").read_text().splitlines()
    assert re.fullmatch(rf"pip install .*--require-hashes -r {tmp_path}/uv\.txt", called[0])
    assert (tmp_path / "uv.txt").read_text() == installer.known()[installer.uv()] + "\n"
    sync = "uv sync --locked --no-python-downloads --python /opt/python"
    of_uv = [
        f"{sync} --only-group wheel",
        f"{sync} --inexact --no-build-isolation-package watermark-conformance --extra dev",
    ]
    assert called[1:] == {"nothing": of_uv, "pip": [], "uv": of_uv[:1]}[fails]
    assert (done.returncode, (tmp_path / "path").is_file()) == ((0, True) if fails == "nothing" else (1, False))


@pytest.mark.parametrize("workflow", [*WORKFLOWS, ACTION], ids=lambda path: path.name)
def test_every_action_is_pinned_by_its_commit(workflow):
    found = uses(workflow.read_text(encoding="utf-8"))
    assert len(found) == sum(step.get("uses", "./") != "./" for step in steps(workflow)) > 0
    assert [action for action in found if not PINNED.fullmatch(action)] == []


@pytest.mark.parametrize("pin", ["v4", "9c091bb # v7.0.0", "9c091bb21b7c1c1d1991bb908d89e4e9dddfe3e0 # v7"])
def test_an_action_that_is_not_pinned_is_found(pin):
    (found,) = uses(f"    steps:\n      - uses: actions/checkout@{pin}\n")
    assert not PINNED.fullmatch(found)


def test_the_action_says_what_each_input_is():
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    assert all(one["description"].endswith(".") for one in action["inputs"].values())
    used = set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", ACTION.read_text(encoding="utf-8")))
    assert used == set(action["inputs"])
    for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        for job in (yaml.safe_load(text).get("jobs") or {}).values():
            for step in job["steps"]:
                if step.get("uses", "").startswith("watermark-conformance/"):
                    assert step["with"].keys() <= action["inputs"].keys()
