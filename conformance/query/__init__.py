"""One typed reading of a query, made from its pipeline and SQL or from an engine's plan."""

from collections.abc import Mapping

from conformance.core.operations import Pipeline
from conformance.core.spark_types import Schema
from conformance.query.reading import QueryReading


def read_query(pipeline: Pipeline, streams: Mapping[str, Schema]) -> QueryReading:
    """Read a query; ``streams``: the schemas of the streams that it may read, by name."""
    global _last
    for query, schemas, reading in _last:
        if query is pipeline and schemas is streams:
            return reading
    from conformance.query.reader import Reader  # sqlglot is slow to import, for commands that read no query

    reading = Reader(streams).read(pipeline)
    _last = ((pipeline, streams, reading), *_last[: _KEPT - 1])
    return reading


_KEPT = 4
_last: tuple[tuple[Pipeline, Mapping[str, Schema], QueryReading], ...] = ()
"""What was read last: of a case, several ask one after the other."""
