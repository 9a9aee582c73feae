"""The named state functions of the case language: small, documented, the same on every version.

``applyInPandasWithState: {by: [k], with: count_until_watermark, timeout: EventTimeTimeout}`` calls the function of that name.
"""

from __future__ import annotations

from typing import Any, Iterator


class MissingPackages(Exception):
    """The engine's environment lacks what functions over pandas frames need: nothing Spark could be judged by."""

    def __init__(self, cause: ImportError) -> None:
        super().__init__(
            "applyInPandasWithState needs pandas and pyarrow in the engine's environment ({}): "
            "pip install pandas pyarrow".format(cause)
        )


class StateFunction:
    """A function for ``applyInPandasWithState`` with what it emits and keeps, as DDL."""

    def __init__(self, function: Any, emits: str, keeps: str) -> None:
        self.function = function
        self.emits = emits
        self.keeps = keeps


def count_until_watermark(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """Count a group's rows until the watermark has passed its latest event time, then emit the count and forget the group.

    The event time is the first TIMESTAMP column. What comes out is (key, count, watermark): the first grouping column as a string,
    the rows counted, and the watermark in ms that the function was given when it decided.
    """
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
        times = frame.select_dtypes(include=["datetime"]).iloc[:, 0].dropna()
        if len(times):
            latest = max(latest, int(times.max().value // 1000000))
    if latest <= state.getCurrentWatermarkMs():
        yield settled(count)
        return
    state.update((count, latest))
    state.setTimeoutTimestamp(latest)


STATE_FUNCTIONS = {
    "count_until_watermark": StateFunction(
        count_until_watermark,
        emits="key STRING, count BIGINT, watermark BIGINT",
        keeps="count BIGINT, latest BIGINT",
    ),
}


def check_packages() -> None:
    """
    Raises:
        MissingPackages: pandas or pyarrow cannot be imported here.
    """
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingPackages(error) from error
