"""``conformance gate``: may this upgrade pass?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from conformance.suite import discovery
from reports.analysis.acceptances import draft, read_accepted
from reports.analysis.change import MEANINGS
from reports.analysis.gate import WORDS, FailOn, Gate, Ruling, published
from reports.analysis.gate import gate as judged
from reports.results.reading import Results
from reports.results.status import MARKS

EXAMPLES = """
Examples:

  conformance gate --from 3.5.9 --to 4.3.0                        by the published results: no Spark needed

  conformance gate results.jsonl --from 3.5 --to 4.0              by one's own

  conformance gate results.jsonl --from 3.5 --to 4.0 --fail-on guaranteed     only where promised results change

  conformance gate results.jsonl --from 3.5 --to 4.0 --draft accepted.yaml    a file to write reasons into

  conformance gate results.jsonl --from 3.5 --to 4.0 --accept accepted.yaml   then pass with it

  conformance gate new.jsonl --from 3.5 --to 4.0 --baseline old.jsonl         only what is new fails
"""

STYLES = {"fails": "bold red", "accepted": "green", "known": "dim", "tolerated": "dim"}


def gate(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Results with both versions; those published with the suite by default.", show_default=False
        ),
    ] = None,
    from_: Annotated[
        str, typer.Option("--from", help="The version you are on: 3.5.9, or 3.5.", show_default=False)
    ] = ...,  # type: ignore[assignment]
    to: Annotated[str, typer.Option("--to", help="The version you want.", show_default=False)] = ...,  # type: ignore[assignment]
    accept: Annotated[
        Path | None, typer.Option(help="Changes that may pass, each with a reason.", metavar="FILE")
    ] = None,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            help="any change; only of what is documented; or only where documented results are lost, added, altered or refused."
        ),
    ] = "any",
    baseline: Annotated[
        Path | None, typer.Option(help="Earlier results: what changed in them already may pass.", metavar="FILE")
    ] = None,
    cases: Annotated[
        list[Path] | None,
        typer.Option(help="Where the cases are that ran; the suite's own by default.", show_default=False),
    ] = None,
    draft_: Annotated[
        Path | None,
        typer.Option("--draft", help="Write what fails to a file for --accept, with room for reasons.", metavar="FILE"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Compare what two Spark versions do, and fail on what changes.

    Exits with 0 where everything may pass, with 1 where a change or a stale acceptance does not, with 2 for wrong usage, and
    with 3 where cells have no answer.
    """
    read = Results.read_all(results or list(published()))
    answer = judged(
        read,
        from_,
        to,
        fail_on=fail_on,
        # Where every change fails nobody needs to know what is promised, nor to read all cases for it.
        strengths={case.id: case.strength for case in discovery.load(cases).cases} if fail_on != "any" else None,
        accepted=read_accepted(accept) if accept is not None else (),
        baseline=Results.read(baseline) if baseline is not None else None,
    )
    if as_json:
        typer.echo(json.dumps(_record(answer), indent=1, ensure_ascii=False))
    else:
        _show(answer)
    if draft_ is not None:
        draft_.write_text(draft(tuple(ruling.change for ruling in answer.failing)), encoding="utf-8")
    raise typer.Exit(answer.exit_code)


def _show(answer: Gate) -> None:
    out = Console(soft_wrap=True, highlight=False)
    for meaning, heading in MEANINGS.items():
        rulings = [ruling for ruling in answer.rulings if ruling.change.meaning == meaning]
        if rulings:
            out.print(Text(f"{heading.glyph} {heading.title}", style="bold"))
        for ruling in rulings:
            for line in _lines(ruling):
                out.print(line)
    if answer.bugs:
        out.print(Text(f"{MARKS['bug'].glyph} Known bugs that both have", style="bold"))
    for standing in answer.bugs:
        link = f" ({standing.bug.link})" if standing.bug.link else ""
        out.print(Text.assemble("  ", (standing.case, "bold"), f"  {standing.bug}: {standing.because}{link}"))
    for entry in answer.stale:
        out.print(Text(f"stale: {entry}: nothing changes there any more: take it out", style="bold red"))
    for silent in answer.silent:
        out.print(Text(f"no answer: {silent.case} on {silent.target} ({silent.status})", style="bold yellow"))
    style = {0: "bold green", 1: "bold red"}.get(answer.exit_code, "bold yellow")
    out.print(Text(answer.summary(), style=style))


def _lines(ruling: Ruling) -> list[Text]:
    change = ruling.change
    because = f": {ruling.because}" if ruling.because else ""
    lines = [
        Text.assemble(
            "  ",
            (change.case, "bold"),
            f"  {change.what}  ",
            (f"[{WORDS[ruling.passing]}{because}]", STYLES[ruling.passing]),
        )
    ]
    for reason in change.reasons:
        link = f" ({reason.link})" if reason.link else ""
        known = (f"{MARKS['bug'].glyph} {reason.bug}: ", MARKS["bug"].style) if reason.bug else ""
        lines.append(Text.assemble(f"      {reason.spark}: ", known, f"{reason.text}{link}"))
    if not change.reasons:
        lines.append(Text(f"      no case gives a reason; {change.where}", style="yellow"))
    return lines


def _record(answer: Gate) -> dict[str, Any]:
    return {
        "from": answer.compared.before.spark,
        "to": answer.compared.after.spark,
        "fail_on": answer.fail_on,
        "exit_code": answer.exit_code,
        "compared": answer.compared.compared,
        "changes": [_ruling(ruling) for ruling in answer.rulings],
        "known_bugs_of_both": [
            {"case": one.case, "because": one.because, "link": one.bug.link, "gone_in": one.bug.gone_in}
            for one in answer.bugs
        ],
        "stale": [str(entry) for entry in answer.stale],
        "silent": [{"case": one.case, "target": one.target, "status": one.status} for one in answer.silent],
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
                "mended": one.bug.gone_in if one.bug else None,
            }
            for one in change.reasons
        ],
    }
