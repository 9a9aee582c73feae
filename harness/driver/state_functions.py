"""The named state functions of the case language, the same on every version.

``applyInPandasWithState: {by: [k], with: count_until_watermark, timeout: EventTimeTimeout}`` calls the function of that name.
"""

from __future__ import annotations

import importlib
import sys
from datetime import datetime
from typing import Any, Iterator, NamedTuple

from .errors import DriverFailure, FailureReason
from .origin import own_failures_marked


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
