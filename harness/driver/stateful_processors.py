"""The named stateful processors of the case language, for ``transformWithState``, the same on every version.

``transformWithState: {by: [k], with: count_until_watermark, timeMode: EventTime}`` uses the processor of that name. Each exists twice: over
pandas frames, for ``transformWithStateInPandas``, and over rows, for ``transformWithState``. The event time is the first TIMESTAMP column
of the input; only the first grouping column is emitted, as a string. The methods and their arguments are those of ``StatefulProcessor``.
"""

# ruff: noqa: ARG002, N802, N803

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any, Iterator, List, Optional, Tuple

from .origin import own_failures_marked
from .state_functions import latest_ms

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
