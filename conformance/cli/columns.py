"""``conformance columns``: results of somebody's Spark with where they come from, checked and compared with Apache's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.text import Text

from conformance.cli import options
from conformance.cli.console import print_answer
from conformance.cli.options import argument
from conformance.core.wording import counted
from conformance.suite import discovery
from reports.analysis.columns import (
    BesideApache,
    UnusableColumn,
    beside_apache,
    problems_of_submission,
    published_columns,
    read_column,
)
from reports.analysis.published import published_results

EXAMPLES = """
Examples:

  # the columns that come with the suite
  conformance columns

  # may ours be published? ours.yaml says where ours.jsonl.xz comes from
  conformance columns ours.yaml
"""


def columns(
    files: list[Path] | None = argument(None, "Columns to check; by default those that come with the suite.", "FILE"),
    as_json: options.AsJson = False,
) -> None:
    """Check results of another Spark, and compare with Apache's.

    A column is NAME.yaml, which says what ran and who vouches for it, and NAME.jsonl.xz, the results. Each is compared
    with Apache's release of the same version. Exits with 2 if a column of yours cannot be published.
    """
    suite = discovery.load()
    digests = {case.id: case.digest for case in suite.cases}
    read = [read_column(path) for path in files or ()]
    for path, column in zip(files or (), read, strict=True):
        if problems := tuple(problems_of_submission(column, suite.digest, digests)):
            raise UnusableColumn(path, problems)
    found = [
        beside_apache(column, published_results((column.target.spark,)), digests)
        for column in (read if files else published_columns())
    ]
    print_answer((line for one in found for line in _lines(one)), [_record(one) for one in found], as_json=as_json)


def _lines(one: BesideApache) -> Iterator[Text]:
    told, target = one.column.provenance, one.column.target
    yield Text.assemble((told.title, "bold"), f", by {told.by}: Spark {target.spark}, {told.build}")
    ran = ", ".join(f"{count} {status}" for status, count in one.column.counts.items())
    yield Text(f"  {len(one.column.results.cells)} of {counted(one.of, 'case')}: {ran}")
    if one.release is None:
        yield Text("  no results of this version are published to compare it with", style="yellow")
    else:
        yield Text(
            f"  {counted(one.compared, 'case')} compared with Apache's {one.release.title}, "
            f"{len(one.different) or 'none'} different",
            style="bold red" if one.different else "bold green",
        )
    for cell in one.different:
        yield Text(f"  ≠ {cell.case}: {cell.divergence}")
    if one.changed:
        yield Text(f"  {counted(len(one.changed), 'case')} changed since and not compared", style="yellow")
    if told.note:
        yield Text(f"  {told.note}", style="dim")


def _record(one: BesideApache) -> dict[str, Any]:
    return {
        "name": one.column.name,
        **one.column.provenance.model_dump(),
        "spark": one.column.target.spark,
        "cases": len(one.column.results.cells),
        "of": one.of,
        "counts": dict(one.column.counts),
        "release": one.release.spark if one.release else None,
        "compared": one.compared,
        "different": [cell.case for cell in one.different],
        "changed": list(one.changed),
    }
