"""The named stateful processors of the case language, for ``transformWithState``, the same on every version.

``transformWithState: {by: [k], with: count_until_watermark, timeMode: EventTime}`` uses the processor of that name. They process
pandas frames, which the API calls ``transformWithStateInPandas``. The event time is the first TIMESTAMP column of the input; only the
first grouping column is emitted, as a string. The methods and their arguments are those of ``StatefulProcessor``.
"""

# ruff: noqa: ARG002, N802, N803

from __future__ import annotations

from typing import Any, Iterator

from .origin import own_failures_marked
from .state_functions import latest_ms

try:
    from pyspark.sql.streaming import StatefulProcessor
except ImportError:  # before 4.0
    StatefulProcessor = object


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
        for frame in rows:
            self._add(len(frame), latest_ms(frame))
        return iter(())

    @own_failures_marked
    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
        # On 4.0 the optimizer may have removed all but the grouping columns (SPARK-52195).
        numbers = initialState.select_dtypes(include=["number"])
        counts = numbers.iloc[:, 0].dropna() if numbers.shape[1] else None
        if counts is not None and len(counts):
            self._add(int(counts.sum()), latest_ms(initialState))

    @own_failures_marked
    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        import pandas as pd

        count, _ = self._counted.get()
        self._counted.clear()
        yield pd.DataFrame(
            {
                "key": [str(key[0])],
                "event_time": pd.to_datetime([expiredTimerInfo.getExpiryTimeInMs()], unit="ms"),
                "count": [count],
                "watermark": [timerValues.getCurrentWatermarkInMs()],
            }
        )

    def close(self) -> None:
        pass

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
    hours_back = 0

    @own_failures_marked
    def init(self, handle: Any) -> None:
        self._count = handle.getValueState("count", "count BIGINT")

    @own_failures_marked
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        import pandas as pd

        count = self._count.get()[0] if self._count.exists() else 0
        for frame in rows:
            times = frame.select_dtypes(include=["datetime"]).iloc[:, 0].sort_values()
            times = times.array - pd.Timedelta(hours=self.hours_back)
            numbers = list(range(count + 1, count + len(frame) + 1))
            count += len(frame)
            yield pd.DataFrame({"key": str(key[0]), "event_time": times, "number": numbers})
        self._count.update((count,))

    def close(self) -> None:
        pass


class NumberRowsAnHourBack(NumberRows):
    """Like ``number_rows``, but emits each event time one hour too early."""

    hours_back = 1


STATEFUL_PROCESSORS: dict[str, Any] = {
    "count_until_watermark": CountUntilWatermark,
    "number_rows": NumberRows,
    "number_rows_an_hour_back": NumberRowsAnHourBack,
}
