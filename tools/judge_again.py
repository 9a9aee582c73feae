"""Judge the answers in results of ``conformance run`` and ``conformance upgrade`` again, by the cases and the entries of today.

    python -m tools.judge_again results.jsonl reports/baselines/upgrades/3.5.jsonl.xz FOLDER
    python -m tools.judge_again reports/baselines/lines.jsonl.xz FOLDER --new 4.3.jsonl 4.2.jsonl

No engine runs. With ``--new``, the cells of these results of ``conformance run`` join those of each file, for the targets that it has,
in place of older ones; later files win. Give each new case's cells for all of these targets, or the file cannot be read again.
Each file is written to the folder under its name, with the cells of the cases of today, and each cell with another
status is named. How long steps and micro-batches took is left out, and so are cases that are no more, and cases in a variant. What
cannot be judged any more, because results keep no metrics of the progress, and of published upgrades only statuses, is ``not-run``.
Exits with 1 if a cell is not as its case says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from conformance.core.case import Case, Interface
from conformance.core.versions import SparkVersion
from conformance.judging.checkpoint_verdict import (
    CheckpointHandoff,
    VersionPair,
    documented_outcome,
    judge_upgrade,
    no_checkpoint,
)
from conformance.judging.finding import Finding, ValueDiffers
from conformance.judging.step_comparison import NO_METRIC, NO_PATH
from conformance.judging.verdict import as_documented, judge, no_answer, not_applicable
from conformance.suite import discovery
from conformance.suite.discovery import Suite
from reports.results.reading import Results
from reports.results.records import Cell, DocumentedDifference
from reports.results.status import DOES_NOT_CONFORM, GREEN

NOT_KEPT = "The case has changed since, and too little of the answer was kept to judge it again."


def needs_progress(finding: Finding) -> bool:
    """Whether a finding says no more than that the progress of a micro-batch is missing, which results do not keep."""
    if not isinstance(finding, ValueDiffers):
        return False
    if finding.observed == NO_PATH:
        return finding.expected is not None
    return finding.observed == NO_METRIC and isinstance(finding.expected, list)


def main(arguments: Sequence[str]) -> int:
    end = arguments.index("--new") if "--new" in arguments else len(arguments)
    *files, folder = map(Path, arguments[:end])
    new = [Results.read(Path(argument)) for argument in arguments[end + 1 :]]
    suite = discovery.load()
    suite.raise_for_problems()
    folder.mkdir(parents=True, exist_ok=True)
    wrong = False
    for file in files:
        before = Results.read(file, condensed=True)
        today = judged(joined(before, new), suite)
        today.write(folder / file.name)
        changes = tuple(changed(before, today))
        print(f"{folder / file.name}: {len(changes)} of {len((*before.cells, *before.upgrades))} cells changed")
        print("".join(f"  {change}\n" for change in changes), end="")
        wrong |= any(cell.status in DOES_NOT_CONFORM for cell in today.cells)
        wrong |= any(cell.status not in {*GREEN, "not-run"} for cell in today.upgrades)
    return 1 if wrong else 0


def joined(results: Results, new: Sequence[Results]) -> Results:
    """The results with the cells that ``new`` has for their targets."""
    targets = {target.name: place for place, target in enumerate(results.header.targets)}
    newest = {cell.key: cell for run in (results, *new) for cell in run.cells if cell.target in targets}
    cells = tuple(sorted(newest.values(), key=lambda cell: (cell.case, targets[cell.target])))
    cases = tuple(sorted({*results.header.cases, *(cell.case for cell in cells)}))
    return replace(results, header=results.header.model_copy(update={"cases": cases}), cells=cells)


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
    return replace(results, header=header, cells=tuple(map(without_durations, cells)), upgrades=tuple(upgrades))


def changed(before: Results, after: Results) -> Iterator[str]:
    """Each new cell, and each with another status, and both."""
    known = {cell.key: _answer(cell) for cell in before.all_cells()}
    for cell in after.all_cells():
        if _answer(cell) != known.get(cell.key):
            yield f"{' · '.join(cell.key)}: {known.get(cell.key, 'new')} → {_answer(cell)}"


def _answer(cell: Cell) -> str:
    return cell.status if cell.outcome is None else f"{cell.status} ({cell.outcome})"


def cell_again(cell: Cell, case: Case, version: SparkVersion) -> Cell | None:
    """The cell as the case of today judges it; None if what is kept of it is too little to judge.

    That is so if the case has changed, and the cell has no answer or one of several that differ, or the case asks for metrics of
    the progress, which results do not keep.
    """
    if (outside := not_applicable(case, version)) is not None:
        return Cell.of(case, cell.target, outside)
    if cell.observation is not None and cell.status != "flaky":
        verdict = judge(case, version, cell.observation)
        if not (verdict.findings and all(map(needs_progress, verdict.findings))):
            return Cell.of(case, cell.target, verdict, [cell.observation], cell.duration_ms, reused=cell.reused)
    return cell if cell.case_digest == case.digest else None


def upgrade_again(cell: Cell, case: Case) -> Cell | None:
    """The same of a checkpoint. Entries of ``upgrades.yaml`` are not in the digest of a case.

    Where only the status was kept, it is too little if the case has changed, or documents something else.
    """
    pair, handoff = pair_of(cell.pair), _handoff(cell, case)
    if (outside := no_checkpoint(handoff, pair)) is not None:
        return Cell.of(case, cell.target, outside, origin=cell.origin)
    same = cell.case_digest == case.digest
    if cell.observation is None:
        return cell if same and _is_as_documented(cell, handoff, pair) else None
    verdict = judge_upgrade(handoff, pair, cell.observation)
    # What the query did with the workaround is not kept, only whether it was right.
    verdict = replace(verdict, proven=verdict.differs is not None and cell.differs is not None and cell.differs.proven)
    if cell.status in GREEN and verdict.findings and all(map(needs_progress, verdict.findings)):
        entry_of_today = verdict.differs and DocumentedDifference.of(verdict.differs, proven=verdict.proven)
        return cell if same and cell.differs == entry_of_today else None
    return Cell.of(
        case, cell.target, verdict, [cell.observation], cell.duration_ms, origin=cell.origin, reused=cell.reused
    )


def without_durations(cell: Cell) -> Cell:
    """Leave out how long steps and micro-batches took: nothing reads it of published answers, and it does not compress."""
    if cell.observation is None:
        return cell
    steps = []
    for step in cell.observation.steps:
        batches = tuple(batch.model_copy(update={"duration_ms": 0}) for batch in step.batches)
        steps.append(step.model_copy(update={"wall_ms": 0, "batches": batches}))
    return cell.model_copy(update={"observation": cell.observation.model_copy(update={"steps": tuple(steps)})})


def pair_of(names: tuple[str, str]) -> VersionPair:
    """The versions of two targets, and the interface through which each was reached."""
    origin, to = (SparkVersion.parse(name.removeprefix("spark-").removesuffix("-connect")) for name in names)
    return VersionPair(origin, to, (_interface(names[0]), _interface(names[1])))


def _interface(name: str) -> Interface:
    return "connect" if name.endswith("-connect") else "classic"


def _handoff(cell: Cell, case: Case) -> CheckpointHandoff:
    assert cell.cut is not None
    return CheckpointHandoff(case, cell.cut)


def _is_as_documented(cell: Cell, handoff: CheckpointHandoff, pair: VersionPair) -> bool:
    """Whether a cell does as the entry of its case says; true of a status that does not depend on one."""
    if cell.status not in ("conforms", "differs", "bug"):
        return True
    entry = handoff.case.upgrade_between(pair.origin, pair.to, handoff.cut, pair.interfaces)
    return (cell.status, cell.outcome) == (as_documented(entry), documented_outcome(handoff, pair)[0])


def _cell(cell: Cell, case: Case, version: SparkVersion) -> Cell:
    again = cell_again(cell, case, version) or Cell.of(case, cell.target, no_answer(case, version, "not-run", NOT_KEPT))
    # A published column keeps no findings, and needs none.
    return cell if (again.status, again.case_digest) == (cell.status, cell.case_digest) else again


def _upgrade(cell: Cell, case: Case) -> Cell:
    again = upgrade_again(cell, case)
    if again is not None:
        return again
    pair = pair_of(cell.pair)
    verdict = no_answer(case, pair.to, "not-run", NOT_KEPT, origin=pair.origin, cut=cell.cut)
    return Cell.of(case, cell.target, verdict, origin=cell.origin)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
