"""The fixture `watermark_case`, with miniature engines; and projects whose packages have the names of ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.runner import resources
from tests.support.miniature.target import SPARK_359
from tests.support.miniature.two_versions import NEW, TwoVersions

ROOT = Path(__file__).parents[3]
pytest_plugins = ["pytester"]
JOB = """
def build(spark, events):
    raise AssertionError("a miniature engine imports nothing")
"""
CASE = """
from acme_windows import build

def test_windows(watermark_case):
    case = watermark_case(build, events="event_time TIMESTAMP, count INT")
    case = case.add(events=[("12:00", 1), ("12:01", 2)]){first}
    case.add(events=[("12:35", 1)]){second}
"""
RIGHT = CASE.format(
    first=".expect(watermark='11:36')", second=".expect(rows=[('12:00', '12:10', 3)], watermark='12:10').run()"
)
RECORDED = CASE.format(first="", second=".expect_recorded().run()")


@pytest.fixture
def modes():
    """By target, how the miniature engines behave."""
    return {}


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, modes) -> pytest.Pytester:
    """A project with a job; its engines are miniature ones."""
    engines = pytester.path / "engines"
    engines.mkdir()
    runtimes = iter(range(100))

    def made(*_, **__):
        root = engines / str(next(runtimes))
        root.mkdir()
        return TwoVersions(root, modes)

    monkeypatch.setattr(resources, "runtime_for", made)
    pytester.makepyfile(acme_windows=JOB)
    pytester.syspathinsert()
    return pytester


def run(folder: pytest.Pytester, text: str, *arguments: str, **outcomes: int) -> str:
    folder.makepyfile(test_windows=text)
    done = folder.runpytest_inprocess("-v", "test_windows.py", "-p", "no:cacheprovider", *arguments)
    done.assert_outcomes(**outcomes)
    return done.stdout.str()


BOTH = ("--spark", str(SPARK_359.version), "--spark", str(NEW.version))


def test_a_case_runs_on_each_version(folder, modes):
    modes[NEW.name] = "one-batch-late"
    said = run(folder, RIGHT, *BOTH, passed=1, failed=1)
    assert "test_windows.py::test_windows[spark-3.5.9] PASSED" in said
    assert "test_windows.py::test_windows[spark-4.0.5] FAILED" in said
    assert "acme_windows.build on 4.0.5: violates" in said
    assert "step 2 (acme_windows.build.yaml)" in said


def test_a_case_that_is_not_run_is_an_error(folder):
    assert "end it with .run()" in run(folder, RIGHT.replace(".run()", ""), "--spark", "3.5.9", passed=1, errors=1)


def test_the_version_is_that_of_the_test(folder):
    said = run(folder, RIGHT.replace(".run()", ".run('3.4')"), "--spark", "3.5.9", failed=1, errors=1)
    assert "--spark gives the versions: call run()" in said


def test_what_spark_did_is_recorded_and_compared(folder, modes):
    file = folder.path / "watermark_cases" / "test_windows.test_windows.yaml"
    assert f"{file} does not exist: run pytest --conformance-update" in run(folder, RECORDED, *BOTH, failed=2)
    modes[NEW.name] = "one-batch-late"
    # The first version is recorded, the other compared with it.
    run(folder, RECORDED, *BOTH, "--conformance-update", passed=1, failed=1)
    text = file.read_text(encoding="utf-8")
    assert 'rows: [["12:00", "12:10", 3]], watermark: "12:10"' in text
    said = run(folder, RECORDED, *BOTH, passed=1, failed=1)
    assert "test_windows[spark-4.0.5] FAILED" in said
    assert "step 2 (test_windows.test_windows.yaml:" in said
    modes[NEW.name] = "right"
    run(folder, RECORDED, *BOTH, passed=2)
    assert file.read_text(encoding="utf-8") == text
    file.write_text(text.replace("3]]", "4]]"), encoding="utf-8")
    run(folder, RECORDED, *BOTH, failed=2)


def test_another_case_than_the_recorded_one_is_recorded_again(folder):
    run(folder, RECORDED, "--spark", "3.5.9", "--conformance-update", passed=1)
    other = RECORDED.replace('("12:35", 1)', '("12:36", 1)')
    said = run(folder, other, "--spark", "3.5.9", failed=1)
    assert "is not the one that" in said
    assert "run pytest --conformance-update" in said
    run(folder, other, "--spark", "3.5.9", "--conformance-update", passed=1)
    run(folder, other, "--spark", "3.5.9", passed=1)


def test_a_main_method_is_run_recorded_and_compared_like_a_function(folder):
    for text in (RIGHT, RECORDED):
        main = text.replace("(build, ", "({'main': 'acme.Main', 'arguments': ['--day', '1']}, ")
        run(folder, main, "--spark", "3.5.9", "--conformance-update", passed=1)
    recorded = (folder.path / "watermark_cases" / "test_windows.test_windows.yaml").read_text(encoding="utf-8")
    assert "main: acme.Main" in recorded
    run(folder, main, "--spark", "3.5.9", passed=1)
    said = run(folder, main.replace("'1'", "'2'"), "--spark", "3.5.9", failed=1)
    assert "is not the one that" in said


def test_each_recorded_case_has_a_file_of_its_own(folder):
    text = RECORDED.replace("def test_windows(watermark_case)", "def test_windows(watermark_case, how)")
    text = text.replace("\ndef", "\nimport pytest\n\n@pytest.mark.parametrize('how', ['a/b', 'c'])\ndef")
    text += "    case.idle().expect_recorded().run()\n"
    run(folder, text, *BOTH, "--conformance-update", passed=4)
    names = {path.name for path in (folder.path / "watermark_cases").iterdir() if path.suffix == ".yaml"}
    stem = "test_windows.test_windows"
    assert names == {f"{stem}.{how}.yaml" for how in ("a.b", "a.b-2", "c", "c-2")}
    run(folder, text, *BOTH, passed=4)


def test_an_engine_that_gives_no_answer_is_not_recorded(folder, modes):
    modes[SPARK_359.name] = "dies"
    said = run(folder, RECORDED, "--spark", "3.5.9", "--conformance-update", failed=1)
    assert "nothing was recorded" in said
    assert not (folder.path / "watermark_cases").exists()


def pytest_of_a_user(folder: Path, *arguments: str, installed: bool = False) -> str:
    """A pytest of its own, in the folder, which Python searches first; with ``installed``, as the command ``pytest``, not at all."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, *(["-P"] if installed else []), "-m", "pytest", *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.fixture
