"""What other repositories run of ours in their CI, in a checkout that a stranger has filled: no code of it runs."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.support import environments as fakes
from tests.support.hostile_checkout import hostile_checkout, offline, pyspark_wheel

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


INSTALL = "Install the suite in an environment of its own"


def _script(name: str) -> str:
    steps = yaml.safe_load(ACTION.read_text(encoding="utf-8"))["runs"]["steps"]
    (found,) = (step["run"] for step in steps if step.get("name") == name)
    return str(found)


def _run(script: str, cwd: Path, *, codes: tuple[int, ...] = (0,), **environ: str) -> str:
    """As GitHub starts it. Returns what it writes."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(
        command, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def checkout(tmp_path: Path, canary: Path) -> Path:
    root = hostile_checkout(tmp_path / "checkout", canary)
    (root / "cases").mkdir()
    shutil.copy(ROOT / "tests" / "support" / "miniature" / "cases" / "late-drops" / "windows.yaml", root / "cases")
    shutil.copy(ROOT / "tests" / "browser" / "sample" / "results.jsonl", root / "results-3.5.9.jsonl")
    return root


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A runner with the suite, whose package index and container engine cannot be reached."""
    fakes.script(tmp_path / "programs" / "pip", "exit 0")
    program = tmp_path / "programs" / "conformance"
    program.write_text(f"#!{sys.executable}\nfrom conformance.cli.main import app\napp()\n", encoding="utf-8")
    program.chmod(0o755)
    return offline(tmp_path) | {"PATH": f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"}


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The RUNNER_TEMP of one runner, with a Python that makes no environment that is there already: it takes most of the time."""
    folder = tmp_path_factory.mktemp("temporary")
    there = f'case "$*" in "-P -m venv "*) test ! -x "{folder}/watermark-conformance/bin/pip" || exit 0;; esac'
    fakes.script(folder / "bin" / "python", f'{there}\nexec {sys.executable} "$@"')
    return folder


def test_the_action_installs_with_nothing_of_the_checkout(
    checkout: Path, canary: Path, temporary: Path, tmp_path: Path
) -> None:
    pyspark_wheel(tmp_path / "mirror", "1.0")
    _run(
        _script(INSTALL),
        checkout,
        PATH=f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin",
        HOME=str(tmp_path),
        RUNNER_TEMP=str(temporary),
        PACKAGE=str(tmp_path / "mirror" / "pyspark-1.0-py3-none-any.whl"),
        PIP_NO_INDEX="1",
        PIP_CONFIG_FILE="/dev/null",
    )
    assert not canary.exists(), canary.read_text()


@pytest.mark.parametrize("known", [False, True])
def test_the_action_installs_what_its_own_lockfile_says(
    known: bool, checkout: Path, canary: Path, environ: dict[str, str], temporary: Path, tmp_path: Path
) -> None:
    """With a uv of a known hash, in the folder of the action."""
    program = f'echo "$PWD" "$UV_PROJECT_ENVIRONMENT" "$@" >> "{tmp_path}/called"'
    digest = fakes.uv_wheel(tmp_path / "index", program)
    action = tmp_path / "action"
    (action / "harness" / "environments").mkdir(parents=True)
    line = f"uv==99.0 --hash=sha256:{digest if known else '0' * 64}\n"
    (action / "harness" / "environments" / "hashes.txt").write_text(f"# Hashes.\n{line}", encoding="utf-8")
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index"), "PACKAGE": ""}
    places = {"OF_THIS_REVISION": str(action), "RUNNER_TEMP": str(temporary)}
    path = f"{temporary / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"
    said = _run(
        _script(INSTALL), checkout, codes=(0 if known else 1,), **{**environ, "PATH": path, **variables, **places}
    )
    assert not canary.exists(), canary.read_text()
    if not known:
        assert "DO NOT MATCH THE HASHES" in said
        return
    calls = [line.split() for line in (tmp_path / "called").read_text(encoding="utf-8").splitlines()]
    for folder, environment, *arguments in calls:
        assert (folder, environment) == (str(action), str(temporary / "watermark-conformance"))
        assert arguments[0] == "sync"
        assert {"--frozen", "--inexact", "--no-python-downloads", f"{environment}/bin/python"} <= {*arguments}
    # What builds the wheel of the suite comes from the lockfile too, because it is there before.
    assert [call[-2:] for call in calls] == [
        ["--only-group", "wheel"],
        ["--no-build-isolation-package", "watermark-conformance"],
    ]


