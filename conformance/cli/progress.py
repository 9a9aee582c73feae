"""Progress of a run on standard error: a bar on a terminal, else a line per answer."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from conformance.cli.console import print_error
from conformance.core.observation import Identity
from conformance.core.wording import printable
from conformance.judging.verdict import Verdict
from harness.engine.engine import EngineLocation
from harness.scheduling.cell_run import CellTask, EngineListener
from harness.targets.targets import Target
from reports.results.status import GLYPHS

_LOUD = {"violates", "flaky", "broken", "not-run"}


class Lines(EngineListener):
    """A line per answer on standard error, for logs."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def engine_says(self, target: Target, line: str) -> None:
        print_error(said(target, line))

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        self.engine_says(target, introduced(identity, place))

    def started(self, task: CellTask) -> None:
        pass

    def answered(self, line: str) -> None:
        """Print the line of one answer, with its number."""
        self._done += 1
        print_error(f"[{self._done:{len(str(self._cells))}}/{self._cells}] {line}")


class EngineLines(Lines):
    """Prints which engine starts, but no answer: the command prints that itself."""

    def __init__(self) -> None:
        super().__init__(1)

    def judged(self, task: CellTask, verdict: object, seconds: float) -> None:
        pass


class Bar(EngineListener):
    """A bar over everything that a run does; it disappears at the end."""

    def __init__(self, what: str, total: int, console: Console, *columns: ProgressColumn) -> None:
        self._progress = Progress(
            *columns or (TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), MofNCompleteColumn()),
            TimeRemainingColumn(),
            TextColumn("{task.fields[doing]}", style="dim", markup=False),
            console=console,
            transient=True,
        )
        self._all = self._progress.add_task(what, total=total, doing="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def engine_says(self, target: Target, line: str) -> None:
        self._progress.update(self._all, doing=said(target, line))

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        self.engine_says(target, introduced(identity, place))

    def started(self, task: CellTask) -> None:
        pass

    def answered(self, *, doing: str = "", loud: str | None = None, style: str = "") -> None:
        """Advance the bar by one answer.

        Args:
            doing: the text beside the bar from now on.
            loud: a line to keep on the terminal, for an unexpected answer.
            style: of that line.
        """
        self._progress.update(self._all, advance=1, doing=doing)
        if loud is not None:
            self._progress.console.print(loud, style=style, markup=False)


class CaseLines(Lines):
    """A line per cell."""

    def judged(self, task: CellTask, verdict: Verdict, seconds: float) -> None:
        self.answered(
            f"{task.target.name:<12} {GLYPHS[verdict.status]} {verdict.status:<14} {verdict.case}  {seconds:.1f} s"
        )


class CaseBar(Bar):
    """A bar over all cells, and a line per engine with what it runs."""

    def __init__(self, cells: int, console: Console) -> None:
        super().__init__("cells", cells, console)
        self._engines: dict[str, TaskID] = {}

    def engine_says(self, target: Target, line: str) -> None:
        task = self._engines.get(target.name)
        if task is None:
            task = self._engines[target.name] = self._progress.add_task(target.name, total=None, doing="")
        self._progress.update(task, doing=printable(line))

    def started(self, task: CellTask) -> None:
        self.engine_says(task.target, task.case.id)

    def judged(self, task: CellTask, verdict: Verdict, seconds: float) -> None:  # noqa: ARG002 — the bar has its own clock
        loud = f"{GLYPHS[verdict.status]} {task.target.name} {verdict.case}: {verdict.status}"
        self.answered(loud=loud if verdict.status in _LOUD else None, style="bold red")


def said(target: Target, line: str) -> str:
    """A line of an engine in one line, prefixed once by the name of its target."""
    return printable(f"{target.name}: {line.removeprefix(f'{target.name}: ')}")


def introduced(identity: Identity, place: EngineLocation) -> str:
    """The versions and the place of an engine, in one line."""
    versions = f"Spark {identity.spark}, Scala {identity.scala}, Java {identity.java}, Python {identity.python}"
    return f"{versions}, {place}"
