"""The rows that wait in the state of a checkpoint, by operator: how many, their event times, and which the next watermark releases.

The files of HDFS-backed stores are read without Spark; of others, Spark's own reader of the state can be asked. Source:
``HDFSBackedStateStoreProvider``, ``UnsafeRow``, ``StateDataSource``, and of what a watermark removes ``WatermarkSupport``,
``BaseStreamingDeduplicateExec`` and ``SymmetricHashJoinStateManager`` of Spark.
"""

from __future__ import annotations

import io
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Final, Literal, TypeAlias, cast

from conformance.checkpoints.checkpoint import Checkpoint
from conformance.checkpoints.files import DamagedCheckpoint, Files, NoSuchCheckpoint
from conformance.checkpoints.state import JOIN, VERSION, StateOperator, StateSchema, store_of
from conformance.core.errors import WrongUsage
from conformance.core.unpacking import unpacked

Times: TypeAlias = Literal["none", "not known", "event time", "window", "expiry", "timeout", "timer"]
"""What the time of a row is: none if no column has the watermark, not known without a schema."""
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct("<q")
_PACKED: Final = (b"LZ4Block", b"\x28\xb5\x2f\xfd")
"""How a file begins that the codecs lz4 and zstd wrote."""
_MOST: Final = 1 << 30
"""Bytes that a file may unpack to."""
_ROWS_OF_A_JOIN: Final = "-keyWithIndexToValue"
_CHECKSUMS: Final = "spark.sql.streaming.stateStore.rowChecksum.enabled"
_CODEC: Final = "spark.sql.streaming.stateStore.compression.codec"
_NEVER: Final = -(1 << 62)
"""In microseconds: no row has such a time."""
_OF_SPARK: Final[dict[str, Times]] = {"expiresAtMicros": "expiry", "timeoutTimestamp": "timeout"}
"""Spark's own columns with a time. A timeout is in milliseconds, -1 if there is none."""
_OF_A_FUNCTION: Final = "groupState"
"""The column with the state of a function."""


@dataclass(frozen=True)
class TimesInState:
    """The rows of a store, or of one side of a join."""

    name: str
    """``default``, ``left`` or ``right``; of ``transformWithState`` the name of a variable, or ``timers``."""
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
    keys: int | None = None
    """How many keys have such a variable, or timers."""


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

    @property
    def keeps_variables(self) -> bool:
        return any(store.keys is not None for store in self.stores)


@dataclass(frozen=True)
class StateRead:
    """What Spark's own reader is asked of a store, or of one side of a join."""

    options: Mapping[str, str]
    expressions: tuple[str, ...]
    """Aggregates over all rows."""


SparkReader: TypeAlias = Callable[[Files, Checkpoint, Sequence[StateRead]], Sequence[Sequence[int | None]]]
"""Answers with the values of the expressions of each; raises NoSuchCheckpoint if Spark does not read the state."""


def rows_in_state(files: Files, checkpoint: Checkpoint, spark: SparkReader | None = None) -> Iterator[OperatorRows]:
    """Yield what waits in each operator; what cannot be read says so, and is never counted in part.

    ``spark``: is asked of the operators whose files are not read here.
    """
    for operator in checkpoint.operators:
        stores: list[TimesInState] = []
        asked = spark if (foreign := _foreign(checkpoint, operator)) else None
        by_spark = f"{foreign}, which --spark 4.3 reads" if foreign and not asked else ""
        unread = _unread(checkpoint, operator) or by_spark
        try:
            stores += () if unread else _stores(files, checkpoint, operator, asked)
        except (DamagedCheckpoint, NoSuchCheckpoint) as error:
            unread = str(error)
        except (struct.error, IndexError):
            unread = f"state/{operator.number}: a row does not fit the schema"
        yield OperatorRows(operator.number, operator.name, () if unread else tuple(stores), unread)


def _unread(checkpoint: Checkpoint, operator: StateOperator) -> str:
    """Which file of an operator is missing, if one is."""
    folder = PurePosixPath("state", str(operator.number))
    return next((str(each) for each in checkpoint.missing if each.path.is_relative_to(folder)), "")


def _foreign(checkpoint: Checkpoint, operator: StateOperator) -> str:
    """Why the files of an operator are not read here."""
    providers = sorted({store.provider for store in operator.stores})
    codec = checkpoint.settings.get(_CODEC, "lz4")
    if providers != ["HDFS"]:
        return f"its state store is {', '.join(providers)}"
    if checkpoint.settings.get(_CHECKSUMS) == "true":
        return f"each row has a checksum ({_CHECKSUMS})"
    return "" if re.search("lz4|zstd", codec.lower()) else f"its files are of the codec {codec}"


