"""The messages from the host, parsed once. ``harness/engine/protocol.py`` describes their fields."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Optional

Json = Any
Partitions = List[List[Dict[str, Json]]]
"""Rows as objects, by partition of one micro-batch."""
ArrivingBatch = Dict[str, Partitions]
"""What arrives in one micro-batch, by stream."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_400_YEARS_MS = 146097 * 86400 * 1000


class RowsInFile(List[Dict[str, Json]]):
    """The rows of a partition that are in a file, a line each, and not here."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


@dataclass(frozen=True)
class TopicRequest:
    partitions: int
    timestamp: Optional[str] = None
    options: Optional[Dict[str, str]] = None


@dataclass(frozen=True)
class StreamRequest:
    ddl: str
    files: int
    topic: Optional[TopicRequest] = None
    in_memory: bool = False
    table: Optional[str] = None
    options: Optional[Dict[str, str]] = None

    @classmethod
    def parse(cls, message: Dict[str, Json]) -> StreamRequest:
        topic = message.get("topic")
        return cls(**{**snake_case(message), "topic": TopicRequest(**topic) if topic else None})


@dataclass(frozen=True)
class ChangeRequest:
    """What a restart changes; None leaves it as it is."""

    conf: Optional[Dict[str, str]] = None
    output_mode: Optional[str] = None
    trigger: Optional[str] = None
    query: Optional[List[Dict[str, Json]]] = None
    partitions: Optional[Dict[str, int]] = None


@dataclass(frozen=True)
class StepRequest:
    action: str
    batches: List[ArrivingBatch]
    how: Optional[str] = None
    change: ChangeRequest = ChangeRequest()
    advance: int = 0
    damage: Optional[Dict[str, str]] = None
    repartition: Optional[int] = None
    aged_out: bool = False
    rewritten: bool = False
    recreated: Optional[ArrivingBatch] = None
    alter: Optional[Dict[str, str]] = None
    checkpoint: Optional[str] = None
    at: Optional[str] = None
    nth: int = 1
    plan: bool = False
    files: Optional[Dict[str, str]] = None
    keep: Optional[str] = None

    @classmethod
    def parse(cls, message: Dict[str, Json]) -> StepRequest:
        fields = snake_case(message)
        fields["change"] = ChangeRequest(**snake_case(message.get("change", {})))
        for stream, path in message.get("files", {}).items():
            fields["batches"][0][stream] = [RowsInFile(path)]
        return cls(**fields)


@dataclass(frozen=True)
class CaseRequest:
    case: str
    directory: str
    streams: Dict[str, StreamRequest]
    query: List[Dict[str, Json]]
    output_mode: str
    trigger: str
    conf: Dict[str, str]
    steps: List[StepRequest]
    first: int
    tell: bool
    discard: List[str]
    interval: Optional[int] = None
    clock: int = 0
    digests: bool = False
    restore: Optional[str] = None
    save: Optional[str] = None
    sink: Optional[str] = None
    read_sink: bool = False
    code: Optional[List[str]] = None
    kafka: Optional[str] = None
    arrived: Optional[List[ArrivingBatch]] = None

    @classmethod
    def parse(cls, message: Dict[str, Json]) -> CaseRequest:
        fields = snake_case(message)
        fields["streams"] = {name: StreamRequest.parse(stream) for name, stream in message["streams"].items()}
        fields["steps"] = [StepRequest.parse(step) for step in message["steps"]]
        return cls(**fields)


def snake_case(message: Dict[str, Json]) -> Dict[str, Json]:
    """The fields of a message under the names they have in Python: ``outputMode`` is ``output_mode``."""
    return {re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), name): value for name, value in message.items()}


def milliseconds(instant: str) -> int:
    """``1970-01-01T00:00:10.000Z`` as milliseconds since the epoch."""
    year, month, rest = instant.rsplit("-", 2)
    # Python ends with the year 9999; the calendar repeats every 400 years.
    cycles, within = divmod(int(year) - 1, 400)
    parsed = datetime.strptime("{:04d}-{}-{}".format(within + 1, month, rest), "%Y-%m-%dT%H:%M:%S.%fZ")
    return (parsed.replace(tzinfo=timezone.utc) - _EPOCH) // timedelta(milliseconds=1) + cycles * _400_YEARS_MS
