"""Cases as pytest items, with miniature engines: last failures, selection by name and id, and options that are wrong.

tests/engine/test_pytest_plugin.py starts pytest as a user does.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.runner import resources
from tests.support.miniature.runtime import MiniatureRuntime

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "tests" / "support" / "miniature" / "cases" / "late-drops" / "windows.yaml").read_text()
POLICY = """
title: A fixed lag
policy: {{with-fixed-lag: {{lag: 10}}}}
trace:
  - {{event: 0, expect: {{watermark: {watermark}}}}}
"""
OTHER = """
import sys

def test_nothing():
    roots = {"conformance", "harness", "reports"}
    loaded = {name for name in sys.modules if name.partition(".")[0] in roots}
    assert loaded == {"conformance", "conformance.pytest_plugin"}
"""
pytest_plugins = ["pytester"]


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A pytest in this process, which has imported everything, in a folder with cases; their engines are miniature ones."""
    monkeypatch.setattr(resources, "runtime_for", lambda *_, **__: MiniatureRuntime(pytester.path))
    cases = pytester.path / "cases" / "late-drops"
    cases.mkdir(parents=True)
    (cases / "a-right.yaml").write_text(TEXT)
    wrong = TEXT.replace("dropped: 1, state: 1", "dropped: 2, state: 1")
    assert wrong != TEXT
    (cases / "b-wrong.yaml").write_text(wrong)
    matrix = "matrix:\n  how:\n    long: {delay: 25 minutes}\n" + TEXT.replace("25 minutes", "$(how.delay)")
    (cases / "c-matrix.yaml").write_text(matrix)
    (cases / "d-policy-right.yaml").write_text(POLICY.format(watermark=-10))
    (cases / "e-policy-wrong.yaml").write_text(POLICY.format(watermark=7))
    return pytester


def run(pytester: pytest.Pytester, *arguments: str, code: int | None = None) -> str:
    done = pytester.runpytest_inprocess("-v", "--spark", "3.5.9", *arguments)
    said = done.stdout.str() + done.stderr.str()
    assert code is None or done.ret == code, said
    return said


def ran(said: str) -> list[str]:
    """The items in the order they ran: ``b-wrong [spark-3.5.9] FAILED``."""
    found = re.findall(r"^cases/late-drops/(\S+)\.yaml::(\S+) (PASSED|FAILED)", said, re.MULTILINE)
    return [" ".join(each) for each in found]


RIGHT, WRONG = "a-right [spark-3.5.9] PASSED", "b-wrong [spark-3.5.9] FAILED"
MATRIX = "c-matrix long[spark-3.5.9] PASSED"
POLICIES = ["d-policy-right [model] PASSED", "e-policy-wrong [model] FAILED"]


def test_last_failures(folder: pytest.Pytester) -> None:
    # Cases on policies come first: they need no engine.
    assert ran(run(folder, "cases", code=1)) == [*POLICIES, RIGHT, WRONG, MATRIX]
    assert ran(run(folder, "cases", "--lf", code=1)) == [POLICIES[1], WRONG]
    assert ran(run(folder, "cases", "--ff", code=1)) == [POLICIES[1], WRONG, POLICIES[0], RIGHT, MATRIX]


def test_cases_are_selected_by_parts_of_their_names(folder: pytest.Pytester) -> None:
    expected = [POLICIES[0], RIGHT, MATRIX]
    assert ran(run(folder, "cases", "-k", "3.5.9 and not wrong or model and right", code=0)) == expected


def test_items_are_selected_by_their_ids(folder: pytest.Pytester) -> None:
    items = ("a-right.yaml::[spark-3.5.9]", "c-matrix.yaml::long[spark-3.5.9]", "d-policy-right.yaml::[model]")
    said = run(folder, *(f"cases/late-drops/{item}" for item in items), code=0)
    assert ran(said) == [POLICIES[0], RIGHT, MATRIX]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--env", "NOT_SET", "--env", "PATH"], "--env: NOT_SET is not set in this environment"),
        (["--env", "PATH", "--spark-runtime", "container"], "--env: a container gets no variables of this machine"),
        (["--spark", "9.9"], "'9.9' is not a target"),
        (["--spark-runtime", "docker"], "--spark-runtime: 'docker' is not one of local, container"),
    ],
)
def test_options_that_cannot_be_met_are_a_usage_error(
    folder: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    assert f"ERROR: {said}" in run(folder, "cases", *arguments, code=pytest.ExitCode.USAGE_ERROR)


@pytest.mark.parametrize(
    ("nodeid", "target"),
    [
        ("cases/late-drops/x.yaml::[spark-3.5.9]", "spark-3.5.9"),
        ("cases/late-drops/x.yaml::left-outer[spark-3.5.9]", "spark-3.5.9"),
        ("cases/policies/x.yaml::[model]", "model"),
        ("tests/test_x.py::test_late[spark-3.5.9]", "spark-3.5.9"),
        ("tests/test_x.py::TestX::test_late[a-b-spark-4.0.1-c]", "spark-4.0.1"),
        ("tests/test_x.py::test_late[spark-3.5]", None),
        ("tests/test_x.py::test_late", None),
    ],
)
def test_workers_take_what_runs_on_one_version(nodeid: str, target: str | None) -> None:
    from conformance.pytest_items import target_in

    assert target_in(nodeid) == target


def test_what_knows_cases_and_engines_is_imported_only_to_run_cases(tmp_path: Path) -> None:
    """The suite may be installed where people run other tests: their pytest starts as fast as without it."""
    (tmp_path / "test_other.py").write_text(OTHER)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "test_other.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
