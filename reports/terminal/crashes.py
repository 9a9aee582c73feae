"""The table of crashes: how queries went on, by case and by fault, and what must not be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from conformance.checkpoints.crash_images import FAULTS
from conformance.core.wording import counted
from reports.results.checkpoint_status import OUTCOMES
from reports.results.crash import CrashRecord, CrashRecords
from reports.results.status import final_style


def tables(records: CrashRecords) -> Iterator[RenderableType]:
    """Yield the summary, what must not be, a table by case and one by fault."""
    yield Text(summary(records), style=final_style(records.exit_code))
    for outcome in ("other rows", "unclear", "no answer"):
        for line in _examples([record for record in records.records if record.outcome == outcome]):
            yield Text(line, style=OUTCOMES[outcome].style)
    if refused := Counter(record.error for record in records.records if record.outcome in ("refused", "fails later")):
        named = ", ".join(f"{name} {count}" for name, count in refused.most_common())
        yield Text(f"refused with: {named}", style="dim")
    by_case: defaultdict[str, list[CrashRecord]] = defaultdict(list)
    for record in records.records:
        by_case[f"{record.target} {record.state_store} {record.case}"].append(record)
    yield _table("case", records.records, by_case)
    faults = {str(fault): [record for record in records.records if record.fault == fault] for fault in FAULTS}
    yield _table("fault", records.records, {fault: with_it for fault, with_it in faults.items() if with_it})


def summary(records: CrashRecords) -> str:
    """Count the images: ``431 images: 402 resumed, 29 refused``"""
    counts = Counter(record.outcome for record in records.records)
    parts = [f"{counts[outcome]} {mark.word}" for outcome, mark in OUTCOMES.items() if counts[outcome]]
    return f"{counted(len(records.records), 'image')}: {', '.join(parts)}"


def _table(what: str, records: Iterable[CrashRecord], groups: Mapping[str, list[CrashRecord]]) -> Table:
    outcomes = [outcome for outcome in OUTCOMES if any(record.outcome == outcome for record in records)]
    table = Table(box=None, pad_edge=False)
    table.add_column(what, overflow="fold")
    for heading in ("images", *outcomes):
        table.add_column(heading, justify="right")
    for name, group in groups.items():
        counts = Counter(record.outcome for record in group)
        cells = [
            Text(str(counts[outcome]), style=OUTCOMES[outcome].style if counts[outcome] else "dim")
            for outcome in outcomes
        ]
        table.add_row(Text(name), str(len(group)), *cells)
    return table


def _examples(records: list[CrashRecord]) -> Iterator[str]:
    kinds: dict[tuple[str, str, str], list[CrashRecord]] = {}
    for record in records:
        kinds.setdefault((record.target, record.state_store, record.error), []).append(record)
    for group in kinds.values():
        yield f"{group[0]}{f'; and {len(group) - 1} more like this' if group[1:] else ''}"
