"""What a person sees while cells run: a live picture on a terminal, plain lines everywhere else."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from conformance.case import Case
from conformance.observation import Identity
from conformance.verdict import Verdict
from harness.engine import Place
from harness.target import Target
from reports.status import GLYPHS

_LOUD = {"violates", "flaky", "broken", "not-run"}


class PlainDisplay:
    """A line per cell on standard error, for logs."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def says(self, target: Target, line: str) -> None:
        print(f"{target.name}: {line.removeprefix(f'{target.name}: ')}", file=sys.stderr, flush=True)

    def ready(self, target: Target, identity: Identity, place: Place) -> None:
        self.says(target, _introduced(identity, place))

    def started(self, case: Case, target: Target) -> None:
        pass

    def judged(self, target: Target, verdict: Verdict, seconds: float) -> None:
        self._done += 1
        width = len(str(self._cells))
        print(
            f"[{self._done:{width}}/{self._cells}] {target.name:<12} {GLYPHS[verdict.status]} {verdict.status:<14} "
            f"{verdict.case}  {seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )


class LiveDisplay:
    """A bar over all cells, and a line per engine that says what it runs."""

    def __init__(self, cells: int, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[doing]}", style="dim"),
            console=console,
            transient=True,
        )
        self._all = self._progress.add_task("cells", total=cells, doing="")
        self._engines: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def says(self, target: Target, line: str) -> None:
        self._doing(target, line)

    def ready(self, target: Target, identity: Identity, place: Place) -> None:
        self._doing(target, _introduced(identity, place))

    def started(self, case: Case, target: Target) -> None:
        self._doing(target, case.id)

    def judged(self, target: Target, verdict: Verdict, seconds: float) -> None:  # noqa: ARG002 — the bar has its own clock
        self._progress.advance(self._all)
        if verdict.status in _LOUD:
            self._progress.console.print(
                f"{GLYPHS[verdict.status]} {target.name} {verdict.case}: {verdict.status}",
                style="bold red",
                markup=False,
            )

    def _doing(self, target: Target, what: str) -> None:
        task = self._engines.get(target.name)
        if task is None:
            task = self._engines[target.name] = self._progress.add_task(target.name, total=None, doing="")
        self._progress.update(task, doing=what)


def _introduced(identity: Identity, place: Place) -> str:
    versions = f"Spark {identity.spark}, Scala {identity.scala}, Java {identity.java}, Python {identity.python}"
    return f"{versions}, {place}"
