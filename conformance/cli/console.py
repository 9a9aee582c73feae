"""How commands print: answers on standard output as text or JSON, notes on standard error.

What they print may be a stranger's text: a name, a note, an error. Nothing of it acts on a terminal or on a CI system that reads the
log; nothing in it ends a command.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from conformance.core.wording import printable, printable_json, redact_command, without_commands
from conformance.core.wrapping import MOST_ROWS, wrapped

if TYPE_CHECKING:
    from conformance.runner.execution import Reuse


@contextmanager
def safe_streams() -> Iterator[None]:
    """Let standard output and standard error survive a reader that is gone and an encoding without our characters."""
    before = sys.stdout, sys.stderr
    _take(0)
    sys.stdout = SafeStream(before[0] or _to_nowhere(1))
    sys.stderr = SafeStream(before[1] or _to_nowhere(2))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _to_nowhere(descriptor: int) -> TextIO:
    """Stand for a stream that the process was started without (``>&-``)."""
    return os.fdopen(_take(descriptor), "w", encoding="utf-8", closefd=False)


def _take(descriptor: int) -> int:
    """Open a standard stream that is closed, to nowhere; else the next file would be it, and others would write into that."""
    try:
        os.fstat(descriptor)
    except OSError:
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != descriptor:
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
    return descriptor


def flush() -> None:
    """Write what is still in the buffers of both streams; raises OSError if that fails, because the disk is full."""
    failed = None
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            failed = error
            if isinstance(stream, SafeStream):
                stream.abandon()
    if failed is not None:
        raise failed


class SafeStream(io.TextIOBase):
    """A stream whose lines are never workflow commands, and that goes on silently when its reader is gone (``| head -1``)."""

    def __init__(self, under: TextIO) -> None:
        self._under = under
        self._begun = ""
        """The last line so far, if it may become a workflow command; else the fact that it cannot."""
        if isinstance(under, io.TextIOWrapper):
            under.reconfigure(errors="backslashreplace")

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._under.encoding

    def isatty(self) -> bool:
        return self._under.isatty()

    def fileno(self) -> int:
        return self._under.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.write_verbatim(self._without_commands(text))
        return len(text)

    def write_verbatim(self, text: str) -> None:
        with self._reader_may_be_gone():
            self._under.write(text)

    def flush(self) -> None:
        with self._reader_may_be_gone():
            self._under.flush()

    def _without_commands(self, text: str) -> str:
        begun = self._begun
        splits = (
            (begun.strip() == ":" and text.startswith(":"))
            or (begun.endswith("##") and text.startswith("["))
            or (begun.endswith("#") and text.startswith("#["))
        )
        line = re.split(r"[\r\n]", begun + text)[-1]
        hashes = line[-2:] if line.endswith("##") else line[-1:] if line.endswith("#") else ""
        self._begun = line if line.strip() in ("", ":") else f"…{hashes}"
        safe = without_commands(text)
        if begun.strip() not in ("", ":"):
            # From here on, the line cannot become a command.
            end = re.search(r"[\r\n]", text)
            at = end.end() if end else len(text)
            safe = without_commands("…" + text[:at])[1:] + without_commands(text[at:])
        return "\\" + safe if splits else safe

    @contextmanager
    def _reader_may_be_gone(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self.abandon()

    def abandon(self) -> None:
        """Let what is still in the buffer go nowhere, also when the interpreter ends."""
        try:
            descriptor = self._under.fileno()
        except (OSError, ValueError):
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


_LEAST_WIDTH, _FILE_WIDTH = 60, 100
"""The characters of a line: at least, and where the output is no terminal."""


class SafeConsole(Console):
    r"""A console that shows control characters as ``\x1b`` and, with ``soft_wrap``, a line end in a text as ``\n``."""

    def __init__(self, **options: Any) -> None:
        # A coordinate such as a:b:1 is no emoji.
        super().__init__(emoji=False, **options)
        if "width" not in options:
            known = self.stderr or sys.stdout.isatty() or "COLUMNS" in os.environ
            self.width = max(_LEAST_WIDTH, self.width) if known else _FILE_WIDTH

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            # What the console itself writes to move the cursor is a control segment.
            yield segment if segment.control else segment._replace(text=printable(segment.text, keep="\n"))

    def print(self, *objects: Any, **how: Any) -> None:
        if how.get("soft_wrap", self.soft_wrap):
            objects = tuple(
                Text(r"\n").join(text.split("\n")) if isinstance(text, Text) and "\n" in text.plain else text
                for text in objects
            )
        super().print(*objects, **how)


def width() -> int:
    """Return the number of characters of a line of the answer: of the terminal, at least 60, or 100 where there is none."""
    return SafeConsole().width


def print_answer(
    lines: Iterable[Text], record: object = None, *, as_json: bool = False, broken: bool = True, verbose: bool = False
) -> None:
    """Print a command's answer: lines for people, at most `MOST_ROWS` rows of them unless ``verbose``, or a record for programs.

    ``broken``: whether lines that are too long are broken; editors read a file and a line number at the start of a line.
    """
    if as_json:
        print_json(record)
        return
    console = SafeConsole(soft_wrap=True, highlight=False)
    rows = [row for line in lines for row in (wrapped(line, console.width) if broken else [line])]
    if not verbose and (left := len(rows) - MOST_ROWS) > 0:
        rows = [*rows[: MOST_ROWS - 1], Text(f"{left + 1} more rows; --verbose prints all", style="dim")]
    for row in rows:
        console.print(row)


def print_tables(
    tables: Iterable[RenderableType], record: object = None, *, as_json: bool = False, verbose: bool = False
) -> None:
    """Print tables, an empty line between two, or the same as a record for programs."""
    console = SafeConsole(highlight=False, force_terminal=sys.stdout.isatty())
    with console.capture() as drawn:
        console.print(*(part for table in (() if as_json else tables) for part in (table, "")), sep="\n")
    rows = map(Text.from_ansi, drawn.get().rstrip("\n").splitlines())
    print_answer(rows, record, as_json=as_json, broken=False, verbose=verbose)


def print_json(record: object) -> None:
    typer.echo(printable_json(json.dumps(record, indent=1, ensure_ascii=False)))


def print_commands(text: str) -> None:
    """Print workflow commands of ours, for the runner of the workflow."""
    if isinstance(sys.stdout, SafeStream):
        sys.stdout.write_verbatim(text)
    else:
        typer.echo(text, nl=False)


def print_error(text: str) -> None:
    print(printable(text, keep="\n"), file=sys.stderr, flush=True)


def errors_console(notes: Iterable[str] = (), plan: object = None) -> Console:
    """Standard error, where lines are never broken; it starts with these notes, and what is planned."""
    console = SafeConsole(stderr=True, soft_wrap=True, highlight=False)
    for note in notes:
        console.print(note, style="yellow", markup=False)
    if plan is not None:
        console.print(str(plan), markup=False)
    return console


def print_reused(reuse: Reuse, cells: int, errors: Console) -> None:
    """Print how many answers came from the cache, if any did, and why it was not used."""
    if reuse.cells:
        errors.print(f"{reuse.cells} of {cells} answers from the cache; --fresh ignores it")
    if reuse.problem:
        errors.print(reuse.problem, style="yellow", markup=False)


def seen_from_here(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def command_line(program: str = "conformance") -> str:
    """The command line of this process without secrets, for the header of results."""
    return shlex.join([*program.split(), *redact_command(sys.argv[1:])])
