"""``conformance explain``: why a case comes out as it does, by the reference model, without an engine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from conformance.cli import policies
from conformance.core.case import Case
from conformance.core.versions import NotAVersion, SparkVersion, releases
from conformance.judging.verdict import not_applicable
from conformance.model.errors import Unpredictable
from conformance.oracle.explanation import (
    ExplanationLine,
    Tone,
    divergence_lines,
    divergence_record,
    explanation_lines,
    record,
)
from conformance.oracle.prediction import Prediction, predict
from conformance.oracle.version_divergence import version_divergence
from conformance.policies.case import PolicyCase
from conformance.policies.tables import view
from conformance.suite import discovery

UNKNOWN = 2
"""The model does not know what the case does, or the case is not for the version."""

EXAMPLES = """
Examples:

  conformance explain late-drops/window-still-open                  a case of the suite, on the newest Spark

  conformance explain my/cases/late.yaml --spark 3.5.9              a case of one's own, on another

  conformance explain late-drops/late-by-the-watermark-of-the-batch-before --spark 3.3.4 --against 3.5.9
                                                                    where two versions part, and by which rule

  conformance explain late-drops/window-still-open --policies all   under the watermark policies of other engines

  conformance explain late-drops/window-still-open --json | jq      for a program
"""

STYLES: dict[Tone, str] = {
    "head": "bold",
    "step": "bold",
    "moves": "cyan",
    "late": "red",
    "closed": "yellow",
    "emits": "green",
    "error": "bold red",
    "dim": "dim",
    "kept": "dim",
}


def explain(
    case: Annotated[str, typer.Argument(help="A case: its id in the suite, or its file.", show_default=False)],
    spark: Annotated[
        str | None, typer.Option(help="A version (3.5.9) or a line (3.5: its newest patch); the newest by default.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Another version: show the first micro-batch in which the two part, and the rule."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "--policies",
            help="Read the case under another engine's watermark policy instead, or under `all`.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Tell why a case comes out as it does: what arrived, how the watermark moved, what was late, what closed.

    The account is the reference model's: no Spark runs. Exits with 2 where the model does not know what the case does.
    """
    found = discovery.find(case)
    if policy is not None or isinstance(found, PolicyCase):
        policies.show(view(found, policy), as_json=as_json)
        return
    here = _predicted(found, _version(spark, "--spark"))
    there = _predicted(found, _version(against, "--against")) if against is not None else None
    if there is None:
        _print(explanation_lines(found, here), record(found, here), as_json=as_json)
    else:
        parts = version_divergence(found, here, there)
        _print(
            divergence_lines(found, here, there, parts), divergence_record(here, there, parts, found), as_json=as_json
        )


def _print(lines: Iterable[ExplanationLine], record: object, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(record, indent=1, ensure_ascii=False))
        return
    out = Console(soft_wrap=True, highlight=False)
    for line in lines:
        out.print(Text(str(line), style=STYLES.get(line.tone, "")))


def _version(text: str | None, option: str) -> SparkVersion:
    known = releases()
    if text is None:
        return known[-1]
    wanted = text.removeprefix("spark-")
    for version in reversed(known):
        if wanted in (str(version), version.line):
            return version
    near = get_close_matches(wanted, [*map(str, known), *dict.fromkeys(version.line for version in known)], 2)
    try:
        SparkVersion.parse(wanted)
        why = f"{text!r} is not a release of Spark the suite knows"
    except NotAVersion:
        why = f"{text!r} is not a version of Spark"
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    lines = ", ".join(dict.fromkeys(version.line for version in known))
    raise typer.BadParameter(f"{why}.{meant} Its lines: {lines}", param_hint=option)


def _predicted(case: Case, version: SparkVersion) -> Prediction:
    outside = not_applicable(case, version)
    try:
        if outside is None:
            return predict(case, version)
        why = f"{case.id} is not for Spark {version}: {outside.notes[0]}"
    except Unpredictable as unknown:
        why = f"{case.id} on Spark {version}: {unknown}"
    print(f"conformance explain: {why}", file=sys.stderr)
    raise typer.Exit(UNKNOWN)
