"""The checkers, as tests, so that one command runs everything."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from benchmarks import __main__ as figures
from tools.regenerate import documentation

ROOT = Path(__file__).parents[2]
OF_SOAK = ROOT / "tools" / "soak" / "driver"
INSIDE = sorted(path for room in (ROOT / "harness" / "driver", OF_SOAK) for path in room.rglob("*.py"))
"""What runs inside an engine."""
PYTHON = [sys.executable, "-m"]


@pytest.mark.parametrize(
    "command",
    [
        [*PYTHON, "ruff", "check", "."],
        [*PYTHON, "ruff", "format", "--check", "."],
        [*PYTHON, "mypy"],
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
    ],
    ids=["ruff check", "ruff format", "mypy --strict", "import-linter"],
)
def test_the_checker_is_content(command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def newer_than_3_7(*paths):
    """What of Python's syntax and standard library CPython 3.7 lacks; annotations are not evaluated."""
    vermin = [sys.executable, "-c", "from vermin import main; main()"]
    command = [*vermin, "--target=3.7-", "--no-tips", "-vvv", *map(str, paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Minimum required versions" in done.stdout, done.stdout + done.stderr
    return done.stdout if done.returncode else ""


def test_what_runs_inside_an_engine_is_python_3_7():
    assert len(INSIDE) > 10
    assert newer_than_3_7(*INSIDE) == ""
    for source in INSIDE:
        ast.parse(source.read_text(encoding="utf-8"), filename=str(source), feature_version=(3, 7))


NEWER = ("from typing import Protocol", "from importlib import metadata", "if (a := 1): pass", "def f(a, /): pass")


def test_what_is_newer_than_3_7_is_found(tmp_path):
    sources = [tmp_path / f"newer{number}.py" for number in range(len(NEWER))]
    for source, newer in zip(sources, NEWER, strict=True):
        source.write_text(newer + "\n", encoding="utf-8")
    found = newer_than_3_7(*sources)
    assert [source.name for source in sources if not re.search(rf"3\.8.*{source}", found)] == []


def imported(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


def test_what_runs_inside_an_engine_needs_nothing_but_pyspark():
    for source in INSIDE:
        tree = ast.parse(source.read_text(encoding="utf-8"))
        # The soak is staged with the driver, below a package of the same name as here.
        inside = {"pyspark", "py4j"} | ({"harness"} if source.parent == OF_SOAK else set())
        needed = {name for name in imported(tree.body) if name not in sys.stdlib_module_names}
        assert needed <= inside, source.name
        # State functions over pandas frames import it when they are called, where there are such functions.
        ever = {name for name in imported(ast.walk(tree)) if name not in sys.stdlib_module_names}
        assert ever <= {*inside, "pandas", "pyarrow"}, source.name


def test_the_search_of_the_report_reads_the_documentation_as_it_is():
    read = (ROOT / "reports" / "html" / "documentation.yaml").read_text(encoding="utf-8")
    assert read == documentation(), "run: python -m tools.regenerate"


def test_the_figures_of_the_performance_page_are_those_that_were_measured():
    assert figures.PAGE.read_text(encoding="utf-8") == figures.page(), "run: python -m tools.regenerate"


def test_what_the_search_shows_of_a_page_is_a_sentence_of_it():
    pages = yaml.safe_load(documentation())
    assert [name for name, page in pages.items() if re.search("<!--|`", page["begins"])] == []
