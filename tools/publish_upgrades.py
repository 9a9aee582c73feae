"""Make ``reports/baselines/upgrades.jsonl.xz`` of results of ``conformance upgrade``.

    python -m tools.publish_upgrades upgrades-*.jsonl [--rocksdb upgrades-rocksdb-*.jsonl]

What ran with ``--state-store rocksdb`` is not published; a workaround is published as proven only if it is so there, too.
Each file may cover other cases and other versions; later files win. What is published already stays where its case has not changed,
unless a file has it again. Every answer is judged by the cases of today; one that is not as its case says is named, and published like
the others: a refusal that no case documents is what a reader must know first. What was observed is left out: statuses, error classes,
reasons and the first line of each refusal's message remain. Every case of the suite that leaves a checkpoint is announced for every
pair of versions; where no run covers it, it is ``not-run``.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.judging.checkpoint_verdict import CheckpointHandoff, handoffs, no_checkpoint
from conformance.judging.verdict import no_answer
from conformance.suite import discovery
from reports.results.checkpoint_status import colour_of
from reports.results.errors import CellKey
from reports.results.published import UPGRADES
from reports.results.reading import Results
from reports.results.records import Cell, Header, TargetRecord
from reports.results.status import GREEN
from reports.results.writing import ResultsWriter
from tools.judge_again import pair_of, upgrade_again


def main(arguments: Sequence[str]) -> None:
    suite = discovery.load()
    suite.raise_for_problems()
    before = [Results.read(UPGRADES, condensed=True)] if UPGRADES.is_file() else []
    end = arguments.index("--rocksdb") if "--rocksdb" in arguments else len(arguments)
    runs = [*before, *(Results.read(Path(argument)) for argument in arguments[:end])]
    in_rocksdb = [Results.read(Path(argument)) for argument in arguments[end + 1 :]]
    cases = {case.id: case for case in suite.cases}
    cells = {cell.key: cell for cell in of_today(runs, cases)}
    cells |= {key: unproven(cells[key]) for key in disproved(in_rocksdb) & cells.keys()}
    publish(cells.values(), runs, cases, suite.digest, UPGRADES)
    print(f"{UPGRADES}: {len(cells)} cells")


def publish(cells: Iterable[Cell], runs: Sequence[Results], cases: Mapping[str, Case], suite: str, path: Path) -> None:
    """Write the cells, completed by those that did not run."""
    known = {(cell.case, *cell.pair, cell.cut): cell for cell in cells if cell.cut is not None}
    pairs = tuple(dict.fromkeys(cell.pair for cell in known.values()))
    cuts: dict[str, set[int]] = defaultdict(set)
    for case, cut in (*((to.case.id, to.cut) for to in handoffs(cases.values())), *((key[0], key[3]) for key in known)):
        cuts[case].add(cut)
    targets: dict[str, TargetRecord] = {}
    for target in (target for run in runs for target in run.header.targets):
        if target.name not in targets or target.met:
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
    r"^(\[STREAM_FAILED\] )?Query \[id = \S+, runId = \S+\] terminated with exception: "
    r"|(?<!\w)(?:\w+:)?/[^\s,'\"\])]+"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
)
"""What is another in each run: the name of the query at the beginning, paths and addresses, and UUIDs."""
_LONGEST = 200


def slim(cell: Cell) -> Cell:
    """The cell without what was observed, and of the message of its error only what a refusal says first, whatever the machine."""
    refused = colour_of(cell.status, cell.outcome) == "refused"
    line = cell.error.first_line if cell.error is not None and refused else ""
    message = _OF_THE_RUN.sub(lambda found: "" if found.start() == 0 and "Query [" in found[0] else "…", line)
    error = cell.error and cell.error.model_copy(update={"message": message[:_LONGEST]})
    return cell.model_copy(update={"observation": None, "error": error})


def _not_run(case: Case, names: tuple[str, str], cut: int) -> Cell:
    pair = pair_of(names)
    handoff = CheckpointHandoff(case, cut)
    verdict = no_checkpoint(handoff, pair) or no_answer(
        case, pair.to, "not-run", "no published run covers it", origin=pair.origin, cut=cut
    )
    return Cell.of(case, names[1], verdict, origin=names[0])


if __name__ == "__main__":
    main(sys.argv[1:])
