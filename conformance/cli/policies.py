"""``conformance maintain policies``: one trace under the watermark policies of several engines."""

from pathlib import Path

import typer
from rich.text import Text

from conformance.cli import options
from conformance.cli.console import errors_console, print_answer, print_tables, seen_from_here
from conformance.cli.options import argument, flag, option
from conformance.core.wording import counted
from conformance.policies import tables
from conformance.policies.case import check
from conformance.policies.tables import ALL, record, record_of, record_of_policies, renderables, replays_of
from conformance.suite import discovery

VIOLATES = 1


def policies(
    paths: list[Path] | None = argument(
        None, "A case of the suite, by its id, or a file; with --check folders, too.", "CASE"
    ),
    policy: str | None = option(
        None, "The policy; by default the case's own, and Spark's for a case for Spark.", f"NAME|{ALL}"
    ),
    checked: bool = flag("--check", "Check the expectations of cases on policies; by default the suite's."),
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Show a case under the watermark policies of other engines.

    It shows which rows are late, what is emitted, and when windows are complete. Without a case it lists the policies.

    With --check, exits with 1 if an expectation does not hold.
    """
    if checked:
        _check(paths, as_json=as_json)
    elif not paths:
        print_answer(tables.policies_lines(), record_of_policies(), as_json=as_json, verbose=verbose)
    elif len(paths) > 1:
        raise typer.BadParameter("pass one case, or add --check", param_hint="CASE")
    else:
        replays = replays_of(discovery.find(str(paths[0])), policy)
        print_tables(renderables(replays), [record(replay) for replay in replays], as_json=as_json, verbose=verbose)


def _check(paths: list[Path] | None, *, as_json: bool) -> None:
    loaded = discovery.valid(paths)
    disagreements = [(case, disagreement) for case in loaded.policy_cases for disagreement in check(case)]
    print_answer(
        (
            Text(f"{seen_from_here(case.path)}:{disagreement.line}: {disagreement}", style="red")
            for case, disagreement in disagreements
        ),
        [record_of(case, disagreement) for case, disagreement in disagreements],
        as_json=as_json,
        broken=False,
    )
    if not as_json:
        summary = f"{counted(len(loaded.policy_cases), 'case')} on policies, "
        summary += counted(len(disagreements), "disagreement") if disagreements else "no disagreements"
        errors_console().print(Text(summary, style="red" if disagreements else "green"))
    if disagreements:
        raise typer.Exit(VIOLATES)
