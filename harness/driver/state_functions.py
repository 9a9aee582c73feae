"""The named state functions and stateful processors of the case language, the same on every version.

``applyInPandasWithState: {by: [k], with: count_until_watermark, timeout: EventTimeTimeout}`` calls the function of that name.
``transformWithState: {by: [k], with: count_until_watermark, timeMode: EventTime}`` uses the processor of that name. Each exists twice: over
pandas frames, for ``transformWithStateInPandas``, and over rows, for ``transformWithState``. The event time is the first TIMESTAMP column
of the input; only the first grouping column is emitted, as a string. The methods and their arguments are those of ``StatefulProcessor``.
"""

# ruff: noqa: ARG002, N802, N803

from __future__ import annotations

import importlib
import re
import sys
from datetime import datetime, timedelta, timezone
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from .errors import DriverFailure, FailureReason, own_failures_marked


class NamedStateFunction(NamedTuple):
    """A function for ``applyInPandasWithState``, and the DDL of its output and state."""

    function: Any
    emits: str
    keeps: str


@own_failures_marked
def count_until_watermark(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """Count a group's rows until the watermark has passed its latest event time, then emit the count and forget the group.

    The event time is the first TIMESTAMP column. Emits (key, count, watermark): the first grouping column as a string, the number of
    rows, and the watermark in ms at that call.
    """
    yield from _count_until_watermark(key, frames, state, state.setTimeoutTimestamp)


@own_failures_marked
def count_until_watermark_by_datetime(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """Like ``count_until_watermark``, but passes the timeout as a ``datetime``, which the API allows too."""
    yield from _count_until_watermark(
        key, frames, state, lambda ms: state.setTimeoutTimestamp(datetime.fromtimestamp(ms / 1000))
    )


@own_failures_marked
def count_until_silent_for_ten_seconds(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """Emit (key, count) and forget a group once no row of it has come for ten seconds of processing time; the key as a string."""
    import pandas as pd

    if state.hasTimedOut:
        (count,) = state.get
        state.remove()
        yield pd.DataFrame({"key": [str(key[0])], "count": [count]})
        return
    state.update(((state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames),))
    state.setTimeoutDuration(10000)


@own_failures_marked
def count_rows(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """Emit (key, running count) whenever rows of a group arrive; the key may be null. No timeout, and no look at the watermark."""
    import pandas as pd

    count = (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)
    state.update((count,))
    yield pd.DataFrame({"key": [key[0]], "count": [count]})


@own_failures_marked
def time_out_at_latest(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """Set the timeout to the latest event time of the new rows, wherever the watermark is; when it fires, emit (key, watermark in ms)."""
    import pandas as pd

    if state.hasTimedOut:
        state.remove()
        yield pd.DataFrame({"key": [str(key[0])], "watermark": [state.getCurrentWatermarkMs()]})
        return
    state.update((0,))
    state.setTimeoutTimestamp(max(latest_ms(frame) for frame in frames))


def _count_until_watermark(key: tuple[Any, ...], frames: Iterator[Any], state: Any, time_out_at: Any) -> Iterator[Any]:
    import pandas as pd

    def settled(count: int) -> Any:
        state.remove()
        return pd.DataFrame({"key": [str(key[0])], "count": [count], "watermark": [state.getCurrentWatermarkMs()]})

    if state.hasTimedOut:
        yield settled(state.get[0])
        return
    count, latest = state.get if state.exists else (0, 0)
    for frame in frames:
        count += len(frame)
        latest = max(latest, latest_ms(frame))
    if latest <= state.getCurrentWatermarkMs():
        yield settled(count)
        return
    state.update((count, latest))
    time_out_at(latest)


def latest_ms(frame: Any) -> int:
    """The latest event time of the first TIMESTAMP column in ms, 0 if all are null."""
    times = frame.select_dtypes(include=["datetime"]).iloc[:, 0].dropna()
    return int(times.max().value // 1000000) if len(times) else 0


STATE_FUNCTIONS = {
    "count_until_watermark": NamedStateFunction(
        count_until_watermark, emits="key STRING, count BIGINT, watermark BIGINT", keeps="count BIGINT, latest BIGINT"
    ),
    "count_until_watermark_by_datetime": NamedStateFunction(
        count_until_watermark_by_datetime,
        emits="key STRING, count BIGINT, watermark BIGINT",
        keeps="count BIGINT, latest BIGINT",
    ),
    "count_until_silent_for_ten_seconds": NamedStateFunction(
        count_until_silent_for_ten_seconds, emits="key STRING, count BIGINT", keeps="count BIGINT"
    ),
    "count_rows": NamedStateFunction(count_rows, emits="key STRING, count BIGINT", keeps="count BIGINT"),
    "time_out_at_latest": NamedStateFunction(
        time_out_at_latest, emits="key STRING, watermark BIGINT", keeps="nothing BIGINT"
    ),
}


def check_packages(*more: str) -> None:
    """Raise ``DriverFailure`` if pandas, pyarrow or one of ``more`` cannot be imported here."""
    try:
        for name in ("pandas", "pyarrow", *more):
            importlib.import_module(name)
    except ImportError as error:
        why = "state functions need packages that the engine's Python lacks ({}): {} -m pip install pandas pyarrow protobuf"
        raise DriverFailure(why.format(error, sys.executable), FailureReason.PACKAGES_MISSING) from error


try:
    from pyspark.sql.streaming import StatefulProcessor
except ImportError:  # before 4.0
    StatefulProcessor = object

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class CountUntilWatermark(StatefulProcessor):  # type: ignore[misc, unused-ignore]
    """Count a group's rows; once the watermark has reached their latest event time, emit the count and forget the group.

    The timer is set to the latest event time. When it fires, the processor emits the key, the time of the timer, the number of rows, and
    the watermark in ms. An initial state has an integer, the count, and a TIMESTAMP.
    """

    emits = "key STRING, event_time TIMESTAMP, count BIGINT, watermark BIGINT"

    @own_failures_marked
    def init(self, handle: Any) -> None:
        self._handle = handle
        self._counted = handle.getValueState("counted", "count BIGINT, latest BIGINT")

    @own_failures_marked
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for count, latest in self._arrived(rows):
            self._add(count, latest)
        return iter(())

    @own_failures_marked
    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
        initial = self._initial(initialState)
        if initial is not None:
            self._add(*initial)

    @own_failures_marked
    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        count, _ = self._counted.get()
        self._counted.clear()
        yield self._emitted(
            str(key[0]), expiredTimerInfo.getExpiryTimeInMs(), count, timerValues.getCurrentWatermarkInMs()
        )

    def close(self) -> None:
        pass

    def _arrived(self, frames: Iterator[Any]) -> Iterator[Tuple[int, int]]:
        """How many rows arrived, and their latest event time in ms."""
        return ((len(frame), latest_ms(frame)) for frame in frames)

    def _initial(self, frame: Any) -> Optional[Tuple[int, int]]:
        """Count and latest event time in ms of an initial state; None without a count."""
        # On 4.0 the optimizer may have removed all but the grouping columns (SPARK-52195).
        numbers = frame.select_dtypes(include=["number"])
        counts = numbers.iloc[:, 0].dropna() if numbers.shape[1] else None
        return (int(counts.sum()), latest_ms(frame)) if counts is not None and len(counts) else None

    def _emitted(self, key: str, timer_ms: int, count: int, watermark_ms: int) -> Any:
        import pandas as pd

        time = pd.to_datetime([timer_ms], unit="ms")
        return pd.DataFrame({"key": [key], "event_time": time, "count": [count], "watermark": [watermark_ms]})

    def _add(self, rows: int, latest: int) -> None:
        count, before = self._counted.get() if self._counted.exists() else (0, None)
        if before is None or latest > before:
            if before is not None:
                self._handle.deleteTimer(before)
            self._handle.registerTimer(latest)
            before = latest
        self._counted.update((count + rows, before))


class NumberRows(StatefulProcessor):  # type: ignore[misc, unused-ignore]
    """Emit every row's key and event time as soon as it arrives, with its number within the group, from 1."""

    emits = "key STRING, event_time TIMESTAMP, number BIGINT"

    def __init__(self, hours_back: int = 0, ttl_ms: Optional[int] = None, keeps: str = "count BIGINT") -> None:
        """
        ``hours_back``: how much too early each event time is emitted; ``ttl_ms``: how long a number that no row updates is kept, in
        processing time, for ever without it; ``keeps``: the columns of the state, of which ``count`` has the number, or the first if none
        has that name, and the others are null.
        """
        self._hours_back = hours_back
        self._ttl_ms = ttl_ms
        self._keeps = keeps
        names = re.findall(r"(?:^|,)\s*(\w+)\s+[A-Za-z]", keeps)
        self._columns = len(names)
        self._at = names.index("count") if "count" in names else 0

    def keeping(self, ddl: str) -> NumberRows:
        """The same with other columns of the state."""
        return type(self)(self._hours_back, self._ttl_ms, ddl)

    @own_failures_marked
    def init(self, handle: Any) -> None:
        self._count = handle.getValueState("count", self._keeps, self._ttl_ms)

    @own_failures_marked
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        count = (self._count.get()[self._at] if self._count.exists() else None) or 0
        for arrived, emitted in self._numbered(str(key[0]), rows, count):
            count += arrived
            yield from emitted
        self._count.update(tuple(count if at == self._at else None for at in range(self._columns)))

    def close(self) -> None:
        pass

    def _numbered(self, key: str, frames: Iterator[Any], count: int) -> Iterator[Tuple[int, List[Any]]]:
        """For each frame how many rows it has, and what is emitted for them. ``count``: the rows before."""
        import pandas as pd

        for frame in frames:
            times = frame.select_dtypes(include=["datetime"]).iloc[:, 0].sort_values()
            times = times.array - pd.Timedelta(hours=self._hours_back)
            numbers = list(range(count + 1, count + len(frame) + 1))
            count += len(frame)
            yield len(frame), [pd.DataFrame({"key": key, "event_time": times, "number": numbers})]


def _by_name(counts: type, numbers: type) -> dict[str, Any]:
    """The processors by the name in ``transformWithState: {with: …}``."""
    return {
        "count_until_watermark": counts(),
        "number_rows": numbers(),
        "number_rows_an_hour_back": numbers(hours_back=1),
        "number_rows_for_a_day": numbers(ttl_ms=24 * 60 * 60 * 1000),
        # Every micro-batch starts from 1.
        "number_rows_for_a_millisecond": numbers(ttl_ms=1),
    }


class CountUntilWatermarkByRows(CountUntilWatermark):
    """``count_until_watermark`` over rows."""

    def _arrived(self, rows: Iterator[Any]) -> Iterator[Tuple[int, int]]:
        return ((1, _latest_ms(row)) for row in rows)

    def _initial(self, row: Any) -> Optional[Tuple[int, int]]:
        counts = [value for value in row if isinstance(value, int) and not isinstance(value, bool)]
        return (counts[0], _latest_ms(row)) if counts else None

    def _emitted(self, key: str, timer_ms: int, count: int, watermark_ms: int) -> Any:
        from pyspark.sql import Row

        time = _EPOCH + timedelta(milliseconds=timer_ms)
        return Row(key=key, event_time=time, count=count, watermark=watermark_ms)


class NumberRowsByRows(NumberRows):
    """``number_rows`` over rows."""

    def _numbered(self, key: str, rows: Iterator[Any], count: int) -> Iterator[Tuple[int, List[Any]]]:
        from pyspark.sql import Row

        times = sorted((_time(row) for row in rows), key=lambda time: (time is None, time or _EPOCH))
        back = timedelta(hours=self._hours_back)
        for number, time in enumerate(times, count + 1):
            yield 1, [Row(key=key, event_time=None if time is None else time - back, number=number)]


def _time(row: Any) -> Optional[datetime]:
    """The event time: the first TIMESTAMP of the row. Null if it has none, because a null has no type."""
    return next((value for value in row if isinstance(value, datetime)), None)


def _latest_ms(row: Any) -> int:
    """The event time in ms, 0 if it is null."""
    time = _time(row)
    if time is None:
        return 0
    # A naive time is in the time zone of this process, as everywhere in PySpark.
    return (time.astimezone(timezone.utc) - _EPOCH) // timedelta(milliseconds=1)


STATEFUL_PROCESSORS = _by_name(CountUntilWatermark, NumberRows)
"""The processors over pandas frames."""
ROW_PROCESSORS = _by_name(CountUntilWatermarkByRows, NumberRowsByRows)
"""The processors over rows: ``inPandas: false``."""
