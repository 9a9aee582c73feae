"""Progress of a run on standard error: a bar on a terminal, else a line per answer."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Generic, Self, TypeVar

from rich import progress
from rich.console import Console
from rich.filesize import decimal
from rich.progress import Progress, ProgressColumn

from conformance.cli.console import print_error
from conformance.core.observation import Identity
from conformance.core.wording import printable
from conformance.judging.verdict import Verdict
from harness.engine.engine import EngineLocation
from harness.scheduling.cell_run import CellTask, EngineListener
from harness.targets.targets import Target
from reports.results.status import MARKS

_LARGE_FILE = 10_000_000
"""Bytes that take a second or more to read."""
_LOUD = {"violates", "flaky", "broken", "not-run"}
V = TypeVar("V")


def _bar(count: ProgressColumn) -> tuple[ProgressColumn, ...]:
    return progress.TextColumn("{task.description}", markup=False), progress.BarColumn(bar_width=24), count


class EngineLines(EngineListener):
    def engine_says(self, target: Target, line: str) -> None:
        self.says(f"{target.name}: {line.removeprefix(f'{target.name}: ')}")

    def engine_ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        versions = f"Spark {identity.spark}, Scala {identity.scala}, Java {identity.java}, Python {identity.python}"
        self.engine_says(target, f"{versions}, {place}")
        for setting in identity.settings:
            self.engine_says(target, f"has a setting of its own: {setting}")

    def says(self, line: str) -> None:
        print_error(printable(line))


class NoAnswers(EngineLines):
    """Says which engine starts; the command prints the answer itself."""

    def started(self, task: CellTask) -> None: ...

    def judged(self, task: CellTask, verdict: object, seconds: float) -> None: ...


class ProgressBar(EngineLines):
    """On a terminal a bar with the latest message beside it, which disappears at the end; else a line per message."""

    def __init__(self, what: str, total: int, errors: Console, *columns: ProgressColumn) -> None:
        """``columns``: what stands before the time that is left; by default the name, a bar and a count."""
        self.on_terminal = errors.is_terminal
        self.progress = Progress(
            *columns or _bar(progress.MofNCompleteColumn()),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[doing]}", style="dim", markup=False),
            console=errors,
            transient=True,
            disable=not self.on_terminal,
        )
        self.all = self.progress.add_task(what, total=total, doing="")

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def says(self, line: str) -> None:
        if self.on_terminal:
            self.progress.update(self.all, doing=printable(line))
        else:
            super().says(line)


class FileRead(ProgressBar):
    """A bar over the bytes of a file, if `watched` reads them; a log has a line if the file is large."""

    def __init__(self, path: Path, errors: Console) -> None:
        size = path.stat().st_size if path.is_file() else 0
        super().__init__(f"reading {path}", size, errors, *_bar(progress.DownloadColumn()))
        if size > _LARGE_FILE and not self.on_terminal:
            self.says(f"reading {path}, {decimal(size)}")

    def watched(self, file: BinaryIO) -> BinaryIO:
        return self.progress.wrap_file(file, task_id=self.all)


@dataclass(frozen=True)
class AnswerLine:
    line: str
    """A log has this line."""
    doing: str = ""
    """It stands beside the bar from now on."""
    loud: str | None = None
    """This line stays on a terminal; None if the answer is expected."""
    style: str = ""


class Answers(ProgressBar, Generic[V]):
    """A bar over all cells, or a line per answer.

    If steps run long (`add` says how many), the bar is over the steps, and a log has a line per tenth of them.
    """

    def __init__(
        self, what: str, cells: int, errors: Console, shown: Callable[[CellTask, V, float], AnswerLine]
    ) -> None:
        super().__init__(what, cells, errors)
        self._shown = shown
        self._cells, self._done = cells, 0
        self._steps = self._steps_done = 0

    def add(self, cells: int, steps: int = 0) -> None:
        self._cells += cells
        self._steps += steps
        self.progress.update(self.all, total=self._steps or self._cells)

    def step_done(self) -> None:
        self._steps_done += 1
        self.progress.update(self.all, advance=1)
        if not self.on_terminal and self._steps_done * 10 // self._steps > (self._steps_done - 1) * 10 // self._steps:
            print_error(f"{self._steps_done} of {self._steps} steps")

    def started(self, task: CellTask) -> None: ...

    def judged(self, task: CellTask, verdict: V, seconds: float) -> None:
        answer = self._shown(task, verdict, seconds)
        self._done += 1
        self.progress.update(self.all, advance=0 if self._steps else 1, doing=answer.doing)
        if not self.on_terminal:
            print_error(f"[{self._done:{len(str(self._cells))}}/{self._cells}] {answer.line}")
        elif answer.loud is not None:
            self.progress.console.print(answer.loud, style=answer.style, markup=False)


class CaseAnswers(Answers[Verdict]):
    """Shows cases on single versions; on a terminal with a line per engine, and what it runs."""

    def __init__(self, cells: int, errors: Console) -> None:
        super().__init__("cells", cells, errors, _case_line)
        self._engines: dict[str, progress.TaskID] = {}

    def engine_says(self, target: Target, line: str) -> None:
        if not self.on_terminal:
            super().engine_says(target, line)
            return
        if target.name not in self._engines:
            self._engines[target.name] = self.progress.add_task(target.name, total=None, doing="")
        self.progress.update(self._engines[target.name], doing=printable(line))

    def started(self, task: CellTask) -> None:
        if self.on_terminal:
            self.engine_says(task.target, task.case.id)


def _case_line(task: CellTask, verdict: Verdict, seconds: float) -> AnswerLine:
    glyph, name, status = MARKS[verdict.status].glyph, task.target.name, verdict.status
    return AnswerLine(
        f"{name:<12} {glyph} {status:<14} {verdict.case}  {seconds:.1f} s",
        loud=f"{glyph} {name} {verdict.case}: {status}" if status in _LOUD else None,
        style="bold red",
    )
