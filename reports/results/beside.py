"""Own results beside published ones, for the cases that both have."""

from __future__ import annotations

from collections import Counter

from reports.results.reading import Results
from reports.results.records import Cell, Footer

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
