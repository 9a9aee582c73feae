"""A checkpoint in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from rich.text import Text

from conformance.checkpoints.awaiting import AwaitingChange, Effect
from conformance.checkpoints.checkpoint import Checkpoint
from conformance.checkpoints.state import StateOperator, StateStore
from conformance.checkpoints.writer import lines_of_writer
from conformance.core.wording import counted

_MARKS: dict[Effect, tuple[str, str]] = {
    "refused": ("✗", "red"),
    "may be refused": ("▲", "yellow"),
    "changes": ("◆", "blue"),
}
_WIDTH = 16
"""Columns of the labels."""
_UNITS = ("B", "kB", "MB", "GB", "TB")


def lines(checkpoint: Checkpoint, now: datetime) -> Iterator[Text]:
    """Where the query stands, what it reads, what it keeps.

    Args:
        checkpoint: what to show.
        now: to tell how long ago it ran.
    """
    yield Text(checkpoint.where, style="bold")
    yield from _labelled("query id", [checkpoint.query_id or "missing: there is no file `metadata`"])
    yield from _labelled("last run by", [_writer(checkpoint)])
    yield from _labelled("micro-batch", [_micro_batch(checkpoint, now)])
    yield from _labelled("watermark", [instant(checkpoint.watermark_ms) if checkpoint.watermark_ms else "none yet"])
    sources = [
        f"{source.name}: {source.kind}, {source.offset}" if source.offset else f"{source.name}: nothing read yet"
        for source in checkpoint.sources
    ]
    yield from _labelled("sources", sources or ["none"])
    yield from _labelled("state", [line for one in checkpoint.operators for line in _operator(one)] or ["none"])
    yield from _labelled(
        "pinned", [f"{key}={value}" for key, value in sorted(checkpoint.settings.items())] or ["nothing"]
    )
    yield from _labelled("size", [_size(checkpoint.size)])


def awaiting_lines(changes: Iterable[AwaitingChange], version: str) -> Iterator[Text]:
    """What awaits the checkpoint on a version."""
    yield Text()
    yield Text(f"On Spark {version}", style="bold")
    found = list(changes)
    for change in found:
        mark, style = _MARKS[change.effect]
        error = f" with {change.error}" if change.error else ""
        yield Text(f"  {mark} {change.effect}{error}: {change.because} ({change.link})", style=style)
        if change.workaround:
            yield Text(f"    workaround: {change.workaround}")
        if change.case:
            yield Text(f"    shown by the case {change.case}")
    if not any(change.effect != "changes" for change in found):
        yield Text("  ● no known reason to refuse it", style="green")


def instant(ms: int) -> str:
    """``2024-01-01 12:20:00 UTC``, of milliseconds since 1970."""
    try:
        at = datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms since 1970"
    fraction = f".{at.microsecond // 1000:03}" if at.microsecond else ""
    return f"{at:%Y-%m-%d %H:%M:%S}{fraction} UTC"


def _labelled(label: str, texts: Iterable[str]) -> Iterator[Text]:
    for number, text in enumerate(texts):
        yield Text(f"  {'' if number else label:{_WIDTH}}{text}")


def _writer(checkpoint: Checkpoint) -> str:
    found = lines_of_writer(checkpoint)
    if not found:
        return "unknown: no micro-batch was planned" if checkpoint.planned is None else "unknown"
    return f"Spark {found[0]}" if len(found) == 1 else f"Spark {found[0]} – {found[-1]}, as its pinned settings tell"


def _micro_batch(checkpoint: Checkpoint, now: datetime) -> str:
    if checkpoint.planned is None:
        return "none was planned"
    planned = checkpoint.planned
    state = "planned and not committed: it runs again at the restart" if checkpoint.unfinished else "committed"
    return f"{planned.batch}, {state}; planned {instant(planned.planned_ms)}{_ago(planned.planned_ms, now)}"


def _ago(ms: int, now: datetime) -> str:
    seconds = now.timestamp() - ms / 1000
    if seconds < 0:
        return ""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return f", {counted(int(seconds // length), unit)} ago"
    return ", less than a minute ago"


def _operator(operator: StateOperator) -> Iterator[str]:
    name = operator.name or "a stateful operator that the checkpoint does not name"
    format = f", metadata v{operator.format}" if operator.format is not None else ""
    yield f"operator {operator.number}: {name}{format}, {_size(operator.size)}"
    for store in operator.stores:
        yield f"  {_store(store)}"


def _store(store: StateStore) -> str:
    schemas = ", ".join(sorted({f"schema v{schema.format}" for schema in store.schemas})) or "no schema"
    versions = f"versions {store.versions[0]} – {store.versions[1]}" if store.versions else "nothing stored"
    return f"{store.name}: {store.provider}, {counted(store.partitions, 'partition')}, {versions}, {schemas}, {_size(store.size)}"


def _size(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"
