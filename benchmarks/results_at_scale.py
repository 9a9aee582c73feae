"""What the commands that read results take for many cells: ``python benchmarks/results_at_scale.py [--cells 100000]``.

The cells are the published ones, repeated under other names, so all but the first of each has no case in the suite. For each
command a line with its seconds, those by the clock in brackets, and the most memory that one of its processes held. Seconds are
those of the processors, which others on the machine hardly lengthen. With ``--before FOLDER``, another checkout of this
repository runs each command too, by turns with this one, and each line has the ratios. With ``--growth 10000 100000`` each command
runs on so many cells one after the other, and each line has the time of a cell and how it compares with that of the fewest.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.results.compression import open_results
from reports.results.published import published

HERE = Path(__file__).parents[1]
_MB = 1 << 20


@dataclass(frozen=True)
class Cost:
    """Of one command."""

    seconds: float
    """Of all processors."""
    took: float
    """Seconds by the clock."""
    most_bytes: int
    exit_code: int

    def __str__(self) -> str:
        return f"{self.seconds:6.1f} s ({self.took:.1f} s), {self.most_bytes / _MB:5.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--before", type=Path, help="another checkout, to run by turns with this one")
    parser.add_argument("--only", action="append", help="report, gate, diff or combine")
    parser.add_argument("--growth", type=int, nargs="+", help="the numbers of cells to compare")
    options = parser.parse_args()
    fewest: dict[str, float] = {}
    for size in options.growth or [options.cells]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            cells = write(folder / "all.jsonl", published()[0], size)
            for command, arguments in _commands(folder, size, options.only):
                after = cost(HERE, [*command.split(), *arguments], folder)
                each = 1000 * after.seconds / cells
                line = f"{command:<16} {cells:,} cells: {after}, {each:.3f} ms a cell"
                if options.growth:
                    line += f", {each / fewest.setdefault(command, each):.2f} of the fewest"
                if options.before:
                    before = cost(options.before.resolve(), [*command.split(), *arguments], folder)
                    line += f"   before: {before}   {after.seconds / before.seconds:.2f} of the time"
                    line += f", {after.most_bytes / before.most_bytes:.2f} of the memory"
                    both = before.exit_code, after.exit_code
                    line += "" if both[0] == both[1] else "; exit codes {}, {}".format(*both)
                print(line, flush=True)


def _commands(folder: Path, size: int, only: Sequence[str] | None) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each command that was asked for with its arguments, once its files are there."""
    source = published()[0]
    if not only or "gate" in only:
        yield "gate", ["all.jsonl", "--from", "3.5", "--to", "4.3"]
    if not only or "diff" in only:
        write(folder / "again.jsonl", source, size, duration_ms=1)
        yield "maintain diff", ["all.jsonl", "again.jsonl"]
    if not only or "combine" in only:
        halves = [folder / "half-1.jsonl", folder / "half-2.jsonl"]
        for number, half in enumerate(halves):
            write(half, source, size, half=number)
        yield "maintain combine", [*(half.name for half in halves), "-o", "combined.jsonl"]
    if not only or "report" in only:
        yield "report", ["all.jsonl", "-o", "site"]


def cost(tree: Path, arguments: Sequence[str], folder: Path) -> Cost:
    """Run a command of a checkout in a process of its own, which keeps what it compiles: of an installed package that is done, too."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.monotonic()
    run = subprocess.Popen(
        [sys.executable, "-m", "conformance.cli.main", *arguments],
        cwd=folder,
        env={**environ, "PYTHONPATH": str(tree)},
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(run.pid, 0)
    # Kilobytes, except on macOS.
    most = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - begun, most, os.waitstatus_to_exitcode(status))


def earlier_tree(revision: str, folder: Path) -> Path:
    """Put the files of an earlier revision of this checkout into a folder of its name, once, and return that."""
    tree = folder / revision
    if not tree.exists():
        tree.mkdir()
        archive = subprocess.run(["git", "archive", revision], cwd=HERE, check=True, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", tree], input=archive.stdout, check=True)
    return tree


def write(path: Path, source: Path, at_least: int, *, half: int | None = None, **changed: Any) -> int:
    """Write a results file of about this many cells; ``half``: only those of every second version."""
    with open_results(source) as lines:
        records = [json.loads(line) for line in lines]
    header, cells, footer = records[0], [one for one in records if one["record"] == "cell"], records[-1]
    copies = -(-at_least // len(cells))
    kept = [target for number, target in enumerate(header["targets"]) if half is None or number % 2 == half]
    names = {target["name"] for target in kept}
    counts: Counter[str] = Counter()
    with path.open("w", encoding="utf-8") as file:
        named = [_named(case, copy) for copy in range(copies) for case in header["cases"]]
        file.write(json.dumps({**header, "cases": named, "targets": kept}) + "\n")
        file.writelines(
            json.dumps({"record": "target", "target": one["target"]}) + "\n"
            for one in records
            if one["record"] == "target" and one["target"]["name"] in names
        )
        for copy in range(copies):
            for cell in cells:
                if cell["target"] in names:
                    file.write(json.dumps({**cell, **_renamed(cell, copy), **changed}) + "\n")
                    counts[cell["status"]] += 1
        file.write(json.dumps({**footer, "counts": counts, "digest": None}) + "\n")
    return sum(counts.values())


def _renamed(cell: Mapping[str, Any], copy: int) -> dict[str, str]:
    case = _named(cell["case"], copy)
    return {"case": case, "family": case.rpartition("/")[0]}


def _named(case: str, copy: int) -> str:
    return f"copy-{copy}/{case}" if copy else case


if __name__ == "__main__":
    main()
