"""The named stateful processors over rows, for ``transformWithState`` (4.1 and newer), which give the same answers as over pandas."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Iterator, List, Optional, Tuple

from .stateful_processors import (
    CountUntilWatermark,
    NumberRows,
    NumberRowsAnHourBack,
    NumberRowsForADay,
    NumberRowsForAMillisecond,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


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


class _ByRows(NumberRows):
    """``number_rows`` over rows."""

    def _numbered(self, key: str, rows: Iterator[Any], count: int) -> Iterator[Tuple[int, List[Any]]]:
        from pyspark.sql import Row

        times = sorted((_time(row) for row in rows), key=lambda time: (time is None, time or _EPOCH))
        back = timedelta(hours=self.hours_back)
        for number, time in enumerate(times, count + 1):
            yield 1, [Row(key=key, event_time=None if time is None else time - back, number=number)]


class NumberRowsByRows(_ByRows, NumberRows):
    """``number_rows`` over rows."""


class NumberRowsAnHourBackByRows(_ByRows, NumberRowsAnHourBack):
    """``number_rows_an_hour_back`` over rows."""


class NumberRowsForADayByRows(_ByRows, NumberRowsForADay):
    """``number_rows_for_a_day`` over rows."""


class NumberRowsForAMillisecondByRows(_ByRows, NumberRowsForAMillisecond):
    """``number_rows_for_a_millisecond`` over rows."""


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


ROW_PROCESSORS: dict[str, Any] = {
    "count_until_watermark": CountUntilWatermarkByRows,
    "number_rows": NumberRowsByRows,
    "number_rows_an_hour_back": NumberRowsAnHourBackByRows,
    "number_rows_for_a_day": NumberRowsForADayByRows,
    "number_rows_for_a_millisecond": NumberRowsForAMillisecondByRows,
}
"""By the name in ``transformWithState: {with: …, inPandas: false}``."""