def clash(tmp_path: Path) -> Path:
    """A project with packages of the names of ours, and a test of them."""
    for name in ("harness", "reports"):
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "answer_key.py").write_text("ANSWER = 42\n")
    text = f"{OWN}\ndef test_own():\n    assert harness.answer_key.ANSWER == reports.answer_key.ANSWER == 42\n"
    (tmp_path / "test_own.py").write_text(text)
    return tmp_path


OWN = "import harness.answer_key, reports.answer_key\n"


def test_a_project_with_packages_of_the_same_names_runs_its_own_tests(clash):
    assert "1 passed" in pytest_of_a_user(clash)


@pytest.mark.parametrize(("installed", "mode"), [(True, "importlib"), (False, "prepend")], ids=["pytest", "python -m"])
def test_packages_of_the_same_names_are_shared(clash, installed, mode):
    """The tests of a project get their own packages, in `conftest.py` too, and the plugin gets ours."""
    (clash / "conftest.py").write_text(OWN)
    case = "def test_it(watermark_case):\n    with raises(WrongUsage, match='import the function'):\n        watermark_case(print)\n"
    imports = f"from pytest import raises\n{OWN}from conformance.core.errors import WrongUsage\n"
    (clash / "test_case.py").write_text(f"{imports}\n{case}")
    arguments = ("--spark", "3.5.9", "--import-mode", mode, *(["-c", "own.ini"] if mode == "importlib" else []))
    (clash / "own.ini").write_text("[pytest]\npythonpath = .\n")
    said = pytest_of_a_user(clash, *arguments, installed=installed)
    assert "2 passed" in said, said


@pytest.mark.parametrize(("name", "taken"), [("harness", "errors"), ("reports", "results")])
def test_a_module_of_the_same_name_is_told(clash, name, taken):
    (clash / "test_case.py").write_text("def test_it(watermark_case): ...\n")
    (clash / name / f"{taken}.py").write_text("")
    arguments = {"harness": ("--spark", "3.5.9"), "reports": ("test_case.py",)}[name]
    said = pytest_of_a_user(clash, *arguments)
    line = f"conformance: your package {clash / name} and its own package {name} both have a module {taken}: rename"
    assert said.count(line) == 1, said
    assert "Traceback" not in said
    assert "pytest_plugin.py" not in said


@pytest.mark.parametrize(
    "more",
    [
        "case.add(events=[('12:40', 1)]).expect(rows=[('12:01', 99)])",
        "watermark_case(build, events='event_time TIMESTAMP, count INT').add(events=[('12:00', 1)]).expect(rows=[])",
    ],
)
def test_a_case_that_ran_hides_no_other_that_did_not(folder, more):
    text = RIGHT.replace("    case.add(", "    case = case.add(").replace(".run()", "\n    case.run()\n    " + more)
    said = run(folder, text, passed=1, errors=1)
    assert "the case of this test never ran: end it with .run()" in said
