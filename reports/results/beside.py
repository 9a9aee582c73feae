"""Own results beside published ones, for the cases that both have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from reports.results.reading import Results
from reports.results.records import Cell, Footer
from reports.results.status import NO_RESULT

NOT_PUBLISHED = "The published results do not have this case as it is now."


def beside(own: Results, published: Results) -> Results:
    """The own results with a column for each published target that is not among them.

    A published answer counts only for the case as it ran here; where the case is new or has changed since, the published
    targets are not applicable.

    Returns:
        The own results as they are if there is nothing to compare them with.
    """
    ran = {cell.case: cell for cell in own.cells}
    names = {target.name for target in own.header.targets}
    targets = tuple(target for target in published.header.targets if target.name not in names)
    same = {
        cell.key: cell
        for cell in published.cells
        if cell.target not in names and cell.case in ran and cell.case_digest == ran[cell.case].case_digest
    }
    if not same:
        return own
    cells = (
        *own.cells,
        *(same.get((case, one.name)) or _absent(ran[case], one.name) for one in targets for case in ran),
    )
    header = own.header.model_copy(update={"targets": (*own.header.targets, *targets)})
    counts = Counter(cell.status for cell in cells)
    footer = Footer(counts=counts, upgrades=own.footer.upgrades, finished=own.footer.finished)
    return Results(header, cells, footer, own.paths, own.upgrades)


def in_common(results: Results, more: Results, names: Collection[str]) -> Results:
    """The results with these targets of others as columns, and only the cases that have an answer on each of them.

    An answer counts only for the case as it is among the results. Upgrades of the cases stay.
    """
    names = set(names) - {target.name for target in results.header.targets}
    digests = {cell.case: cell.case_digest for cell in results.cells}
    added = {
        cell.key: cell
        for cell in more.cells
        if cell.target in names and cell.status not in NO_RESULT and cell.case_digest == digests.get(cell.case)
    }
    cases = tuple(case for case in results.header.cases if all((case, name) in added for name in names))
    kept = frozenset(cases)
    cells = tuple(cell for cell in (*results.cells, *added.values()) if cell.case in kept)
    targets = (*results.header.targets, *(target for target in more.header.targets if target.name in names))
    header = results.header.model_copy(update={"cases": cases, "targets": targets})
    footer = results.footer.model_copy(update={"counts": Counter(cell.status for cell in cells)})
    return Results(header, cells, footer, (*results.paths, *more.paths), results.upgrades)


def _absent(own: Cell, target: str) -> Cell:
    return Cell(
        case=own.case,
        expansion=own.expansion,
        variant=own.variant,
        family=own.family,
        case_digest=own.case_digest,
        target=target,
        status="not-applicable",
        notes=(NOT_PUBLISHED,),
    )
