"""Whether the harness's own work grows as the cells do: cases and versions by the thousand, on engines that cost nothing.

``python benchmarks/curve.py [--cases 50 500 5000] [--versions 1 3 10]``: generated cases are read, run on the miniature engines of the
unit tests (a process each, no JVM), judged, written, read back and drawn. Prints the milliseconds a cell and the peak memory of the
process for each size, and the ratio of the largest size's to the smallest's, which a straight curve keeps at about 1.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
CASE = ROOT / "tests" / "support" / "miniature" / "cases" / "late-drops" / "windows.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, nargs="+", default=[50, 500, 5000])
    parser.add_argument("--versions", type=int, nargs="+", default=[1, 3, 10])
    parser.add_argument("--one", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_measured(*options.one)))
        return
    sizes = [(cases, options.versions[0]) for cases in options.cases]
    sizes += [(options.cases[min(1, len(options.cases) - 1)], versions) for versions in options.versions[1:]]
    print(" cases  versions   cells   seconds   ms a cell   peak MB")
    by_size: dict[tuple[int, int], float] = {}
    for cases, versions in sizes:
        run = [sys.executable, __file__, "--one", str(cases), str(versions)]
        seconds, peak = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
        by_size[cases, versions] = seconds / (cases * versions)
        print(
            f"{cases:6} {versions:9} {cases * versions:7} {seconds:9.1f} {by_size[cases, versions] * 1000:11.2f} {peak / 2**20:9.0f}"
        )
    smallest, largest = (
        min(by_size, key=lambda size: size[0] * size[1]),
        max(by_size, key=lambda size: size[0] * size[1]),
    )
    print(f"a cell of the largest against one of the smallest   ratio {by_size[largest] / by_size[smallest]:.2f}")


def _measured(number: int, versions: int) -> tuple[float, int]:
    """Seconds of a run, and bytes of memory at its peak."""

    from conformance.cli.console import errors_console
    from conformance.cli.progress import CaseAnswers
    from conformance.core.versions import SparkVersion
    from conformance.runner.cases import JudgeCases, cell_record, cells_of
    from conformance.runner.execution import CellPlan, ResultsSink, run_cells
    from conformance.suite import discovery
    from harness.runtimes.options import RuntimeOptions
    from harness.scheduling.cell_run import Limits
    from reports.results.reading import Results
    from reports.results.records import Header
    from reports.results.records import TargetRecord as TargetRecord
    from reports.terminal.matrix import lines
    from tests.support.miniature.runtime import MiniatureRuntime
    from tests.support.miniature.target import SPARK_359

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in range(number):
            path = folder / "cases" / f"family-{case % 20}" / f"case-{case}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(CASE.read_text())
        began = time.monotonic()
        loaded = discovery.load([folder / "cases"])
        loaded.raise_for_problems()
        targets = [replace(SPARK_359, version=SparkVersion(3, 5, patch)) for patch in range(versions)]
        header = Header(
            suite=loaded.digest,
            cases=tuple(case.id for case in loaded.cases),
            targets=tuple(TargetRecord(name=target.name, spark=str(target.version)) for target in targets),
            started=datetime.now(UTC),
        )
        stderr, sys.stderr = sys.stderr, io.StringIO()
        try:
            with ResultsSink(folder / "results.jsonl", header, cell_record) as sink:
                limits = Limits(jobs=2, step_timeout=60, side_by_side=2)
                plan = CellPlan(cells_of(loaded.cases, targets), RuntimeOptions(), limits)
                display = CaseAnswers(number * versions, errors_console())
                run_cells(plan, JudgeCases(), MiniatureRuntime(folder), sink, display)
                sink.finish()
        finally:
            sys.stderr = stderr
        results = Results.read(folder / "results.jsonl")
        assert results.footer.counts == {"conforms": number * versions}, results.footer.counts
        lines(results, 120, verbose=True)
        seconds = time.monotonic() - began
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main()
