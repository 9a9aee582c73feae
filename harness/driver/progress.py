"""From Spark's progress entries to executed micro-batches."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Dict

from .backend import Arrivals, Capture
from .checkpoint import Checkpoint

Entry = Dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def executed(entries: list[Entry]) -> list[Entry]:
    """The progress of each executed batch.

    Idle entries repeat a batch id without having executed anything; an executed batch has an ``addBatch`` time.
    """
    return [entry for entry in entries if "addBatch" in entry.get("durationMs", {})]


def batch_seen(entry: Entry, checkpoint: Checkpoint, capture: Capture, arrivals: Arrivals) -> dict[str, Any]:
    """The fields of ``BatchSeen`` for one executed batch."""
    batch = entry["batchId"]
    event_time = entry.get("eventTime", {})
    operators = entry.get("stateOperators", [])
    sources = [_source_read(source, arrivals) for source in entry.get("sources", [])]
    return {
        "id": batch,
        "kind": "data" if any(source["moved"] for source in sources) else "no-data",
        "sources": sources,
        "watermark": milliseconds(event_time["watermark"]) if "watermark" in event_time else None,
        "logged": checkpoint.logged_watermark(batch),
        "next_watermark": checkpoint.next_watermark(batch),
        "rows": capture.rows(batch),
        "dropped": _dropped(operators),
        "state": [operator.get("numRowsTotal", 0) for operator in operators],
        "event_time": {key: milliseconds(event_time[key]) for key in ("min", "max", "avg")}
        if "max" in event_time
        else None,
        "duration_ms": entry["durationMs"].get("triggerExecution", 0),
        "progress": entry,
    }


def _source_read(source: Entry, arrivals: Arrivals) -> dict[str, Any]:
    read = {
        "stream": arrivals.stream_of(source["description"]) or source["description"],
        "rows": source.get("numInputRows", 0),
    }
    records = arrivals.records(source)
    if records is None:
        return {**read, "moved": source.get("startOffset") != source.get("endOffset")}
    return {**read, "moved": any(records), "records": records}


def milliseconds(instant: str) -> int:
    """``1970-01-01T00:00:10.000Z`` as milliseconds since the epoch."""
    parsed = datetime.strptime(instant, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    return (parsed - _EPOCH) // timedelta(milliseconds=1)


def _dropped(operators: list[Entry]) -> int | None:
    counts = [
        int(operator["numRowsDroppedByWatermark"]) for operator in operators if "numRowsDroppedByWatermark" in operator
    ]
    if operators and not counts:
        return None
    return sum(counts)
