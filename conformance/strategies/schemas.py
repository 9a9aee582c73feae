"""Streams and their schemas: a time, a key and a value, in any order, and occasionally an unused column."""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.strategies.delays import Scale
from conformance.strategies.draft import Draft, Kind, Stream

NAMES = ("events", "others", "thirds", "fourths")
"""Stream names of a case, in order."""
_PREFIX = {"events": "event", "others": "other", "thirds": "third", "fourths": "fourth"}
_KINDS: dict[str, Kind] = {"TIMESTAMP": "timestamp", "STRING": "string", "INT": "int"}


def names_of(stream: str) -> tuple[str, str, str]:
    """The time, key and value columns of a stream, named differently in each stream so that joins need no aliases."""
    if stream == NAMES[0]:
        return "event_time", "key", "value"
    prefix = _PREFIX[stream]
    return f"{prefix}_time", f"{prefix}_key", f"{prefix}_value"


@st.composite
def _streams(draw: st.DrawFn, name: str) -> Stream:
    time, key, value = names_of(name)
    columns = [(time, "TIMESTAMP"), (key, "STRING"), (value, "INT")]
    shape = draw(st.sampled_from(("whole", "whole", "whole", "no value", "key first", "second time")))
    if shape == "no value":
        columns.pop()
    elif shape == "key first":
        columns = [columns[1], columns[0], columns[2]]
    elif shape == "second time":
        columns.append((f"{time.removesuffix('_time')}_sent", "TIMESTAMP"))
    return Stream(dict(columns), time)


@st.composite
def sources(draw: st.DrawFn, name: str, scale: Scale) -> Draft:
    """A pipeline that only reads a stream."""
    stream = draw(_streams(name))
    columns = {column: _KINDS[type_] for column, type_ in stream.columns.items()}
    return Draft(({"from": name},), columns, {name: stream}, scale)


def schemas(name: str = NAMES[0]) -> st.SearchStrategy[str]:
    """DDL schemas of a stream: ``event_time TIMESTAMP, key STRING, value INT``.

    Args:
        name: of the stream, one of ``NAMES``; columns of different streams have different names.
    """
    return _streams(name).map(lambda stream: stream.ddl)