def _stores(
    files: Files, checkpoint: Checkpoint, operator: StateOperator, spark: SparkReader | None
) -> Iterator[TimesInState]:
    planned, committed = checkpoint.planned, checkpoint.committed
    ran_with = planned.watermark_ms if planned and committed and planned.batch == committed.batch else 0
    if spark is not None and operator.variables:
        yield from _variables(files, checkpoint, operator, spark)
        return
    is_join = operator.name == JOIN
    # Spark compares microseconds with a watermark in milliseconds; 0 is none. That of a join alone releases no row.
    bounds = [1000 * mark or _NEVER for mark in ((0, 0) if is_join else (checkpoint.watermark_ms, ran_with))]
    suffix = _ROWS_OF_A_JOIN if is_join else ""
    named = [(store.name, store.schemas) for store in operator.stores]
    named += [(schema.family, (schema,)) for schema in operator.schemas if is_join]  # of a join in one store
    kinds = {name.removesuffix(suffix): schemas for name, schemas in named if name.endswith(suffix)}
    if not kinds:
        raise DamagedCheckpoint(PurePosixPath("state", str(operator.number)), "no store is of a kind that is known")
    columns = [next(filter(None, map(_Column.of, schemas)), None) for schemas in kinds.values()]
    sums: Iterable[Sequence[int | None]]
    if spark is None:
        stored = (_rows(files, checkpoint, operator.number, name + suffix) for name in kinds)
        sums = map(partial(_sums, bounds), columns, stored)
    else:
        where = {"operatorId": str(operator.number), "batchId": str(checkpoint.state_version - 1)}
        sides = ({"joinSide": name} if is_join else {} for name in kinds)
        asked = map(partial(_expressions, bounds), columns)
        sums = spark(files, checkpoint, [*map(StateRead, ({**where, **side} for side in sides), asked)])
    for (name, schemas), column, of_kind in zip(kinds.items(), columns, sums, strict=True):
        rows, *of_times = [number or 0 for number in of_kind]
        if column is None:
            yield TimesInState(name, rows, "none" if schemas else "not known")
            continue
        timed, oldest, newest, windows, overdue, released = of_times
        oldest_ms, newest_ms = (oldest // 1000, -(-newest // 1000)) if timed else (None, None)
        count = windows if column.times == "window" else None
        decided = None if is_join or column.times == "timeout" else released
        yield TimesInState(name, rows, column.times, count, oldest_ms, newest_ms, rows - timed, decided, overdue)


def _variables(
    files: Files, checkpoint: Checkpoint, operator: StateOperator, spark: SparkReader
) -> Iterator[TimesInState]:
    """Yield the rows of each variable of ``transformWithState``, then its timers, which fire when the watermark reaches them."""
    where = {"operatorId": str(operator.number), "batchId": str(checkpoint.state_version - 1)}
    time, counts = "expiration_timestamp_ms", ("count(*)", "count(DISTINCT key)")
    of_timers = (f"min({time})", f"max({time})", f"count_if({time} <= {checkpoint.watermark_ms or 0})")
    names = sorted(operator.variables, key=lambda name: name.startswith("$"))
    asks = [{"readRegisteredTimers": "true"} if name.startswith("$") else {"stateVarName": name} for name in names]
    reads = [StateRead(where | ask, (*counts, *(() if "stateVarName" in ask else of_timers))) for ask in asks]
    for name, (rows, keys, *times) in zip(names, spark(files, checkpoint, reads), strict=True):
        oldest, newest, fire = times or (None, None, None)
        released = fire if name.startswith("$event") else None
        shown, kind = (name, "none") if not times else ("timers", "timer")
        yield TimesInState(shown, rows or 0, cast(Times, kind), None, oldest, newest, released=released, keys=keys)


def _expressions(bounds: Sequence[int], column: _Column | None) -> tuple[str, ...]:
    """What Spark's own reader is asked to get what `_sums` returns."""
    if column is None:
        return ("count(*)",)
    (start, end), (next_us, last_us) = column.moments, bounds
    times = f"count({end})", f"min({start})", f"max({end})", f"count(DISTINCT {start}, {end})"
    return "count(*)", *times, f"count_if({end} <= {last_us})", f"count_if({end} > {last_us} AND {end} <= {next_us})"


def _sums(bounds: Sequence[int], column: _Column | None, rows: Iterable[tuple[bytes, bytes]]) -> Sequence[int | None]:
    """How many rows there are and how many with a time, the first and the last moment, and how many windows, and rows that are overdue
    and that the next micro-batch releases; ``bounds``: the watermarks of the next micro-batch and of the last, in microseconds."""
    if column is None:
        return (sum(1 for _ in rows),)
    next_us, last_us = bounds
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
    return timed + untimed, timed, oldest, newest, len(windows), overdue, released


@dataclass(frozen=True)
class _Column:
    """The column of a row of state that has its time."""

    times: Times
    in_value: bool
    width: int
    """How many columns the key, or the value, has."""
    at: int
    name: str

    @property
    def moments(self) -> tuple[str, str]:
        """The first and the last moment of a row, in microseconds, as expressions of Spark's own reader."""
        quoted = self.name.replace("`", "``")
        path = f"{'value' if self.in_value else 'key'}.`{quoted}`"
        if self.times == "window":
            return f"unix_micros({path}.start)", f"unix_micros({path}.end)"
        whole = {"expiry": path, "timeout": f"if({path} < 0, NULL, 1000 * {path})"}
        return (whole.get(self.times, f"unix_micros({path})"),) * 2

    @classmethod
    def of(cls, schema: StateSchema) -> _Column | None:
        # The value first: state of functions is released by its timeout only, whatever its key is.
        for in_value, fields in ((True, schema.value), (False, schema.key)):
            top = [field for field in fields if len(field.at) == 1]
            for at, field in enumerate(top):
                times: Times | None = _OF_SPARK.get(field.name) if in_value else None
                # In 3.1, the schema of a deduplication gives the value, which is empty, the columns of its input.
                if field.has_watermark and not (in_value and field.name in {each.name for each in schema.key}):
                    inner = [each.name.removeprefix(field.name) for each in fields if each.at[:-1] == (at,)]
                    times = {"": "event time", ".start.end": "window"}.get("".join(inner))  # type: ignore[assignment]
                if times is not None:
                    return cls(times, in_value, len(top), at, field.name)
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
