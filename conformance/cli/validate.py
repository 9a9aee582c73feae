"""``conformance case validate``: every problem of every case, what the suite covers, and whether the model agrees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from conformance.cli import options
from conformance.cli.console import errors_console, print_answer, seen_from_here
from conformance.cli.options import flag, option
from conformance.core.versions import maintained_until
from conformance.core.wording import counted
from conformance.language import Problem
from conformance.suite import discovery
from conformance.suite.coverage import Category, coverage
from conformance.suite.discovery import Suite
from harness.targets.targets import Targets

if TYPE_CHECKING:
    from conformance.oracle.cross_check import CrossCheck, ModelDisagreement

DISAGREES = 1
INVALID = 2


def validate(
    paths: options.Paths = None,
    model: bool = flag(
        "--model", "Check expectations against the reference model, for the lines that Spark maintains."
    ),
    spark: list[str] | None = option(None, "As --model, for these versions, as for `run`. Repeatable.", "VERSION"),
    show_coverage: bool = flag("--coverage", "List which cases cover each entry of the catalogues, and the gaps."),
    allow_code: bool = flag("--allow-code", "Accept code, SQL and settings that only --allow-code runs."),
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Check cases without running them.

    Prints each problem on a line as file:line:column: message. Warnings follow: SQL whose syntax is not known here and so not checked,
    entries that call a feature unsupported and name no error where no method is missing, and, in a suite (a folder with
    behaviours.yaml), steps with several micro-batches that do not say which of them emits.

    Exits with 0 if there is no problem, else with 2; with --model, exits with 1 if a case and the model disagree.
    """
    loaded = discovery.load(paths)
    if not allow_code:
        loaded = loaded.without_permission()
    categories = [*chain.from_iterable(coverage(loaded.all_cases, known) for known in loaded.catalogues.values())]
    agreed = None
    if model or spark:
        # It is slow to import, and rarely asked.
        from conformance.oracle.cross_check import cross_check

        month, targets = f"{date.today():%Y-%m}", Targets.load()
        maintained = [one for one in targets.every_line() if (maintained_until(one.version.line) or month) >= month]
        agreed = cross_check(loaded.cases, [one.version for one in (targets.select(spark) if spark else maintained)])
    warnings = _warnings(loaded)
    lines = [
        *map(_line, loaded.problems),
        *map(_warning_line, warnings),
        *chain.from_iterable(_covered(each, gaps=not verbose) for each in categories if show_coverage),
    ]
    record = _record(loaded, categories, warnings)
    if agreed is not None:
        record["model"] = _cross_check_record(agreed)
    print_answer(lines, record, as_json=as_json, broken=show_coverage, verbose=verbose)
    if not as_json:
        errors = errors_console()
        errors.print(Text(_summary(loaded, warnings), style="red" if loaded.problems else "green"))
        if categories:
            errors.print(Text(f"covered: {', '.join(map(str, categories))}"))
        if agreed is not None:
            print_answer(_cross_check_lines(agreed), verbose=verbose)
            errors.print(Text(_cross_check_summary(agreed), style="red" if agreed.disagreements else "green"))
    if loaded.problems:
        raise typer.Exit(INVALID)
    if agreed is not None and agreed.disagreements:
        raise typer.Exit(DISAGREES)


def _warnings(loaded: Suite) -> tuple[Problem, ...]:
    """SQL that is not checked, errors that no case names, and of cases of a suite moments; in other folders, authors decide how strict
    their cases are."""
    unread = dict.fromkeys(Problem(case.path, line, 0, why) for case in loaded.cases for line, why in case.not_checked)
    strict = [case for case in loaded.cases if any(case.path.is_relative_to(root) for root in loaded.catalogues)]
    if not strict and not any(entry.unsupported for case in loaded.cases for entry in case.differs):
        return tuple(unread)
    # The model is slow to import.
    from conformance.oracle.unstated import unstated_errors, unstated_moments

    return (*unread, *unstated_errors(loaded.cases), *unstated_moments(strict))


def _cross_check_lines(agreed: CrossCheck) -> Iterator[Text]:
    for disagreement in agreed.disagreements:
        yield from _disagreement(disagreement, agreed.ranges(disagreement.versions))
    for construct, ids in agreed.not_predicted.items():
        yield Text.assemble(("  not predicted: ", "yellow"), (construct, "bold"), f"  {', '.join(ids)}")
    families = ", ".join(f"{name or 'cases'} {done}/{all}" for name, (done, all) in agreed.by_family().items())
    yield Text(f"predicted: {families}", style="dim")


