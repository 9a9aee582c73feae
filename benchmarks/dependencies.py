"""What a plain install brings: ``python benchmarks/dependencies.py``.

For each package that a plain install brings a line: its megabytes on the disk, the milliseconds of processor time that its import
adds to a new Python, the least of five, and what needs it. At the end, what the wheel of this checkout has, if uv is there to build it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGE = "watermark-conformance"
TURNS = 5
_MB = 1e6


def main() -> None:
    needed: dict[str, set[str]] = {}
    _find(PACKAGE, needed)
    modules = {_plain(name): module for module, names in packages_distributions().items() for name in names}
    idle, whole = _import_ms("sys"), 0
    for name, why in sorted(needed.items()):
        files = [Path(str(file.locate())) for file in distribution(name).files or ()]
        size = sum(file.stat().st_size for file in files if file.is_file())
        whole += size
        took = max(_import_ms(modules[name]) - idle, 0)
        print(f"{name:<20} {size / _MB:5.1f} MB {took:4.0f} ms  for {', '.join(sorted(why))}", flush=True)
    print(f"{len(needed)} packages, {whole / _MB:.1f} MB{_wheel()}")


def _find(name: str, needed: dict[str, set[str]]) -> None:
    """Add the packages that a package needs without an extra, each with what needs it."""
    for requirement in map(Requirement, distribution(name).requires or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            other = _plain(requirement.name)
            is_new = other not in needed
            needed.setdefault(other, set()).add(name)
            if is_new:
                _find(other, needed)


def _plain(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _import_ms(module: str) -> float:
    return min(_cpu_s([sys.executable, "-c", f"import {module}"]) for _ in range(TURNS)) * 1000


def _cpu_s(command: list[str]) -> float:
    _, status, used = os.wait4(subprocess.Popen(command).pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return used.ru_utime + used.ru_stime


def _wheel() -> str:
    uv = shutil.which("uv")
    if uv is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([uv, "build", "-q", "--wheel", "-o", folder, ROOT], check=True)
        wheel = next(Path(folder).glob("*.whl"))
        return f"; the wheel has {wheel.stat().st_size / _MB:.1f} MB"


if __name__ == "__main__":
    main()
