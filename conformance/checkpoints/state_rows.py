"""The rows that wait in the state of a checkpoint, by operator: how many, their event times, and which the next watermark releases.

Only the files of HDFS-backed stores are read, without Spark. Source: ``HDFSBackedStateStoreProvider``, ``UnsafeRow``, and of what a
watermark removes ``WatermarkSupport``, ``BaseStreamingDeduplicateExec`` and ``SymmetricHashJoinStateManager`` of Spark.
"""

from __future__ import annotations

import io
import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Literal, TypeAlias, cast

from conformance.checkpoints.checkpoint import Checkpoint
from conformance.checkpoints.files import DamagedCheckpoint, Files, NoSuchCheckpoint
from conformance.checkpoints.state import JOIN, VERSION, StateOperator, StateSchema, store_of
from conformance.core.errors import WrongUsage
from conformance.core.unpacking import unpacked

Times: TypeAlias = Literal["none", "not known", "event time", "window", "expiry", "timeout"]
"""What the time of a row is: none if no column has the watermark, not known without a schema."""
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct("<q")
_PACKED: Final = (b"LZ4Block", b"\x28\xb5\x2f\xfd")
"""How a file begins that the codecs lz4 and zstd wrote."""
_MOST: Final = 1 << 30
"""Bytes that a file may unpack to."""
_ROWS_OF_A_JOIN: Final = "-keyWithIndexToValue"
_CHECKSUMS: Final = "spark.sql.streaming.stateStore.rowChecksum.enabled"
_OF_SPARK: Final[dict[str, Times]] = {"expiresAtMicros": "expiry", "timeoutTimestamp": "timeout"}
"""Spark's own columns with a time. A timeout is in milliseconds, -1 if there is none."""
_OF_A_FUNCTION: Final = "groupState"
"""The column with the state of a function."""


@dataclass(frozen=True)
class TimesInState:
    """The rows of a store, or of one side of a join."""

    name: str
    """``default``, ``left`` or ``right``."""
    rows: int
    times: Times
    windows: int | None = None
    oldest_ms: int | None = None
    """None if no row has a time."""
    newest_ms: int | None = None
    untimed: int = 0
    """Rows whose event time is null, or that have no timeout."""
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

    @property
    def rows(self) -> int | None:
        return None if self.unread else sum(store.rows for store in self.stores)


def rows_in_state(files: Files, checkpoint: Checkpoint) -> Iterator[OperatorRows]:
    """Yield what waits in each operator; what cannot be read says so, and is never counted in part."""
    for operator in checkpoint.operators:
        stores: list[TimesInState] = []
        unread = _unread(checkpoint, operator)
        try:
            stores += () if unread else _stores(files, checkpoint, operator)
        except (DamagedCheckpoint, NoSuchCheckpoint) as error:
            unread = str(error)
        except (struct.error, IndexError):
            unread = f"state/{operator.number}: a row does not fit the schema"
        yield OperatorRows(operator.number, operator.name, () if unread else tuple(stores), unread)


def _unread(checkpoint: Checkpoint, operator: StateOperator) -> str:
    folder = PurePosixPath("state", str(operator.number))
    lacking = next((str(each) for each in checkpoint.missing if each.path.is_relative_to(folder)), "")
    providers = sorted({store.provider for store in operator.stores})
    how = ', which Spark 4 reads: spark.read.format("statestore")' if providers == ["RocksDB"] else ""
    other = "" if providers == ["HDFS"] else f"its state store is {', '.join(providers)}{how}"
    checksums = checkpoint.settings.get(_CHECKSUMS) == "true"
    return lacking or other or (f"each row has a checksum ({_CHECKSUMS})" if checksums else "")


def _stores(files: Files, checkpoint: Checkpoint, operator: StateOperator) -> Iterator[TimesInState]:
    planned, committed = checkpoint.planned, checkpoint.committed
    ran_with = planned.watermark_ms if planned and committed and planned.batch == committed.batch else 0
    for store in operator.stores:
        if operator.name != JOIN or store.name.endswith(_ROWS_OF_A_JOIN):
            watermarks = None if operator.name == JOIN else (checkpoint.watermark_ms, ran_with)
            rows = _rows(files, checkpoint, operator.number, store.name)
            yield _times(store.name.removesuffix(_ROWS_OF_A_JOIN), rows, store.schemas, watermarks)


