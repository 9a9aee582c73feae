"""The trigger of a query: ``default``, ``once``, ``availableNow`` or ``realTime``."""

from __future__ import annotations

from functools import partial
from typing import Any

from .origin import check_argument

REAL_TIME = "realTime"
_DURATION = "5 minutes"
"""The longest that a real-time micro-batch lasts, Spark's default. One that reads from memory ends when no rows are left."""


def check_trigger(name: str) -> None:
    """Before the query is built, because a release without real-time mode has no source for it either.

    Raises:
        MissingName: this release has no real-time trigger (Python before 4.2).
    """
    if name == REAL_TIME:
        from pyspark.sql.streaming import DataStreamWriter

        check_argument(partial(DataStreamWriter.trigger, None), name)


def triggered(writer: Any, name: str) -> Any:
    """The ``DataStreamWriter`` with this trigger.

    Raises:
        MissingName: this release does not have the trigger (``availableNow`` before 3.3).
    """
    if name == "default":
        return writer
    check_argument(writer.trigger, name)
    return writer.trigger(**{name: _DURATION if name == REAL_TIME else True})
