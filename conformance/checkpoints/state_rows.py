"""The rows that wait in the state of a checkpoint, by operator: how many, their event times, and which the next watermark releases.

Only the files of HDFS-backed stores are read, without Spark. Source: ``HDFSBackedStateStoreProvider``, ``UnsafeRow``, and of what a
watermark removes ``WatermarkSupport``, ``BaseStreamingDeduplicateExec`` and ``SymmetricHashJoinStateManager`` of Spark.
"""

from __future__ import annotations

import io
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final, Literal, TypeAlias, cast

from conformance.checkpoints.checkpoint import Checkpoint
from conformance.checkpoints.files import DamagedCheckpoint, Files, NoSuchCheckpoint
from conformance.checkpoints.state import JOIN, VERSION, StateOperator, StateSchema, store_of
from conformance.core.errors import WrongUsage
from conformance.core.unpacking import unpacked

Times: TypeAlias = Literal["event time", "window", "expires", "timeout"]
"""What the times of a row are: those of its column with a watermark, the start and the end of its window, or when Spark forgets it."""
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct("<q")
_PACKED: Final = (b"LZ4Block", b"\x28\xb5\x2f\xfd")
"""How a file begins that the codecs lz4 and zstd wrote."""
_MOST: Final = 1 << 30
"""Bytes of a row."""
_ROWS_OF_A_JOIN: Final = "-keyWithIndexToValue"
_CHECKSUMS: Final = "spark.sql.streaming.stateStore.rowChecksum.enabled"
_BY_NAME: Final[Mapping[str, tuple[Times, int]]] = {
    "expiresAtMicros": ("expires", 1),
    "timeoutTimestamp": ("timeout", 1000),
}
"""Spark's own columns with a time: what it is, and how many microseconds its unit has."""
_NONE: Final = -1
"""The timeout of a group that has none."""


@dataclass(frozen=True)
class TimesInState:
    """The rows of a store, or of one side of a join."""

    name: str
    """``default``, ``left`` or ``right``."""
    rows: int
    times: Times | None
    """None if no column has an event time, or no schema says so."""
    windows: int | None = None
    oldest_ms: int | None = None
    """None if no row has a time."""
    newest_ms: int | None = None
    untimed: int = 0
    """Rows without a time, in a column that has times: null, or a group without a timeout."""
    released: int | None = None
    """How many rows the watermark of the next micro-batch releases; None if their times alone do not say that."""
    overdue: int = 0
    """Rows that stayed although the watermark of the last micro-batch had passed them."""


@dataclass(frozen=True)
class OperatorRows:
    number: int
    name: str | None
    """None if the checkpoint does not tell."""
    stores: tuple[TimesInState, ...]
    unread: str = ""
    """Why its rows are not known."""
    has_schema: bool = True

    @property
    def rows(self) -> int | None:
        return None if self.unread else sum(store.rows for store in self.stores)


def rows_in_state(files: Files, checkpoint: Checkpoint) -> Iterator[OperatorRows]:
    """Yield what waits in each operator; what cannot be read says so, and is never counted in part."""
    for operator in checkpoint.operators:
        try:
            yield _operator(files, checkpoint, operator)
        except (DamagedCheckpoint, NoSuchCheckpoint) as error:
            yield OperatorRows(operator.number, operator.name, (), str(error))
        except (struct.error, IndexError):
            why = f"state/{operator.number}: a row does not fit the schema"
            yield OperatorRows(operator.number, operator.name, (), why)
        except KeyError as error:
            why = f"state/{operator.number}: a partition has no file of version {error} of the state"
            yield OperatorRows(operator.number, operator.name, (), why)


def _operator(files: Files, checkpoint: Checkpoint, operator: StateOperator) -> OperatorRows:
    found = OperatorRows(operator.number, operator.name, ())
    folder = PurePosixPath("state", str(operator.number))
    lacking = next((each for each in checkpoint.missing if each.path.is_relative_to(folder)), None)
    providers = sorted({store.provider for store in operator.stores})
    if lacking is not None:
        return replace(found, unread=str(lacking))
    if providers != ["HDFS"]:
        return replace(found, unread=f"its state store is {', '.join(providers)}")
    if checkpoint.settings.get(_CHECKSUMS) == "true":
        return replace(found, unread=f"each row has a checksum ({_CHECKSUMS})")
    stores = []
    for store in operator.stores:
        if operator.name == JOIN and not store.name.endswith(_ROWS_OF_A_JOIN):
            continue
        schema = store.schemas[0] if len(store.schemas) == 1 else None
        watermarks = None if operator.name == JOIN else (checkpoint.watermark_ms, _ran_with(checkpoint))
        rows = _rows(files, checkpoint, operator.number, store.name)
        stores.append(_times(store.name.removesuffix(_ROWS_OF_A_JOIN), rows, schema, watermarks))
    return replace(found, stores=tuple(stores), has_schema=all(store.schemas for store in operator.stores))


def _ran_with(checkpoint: Checkpoint) -> int:
    """Return the watermark of the last micro-batch, if its entry is the newest of the offset log, else 0."""
    planned, committed = checkpoint.planned, checkpoint.committed
    return planned.watermark_ms if planned and committed and planned.batch == committed.batch else 0


