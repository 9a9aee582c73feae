"""What compiling only what engines import saves of an installation: both ways, by turns, on copies of an environment's packages.

``python benchmarks/bytecode.py [--spark 4.3] [--rounds 2]``
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness.environments.class_archive import compile_imported
from harness.environments.environment import interpreter
from harness.environments.provision import prepare
from harness.targets.targets import Targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", default="4.3")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    (target,) = Targets.load().select([options.spark])
    environment = prepare(target)
    assert environment.root is not None
    (packages,) = environment.root.glob("lib/python*/site-packages")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        subprocess.run([environment.python, "-m", "venv", "--without-pip", root], check=True)
        copy = root / packages.relative_to(environment.root)
        for file in packages.rglob("*.py"):
            target_file = copy / file.relative_to(packages)
            target_file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target_file)
        python = interpreter(root)
        for _ in range(options.rounds):
            everything = _seconds(lambda: _compile_all(python, copy))
            of_all = _removed(copy)
            imported = _seconds(lambda: compile_imported(python))
            of_some = _removed(copy)
            ratio = everything / imported
            print(f"all {of_all} files {everything:.1f} s, {of_some} files {imported:.1f} s, ratio {ratio:.2f}")


def _compile_all(python: Path, packages: Path) -> None:
    subprocess.run([python, "-I", "-m", "compileall", "-qq", "-j", "0", packages], check=False)


def _seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _removed(packages: Path) -> int:
    files = [*packages.rglob("*.pyc")]
    for file in files:
        file.unlink()
    return len(files)


if __name__ == "__main__":
    main()
