"""``conformance policies``: one trace read under the watermark rules of several engines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from conformance.policies import tables
from conformance.policies.case import check
from conformance.policies.record import record, record_of, record_of_policies
from conformance.policies.tables import ALL, PolicyView, view
from conformance.suite import discovery

VIOLATES = 1
WIDTH = 160
"""Columns of a table where there is no terminal."""

EXAMPLES = """
Examples:

  conformance policies                                          the policies there are

  conformance policies late-drops/window-still-open             a case of the suite under Spark's own rules

  conformance policies late-drops/window-still-open --policy all    and under every engine's, side by side

  conformance policies my/trace.yaml --policy limiting-lag-and-lull    a trace of one's own

  conformance policies --check                                  every case on a policy, against its reading
"""


def policies(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="A case, on a policy or for Spark: its file, or its id in the discovery."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help=f"A policy, or {ALL}; by default that of the case, and spark for a case for Spark."),
    ] = None,
    checked: Annotated[
        bool, typer.Option("--check", help="Hold cases on policies against their readings; the suite's own by default.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Read a trace under watermark policies: what is late, what is emitted, when windows are complete.

    With --check, exits with 1 where a case on a policy expects otherwise.
    """
    if checked:
        _check(paths, as_json=as_json)
    elif not paths and as_json:
        typer.echo(json.dumps(record_of_policies(), indent=1, ensure_ascii=False))
    elif not paths:
        _console().print(tables.policies())
    elif len(paths) > 1:
        raise typer.BadParameter("one case at a time, or --check", param_hint="PATHS")
    else:
        show(view(discovery.find(str(paths[0])), policy), as_json=as_json)


def show(shown: PolicyView, *, as_json: bool) -> None:
    """Print readings; ``conformance explain --policy`` prints them alike."""
    if as_json:
        typer.echo(json.dumps([record(reading) for reading in shown.replays], indent=1, ensure_ascii=False))
        return
    out = _console()
    for number, renderable in enumerate(shown.renderables()):
        if number:
            out.print()
        out.print(renderable)


def _console() -> Console:
    # Tables are laid out to a terminal's width, and elsewhere so wide that no cell is broken in two.
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=WIDTH)


def _check(paths: list[Path] | None, *, as_json: bool) -> None:
    loaded = discovery.load(paths)
    loaded.raise_for_problems()
    found = [(case, one) for case in loaded.policy_cases for one in check(case)]
    if as_json:
        typer.echo(json.dumps([record_of(case, one) for case, one in found], indent=1, ensure_ascii=False))
    else:
        out = Console(soft_wrap=True, highlight=False)
        for case, one in found:
            shown = case.path.relative_to(Path.cwd()) if case.path.is_relative_to(Path.cwd()) else case.path
            out.print(Text(f"{shown}:{one.line}: {one}", style="red"))
        cases = len(loaded.policy_cases)
        summary = (
            f"{cases} case{'s' * (cases != 1)} on policies, {len(found) or 'no'} disagreement{'s' * (len(found) != 1)}"
        )
        Console(stderr=True, soft_wrap=True, highlight=False).print(Text(summary, style="red" if found else "green"))
    if found:
        raise typer.Exit(VIOLATES)
