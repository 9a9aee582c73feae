"""The checkers, as tests, so that one command runs everything."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


def test_the_driver_is_python_3_8():
    import ast

    sources = list((ROOT / "harness" / "driver").glob("*.py"))
    assert len(sources) > 5
    for source in sources:
        ast.parse(source.read_text(encoding="utf-8"), filename=str(source), feature_version=(3, 8))


def test_the_driver_needs_nothing_but_pyspark():
    import ast

    for source in (ROOT / "harness" / "driver").glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            for name in names:
                top = name.partition(".")[0]
                assert top in {"pyspark", "py4j"} or top in sys.stdlib_module_names, f"{source.name} imports {name}"
