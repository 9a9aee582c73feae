"""Progress as Spark writes it, by its numbers."""

import json
from datetime import UTC, datetime

START = 1_772_366_400_000


def progress(
    batch, *, rows=3, low=None, high=None, mark=0, state=None, dropped=0, out=0, sources=None, ran=True, **more
):
    """Return the progress of a micro-batch; times are minutes after 2026-03-01T12:00."""
    at = {"max": high, "min": low if low is not None else high, "avg": high} if high is not None else {}
    times = {name: stamp(minutes) for name, minutes in {**at, "watermark": mark}.items() if minutes is not None}
    operators = [
        {
            "operatorName": name,
            "numRowsTotal": total,
            "numRowsRemoved": 0,
            "numRowsDroppedByWatermark": dropped,
            "commitTimeMs": 9,
        }
        for name, total in (state or {}).items()
    ]
    return {
        "id": "a" * 8,
        "runId": "b" * 8,
        "name": "orders",
        "timestamp": stamp(batch if ran else batch + 0.5),
        "batchId": batch,
        "durationMs": {"addBatch": 5, "triggerExecution": 9} if ran else {"triggerExecution": 1},
        "eventTime": times,
        "stateOperators": operators,
        "sources": [{"description": f"S{n}", "numInputRows": count} for n, count in enumerate(sources or [rows])],
        "sink": {"description": "MemorySink", "numOutputRows": out},
        **more,
    }


def stamp(minutes):
    if isinstance(minutes, str):
        return minutes
    at = datetime.fromtimestamp(START / 1000 + minutes * 60, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def pretty(one, indent=2):
    """Return a progress as `prettyJson` prints it."""
    return json.dumps(one, indent=indent, separators=(",", " : "))
