"""How commands print: answers on standard output as text or JSON, notes on standard error."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable

import typer
from rich.console import Console
from rich.text import Text


def print_answer(lines: Iterable[Text], record: object, *, as_json: bool) -> None:
    """Print a command's answer: lines for people, which are never broken, or the same as a record for programs."""
    if as_json:
        print_json(record)
        return
    console = Console(soft_wrap=True, highlight=False)
    for line in lines:
        console.print(line)


def print_json(record: object) -> None:
    typer.echo(json.dumps(record, indent=1, ensure_ascii=False))


def errors_console(notes: Iterable[str] = (), plan: object = None) -> Console:
    """Standard error, where lines are never broken; it starts with these notes, and what is planned."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    for note in notes:
        console.print(note, style="yellow", markup=False)
    if plan is not None:
        console.print(str(plan), markup=False)
    return console


def print_reused(reused: int, cells: int, problem: str | None, errors: Console) -> None:
    """Print how many answers came from the cache, if any, and why it was not used."""
    if reused:
        errors.print(f"{reused} of {cells} answers from the cache; --fresh ignores it")
    if problem:
        errors.print(problem, style="yellow", markup=False)


def command_line() -> str:
    """The command line of this process, for the header of results.

    Parameters of a Connect URL are left out: they may hold a token.
    """
    return shlex.join(["conformance", *(re.sub(r"(sc://[^\s;]*);\S*", r"\1;…", word) for word in sys.argv[1:])])
