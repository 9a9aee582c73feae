"""Judge the answers in results of ``conformance run`` and ``conformance upgrade`` again, by the cases and the entries of today.

    python -m tools.judge_again results.jsonl upgrades.jsonl FOLDER

No engine runs. Each file is written to the folder under its name, with the cells of the cases of today, and each cell with another
status is named. Cases that are no more, and cases in a variant, are left out. What cannot be judged any more, because results keep no
metrics of the progress, is ``not-run``. Exits with 1 if a cell is not as its case says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.judging.checkpoint_verdict import CheckpointHandoff, without_answer
from conformance.judging.step_comparison import needs_progress
from conformance.judging.verdict import judge, not_run
from conformance.suite import discovery
from conformance.suite.discovery import Suite
from reports.results.checkpoint_status import EXPECTED
from reports.results.reading import Results
from reports.results.records import Cell, UpgradeCell
from reports.results.status import DOES_NOT_CONFORM
from tools.publish_upgrades import judged_again, pair_of

NOT_KEPT = "The case has changed since, and too little of the answer was kept to judge it again."


def main(arguments: Sequence[str]) -> int:
    *files, folder = map(Path, arguments)
    suite = discovery.load()
    suite.raise_for_problems()
    folder.mkdir(parents=True, exist_ok=True)
    wrong = False
    for file in files:
        before = Results.read(file)
        today = judged(before, suite)
        today.write(folder / file.name)
        changes = tuple(changed(before, today))
        print(f"{folder / file.name}: {len(changes)} of {len((*before.cells, *before.upgrades))} cells changed")
        print("".join(f"  {change}\n" for change in changes), end="")
        wrong |= any(cell.status in DOES_NOT_CONFORM for cell in today.cells)
        wrong |= any(cell.status not in {*EXPECTED, "not-run", "not-applicable"} for cell in today.upgrades)
    return 1 if wrong else 0


def judged(results: Results, suite: Suite) -> Results:
    """The results as the cases of today judge them."""
    cases = {case.id: case for case in suite.cases}
    header = results.header.model_copy(
        update={
            "suite": suite.digest,
            "cases": tuple(name for name in results.header.cases if name in cases),
            "cuts": {name: cuts for name, cuts in results.header.cuts.items() if name in cases},
        }
    )
    versions = {target.name: SparkVersion.parse(target.spark) for target in header.targets}
    cells = (_cell(cell, cases[cell.case], versions[cell.target]) for cell in results.cells if cell.case in cases)
    upgrades = (_upgrade(cell, cases[cell.case]) for cell in results.upgrades if cell.case in cases)
    return replace(results, header=header, cells=tuple(cells), upgrades=tuple(upgrades))


def changed(before: Results, after: Results) -> Iterator[str]:
    """Each cell with another status, and both."""
    known = {
        **{cell.key: str(cell.status) for cell in before.cells},
        **{cell.key: str(cell.status) for cell in before.upgrades},
    }
    for cell in (*after.cells, *after.upgrades):
        assert isinstance(cell, Cell | UpgradeCell)
        if cell.status != known[cell.key]:
            yield f"{' · '.join(map(str, cell.key))}: {known[cell.key]} → {cell.status}"


def _cell(cell: Cell, case: Case, version: SparkVersion) -> Cell:
    if cell.observation is None:
        return cell if cell.case_digest == case.digest else Cell.of(case, cell.target, not_run(case, version, NOT_KEPT))
    verdict = judge(case, version, cell.observation)
    if verdict.findings and all(map(needs_progress, verdict.findings)):
        verdict = not_run(case, version, NOT_KEPT)
        return cell if cell.case_digest == case.digest else Cell.of(case, cell.target, verdict)
    return Cell.of(case, cell.target, verdict, [cell.observation], cell.duration_ms, reused=cell.reused)


def _upgrade(cell: UpgradeCell, case: Case) -> UpgradeCell:
    again = judged_again(cell, case)
    if again is not None:
        return again
    names = cell.origin, cell.to
    verdict = without_answer(CheckpointHandoff(case, cell.cut), pair_of(names), "not-run", NOT_KEPT)
    return UpgradeCell.of(case, names, verdict)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
