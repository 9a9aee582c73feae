"""Make the files of ``reports/baselines/upgrades`` of results of ``conformance upgrade``.

    python -m tools.publish_upgrades upgrades-*.jsonl [--rocksdb upgrades-rocksdb-*.jsonl]
    python -m tools.publish_upgrades --run FOLDER

With ``--run``, ``conformance upgrade`` first runs what has no published answer: each line from 3.0 on to each other, 2.4 and its
neighbour, in the newest release of each, and only the cases that are new or have changed since. Its results stay in the folder, which
must be a new one for each renewal; after an interruption the same command goes on.

What ran with ``--state-store rocksdb`` is not published; a workaround is published as proven only if it is so there, too.
Each file may cover other cases and other versions; later files win. What is published already stays where its case has not changed,
unless a file has it again. Every answer is judged by the cases of today; one that is not as its case says is named, and published like
the others: a refusal that no case documents is what a reader must know first. What was observed is left out: statuses, error classes,
reasons and the first line of each refusal's message remain. Every case of the suite that leaves a checkpoint is announced for every
pair of versions; where no run covers it, it is ``not-run``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.judging.checkpoint_verdict import CheckpointHandoff, VersionPair, handoffs, no_checkpoint
from conformance.judging.verdict import no_answer
from conformance.runner.upgrade import why_not_copied
from conformance.suite import discovery
from harness.targets.targets import Target, TargetPair, Targets, pairs
from reports.results.checkpoint_status import colour_of
from reports.results.errors import CellKey
from reports.results.published import UPGRADES, upgrade_files
from reports.results.reading import Results
from reports.results.records import Cell, Header, TargetRecord
from reports.results.status import GREEN, NO_RESULT
from reports.results.writing import ResultsWriter
from tools.judge_again import pair_of, upgrade_again

HandoffKey: TypeAlias = tuple[str, str, str, int]
"""The id of a case, the names of the targets that write and resume, and the cut."""


@dataclass(frozen=True)
class Missing:
    """Checkpoints without a published answer."""

    origin: Target
    resuming: tuple[Target, ...]
    files: tuple[Path, ...]
    """Of the cases."""


def main(arguments: Sequence[str]) -> None:
    suite = discovery.load()
    suite.raise_for_problems()
    cases = {case.id: case for case in suite.cases}
    before = [Results.read(path, condensed=True) for path in upgrade_files().values()]
    if arguments[:1] == ["--run"]:
        published = {handoff_key(cell) for cell in of_today(before, cases) if cell.status not in NO_RESULT}
        arguments = [str(path) for path in run(missing(suite.cases, published, wanted_pairs()), Path(arguments[1]))]
    end = arguments.index("--rocksdb") if "--rocksdb" in arguments else len(arguments)
    runs = [*before, *(Results.read(Path(argument)) for argument in arguments[:end])]
    in_rocksdb = [Results.read(Path(argument)) for argument in arguments[end + 1 :]]
    cells = {cell.key: cell for cell in of_today(runs, cases)}
    cells |= {key: unproven(cells[key]) for key in disproved(in_rocksdb) & cells.keys()}
    by_line: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells.values():
        by_line[pair_of(cell.pair).origin.line].append(cell)
    for line, own in by_line.items():
        path = UPGRADES / f"{line}.jsonl.xz"
        publish(own, runs, cases, suite.digest, path)
        print(f"{path}: {len(own)} cells, {path.stat().st_size:,} bytes")


def wanted_pairs() -> tuple[TargetPair, ...]:
    """The pairs whose answers are published: all of the newest releases, of 2.4 only with its neighbour."""
    targets = Targets.load()
    near = pairs(targets, "neighbours")
    return tuple(pair for pair in pairs(targets, "all") if pair in near or not any(side.by_name for side in pair))


def missing(cases: Sequence[Case], published: Collection[HandoffKey], pairs: Iterable[TargetPair]) -> Iterator[Missing]:
    """Yield what has no published answer, by the version that writes and the files of the cases."""
    possible = handoffs(case for case in cases if why_not_copied(case) is None)
    for origin, own in groupby(pairs, key=lambda pair: pair[0]):
        resuming: dict[tuple[Path, ...], list[Target]] = defaultdict(list)
        for _, to in own:
            versions = VersionPair(origin.version, to.version)
            files = {
                handoff.case.path
                for handoff in possible
                if (handoff.case.id, origin.name, to.name, handoff.cut) not in published
                and no_checkpoint(handoff, versions) is None
            }
            if files:
                resuming[tuple(sorted(files))].append(to)
        yield from (Missing(origin, tuple(targets), files) for files, targets in resuming.items())


def handoff_key(cell: Cell) -> HandoffKey:
    assert cell.cut is not None
    return (cell.case, *cell.pair, cell.cut)


def run(groups: Iterable[Missing], folder: Path) -> Iterator[Path]:
    """Run each group, unless the folder has its results already, and yield the files of results."""
    folder.mkdir(parents=True, exist_ok=True)
    for group in groups:
        output = folder / f"{group.origin.version}-to-{'-'.join(str(to.version) for to in group.resuming)}.jsonl"
        if not output.is_file():
            sides = ["--from", str(group.origin.version)]
            sides += [word for to in group.resuming for word in ("--to", str(to.version))]
            print("conformance upgrade", *sides, f"# {len(group.files)} files of cases", flush=True)
            # Exit code 1 means that an answer is not as its case says: it is published, and named below.
            command = [
                "conformance",
                "upgrade",
                *map(str, group.files),
                *sides,
                "--allow-code",
                "--output",
                str(output),
            ]
            subprocess.run(command, check=False)
        yield output


def publish(cells: Iterable[Cell], runs: Sequence[Results], cases: Mapping[str, Case], suite: str, path: Path) -> None:
    """Write the cells, which one line wrote, completed by those that did not run."""
    known = {handoff_key(cell): cell for cell in cells}
    pairs = tuple(dict.fromkeys(cell.pair for cell in known.values()))
    cuts: dict[str, set[int]] = defaultdict(set)
    for case, cut in (*((to.case.id, to.cut) for to in handoffs(cases.values())), *((key[0], key[3]) for key in known)):
        cuts[case].add(cut)
    targets: dict[str, TargetRecord] = {}
    for target in (target for run in runs for target in run.header.targets):
        if any(target.name in pair for pair in pairs) and (target.name not in targets or target.met):
            targets[target.name] = target
    header = Header(
        suite=suite,
        cases=(),
        targets=tuple(sorted(targets.values(), key=lambda target: SparkVersion.parse(target.spark))),
        started=min(run.header.started for run in runs),
        command="conformance upgrade",
        pairs=pairs,
        cuts={case: tuple(sorted(own)) for case, own in sorted(cuts.items())},
    )
    with ResultsWriter(path, header) as writer:
        for case, own in header.cuts.items():
            for cut in own:
                for pair in pairs:
                    writer.write(known.get((case, *pair, cut)) or _not_run(cases[case], pair, cut))
        writer.finish(max(run.footer.finished for run in runs))


def of_today(runs: Iterable[Results], cases: Mapping[str, Case]) -> Iterator[Cell]:
    """The answers of all runs as the cases of today judge them, without what was observed."""
    for run in runs:
        for cell in run.upgrades:
            case = cases.get(cell.case)
            if case is None:
                print(f"left out, as there is no such case any more: {cell.case}", file=sys.stderr)
                continue
            if cell.status == "not-run":
                continue
            again, where = upgrade_again(cell, case), f"{cell.case}, {cell.origin} to {cell.target}"
            if again is None:
                print(f"left out, as the case has changed: {where}", file=sys.stderr)
                continue
            if again.status not in GREEN:
                print(f"not as the case says: {where}: {again.status}", file=sys.stderr)
            yield slim(again)


def disproved(in_rocksdb: Iterable[Results]) -> set[CellKey]:
    """The cells whose workaround was tried in RocksDB and did not give the right rows there."""
    return {
        cell.key
        for run in in_rocksdb
        for cell in run.upgrades
        if cell.differs is not None and cell.differs.workaround is not None and not cell.differs.proven
    }


def unproven(cell: Cell) -> Cell:
    """The cell without a proof of its workaround."""
    entry = cell.differs and cell.differs.model_copy(update={"proven": False})
    return cell.model_copy(update={"differs": entry})


_OF_THE_RUN = re.compile(
    r"(?<!\w)(?:\w+:)?/[^\s,'\"\])]+"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
)
"""What is another in each run: paths and addresses, and UUIDs."""
_LONGEST = 200


def slim(cell: Cell) -> Cell:
    """The cell without what was observed, its digest and how long it took.

    Of the message of an error, what a refusal says first remains, whatever the machine.
    """
    refused = colour_of(cell.status, cell.outcome) == "refused"
    line = cell.error.first_line if cell.error is not None and refused else ""
    message = _OF_THE_RUN.sub("…", line)
    error = cell.error and cell.error.model_copy(update={"message": message[:_LONGEST]})
    return cell.model_copy(update={"observation": None, "behaviour": None, "duration_ms": 0, "error": error})


def _not_run(case: Case, names: tuple[str, str], cut: int) -> Cell:
    pair = pair_of(names)
    handoff = CheckpointHandoff(case, cut)
    reason = why_not_copied(case) or "no published run covers it"
    verdict = no_checkpoint(handoff, pair) or no_answer(case, pair.to, "not-run", reason, origin=pair.origin, cut=cut)
    return Cell.of(case, names[1], verdict, origin=names[0])


if __name__ == "__main__":
    main(sys.argv[1:])
