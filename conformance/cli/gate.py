"""``conformance gate``: whether results change between two Spark versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from conformance.cli import options
from conformance.cli.console import print_answer
from conformance.cli.options import OUTPUT, option
from conformance.core.output_file import write_file
from conformance.suite import discovery
from reports.analysis.acceptances import DRAFT, draft, read_accepted
from reports.analysis.change import MEANINGS
from reports.analysis.gate import WORDS, FailOn, Gate, Ruling, published
from reports.analysis.gate import gate as judged
from reports.results.reading import Results
from reports.results.status import MARKS

EXAMPLES = """
Examples:

  # from the published results: no Spark needed
  conformance gate --from 3.5.9 --to 4.3.0

  # from your results
  conformance gate results.jsonl --from 3.5 --to 4.0

  # only documented results that are lost, added, changed or refused
  conformance gate results.jsonl --from 3.5 --to 4.0 --fail-on guaranteed

  # write a file of changes to accept; then pass with it
  conformance gate results.jsonl --from 3.5 --to 4.0 --draft ok.yaml
  conformance gate results.jsonl --from 3.5 --to 4.0 --accept ok.yaml

  # fail only on changes that earlier results lack
  conformance gate new.jsonl --from 3.5 --to 4.0 --baseline old.jsonl
"""

STYLES = {"fails": "bold red", "accepted": "green", "known": "dim", "tolerated": "dim"}


def gate(
    results: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Results files with both versions; by default the published results."),
    ] = None,
    from_: Annotated[
        str, option("The version you are on: 3.5.9, or 3.5.", "VERSION", None, "--from", show_default=False)
    ] = ...,  # type: ignore[assignment]
    to: Annotated[str, option("The version you want.", "VERSION", None, "--to", show_default=False)] = ...,  # type: ignore[assignment]
    cases: options.Cases = None,
    fail_on: Annotated[
        FailOn,
        option(
            "any: every change; documented: changes of documented results; guaranteed: documented rows are lost, added or "
            "changed, or the query is refused.",
            "WHAT",
        ),
    ] = "any",
    accept: Annotated[Path | None, option("Changes that may pass, each with a reason.", "FILE")] = None,
    baseline: Annotated[Path | None, option("Earlier results: changes that they have may pass.", "FILE")] = None,
    draft_: Annotated[
        Path | None,
        option("Write the failing changes here, to add reasons and pass to --accept.", "FILE", OUTPUT, "--draft"),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Fail if results change between two Spark versions.

    Exits with 0 if every change may pass, 1 if a change fails or an acceptance is stale, 2 for wrong usage, and 3 if cells
    have no answer. To compare two runs of one version use `conformance diff`.
    """
    answer = judged(
        Results.read_all(results or list(published())),
        from_,
        to,
        fail_on=fail_on,
        # Only the other thresholds need to know how strongly a case is promised.
        strengths={case.id: case.strength for case in discovery.load(cases).cases} if fail_on != "any" else None,
        accepted=read_accepted(accept) if accept is not None else (),
        baseline=Results.read(baseline) if baseline is not None else None,
    )
    print_answer(_lines(answer), _record(answer), as_json=as_json)
    if draft_ is not None:
        write_file(draft_, draft(tuple(ruling.change for ruling in answer.failing)), DRAFT)
    raise typer.Exit(answer.exit_code)


def _lines(answer: Gate) -> Iterator[Text]:
    for meaning, heading in MEANINGS.items():
        rulings = [ruling for ruling in answer.rulings if ruling.change.meaning == meaning]
        if rulings:
            yield Text(f"{heading.glyph} {heading.title}", style="bold")
        for ruling in rulings:
            yield from _change(ruling)
    if answer.bugs:
        yield Text(f"{MARKS['bug'].glyph} Known bugs of both versions", style="bold")
    for standing in answer.bugs:
        yield Text.assemble("  ", (standing.case, "bold"), f"  {standing.bug}: {standing.because}{standing.bug.ticket}")
    for entry in answer.stale:
        yield Text(f"stale: {entry}: no such change any more, remove the entry", style="bold red")
    for silent in answer.compared.missing:
        yield Text(f"no answer: {silent.case} on {silent.target} ({silent.status})", style="bold yellow")
    style = {0: "bold green", 1: "bold red"}.get(answer.exit_code, "bold yellow")
    yield Text(answer.summary(), style=style)


def _change(ruling: Ruling) -> Iterator[Text]:
    change = ruling.change
    because = f": {ruling.because}" if ruling.because else ""
    passing = f"[{WORDS[ruling.passing]}{because}]", STYLES[ruling.passing]
    yield Text.assemble("  ", (change.case, "bold"), f"  {change.what}  ", passing)
    for reason in change.reasons:
        known = (f"{MARKS['bug'].glyph} {reason.bug}: ", MARKS["bug"].style) if reason.bug else ""
        yield Text.assemble(f"      {reason.spark}: ", known, f"{reason.text}{reason.ticket}")
    if not change.reasons:
        yield Text(f"      no case gives a reason; {change.where}", style="yellow")


def _record(answer: Gate) -> dict[str, Any]:
    return {
        "from": answer.compared.before.spark,
        "to": answer.compared.after.spark,
        "fail_on": answer.fail_on,
        "exit_code": answer.exit_code,
        "compared": answer.compared.compared,
        "changes": [_ruling(ruling) for ruling in answer.rulings],
        "known_bugs_of_both": [
            {
                "case": one.case,
                "because": one.because,
                "link": one.bug.link,
                "introduced_by": one.bug.introduced_by,
                "gone_in": one.bug.gone_in,
            }
            for one in answer.bugs
        ],
        "stale": [str(entry) for entry in answer.stale],
        "silent": [{"case": one.case, "target": one.target, "status": one.status} for one in answer.compared.missing],
        "outside": list(answer.compared.outside),
    }


def _ruling(ruling: Ruling) -> dict[str, Any]:
    change = ruling.change
    return {
        "case": change.case,
        "change": change.meaning,
        "what": change.what,
        "passing": ruling.passing,
        "because": ruling.because,
        "strength": ruling.strength,
        "where": str(change.where),
        "reasons": [
            {
                "spark": one.spark,
                "text": one.text,
                "link": one.link,
                "bug": one.bug is not None,
                "introduced_by": one.bug.introduced_by if one.bug else None,
                "mended": one.bug.gone_in if one.bug else None,
            }
            for one in change.reasons
        ],
    }
