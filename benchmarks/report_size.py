"""How long a report takes to write, how large it is, and how soon its matrix answers a filter: ``python benchmarks/report_size.py``.

Prints a line for each size, and by how much a cell of the larger costs more than one of the smaller. The cells are those
of the sample of the browser tests, repeated under other names, and the reference model is asked about each; where there
is no Chromium, the time of the filter is left out. Seconds are those of the processor, which others on the machine do not
lengthen. With ``--check`` it fails where a bound is missed: 5 s to write and 100 ms to filter 2,000 cells.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from conformance.suite import discovery
from reports.analysis.report import Report
from reports.html.writer import write, write_one_file
from reports.results.reading import Results
from reports.results.records import Cell, TargetRecord
from reports.results.writing import ResultsWriter

SAMPLE = Path(__file__).parents[1] / "tests" / "browser" / "sample"
VERSIONS = ["3.0.3", "3.1.3", "3.2.4", "3.3.4", "3.4.4", "3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0"]
SIZES = (2_000, 20_000)
WRITTEN_WITHIN_S, FILTERED_WITHIN_MS = 5.0, 100.0

FILTER = """async () => {
  const box = document.querySelector("[data-filters] [name=text]");
  const shown = () => document.querySelector("[data-filters] [data-shown]").textContent;
  const times = [];
  // Every other text matches all cases, so the number shown always changes.
  for (const text of ["no such case", "", "no such case", "", "no such case", "", "no such case", "", "no such case"]) {
    const before = shown();
    const start = performance.now();
    box.value = text;
    box.dispatchEvent(new Event("input", {bubbles: true}));
    while (shown() === before) {
      if (performance.now() - start > 600000) throw new Error(`the number of cases shown stays ${before}`);
      await new Promise((done) => setTimeout(done, 0));
    }
    document.querySelector("[data-matrix]").getBoundingClientRect();
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b)[times.length >> 1];
}"""


def results(path: Path, size: int) -> int:
    """Write a results file of about this many cells."""
    sample = Results.read(SAMPLE / "results.jsonl")
    answered = {(cell.case, cell.target): cell for cell in sample.cells}
    names = {
        version: ("spark-3.3.4" if version < "3.5" else "spark-3.5.9" if version < "4.3" else "spark-4.3.0")
        for version in VERSIONS
    }
    cases = [
        (case, f"{case.rpartition('/')[0]}-{number % 12}/{case.rpartition('/')[2]}-{number}")
        for number in range(size // len(VERSIONS) // len(sample.header.cases) + 1)
        for case in sample.header.cases
    ][: size // len(VERSIONS)]
    header = sample.header.model_copy(
        update={
            "cases": tuple(id for _, id in cases),
            "targets": tuple(TargetRecord(name=f"spark-{version}", spark=version) for version in VERSIONS),
        }
    )
    with ResultsWriter(path, header) as writer:
        for case, id in cases:
            for version in VERSIONS:
                cell: Cell = answered[case, names[version]]
                family = id.rpartition("/")[0]
                writer.write(cell.model_copy(update={"case": id, "family": family, "target": f"spark-{version}"}))
        writer.finish(sample.footer.finished)
    return len(cases) * len(VERSIONS)


def known(cells: Results) -> discovery.Suite:
    """The sample's cases under the names of the results, so that every page is a full one."""
    loaded = discovery.load([SAMPLE / "cases"])
    by_digest = {case.digest: case for case in loaded.cases}
    named = {cell.case: by_digest[cell.case_digest] for cell in cells.cells}
    cases = tuple(case.model_copy(update={"id": id}) for id, case in sorted(named.items()))
    return discovery.Suite(cases, catalogues=loaded.catalogues)


def filtered_ms(matrix: Path) -> float | None:
    """The middle one of several filters, from the key to the table as it is then; None without a browser."""
    chromium = os.environ.get("CONFORMANCE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--no-first-run"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(matrix.as_uri())
        taken = float(page.evaluate(FILTER))
        browser.close()
    return taken


def main() -> int:
    missed, per_cell = [], []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.jsonl"
            cells = results(path, size)
            start = time.process_time()
            read = Results.read(path)
            made = Report.of(read, known(read)).with_model()
            front = write(made, Path(folder) / "site")
            seconds = time.process_time() - start
            one = write_one_file(Report.of(read, known(read)).with_model(), Path(folder) / "one")
            bytes_ = sum(file.stat().st_size for file in front.parent.rglob("*") if file.is_file())
            taken = filtered_ms(front.parent / "matrix.html")
            told = "no browser" if taken is None else f"{taken:.0f} ms to filter"
            per_cell.append(seconds / cells)
            print(
                f"{cells:,} cells: {seconds:.1f} s, {1000 * per_cell[-1]:.2f} ms a cell, to read and write "
                f"{bytes_ / 1e6:.1f} MB; {told}; one file {one.stat().st_size / 1e6:.1f} MB",
                flush=True,
            )
            if size == SIZES[0] and (seconds > WRITTEN_WITHIN_S or (taken or 0) > FILTERED_WITHIN_MS):
                missed.append(size)
    print(f"a cell of {SIZES[-1]:,} costs {per_cell[-1] / per_cell[0]:.2f} times what one of {SIZES[0]:,} costs")
    return 1 if missed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
