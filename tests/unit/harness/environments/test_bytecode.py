"""Which modules of an environment are compiled."""

import subprocess
import sys
from pathlib import Path

from harness.environments.class_archive import compile_imported
from harness.environments.environment import interpreter
from tests.support.environments import script


def test_what_engines_import_is_compiled_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "tests" / "environment"  # no package: its name says nothing about what is in it
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    (packages,) = root.glob("lib/python*/site-packages")
    imported = ["pyspark/sql/functions.py", "pandas/core/frame.py", "six.py", "pyspark/testing/utils.py"]
    not_imported = [
        "pandas/tests/test_frame.py",
        "numpy/core/tests/data/x.py",
        "pyspark/ml/base.py",
        "examples/src/main.py",
    ]
    for name in [*imported, *not_imported, "pyspark/python2.py"]:
        file = packages / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("print 'of another Python'" if "python2" in name else "answer = 42")
    assert compile_imported(interpreter(root)) is None
    compiled = {
        f"{file.parent.parent.relative_to(packages)}/{file.name.split('.')[0]}.py" for file in packages.rglob("*.pyc")
    }
    assert {name.removeprefix("./") for name in compiled} == set(imported)


def test_an_interpreter_that_fails_says_why(tmp_path: Path) -> None:
    broken = script(tmp_path / "python", "echo first >&2\necho 'no space left' >&2\nexit 1")
    assert compile_imported(broken) == "no space left"
