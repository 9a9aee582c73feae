"""A case and an observation of it, small enough to read, and ways to vary both."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.core.case import Add, Case, Differs, Expectation, ExpectationChange, Partitioned, Step
from conformance.core.observation import BatchSeen, Column, ErrorSeen, EventTime, Observation, SourceRead, StepSeen
from conformance.core.operations import read_pipeline
from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion, VersionRange

NEWEST = SparkVersion.parse("4.3.0")
OLD = SparkVersion.parse("3.0.3")

COLUMNS = (
    Column(name="start", type="timestamp"),
    Column(name="end", type="timestamp"),
    Column(name="total", type="bigint"),
)


def ms(hour: int, minute: int = 0) -> int:
    return (hour * 60 + minute) * 60_000


def at(text: str) -> str:
    """``12:05`` as an engine sends it."""
    return f"1970-01-01T{text}:00.000000Z"


def window(start: str, end: str, total: int) -> tuple[Any, ...]:
    """A row as an engine sends it."""
    return (at(start), at(end), total)


def expect(**keys: Any) -> Expectation:
    return Expectation.model_validate(keys)


def change(**keys: Any) -> ExpectationChange:
    return ExpectationChange.model_validate(keys)


def differs(spark: str, **keys: Any) -> Differs:
    return Differs(spark=VersionRange.parse(spark), **keys)


def case(*expectations: Expectation | None, names: Mapping[int, str] | None = None, **keys: Any) -> Case:
    """A case with one ``add`` step for each expectation."""
    add = Add(streams={"events": Partitioned(partitions=((("12:00", 1),),))})
    steps = tuple(
        Step(number=number, action=add, name=(names or {}).get(number), expect=expectation)
        for number, expectation in enumerate(expectations, 1)
    )
    about: dict[str, Any] = {
        "id": "late-drops/window-still-open",
        "path": Path("cases/late-drops/window-still-open.yaml"),
        "digest": "0" * 64,
        "lines": {"steps.1": 16, "steps.2": 20, "steps.3": 24, "differs.1": 30},
        "title": "A row behind the watermark still counts while its window is open",
        "streams": {"events": parse_schema("event_time TIMESTAMP, count INT")},
        "query": read_pipeline([{"from": "events"}]),
        "steps": steps,
        "output_mode": "update",
        "needs_code": (),
    }
    return Case(**{**about, **keys})


def batch(id: int = 0, *rows: tuple[Any, ...], **keys: Any) -> BatchSeen:
    about: dict[str, Any] = {
        "id": id,
        "kind": "data",
        "sources": (SourceRead(stream="events", rows=1, moved=True),),
        "watermark": 0,
        "logged": 0,
        "next_watermark": 0,
        "rows": rows,
        "dropped": 0,
        "state": (1,),
        "event_time": EventTime(min=ms(12), max=ms(12), avg=ms(12)),
        "duration_ms": 100,
        "progress": {"batchId": id, "numInputRows": 1},
    }
    if "watermark" in keys:
        about["logged"] = keys["watermark"] or 0
    return BatchSeen(**{**about, **keys})


def step(number: int = 1, *batches: BatchSeen, **keys: Any) -> StepSeen:
    about: dict[str, Any] = {
        "number": number,
        "batches": batches,
        "watermark": 0,
        "plan": None,
        "error": None,
        "wall_ms": 100,
    }
    return StepSeen(**{**about, **keys})


def failed(number: int, *classes: str, stage: str = "run", message: str = "it failed") -> StepSeen:
    return step(number, error=ErrorSeen.model_validate({"stage": stage, "classes": classes, "message": message}))


def observed(*steps: StepSeen, columns: tuple[Column, ...] = COLUMNS) -> Observation:
    return Observation(case="late-drops/window-still-open", columns=columns, steps=steps)
