"""``conformance maintain specification``: what Spark's event-time semantics are, as tested, statement by statement."""

from pathlib import Path

import typer

from conformance.cli import options
from conformance.cli.options import argument, option, output_option
from conformance.suite import discovery
from reports.analysis.report import Report
from reports.html.specification_pages import write_specification
from reports.html.standalone import check_folder
from reports.results.published import published_results
from reports.results.reading import Results


def specification(
    results: list[Path] | None = argument(
        None, "Results files of one suite; by default the published results.", "FILE"
    ),
    cases: options.Cases = None,
    report: str | None = option(
        None, "Address of a report whose pages the cases link to, as seen from the folder.", "ADDRESS"
    ),
    output: Path = output_option(Path("specification"), "Folder of the pages.", "FOLDER"),
) -> None:
    """Write the numbered specification that the cases test.

    Each statement has a number that never changes, its sources, the cases about it, the versions on which the steps that prove
    it did what it says, and the reference model's rule with the functions that decide by it. The folder has an index and a page for each
    chapter in Markdown, all of it in specification.html, and the sentences alone in statements.html, both to print. The same results
    give the same bytes.
    """
    check_folder(output)
    read = Results.read_all(results) if results else published_results()
    written = write_specification(Report.of(read, discovery.valid(cases)), output, report)
    typer.echo(str(written[-1]))
