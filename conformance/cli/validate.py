"""``conformance validate``: every problem of every case, and what the suite covers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from conformance import suite
from conformance.coverage import Category, coverage
from conformance.language import Problem
from conformance.suite import Suite

INVALID = 2

EXAMPLES = """
Examples:

  conformance validate                               the suite that ships

  conformance validate my/cases                      a folder of one's own

  conformance validate cases/late-drops/x.yaml       one case

  conformance validate --coverage                    what the suite pins, and the holes

  conformance validate --json my/cases | jq          for a program
"""


def validate(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Cases or folders of cases; the suite's own by default.")
    ] = None,
    show_coverage: Annotated[
        bool, typer.Option("--coverage", help="List what the cases pin of each catalogue, and what none does.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Check cases without running them: every problem, one a line as file:line:column: message.

    Exits with 0 where there is none, else with 2.
    """
    loaded = suite.load(paths)
    categories = [
        category for catalogue in loaded.catalogues.values() for category in coverage(loaded.cases, catalogue)
    ]
    if as_json:
        typer.echo(json.dumps(_record(loaded, categories), indent=1, ensure_ascii=False))
    else:
        _show(loaded, categories, listed=show_coverage)
    if loaded.problems:
        raise typer.Exit(INVALID)


def _notes(loaded: Suite) -> list[Problem]:
    return [
        Problem(case.path, case.lines[place], 1, f"note: not yet runnable: {name}")
        for case in loaded.cases
        for place, name in case.not_yet_runnable_at()
    ]


def _show(loaded: Suite, categories: list[Category], *, listed: bool) -> None:
    out = Console(soft_wrap=True, highlight=False)
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    for problem in loaded.problems:
        out.print(_line(problem, "red"))
    for note in _notes(loaded):
        out.print(_line(note, "dim"))
    if listed:
        for category in categories:
            _list(category, out)
    errors.print(Text(_summary(loaded), style="red" if loaded.problems else "green"))
    if categories:
        errors.print(Text(f"pinned: {', '.join(map(str, categories))}"))


def _line(problem: Problem, style: str) -> Text:
    rendered = problem.render(relative_to=Path.cwd())
    place = rendered.removesuffix(problem.message)
    return Text.assemble((place, "bold"), (problem.message, style))


def _list(category: Category, out: Console) -> None:
    out.print(Text(f"{category}", style="bold"))
    for id, meaning in category.entries.items():
        cases = category.pinned.get(id)
        if cases:
            out.print(Text.assemble(("  ✓ ", "green"), (id, "bold"), f"  {', '.join(cases)}"))
        else:
            out.print(Text.assemble(("  ✗ ", "red"), (id, "bold"), f"  no case: {meaning}"))
    out.print()


def _summary(loaded: Suite) -> str:
    """``74 cases, 2 problems in 1 file``; the files that are no cases are counted among the cases."""
    cases = _counted(len(loaded.cases) + loaded.invalid, "case")
    if not loaded.problems:
        return f"{cases}, no problems"
    files = len({problem.path for problem in loaded.problems})
    return f"{cases}, {_counted(len(loaded.problems), 'problem')} in {_counted(files, 'file')}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _record(loaded: Suite, categories: list[Category]) -> dict[str, Any]:
    return {
        "valid": not loaded.problems,
        "cases": [case.id for case in loaded.cases],
        "digest": loaded.digest,
        "problems": [_problem(problem) for problem in loaded.problems],
        "notes": [_problem(note) for note in _notes(loaded)],
        "coverage": [
            {"name": one.name, "of": len(one.entries), "pinned": one.pinned, "holes": one.holes} for one in categories
        ],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {"path": str(problem.path), "line": problem.line, "column": problem.column, "message": problem.message}
