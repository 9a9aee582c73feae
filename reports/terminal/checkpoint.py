"""A checkpoint for a terminal, and the same as JSON for programs; and the table of what queries made of those that a crash left."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import RenderableType
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from conformance.checkpoints.awaiting import AwaitingChange
from conformance.checkpoints.checkpoint import OLDER, Checkpoint, lines_of_writer
from conformance.checkpoints.crash_images import FAULTS
from conformance.checkpoints.state import StateOperator, StateStoreFiles
from conformance.core.wording import counted
from reports.results.checkpoint_status import OUTCOMES
from reports.results.crash import CrashRecord, CrashRecords
from reports.results.status import final_style

_WIDTH = 16
_MOST_MISSING = 5
_OF_A_FIELD = ("name", "type", "nullable")
_OF_A_CHANGE = ("effect", "error", "because", "link", "workaround", "case")


def lines(checkpoint: Checkpoint, now: datetime, *, verbose: bool = False) -> Iterator[Text]:
    """Yield where the query stands, what it reads and keeps, and how long ago it ran; ``verbose``: with stores and settings."""
    yield from _labelled("query id", [checkpoint.query_id or "missing: there is no file `metadata`"])
    yield from _labelled("last run by", [_writer(checkpoint)])
    yield from _labelled("micro-batch", [_micro_batch(checkpoint, now)])
    yield from _labelled("watermark", [_instant(checkpoint.watermark_ms) if checkpoint.watermark_ms else "none yet"])
    sources = [
        f"{source.name}: {source.kind}, {source.offset}" if source.offset else f"{source.name}: nothing read yet"
        for source in checkpoint.sources
    ]
    yield from _labelled("sources", sources or ["none"])
    state = [line for operator in checkpoint.operators for line in _operator(operator)[: None if verbose else 1]]
    yield from _labelled("state", state or ["none"])
    yield from _labelled("missing", _missing(checkpoint))
    settings = [f"{key}={value}" for key, value in sorted(checkpoint.settings.items())]
    folded = [f"{len(settings)} stored in it; --verbose lists them, and the stores of the state"]
    yield from _labelled("settings", (settings if verbose else settings and folded) or ["nothing"])
    yield from _labelled("size", [decimal(checkpoint.size)] if verbose else [])


def _instant(ms: int) -> str:
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
    writers = lines_of_writer(checkpoint)
    if not writers:
        return "unknown: no micro-batch was planned" if checkpoint.planned is None else "unknown"
    first, last = writers[0], writers[-1]
    if first == OLDER.line:
        return f"Spark {first} or older"
    text = f"Spark {first}" if first == last else f"Spark {first} – {last}, as its settings show"
    # Only 4.0 and newer name operators.
    has_names = any(operator.format is not None for operator in checkpoint.operators)
    return f"{text}, after 4.0 or newer; or by a preview of 4.0" if has_names and last.startswith("3.") else text


def _micro_batch(checkpoint: Checkpoint, now: datetime) -> str:
    if (planned := checkpoint.planned) is None:
        return "none was planned"
    state = "planned and not committed: it runs again at the restart" if checkpoint.unfinished else "committed"
    return f"{planned.batch}, {state}; planned {_instant(planned.planned_ms)}{_ago(planned.planned_ms, now)}"


def _ago(ms: int, now: datetime) -> str:
    seconds = now.timestamp() - ms / 1000
    if seconds < 0:
        return ""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return f", {counted(int(seconds // length), unit)} ago"
    return ", less than a minute ago"


def _operator(operator: StateOperator) -> list[str]:
    name = operator.name or "a stateful operator that the checkpoint does not name"
    format = f", metadata v{operator.format}" if operator.format is not None else ""
    head = f"operator {operator.number}: {name}{format}, {decimal(operator.size)}"
    return [head, *(f"  {_store(store)}" for store in operator.stores)]


def _store(store: StateStoreFiles) -> str:
    schemas = ", ".join(sorted({f"schema v{schema.format}" for schema in store.schemas})) or "no schema"
    versions = f"versions {store.versions[0]} – {store.versions[1]}" if store.versions else "nothing stored"
    return f"{store.name}: {store.provider}, {counted(store.partitions, 'partition')}, {versions}, {schemas}, {decimal(store.size)}"


def _missing(checkpoint: Checkpoint) -> Iterator[str]:
    """Yield what is missing, what follows, and how to fix it."""
    if not checkpoint.missing:
        return
    yield from map(str, checkpoint.missing[:_MOST_MISSING])
    if len(checkpoint.missing) > _MOST_MISSING:
        yield f"… and {len(checkpoint.missing) - _MOST_MISSING} more"
    batch = checkpoint.state_version - 1
    yield "Put back what is missing from a copy of the checkpoint." + (
        f" Or remove commits/{batch}: micro-batch {batch} runs again, and its rows come out again."
        if checkpoint.replayable
        else " Without one, the query needs a new checkpoint."
    )


def record(checkpoint: Checkpoint, changes: Iterable[AwaitingChange], to: str | None) -> dict[str, Any]:
    """Return everything known of a checkpoint, and what the version ``to`` does with it, if one is given. Times are in ms since 1970."""
    return {
        "checkpoint": checkpoint.where,
        "queryId": checkpoint.query_id,
        "lines": list(lines_of_writer(checkpoint)),
        "planned": checkpoint.planned and {"batch": checkpoint.planned.batch, "ms": checkpoint.planned.planned_ms},
        "committed": checkpoint.committed and {"batch": checkpoint.committed.batch},
        "unfinished": checkpoint.unfinished,
        "watermarkMs": checkpoint.watermark_ms or None,
        "sources": [_picked(source, "name", "kind", "offset") for source in checkpoint.sources],
        "settings": dict(checkpoint.settings),
        "operators": [_operator_record(operator) for operator in checkpoint.operators],
        **({"missing": [str(file.path) for file in checkpoint.missing]} if checkpoint.missing else {}),
        **({"why": list(map(str, checkpoint.missing))} if checkpoint.missing else {}),
        "bytes": checkpoint.size,
        "unchecked": checkpoint.unchecked,
        **({"to": to, "awaiting": [_picked(change, *_OF_A_CHANGE) for change in changes]} if to is not None else {}),
    }


def _picked(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _operator_record(operator: StateOperator) -> dict[str, Any]:
    return {
        **_picked(operator, "number", "name"),
        "metadataFormat": operator.format,
        "stores": [
            {
                **_picked(store, "name", "provider", "partitions"),
                "versions": list(store.versions) if store.versions else None,
                "bytes": store.size,
                "schemas": [
                    {
                        **_picked(schema, "family", "format"),
                        "key": [_picked(field, *_OF_A_FIELD) for field in schema.key],
                        "value": [_picked(field, *_OF_A_FIELD) for field in schema.value],
                    }
                    for schema in store.schemas
                ],
            }
            for store in operator.stores
        ],
    }


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