def _times(
    name: str,
    rows: Iterator[tuple[bytes, bytes]],
    schemas: tuple[StateSchema, ...],
    watermarks: tuple[int, int] | None,
) -> TimesInState:
    """Return the times of rows; ``watermarks``: of the next micro-batch and of the last, if they alone release rows."""
    column = next(filter(None, map(_Column.of, schemas)), None)
    if column is None:
        return TimesInState(name, sum(1 for _ in rows), "none" if schemas else "not known")
    # Spark compares microseconds with a watermark in milliseconds; 0 is none.
    next_us, last_us = (1000 * mark or -(1 << 63) for mark in watermarks or (0, 0))
    windows = set[tuple[int, int]]()
    timed = untimed = released = overdue = 0
    oldest, newest = 1 << 63, -(1 << 63)
    for row in rows:
        if (of_row := column.read(row)) is None:
            untimed += 1
            continue
        timed += 1
        oldest, newest = min(oldest, of_row[0]), max(newest, of_row[1])
        overdue += of_row[1] <= last_us
        released += last_us < of_row[1] <= next_us
        if column.times == "window":
            windows.add(of_row)
    oldest_ms, newest_ms = (oldest // 1000, -(-newest // 1000)) if timed else (None, None)
    count = len(windows) if column.times == "window" else None
    decided = released if watermarks is not None and column.times != "timeout" else None
    return TimesInState(
        name, timed + untimed, column.times, count, oldest_ms, newest_ms, untimed, decided, overdue if watermarks else 0
    )


@dataclass(frozen=True)
class _Column:
    """The column of a row of state that has its time."""

    times: Times
    in_value: bool
    width: int
    """How many columns the key, or the value, has."""
    at: int

    @classmethod
    def of(cls, schema: StateSchema) -> _Column | None:
        # The value first: state of functions is released by its timeout only, whatever its key is.
        for in_value, fields in ((True, schema.value), (False, schema.key)):
            top = [field for field in fields if len(field.at) == 1]
            for at, field in enumerate(top):
                times: Times | None = _OF_SPARK.get(field.name) if in_value else None
                if field.has_watermark:
                    inner = [each.name.removeprefix(field.name) for each in fields if each.at[:-1] == (at,)]
                    times = {"": "event time", ".start.end": "window"}.get("".join(inner))  # type: ignore[assignment]
                if times is not None:
                    return cls(times, in_value, len(top), at)
            if in_value and top[:1] and top[0].name == _OF_A_FUNCTION:
                return None
        return None

    def read(self, row: tuple[bytes, bytes]) -> tuple[int, int] | None:
        """Return the first and the last moment of a row, in microseconds; None if it has none."""
        content = row[self.in_value]
        value = _long(content, self.width, self.at)
        if value is None or (self.times == "timeout" and value < 0):
            return None
        if self.times != "window":
            return (value * (1000 if self.times == "timeout" else 1),) * 2
        # A nested row: where it begins, and its length.
        window = content[value >> 32 :][: value & 0xFFFFFFFF]
        start, end = _long(window, 2, 0), _long(window, 2, 1)
        return None if start is None or end is None else (start, end)


def _long(row: bytes, width: int, at: int) -> int | None:
    """Return a fixed column of an ``UnsafeRow``: a bit for each null, in words of 8 bytes, then 8 bytes for each column."""
    if row[at >> 3] >> (at & 7) & 1:
        return None
    return int(_LONG.unpack_from(row, (width + 63) // 64 * 8 + at * 8)[0])


def _rows(files: Files, checkpoint: Checkpoint, operator: int, store: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows of a store, one partition after the other."""
    kept: defaultdict[int, dict[tuple[str, int], PurePosixPath]] = defaultdict(dict)
    for path in files.sizes:
        if path.parts[:2] == ("state", str(operator)) and path.parts[2].isdecimal() and store_of(path) == store:
            of_partition, version = kept[int(path.parts[2])], VERSION.fullmatch(path.name)
            if version and not version[2] and int(version[1]) <= checkpoint.state_version:
                of_partition[version[3], int(version[1])] = path
    for partition, there in sorted(kept.items()):
        if checkpoint.partitions is not None and partition >= checkpoint.partitions:
            continue  # of before a repartition
        base = max((at for kind, at in there if kind == "snapshot"), default=0)
        rows: dict[bytes, bytes] = {}
        for at in range(max(base, 1), checkpoint.state_version + 1):
            kind = "snapshot" if at == base else "delta"
            if (changes := there.get((kind, at))) is None:
                raise DamagedCheckpoint(PurePosixPath("state", str(operator)), f"a partition has no file {at}.{kind}")
            _apply(rows, changes, files.read(changes))
        yield from rows.items()


def _apply(rows: dict[bytes, bytes], path: PurePosixPath, content: bytes) -> None:
    """Apply the changes that a file holds: a key, then a value or a removal, each after its length; a length of -1 ends it."""
    if not content.startswith(_PACKED):
        raise DamagedCheckpoint(path, "it is damaged, or of a codec other than lz4 and zstd, which is not read")
    try:
        with unpacked(io.BufferedReader(cast(io.RawIOBase, io.BytesIO(content))), path) as file:
            data, at = file.read(_MOST), 0
            if len(data) == _MOST:
                raise ValueError(f"it unpacks to more than {_MOST // 1024**2} MiB")
        # A row that is cut off leaves no length after it.
        while (length := _INT.unpack_from(data, at)[0]) >= 0:
            begin = at + 4 + length
            key, (size,), at = data[at + 4 : begin], _INT.unpack_from(data, begin), begin + 4
            if size < 0:
                rows.pop(key, None)
            else:
                rows[key], at = data[at : at + size], at + size
    except (OSError, EOFError, ValueError, struct.error) as error:
        if isinstance(error, WrongUsage):
            raise
        raise DamagedCheckpoint(path, f"it is cut off or damaged ({error})") from error
