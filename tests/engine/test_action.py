"""The action for GitHub, the component for GitLab and the hook for pre-commit, executed step by step in somebody else's repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from reports.results.reading import Results
from tests.engine.test_adopter import scripts
from tests.support.effort import full_run_only

ROOT = Path(__file__).parents[2]
ADOPTER = ROOT / "tests" / "adopter"
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")
CASE = "cases/totals.yaml"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return shutil.copytree(ADOPTER, tmp_path / "acme-jobs")


@dataclass
class Runner:
    """What GitHub's runner does with a composite action, one step after the other."""

    repository: Path
    temporary: Path
    inputs: Mapping[str, str]
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    said: str = ""
    uploaded: dict[str, str] = field(default_factory=dict)

    def value(self, text: str) -> str:
        def of(match: re.Match[str]) -> str:
            match match[1].split("."):
                case ["inputs", name]:
                    return self.inputs[name]
                case ["steps", step, "outputs", name]:
                    return self.outputs[step][name]
                case ["github", "action_path"]:
                    return str(ROOT)
            raise AssertionError(f"an expression that this test does not know: {match[0]}")

        return EXPRESSION.sub(of, text)

    def run(self, step: Mapping[str, Any]) -> int:
        if "uses" in step:
            if "upload-artifact" in step["uses"]:
                self.uploaded = {name: self.value(value) for name, value in step["with"].items()}
            return 0
        output, summary = self.temporary / "output", self.temporary / "summary.md"
        output.write_text("")
        clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTEST_ADDOPTS")}
        github = {"RUNNER_TEMP": self.temporary, "GITHUB_OUTPUT": output, "GITHUB_STEP_SUMMARY": summary}
        environ = {name: self.value(value) for name, value in step.get("env", {}).items()}
        # The Python that the first step of the action has set up.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            # As GitHub starts it: https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.repository,
            env={**clean, **{name: str(value) for name, value in github.items()}, **environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        self.said += done.stdout + done.stderr
        if "id" in step:
            self.outputs[step["id"]] = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done.returncode


@pytest.fixture
def act(repository: Path, installed: Path, tmp_path: Path):
    """Run the action with these inputs: the runner, and the exit code of its last step. The wheel is installed once for all."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))

    def act(*, install: bool = False, **given: str) -> tuple[Runner, int]:
        inputs = {name: one["default"] for name, one in action["inputs"].items() if "default" in one}
        inputs |= dict.fromkeys(action["inputs"].keys() - inputs, "")
        assert given.keys() <= {name.replace("-", "_") for name in inputs}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        if not install:
            (temporary / "watermark-conformance").symlink_to(installed.parent)
        runner = Runner(repository, temporary, inputs)
        *steps, last = action["runs"]["steps"]
        for step in steps:
            if "Install" in step.get("name", "") and not install:
                continue
            assert runner.run(step) == 0, runner.said
        return runner, runner.run(last)

    return act


def test_the_action_runs_own_cases_and_gates_them(act) -> None:
    runner, code = act(cases=CASE, spark="3.5 4.3", **{"from": "3.5", "to": "4.3"}, allow_code="true")
    assert code == 0, runner.said
    folder = Path(runner.outputs["run"]["folder"])
    assert Results.read(folder / "results.jsonl").footer.counts == {"conforms": 2}
    assert (folder / "report" / "index.html").is_file()
    assert "no change" in (folder / "gate.txt").read_text()
    assert "2 conform" in (runner.temporary / "summary.md").read_text()
    assert runner.uploaded["path"] == str(folder)


@full_run_only
def test_a_case_that_does_not_conform_fails_it_and_is_annotated(act, repository: Path) -> None:
    case = repository / CASE
    case.write_text(re.sub(r'watermark: "[\d:]+"', 'watermark: "11:11"', case.read_text()))
    runner, code = act(cases=CASE, spark="3.5", allow_code="true")
    assert code == 1, runner.said
    assert re.search(rf"^::error .*file={CASE}", runner.said, re.MULTILINE), runner.said
    assert runner.outputs["outcome"] == {"code": "1"}


def test_the_published_results_gate_an_upgrade_without_any_spark(act) -> None:
    runner, code = act(**{"from": "3.5.9", "to": "4.3.0"})
    assert code == 1
    summary = (runner.temporary / "summary.md").read_text()
    assert summary.startswith("## From Spark 3.5.9 to 4.3.0")
    assert "fail the gate" in summary


@pytest.mark.parametrize(
    ("given", "code", "why"),
    [
        ({}, 2, "name versions to run on (spark: 3.5 4.3) or an upgrade to gate (from: 3.5, to: 4.3)"),
        ({"cases": CASE, "from": "4.1.3", "to": "4.1.4"}, 2, "cases are given, but no spark to run them on"),
        ({"cases": CASE, "spark": "3.5", "options": "--help"}, 3, "no case ran: remove what ends the command early"),
    ],
)
def test_it_says_when_there_is_nothing_to_do(act, given: dict[str, str], code: int, why: str) -> None:
    runner, outcome = act(**given)
    assert outcome == code
    assert why in runner.said


@full_run_only
def test_it_installs_the_suite_of_its_own_revision(act) -> None:
    runner, code = act(install=True)
    assert code == 2
    program = runner.temporary / "watermark-conformance" / "bin" / "conformance"
    done = subprocess.run([program, "targets", "clean", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0


def component(**given: object) -> dict[str, Any]:
    """The jobs of the component: GitLab replaces inputs in the text, and an array by its JSON."""
    head, _, body = (ROOT / "templates" / "conformance.yml").read_text(encoding="utf-8").partition("\n---\n")
    inputs = {name: one["default"] for name, one in yaml.safe_load(head)["spec"]["inputs"].items()}
    assert given.keys() <= inputs.keys()
    inputs |= given

    def of(match: re.Match[str]) -> str:
        value = inputs[match[1]]
        return value if isinstance(value, str) else json.dumps(value)

    jobs: dict[str, Any] = yaml.safe_load(re.sub(r"\$\[\[ inputs\.(\w+) \]\]", of, body))
    return jobs


def commands(jobs: dict[str, Any]) -> Iterator[str]:
    """The script of each job for each version; GitLab runs its lines in one shell."""
    for name, job in jobs.items():
        lines = [*scripts({name: job, "stages": [name]})]
        size = len(job["script"])
        for start in range(0, len(lines), size):
            exports = "".join(f"{key}={value!r}\n" for key, value in job.get("variables", {}).items())
            yield exports + "\n".join(lines[start : start + size])


@full_run_only
def test_the_component_for_gitlab(repository: Path, installed: Path) -> None:
    """The last job gates: what does not change passes, and a version without results is wrong usage."""
    *runs, matrix = commands(component(cases=CASE, options="--allow-code", gate="--from 3.5 --to 4.3"))
    *_, without_results = commands(component(cases=CASE, options="--allow-code", gate="--from 3.5 --to 2.4"))
    path = f"{installed}{os.pathsep}{os.environ['PATH']}"
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTEST_ADDOPTS")}
    found = []
    for script in (*runs, without_results, matrix):
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=repository,
            env={**clean, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        found.append(done.returncode)
    assert found == [0, 0, 2, 0], done.stdout + done.stderr
    assert Results.read(repository / "results.jsonl").footer.counts == {"conforms": 2}
    assert (repository / "report" / "index.html").is_file()
    assert (repository / "junit.xml").is_file()


def test_the_hook_for_pre_commit(repository: Path, installed: Path) -> None:
    """As pre-commit calls it: the entry, its arguments, then those changed files that its patterns take."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    wrong = repository / "cases" / "deep" / "wrong.yaml"
    wrong.parent.mkdir()
    wrong.write_text("title: Wrong\nstreams: {s: event_time TIMESTAMP}\nqerry: []\n")
    (repository / "cases" / "tags.yaml").write_text("smoke: Few.\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], cwd=repository, check=True)
    subprocess.run([*git, "add", "-A"], cwd=repository, check=True)
    changed = subprocess.check_output([*git, "diff", "--cached", "--name-only"], cwd=repository, text=True).splitlines()
    taken = [name for name in changed if re.search(hook["files"], name) and not re.search(hook["exclude"], name)]
    assert taken == ["cases/deep/wrong.yaml", CASE]

    def call(*names: str) -> subprocess.CompletedProcess[str]:
        program, *arguments = hook["entry"].split()
        command = [str(installed / program), *arguments, "--allow-code", *names]
        return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)

    assert call(CASE).returncode == 0
    done = call(*taken)
    assert done.returncode == 2
    assert "cases/deep/wrong.yaml:3:1: " in done.stdout
