"""``conformance maintain columns``: results of somebody's Spark with where they come from, checked and compared with Apache's."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from rich.text import Text

from conformance.cli import options
from conformance.cli.console import print_answer
from conformance.cli.options import argument
from conformance.core.wording import counted
from conformance.suite import discovery
from reports.analysis import columns as analysis
from reports.analysis.columns import BesideApache, beside_apache, published_columns, some
from reports.results.published import published_results


def columns(
    files: list[Path] | None = argument(None, "Columns to check; by default those that come with the suite.", "FILE"),
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Check results of another Spark, and compare with Apache's.

    A column is NAME.yaml, which says what ran and who vouches for it, and NAME.jsonl.xz, the results. Each is compared
    with Apache's release of the same version. Exits with 2 if a column of yours cannot be published.
    """
    suite = discovery.valid()
    digests = {case.id: case.digest for case in suite.cases}
    read = [analysis.read_column(path) for path in files or ()]
    for path, column in zip(files or (), read, strict=True):
        if problems := tuple(analysis.problems_of_submission(column, suite.digest, digests)):
            raise analysis.UnusableColumn(path, problems)
    compared = [
        beside_apache(column, published_results((column.target.spark,), origins=()), digests)
        for column in (read if files else published_columns())
    ]
    lines = chain.from_iterable(_lines(each, brief=not files and not verbose) for each in compared)
    print_answer(lines, [*map(_record, compared)], as_json=as_json, verbose=verbose)


def _lines(compared: BesideApache, *, brief: bool) -> Iterator[Text]:
    provenance, target = compared.column.provenance, compared.column.target
    yield Text.assemble((provenance.title, "bold"), f", by {provenance.by}: Spark {target.spark}, {provenance.build}")
    yield from (Text(f"  of its own: {own}", style="yellow") for own in (*target.settings, *target.fixed))
    ran = ", ".join(f"{count} {status}" for status, count in compared.column.counts.items())
    yield Text(f"  {len(compared.column.results.cells)} of {counted(compared.of, 'case')}: {ran}")
    yield from (Text(f"  {use}") for use in compared.column.native if not brief)
    if compared.release is None:
        yield Text("  no results of this version are published to compare it with", style="yellow")
    else:
        yield Text(
            f"  {counted(compared.compared, 'case')} compared with Apache's {compared.release.title}, {compared.outcome}",
            style="bold red" if compared.different else "bold green",
        )
    if brief:
        return
    for why, cells in compared.refused.items():
        yield Text(f"  ≠ refuses {counted(len(cells), 'case')}, “{why}”{some([cell.case for cell in cells])}")
    for cell in compared.otherwise:
        explained = f"; explained by {' and '.join(cell.b.explained_by)}" if cell.b.explained_by else ""
        yield Text(f"  ≠ {cell.case}: {cell.divergence}{explained}")
    if compared.changed:
        yield Text(f"  {counted(len(compared.changed), 'case')} changed since and not compared", style="yellow")
    if compared.newer:
        newer = counted(len(compared.newer), "case")
        yield Text(f"  {newer} of the suite newer than this run{some(compared.newer)}", style="yellow")
    if provenance.note:
        yield Text(f"  {provenance.note}", style="dim")


def _record(compared: BesideApache) -> dict[str, Any]:
    return {
        "name": compared.column.name,
        **compared.column.provenance.model_dump(),
        "spark": compared.column.target.spark,
        "cases": len(compared.column.results.cells),
        "of": compared.of,
        "counts": dict(compared.column.counts),
        "release": compared.release.spark if compared.release else None,
        "compared": compared.compared,
        "different": [cell.case for cell in compared.different],
        "explained": {cell.case: cell.b.explained_by for cell in compared.different if cell.b.explained_by},
        "refused": {why: [cell.case for cell in cells] for why, cells in compared.refused.items()},
        "changed": list(compared.changed),
        "newer": list(compared.newer),
    }
