"""What a second, identical run costs: the first against the second, from one go.

``python benchmarks/second_run.py [--spark lines] [CASES…]``; the answers of earlier runs are left alone, and not used.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reports.results.reading import Results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", action="append")
    parser.add_argument(
        "--answers", type=Path, help="A file of answers to begin with: then the first run is a second one too."
    )
    parser.add_argument("cases", nargs="*", type=Path)
    options = parser.parse_args()
    chosen = [part for spec in options.spark or ["newest"] for part in ("--spark", spec)]
    paths = [str(path.resolve()) for path in options.cases] or ["--all"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environ = {**os.environ, "CONFORMANCE_ANSWERS": str((options.answers or folder / "answers.sqlite").resolve())}
        seconds, cells = [], []
        for number in (1, 2):
            command = [
                sys.executable,
                "-m",
                "conformance.cli.main",
                "run",
                *paths,
                *chosen,
                "--output",
                f"{number}.jsonl",
            ]
            began = time.monotonic()
            subprocess.run(command, cwd=folder, env=environ, check=False, stdout=subprocess.DEVNULL)
            seconds.append(time.monotonic() - began)
            results = Results.read(folder / f"{number}.jsonl")
            cells.append({(cell.case, cell.target): (cell.status, cell.behaviour) for cell in results.cells})
    first, second = seconds
    print(f"{len(cells[0])} cells, {'the same' if cells[0] == cells[1] else 'DIFFERENT'} both times")
    print(f"first {first:.1f} s   second {second:.1f} s   second/first {second / first:.3f}")


if __name__ == "__main__":
    main()