@pytest.mark.parametrize("group", ["wheel", "release"])
def test_what_builds_the_suite_is_in_the_lockfile(group: str) -> None:
    """Nothing that `build-system` names is fetched in whatever version an index has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    locked = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    (suite,) = (package for package in locked if package["name"] == project["project"]["name"])
    named = {requirement.split(">=")[0] for requirement in project["dependency-groups"][group]}
    assert {*project["build-system"]["requires"]} <= {*project["dependency-groups"][group]}
    assert {package["name"] for package in suite["dev-dependencies"][group]} == named


@pytest.mark.parametrize("spark", ["3.5.9", ""], ids=["a run", "the published results"])
def test_no_step_of_the_action_runs_code_of_the_checkout(
    spark: str, checkout: Path, canary: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    inputs = {"CASES": "cases" if spark else "", "SPARK": spark, "ALLOW_CODE": "false", "OPTIONS": "", "ACCEPT": ""}
    environ |= inputs | {"FROM": "" if spark else "3.5", "TO": "" if spark else "4.3", "RUNNER_TEMP": str(tmp_path)}
    environ |= {name: str(tmp_path / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    _run(_script("Run the cases"), checkout, **environ)
    outputs = (tmp_path / "github_output").read_text(encoding="utf-8").splitlines()
    folder, ran = (line.partition("=")[2] for line in outputs)
    assert ran == ("3" if spark else "0")
    environ |= {"FOLDER": folder, "RAN": ran}
    _run(_script("Gate the upgrade"), checkout, **environ)
    _run(_script("Report, step summary and annotations"), checkout, **environ)
    gated = (tmp_path / "github_output").read_text(encoding="utf-8").splitlines()[-1].partition("=")[2]
    assert gated == ("0" if spark else "1")
    _run(_script("Outcome"), checkout, codes=(int(max(ran, gated)),), **environ, GATED=gated)
    assert not canary.exists(), canary.read_text()


@pytest.mark.parametrize(("job", "codes"), [("conformance-run", (3,)), ("conformance-matrix", (1,))])
def test_no_job_of_the_component_runs_code_of_the_checkout(
    job: str, codes: tuple[int, ...], checkout: Path, canary: Path, environ: dict[str, str]
) -> None:
    body = yaml.safe_load(
        re.sub(r"\$\[\[ inputs\.\w+ \]\]", "x", TEMPLATE.read_text(encoding="utf-8").partition("\n---\n")[2])
    )
    lines = "\n".join(line for part in ("before_script", "script") for line in body[job][part])
    variables = {"CASES": "cases", "OPTIONS": "", "SPARK": "3.5.9", "GATE": "--from 3.3.4 --to 3.5.9", "PACKAGE": "x"}
    _run(lines, checkout, codes=codes, **environ, **variables)
    assert not canary.exists(), canary.read_text()


def test_the_hook_runs_no_code_of_the_checkout(checkout: Path, canary: Path, environ: dict[str, str]) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert "1 case, no problems" in _run(f"{hook['entry']} cases/windows.yaml", checkout, **environ)
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
    """``python -m`` looks in the working directory first; ``tools``, ``tests`` and ``benchmarks`` run only in our own checkout."""
    found = re.findall(r"python3? (?:-\w )*-m \w+", path.read_text(encoding="utf-8"))
    assert [
        line for line in found if "-P" not in line and not line.endswith(("-m tools", "-m tests", "-m benchmarks"))
    ] == []


def test_no_input_of_the_component_is_part_of_a_script() -> None:
    """GitLab replaces inputs in the text, so that a shell would read what they say."""
    body = TEMPLATE.read_text(encoding="utf-8").partition("\n---\n")[2]
    jobs = yaml.safe_load(re.sub(r"\$\[\[ inputs\.(\w+) \]\]", r"input-\1", body))
    lines = [line for job in jobs.values() for line in (*job["before_script"], *job["script"])]
    assert len(lines) > 8
    assert [line for line in lines if "input-" in line] == []
