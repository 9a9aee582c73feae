"""Make the files of ``reports/baselines/patches`` of results of ``conformance run --all --spark VERSION``.

    python -m tools.publish_patches 3.5.3.jsonl 3.5.4.jsonl

Each file may cover other cases and other versions; later files win. What is published already stays, unless a file has it again.
Every answer is judged by the cases of today. The newest release of a line is left out: it has a column in the published matrix.
An answer to a case that has changed since is kept if the case of today still expects it, else the cell is ``not-run``, as one
that no run covers. An answer to the case as it is today is published whatever it is; one that the case does not expect is named.
How long micro-batches took is left out: it is the bulk of a compressed file. What is derived of the results is made again by
``python -m tools.publish_pairs``.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.judging.verdict import no_answer, not_applicable
from conformance.suite import discovery
from conformance.suite.discovery import Suite
from reports.results.published import PATCHES, patch_file, patch_results, published_results
from reports.results.reading import Results
from reports.results.records import Cell, Header, TargetRecord
from reports.results.status import GREEN, NO_RESULT
from reports.results.writing import ResultsWriter
from tools.judge_again import cell_again, without_durations

NOT_COVERED = "No published run covers the case as it is now."


@dataclass(frozen=True)
class RunOfRelease:
    """The answers of a release."""

    target: TargetRecord
    cells: Mapping[str, Cell]
    """By case id."""
    started: datetime
    finished: datetime


def main(arguments: Sequence[str]) -> None:
    suite = discovery.load()
    suite.raise_for_problems()
    lines = {target.name for target in published_results().header.targets}
    read = [*patch_results(), *(Results.read(Path(argument)) for argument in arguments)]
    for path in publish(releases(read, lines), suite, PATCHES):
        print(f"{path}: {path.stat().st_size:,} bytes")


def releases(read: Iterable[Results], lines: Iterable[str]) -> tuple[RunOfRelease, ...]:
    """The patch releases among the results, oldest first. ``lines``: names of the targets that are the newest of their lines."""
    known: dict[str, RunOfRelease] = {}
    for results in read:
        by_target: dict[str, dict[str, Cell]] = defaultdict(dict)
        for cell in results.cells:
            by_target[cell.target][cell.case] = cell
        for target in results.header.targets:
            if target.apache and target.name not in lines:
                earlier = known.get(target.name)
                # A cell without an answer replaces no earlier answer.
                answers = {id: cell for id, cell in by_target[target.name].items() if cell.status not in NO_RESULT}
                cells = {**(earlier.cells if earlier is not None else {}), **answers}
                met = target if target.met or earlier is None else earlier.target
                known[target.name] = RunOfRelease(met, cells, results.header.started, results.footer.finished)
    return tuple(sorted(known.values(), key=lambda run: SparkVersion.parse(run.target.spark)))


def publish(releases: Sequence[RunOfRelease], suite: Suite, folder: Path) -> Iterator[Path]:
    """Write a file for each major version, and yield its path."""
    by_file: dict[str, list[RunOfRelease]] = defaultdict(list)
    for run in releases:
        by_file[patch_file(SparkVersion.parse(run.target.spark))].append(run)
    cases = tuple(case.id for case in suite.cases)
    for name, runs in by_file.items():
        header = Header(
            suite=suite.digest,
            cases=cases,
            targets=tuple(run.target for run in runs),
            started=min(run.started for run in runs),
            command=" ; ".join(f"conformance run --all --spark {run.target.spark}" for run in runs),
        )
        path = folder / name
        with ResultsWriter(path, header) as writer:
            for case in suite.cases:
                for run in runs:
                    writer.write(of_today(case, run.target, run.cells.get(case.id)))
            writer.finish(max(run.finished for run in runs))
        yield path


def of_today(case: Case, target: TargetRecord, known: Cell | None) -> Cell:
    """The cell as the case of today judges it."""
    version = SparkVersion.parse(target.spark)
    outside = not_applicable(case, version)
    if outside is not None:
        return Cell.of(case, target.name, outside)
    unknown = Cell.of(case, target.name, no_answer(case, version, "not-run", NOT_COVERED))
    if known is None or known.observation is None:
        return unknown
    cell = cell_again(known, case, version)
    where = f"{case.id} on {target.spark}"
    if cell is None or (cell.status not in GREEN and known.case_digest != case.digest):
        why = "too little of it is kept" if cell is None else cell.status
        print(f"an answer to an earlier case, left out: {where}: {why}", file=sys.stderr)
        return unknown
    if cell.status not in GREEN:
        print(f"not as the case says: {where}: {cell.status}", file=sys.stderr)
    return without_durations(cell).model_copy(update={"duration_ms": 0})


if __name__ == "__main__":
    main(sys.argv[1:])
