"""``conformance report``: results as HTML pages."""

from pathlib import Path

import typer

from conformance.cli import options
from conformance.cli.options import OUTPUT, argument, flag, option, output_option
from conformance.core.errors import WrongUsage
from conformance.suite import discovery
from reports.analysis.columns import published_columns
from reports.analysis.report import Report
from reports.html.standalone import check_folder
from reports.html.writer import write, write_one_file, write_upgrade_page
from reports.results.published import beside, between, patch_results, published_results
from reports.results.reading import Results


def report(
    results: list[Path] | None = argument(
        None, "Results files of one suite; by default the published results.", "FILE"
    ),
    cases: options.Cases = None,
    single_file: bool = flag("--single-file", "Write one file, report.html, with every page.", OUTPUT),
    from_: str | None = option(
        None, "Write only the page of one upgrade: from this version …", "VERSION", None, "--from", show_default=False
    ),
    to: str | None = option(None, "… to this one.", "VERSION", None, "--to", show_default=False),
    output: Path = output_option(Path("site"), "Folder of the pages.", "FOLDER"),
) -> None:
    """Write results as HTML pages.

    The pages open without a server or a network: what changes between versions, the matrix, each case, the behaviours
    and the run. Results of a single version are compared with the published ones, as far as the cases are the same. The
    same results give the same bytes. With --from and --to it is one page about that upgrade: verdict, checkpoints, bugs,
    workarounds and a route through the releases. What the results say does not change the exit code.
    """
    if (from_ is None) != (to is None):
        raise WrongUsage("--from and --to belong together: name both versions of the upgrade")
    upgrade = (from_, to) if from_ is not None and to is not None else None
    if upgrade and single_file:
        raise WrongUsage("--single-file is for the whole report; --from and --to write one page as it is")
    check_folder(output)
    asked = between(*upgrade) if upgrade else ()
    shown, background = _with_published(Results.read_all(results)) if results else (published_results(asked), [])
    if upgrade:
        for line in write_upgrade_page(Report.of(shown, discovery.valid(cases)), *upgrade, output):
            typer.echo(line)
        return
    with_published = bool(background) or not results
    made = Report.of(
        shown,
        discovery.valid(cases),
        frozenset(background),
        patch_results() if with_published else (),
        published_columns() if with_published else (),
    ).with_model()
    typer.echo(str((write_one_file if single_file else write)(made, output)))


def _with_published(own: Results) -> tuple[Results, list[str]]:
    """Results of a single version beside the published ones, and the names of the targets that were added."""
    names = {target.name for target in own.header.targets}
    if len(names) != 1 or not own.cells:
        return own, []
    together = beside(own, published_results())
    return together, [target.name for target in together.header.targets if target.name not in names]
