"""What queries did with the images of a crash: a record each, and their table on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.checkpoints.crash_images import FAULTS, CrashImage, Fault
from conformance.core.output_file import FileKind
from conformance.core.wording import counted
from conformance.judging.crash_verdict import CrashStatus, CrashVerdict
from reports.results.status import Mark

MARKS: Mapping[CrashStatus, Mark] = {
    "continues": Mark("●", "continues with the same rows", "green"),
    "refused": Mark("⊘", "refused with a named error", "yellow"),
    "unclear": Mark("▲", "fails with an error that does not say what is wrong", "magenta"),
    "violates": Mark("✗", "other rows, or lost rows", "bold red"),
    "broken": Mark("!", "broken: no answer", "bold yellow"),
}
"""Every status, in display order."""

CRASH_RECORDS = FileKind("the records of crashes", lambda start: start.startswith(b'{"format":1,"kind":"crashes"'))


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def line(self) -> str:
        return self.model_dump_json() + "\n"


class CrashHeader(_Line):
    """The first line."""

    format: Literal[1] = 1
    kind: Literal["crashes"] = "crashes"
    command: str


class CrashRecord(_Line):
    """A query restarted from one image."""

    case: str
    target: str
    state_store: str
    step: int
    """The step in whose micro-batches the crash is."""
    fault: Fault | None
    """None if the micro-batch could not be recorded."""
    number: int
    """How many file operations of the micro-batch are done."""
    operation: str
    """The last of them, or the one that was lost."""
    status: CrashStatus
    error: str
    why: str

    @classmethod
    def of(
        cls, case: str, target: str, state_store: str, step: int, image: CrashImage, verdict: CrashVerdict
    ) -> CrashRecord:
        return cls(
            case=case,
            target=target,
            state_store=state_store,
            step=step,
            fault=image.fault,
            number=image.number,
            operation=image.operation,
            status=verdict.status,
            error=verdict.error,
            why=verdict.why,
        )

    @classmethod
    def not_recorded(cls, case: str, target: str, state_store: str, step: int, why: str) -> CrashRecord:
        return cls(
            case=case,
            target=target,
            state_store=state_store,
            step=step,
            fault=None,
            number=0,
            operation="",
            status="broken",
            error="",
            why=why,
        )

    def __str__(self) -> str:
        where = f"{self.fault} at {self.operation}" if self.fault else "not recorded"
        named = f"{self.error}: " if self.error and not self.why.startswith(f"[{self.error}") else ""
        why = f": {named}{self.why}" if self.why else ""
        return f"{MARKS[self.status].glyph} {self.target} {self.state_store} {self.case}, {where}{why}"


@dataclass(frozen=True)
class CrashRecords:
    """The file."""

    header: CrashHeader
    records: tuple[CrashRecord, ...]

    @classmethod
    def read(cls, path: Path) -> CrashRecords:
        """Read a file of records; raises pydantic's ValidationError for anything else."""
        first, *others = path.read_text(encoding="utf-8").splitlines()
        return cls(
            CrashHeader.model_validate_json(first), tuple(CrashRecord.model_validate_json(line) for line in others)
        )

    @property
    def exit_code(self) -> int:
        """0 if no query emits other rows or loses some, 1 if one does, 3 without an answer."""
        found = {record.status for record in self.records}
        if "violates" in found:
            return 1
        return 3 if "broken" in found or not found else 0


def show(records: CrashRecords, console: Console) -> None:
    """Print a table by case and one by fault, then what must not be."""
    console.print(_table("case", records.records, _by_case(records.records)))
    console.print(_table("fault", records.records, _by_fault(records.records)))
    for status in ("violates", "unclear", "broken"):
        for line in _examples([record for record in records.records if record.status == status]):
            console.print(Text(line, style=MARKS[status].style), soft_wrap=True)
    refused = Counter(record.error for record in records.records if record.status == "refused")
    if refused:
        named = ", ".join(f"{name} {count}" for name, count in refused.most_common())
        console.print(Text(f"refused with: {named}", style="dim"), soft_wrap=True)
    style = {0: "bold green", 1: "bold red"}.get(records.exit_code, "bold yellow")
    console.print(Text(summary(records), style=style), soft_wrap=True)


def summary(records: CrashRecords) -> str:
    """``431 images: 402 continues with the same rows, 29 refused with a named error``"""
    counts = Counter(record.status for record in records.records)
    parts = [f"{counts[status]} {MARKS[status].word}" for status in MARKS if counts[status]]
    return f"{counted(len(records.records), 'image')}: {', '.join(parts)}"


def _by_case(records: Iterable[CrashRecord]) -> dict[str, list[CrashRecord]]:
    found: dict[str, list[CrashRecord]] = {}
    for record in records:
        found.setdefault(f"{record.target} {record.state_store} {record.case}", []).append(record)
    return found


def _by_fault(records: Iterable[CrashRecord]) -> dict[str, list[CrashRecord]]:
    records = list(records)
    return {fault: [record for record in records if record.fault == fault] for fault in FAULTS}


def _table(what: str, records: Iterable[CrashRecord], groups: Mapping[str, list[CrashRecord]]) -> Table:
    statuses = [status for status in get_args(CrashStatus) if any(record.status == status for record in records)]
    table = Table(box=None, pad_edge=False)
    table.add_column(what, overflow="fold")
    for heading in ("images", *statuses):
        table.add_column(heading, justify="right")
    for name, group in groups.items():
        counts = Counter(record.status for record in group)
        cells = [
            Text(str(counts[status]), style=MARKS[status].style if counts[status] else "dim") for status in statuses
        ]
        table.add_row(Text(name), str(len(group)), *cells)
    return table


def _examples(records: list[CrashRecord]) -> Iterator[str]:
    """One of each kind: of each version, store and error."""
    kinds: dict[tuple[str, str, str], list[CrashRecord]] = {}
    for record in records:
        kinds.setdefault((record.target, record.state_store, record.error), []).append(record)
    for group in kinds.values():
        yield f"{group[0]}{f'; and {len(group) - 1} more like this' if group[1:] else ''}"
