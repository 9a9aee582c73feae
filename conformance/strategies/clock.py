"""The approximate watermark of a trace, used to choose event times close to it, where behaviour changes.

It need not be exact: it only selects interesting instants and never becomes an expectation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from conformance.core.spark_types import DataType
from conformance.core.values import canonical
from conformance.strategies.delays import Scale
from conformance.strategies.draft import Stream

Json: TypeAlias = Any

MILLISECOND_US = 1_000
_TIMESTAMP = DataType("timestamp")


class Clock:
    """Event times and watermarks of a trace, in µs.

    Args:
        streams: the streams with rows.
        spans_us: window sizes, gaps and intervals of the query.
        scale: the unit of the case.
        start_us: the time of the first rows.
        max_policy: whether the policy for several watermarks is ``max``.
    """

    def __init__(
        self,
        streams: Mapping[str, Stream],
        spans_us: Iterable[int],
        scale: Scale,
        start_us: int,
        *,
        max_policy: bool = False,
    ) -> None:
        self._streams = streams
        self._spans_us = tuple(dict.fromkeys(spans_us))
        self._scale_us = scale.us
        self._start_us = start_us
        self._policy = max if max_policy else min
        self._highest: dict[str, int] = {}
        self._used: dict[int, None] = {}
        self.before_us = 0
        self.watermark_us = 0

    def add(self, arrival: Mapping[str, Json]) -> None:
        """Add the rows of one micro-batch."""
        for name, rows in arrival.items():
            stream = self._streams[name]
            place = list(stream.columns).index(stream.time)
            for row in rows_of(rows):
                if row[place] is not None:
                    at = int(canonical(row[place], _TIMESTAMP))
                    self._used[at] = None
                    self._highest[name] = max(at, self._highest.get(name, at))

    def finish_batch(self) -> None:
        """Advance the watermark at the end of a micro-batch."""
        inputs = [
            (self._highest[name] - stream.delay_us) // MILLISECOND_US * MILLISECOND_US if name in self._highest else 0
            for name, stream in self._streams.items()
            if stream.delay_us is not None
        ]
        if inputs:
            self.before_us, self.watermark_us = self.watermark_us, max(self.watermark_us, self._policy(inputs))

    def anchors(self, stream: str) -> list[int]:
        """Instants at which behaviour may change, the most likely first."""
        return list(dict.fromkeys(self._anchors(stream)))

    def _anchors(self, stream: str) -> Iterator[int]:
        yield self.watermark_us or self._start_us
        for span in self._spans_us:
            # The window that contains the watermark, and times near the boundaries of windows that just closed.
            yield self.watermark_us // span * span
            yield self.watermark_us // span * span + span
            yield self.watermark_us - span
            yield self.watermark_us + span
        yield self.before_us or self._start_us
        own = self._streams[stream]
        if stream in self._highest and own.delay_us is not None:
            yield self._highest[stream] - own.delay_us
        for at in [*self._used][-4:]:
            yield at
            for span in self._spans_us:
                yield at + span
                yield at - span

    def ahead(self, stream: str) -> list[int]:
        """Instants that advance the watermark, usually past a boundary."""
        own = self._streams[stream]
        highest = max(self._highest.values(), default=self._start_us)
        delay = own.delay_us or 0
        steps = [self._scale_us, *self._spans_us, delay + self._scale_us, *(span + delay for span in self._spans_us)]
        return [self._start_us, *(highest + step for step in dict.fromkeys(steps))]

    @property
    def used(self) -> list[int]:
        """Every instant so far, in order."""
        return list(self._used)


def rows_of(arriving: Json) -> Iterator[list[Json]]:
    """The rows of an arrival, in all partitions."""
    if isinstance(arriving, Mapping):
        for partition in arriving["partitions"]:
            yield from partition
    else:
        yield from arriving