def _times(
    name: str, rows: Iterator[tuple[bytes, bytes]], schema: StateSchema | None, watermarks: tuple[int, int] | None
) -> TimesInState:
    column = _Column.of(schema) if schema is not None else None
    if column is None:
        return TimesInState(name, sum(1 for _ in rows), None)
    # Spark compares microseconds with a watermark in milliseconds; 0 is none.
    next_us, last_us = (1000 * mark or -(1 << 63) for mark in watermarks or (0, 0))
    windows = set[tuple[int, int]]()
    count = untimed = released = overdue = 0
    oldest, newest = 1 << 63, -(1 << 63)
    for row in rows:
        count += 1
        if (of_row := column.read(row)) is None:
            untimed += 1
            continue
        oldest, newest = min(oldest, of_row[0]), max(newest, of_row[1])
        overdue += of_row[1] <= last_us
        released += last_us < of_row[1] <= next_us
        if column.times == "window":
            windows.add(of_row)
    decided = watermarks is not None and column.times != "timeout"
    return TimesInState(
        name,
        count,
        column.times,
        len(windows) if column.times == "window" else None,
        oldest // 1000 if count > untimed else None,
        -(-newest // 1000) if count > untimed else None,
        untimed,
        released if decided else None,
        overdue if decided else 0,
    )


@dataclass(frozen=True)
class _Column:
    """The column of a row of state that has its time."""

    times: Times
    in_value: bool
    width: int
    """How many columns the key, or the value, has."""
    at: int
    within: tuple[int, int, int] | None = None
    """Of a window: how many columns it has, and which are its start and its end."""
    unit_us: int = 1

    @classmethod
    def of(cls, schema: StateSchema) -> _Column | None:
        for in_value, fields in ((False, schema.key), (True, schema.value)):
            top = [field for field in fields if len(field.at) == 1]
            for at, field in enumerate(top):
                inner = {
                    each.name.removeprefix(f"{field.name}."): each
                    for each in fields
                    if each.at[:1] == (at,) and len(each.at) == 2
                }
                if field.has_watermark and {"start", "end"} <= inner.keys():
                    return cls("window", in_value, len(top), at, (len(inner), inner["start"].at[1], inner["end"].at[1]))
                if field.has_watermark and not inner:
                    return cls("event time", in_value, len(top), at)
                if in_value and field.name in _BY_NAME:
                    times, unit_us = _BY_NAME[field.name]
                    return cls(times, in_value, len(top), at, unit_us=unit_us)
        return None

    def read(self, row: tuple[bytes, bytes]) -> tuple[int, int] | None:
        """Return the first and the last moment of a row, in microseconds; None if it has none."""
        content = row[self.in_value]
        if self.within is None:
            at = _long(content, self.width, self.at)
            return None if at is None or (self.times == "timeout" and at == _NONE) else (at * self.unit_us,) * 2
        place = _long(content, self.width, self.at)
        if place is None:
            return None
        # A nested row: where it begins, and its length.
        window = content[place >> 32 :][: place & 0xFFFFFFFF]
        width, *ends = self.within
        start, end = (_long(window, width, at) for at in ends)
        return None if start is None or end is None else (start, end)


def _long(row: bytes, width: int, at: int) -> int | None:
    """Return a fixed column of an ``UnsafeRow``: a bit for each null, in words of 8 bytes, then 8 bytes for each column."""
    if row[at >> 3] >> (at & 7) & 1:
        return None
    return int(_LONG.unpack_from(row, (width + 63) // 64 * 8 + at * 8)[0])


def _rows(files: Files, checkpoint: Checkpoint, operator: int, store: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows of a store, one partition after the other."""
    kept: defaultdict[int, dict[str, dict[int, PurePosixPath]]] = defaultdict(lambda: {"snapshot": {}, "delta": {}})
    for path in files.sizes:
        if path.parts[:2] == ("state", str(operator)) and path.parts[2].isdecimal() and store_of(path) == store:
            of_partition = kept[int(path.parts[2])]
            if (
                (version := VERSION.fullmatch(path.name))
                and not version[2]
                and int(version[1]) <= checkpoint.state_version
            ):
                of_partition[version[3]][int(version[1])] = path
    partitions = checkpoint.settings.get("spark.sql.shuffle.partitions", "")
    for partition, of_kind in sorted(kept.items()):
        if partitions.isdecimal() and partition >= int(partitions):
            continue  # of before a repartition
        base = max(of_kind["snapshot"], default=0)
        changes = [of_kind["delta"][at] for at in range(base + 1, checkpoint.state_version + 1)]
        rows: dict[bytes, bytes] = {}
        for path in ([of_kind["snapshot"][base]] if base else []) + changes:
            _apply(rows, path, files.read(path))
        yield from rows.items()


def _apply(rows: dict[bytes, bytes], path: PurePosixPath, content: bytes) -> None:
    """Apply the changes that a file holds: a key, then a value or a removal, each after its length; a length of -1 ends it."""
    if not content.startswith(_PACKED):
        raise DamagedCheckpoint(path, "it is damaged, or of a codec other than lz4 and zstd, which is not read")
    try:
        with unpacked(io.BufferedReader(cast(io.RawIOBase, io.BytesIO(content))), path) as file:
            while (length := _length(file.read)) >= 0:
                key = _exactly(file.read, length)
                if (length := _length(file.read)) < 0:
                    rows.pop(key, None)
                else:
                    rows[key] = _exactly(file.read, length)
    except (OSError, EOFError, ValueError) as error:
        if isinstance(error, WrongUsage):
            raise
        raise DamagedCheckpoint(path, f"it is cut off or damaged ({error})") from error


def _length(read: Callable[[int], bytes]) -> int:
    length = int(_INT.unpack(_exactly(read, _INT.size))[0])
    if not -1 <= length <= _MOST:
        raise ValueError("it has a row of an impossible length")
    return length


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    content = read(size)
    if len(content) < size:
        raise EOFError("a row is not whole")
    return content
