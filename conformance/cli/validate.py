"""``conformance validate``: every problem of every case, what the suite covers, and whether the model agrees with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from conformance.language import Problem
from conformance.suite import discovery
from conformance.suite.coverage import Category, coverage
from conformance.suite.discovery import Suite
from harness.targets.catalogue import Targets

if TYPE_CHECKING:
    from conformance.oracle.cross_check import CrossCheck, ModelDisagreement

DISAGREES = 1
INVALID = 2

EXAMPLES = """
Examples:

  conformance validate                               the suite that ships

  conformance validate my/cases                      a folder of one's own

  conformance validate cases/late-drops/x.yaml       one case

  conformance validate --coverage                    what the suite pins, and the holes

  conformance validate --model                       the expectations against the reference model, on every version

  conformance validate --json my/cases | jq          for a program
"""


def validate(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Cases or folders of cases; the suite's own by default.")
    ] = None,
    show_coverage: Annotated[
        bool, typer.Option("--coverage", help="List what the cases pin of each catalogue, and what none does.")
    ] = False,
    model: Annotated[
        bool,
        typer.Option("--model", help="Hold every expectation against the reference model, on every target's version."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Check cases without running them: every problem, one a line as file:line:column: message.

    Exits with 0 where there is none, else with 2; with --model with 1 where a case and the model disagree.
    """
    loaded = discovery.load(paths)
    categories = [
        category for catalogue in loaded.catalogues.values() for category in coverage(loaded.all_cases, catalogue)
    ]
    agreed = _agreement(loaded) if model else None
    if as_json:
        record = _record(loaded, categories)
        if agreed is not None:
            record["model"] = _agreement_record(agreed)
        typer.echo(json.dumps(record, indent=1, ensure_ascii=False))
    else:
        _show(loaded, categories, listed=show_coverage)
        if agreed is not None:
            _show_agreement(agreed)
    if loaded.problems:
        raise typer.Exit(INVALID)
    if agreed is not None and agreed.disagreements:
        raise typer.Exit(DISAGREES)


def _agreement(loaded: Suite) -> CrossCheck:
    # Cases are checked much more often than the model is asked, and it is slow to import.
    from conformance.oracle.cross_check import cross_check

    return cross_check(loaded.cases, [target.version for target in Targets.load().entries])


def _show(loaded: Suite, categories: list[Category], *, listed: bool) -> None:
    out = Console(soft_wrap=True, highlight=False)
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    for problem in loaded.problems:
        out.print(_line(problem, "red"))
    if listed:
        for category in categories:
            _list(category, out)
    errors.print(Text(_summary(loaded), style="red" if loaded.problems else "green"))
    if categories:
        errors.print(Text(f"pinned: {', '.join(map(str, categories))}"))


def _show_agreement(agreed: CrossCheck) -> None:
    out = Console(soft_wrap=True, highlight=False)
    for one in agreed.disagreements:
        for line in _disagreement(one, agreed.ranges(one.versions)):
            out.print(line)
    for construct, ids in agreed.not_predicted.items():
        out.print(Text.assemble(("  not predicted: ", "yellow"), (construct, "bold"), f"  {', '.join(ids)}"))
    families = ", ".join(f"{name or 'cases'} {done}/{of}" for name, (done, of) in agreed.by_family().items())
    out.print(Text(f"predicted: {families}", style="dim"))
    wrong = len(agreed.disagreements)
    counted = agreed.without_state_functions
    summary = (
        f"the model predicts {len(agreed.predicted)} of {_counted(len(agreed.cases), 'case')} "
        f"({agreed.share:.1%} of the {len(counted)} without Python state functions) on {_counted(len(agreed.versions), 'version')}: "
        f"{_counted(agreed.cells, 'cell')}, {_counted(wrong, 'disagreement') if wrong else 'no disagreement'}"
    )
    Console(stderr=True, soft_wrap=True, highlight=False).print(Text(summary, style="red" if wrong else "green"))


def _disagreement(one: ModelDisagreement, versions: str) -> list[Text]:
    """The findings, whose observed values are the prediction, and the rules that explain them."""
    _, *findings = one.verdict.describe().splitlines()
    lines = [Text(f"✗ {one.verdict.case}: the model disagrees on {versions}", style="bold red"), *map(Text, findings)]
    for rule in one.settled_by:
        lines.append(
            Text(f"  {rule.name} ({rule.source}) with another version's value would resolve this", style="yellow")
        )
    if not one.settled_by and one.look_at:
        names = ", ".join(f"{rule.name} ({rule.source})" for rule in one.look_at)
        lines.append(Text(f"  rules to check: {names}", style="yellow"))
    return lines


def _agreement_record(agreed: CrossCheck) -> dict[str, Any]:
    return {
        "versions": [str(version) for version in agreed.versions],
        "predicted": [case.id for case in agreed.predicted],
        "not_predicted": {construct: list(ids) for construct, ids in agreed.not_predicted.items()},
        "share_without_state_functions": agreed.share,
        "cells": agreed.cells,
        "disagreements": [
            {
                "case": one.verdict.case,
                "spark": [str(version) for version in one.versions],
                "findings": [finding.model_dump(mode="json") for finding in one.verdict.findings],
                "settled_by": [rule.name for rule in one.settled_by],
                "look_at": [rule.name for rule in one.look_at],
            }
            for one in agreed.disagreements
        ],
    }


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
            if reason := category.reasons.get(id):
                out.print(Text(f"      {reason}", style="dim"))
    out.print()


def _summary(loaded: Suite) -> str:
    """``74 cases, 2 problems in 1 file``; the files that are no cases are counted among the cases."""
    cases = _counted(len(loaded.all_cases) + loaded.invalid, "case")
    if not loaded.problems:
        return f"{cases}, no problems"
    files = len({problem.path for problem in loaded.problems})
    return f"{cases}, {_counted(len(loaded.problems), 'problem')} in {_counted(files, 'file')}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _record(loaded: Suite, categories: list[Category]) -> dict[str, Any]:
    return {
        "valid": not loaded.problems,
        "cases": [case.id for case in loaded.all_cases],
        "digest": loaded.digest,
        "problems": [_problem(problem) for problem in loaded.problems],
        "coverage": [
            {
                "name": one.name,
                "of": len(one.entries),
                "pinned": one.pinned,
                "holes": one.holes,
                "reasons": one.reasons,
            }
            for one in categories
        ],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {"path": str(problem.path), "line": problem.line, "column": problem.column, "message": problem.message}