def _cross_check_summary(agreed: CrossCheck) -> str:
    wrong = len(agreed.disagreements)
    return (
        f"the model predicts {len(agreed.predicted)} of {counted(len(agreed.cases), 'case')} ({agreed.share:.1%}) "
        f"on {', '.join(map(str, agreed.versions))}: {counted(agreed.cells, 'cell')}, "
        f"{counted(wrong, 'disagreement') if wrong else 'no disagreement'}"
    )


def _disagreement(disagreement: ModelDisagreement, versions: str) -> list[Text]:
    """The lines of a disagreement: findings, whose observed values are the prediction, and the rules that explain them."""
    _, *findings = disagreement.verdict.describe().splitlines()
    lines = [
        Text(f"✗ {disagreement.verdict.case}: the model disagrees on {versions}", style="bold red"),
        *map(Text, findings),
    ]
    for rule in disagreement.settled_by:
        text = f"  {rule.name} ({rule.source}) with another version's value would resolve this"
        lines.append(Text(text, style="yellow"))
    if not disagreement.settled_by and disagreement.look_at:
        names = ", ".join(f"{rule.name} ({rule.source})" for rule in disagreement.look_at)
        lines.append(Text(f"  rules to check: {names}", style="yellow"))
    return lines


def _cross_check_record(agreed: CrossCheck) -> dict[str, Any]:
    return {
        "versions": [str(version) for version in agreed.versions],
        "predicted": [case.id for case in agreed.predicted],
        "not_predicted": {construct: list(ids) for construct, ids in agreed.not_predicted.items()},
        "share": agreed.share,
        "cells": agreed.cells,
        "disagreements": [
            {
                "case": disagreement.verdict.case,
                "spark": [str(version) for version in disagreement.versions],
                "findings": [finding.model_dump(mode="json") for finding in disagreement.verdict.findings],
                "settled_by": [rule.name for rule in disagreement.settled_by],
                "look_at": [rule.name for rule in disagreement.look_at],
            }
            for disagreement in agreed.disagreements
        ],
    }


def _line(problem: Problem) -> Text:
    rendered = problem.render(relative_to=Path.cwd())
    place = rendered.removesuffix(problem.message)
    return Text.assemble((place, "bold"), (problem.message, "red"))


def _warning_line(warning: Problem) -> Text:
    place = f"{seen_from_here(warning.path)}:{warning.line}: "
    return Text.assemble((place, "bold"), (f"warning: {warning.message}", "yellow"))


def _covered(category: Category, *, gaps: bool) -> Iterator[Text]:
    """Yield which cases cover each entry of a catalogue; ``gaps``: only what none covers, or none in full."""
    yield Text(f"{category}", style="bold")
    for id, meaning in category.entries.items():
        if cases := category.cases.get(id):
            lost = category.lost.get(id, ())
            if gaps and not lost:
                continue
            mark = ("  ◐ ", "yellow") if lost else ("  ✓ ", "green")
            yield Text.assemble(mark, (id, "bold"), f"  {', '.join(cases)}")
            yield from (Text(f"      partly: {part}", style="dim") for part in lost)
        else:
            yield Text.assemble(("  ✗ ", "red"), (id, "bold"), f"  no case: {meaning}")
            if reason := category.reasons.get(id):
                yield Text(f"      {reason}", style="dim")
    for test in () if gaps else category.apart:
        yield Text.assemble(("  – ", "blue"), (test.id, "bold"), f"  apart: {test.sentence}")
        closest = f" Closest: {', '.join(test.cases)}" if test.cases else ""
        yield Text(f"      {test.why}{closest}", style="dim")
    yield Text()


def _summary(loaded: Suite, warnings: Sequence[Problem]) -> str:
    """``74 cases, 2 problems in 1 file, 1 warning``; invalid files count as cases."""
    cases = counted(len(loaded.all_cases) + loaded.invalid, "case")
    warned = f", {counted(len(warnings), 'warning')}" if warnings else ""
    if not loaded.problems:
        return f"{cases}, no problems{warned}"
    files = len({problem.path for problem in loaded.problems})
    return f"{cases}, {counted(len(loaded.problems), 'problem')} in {counted(files, 'file')}{warned}"


def _record(loaded: Suite, categories: list[Category], warnings: Sequence[Problem]) -> dict[str, Any]:
    return {
        "valid": not loaded.problems,
        "cases": [case.id for case in loaded.all_cases],
        "digest": loaded.digest,
        "problems": [{**vars(problem), "path": str(problem.path)} for problem in loaded.problems],
        "warnings": [
            {"path": str(warning.path), "line": warning.line, "message": warning.message} for warning in warnings
        ],
        "coverage": [
            {
                "name": category.name,
                "of": len(category.entries),
                "cases": category.cases,
                "untested": category.untested,
                "reasons": category.reasons,
                "lost": category.lost,
                "apart": {other.id: other.why for other in category.apart},
            }
            for category in categories
        ],
    }
