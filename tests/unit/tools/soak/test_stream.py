"""Whether the query of a soak has read everything, without a pyspark."""

import io
from types import SimpleNamespace

import pytest

from harness.driver.errors import DriverFailure
from tools.soak.driver.stream import _follow

ENTRY = {"batchId": 0, "numInputRows": 5, "durationMs": {"addBatch": 1, "triggerExecution": 7}}


def followed(query):
    """What the host is told of a query that has run one micro-batch, and what is kept of it."""
    messages, kept = [], io.StringIO()
    engine = SimpleNamespace(recent=lambda _, seen: ([ENTRY][seen:], 1))
    _follow(engine, query, kept, lambda kind, **fields: messages.append((kind, fields["batch"], fields["rows"])))
    return messages, kept.getvalue().count("\n")


def test_each_micro_batch_is_told_once():
    assert followed(SimpleNamespace(processAllAvailable=lambda: None, isActive=True)) == ([("progressed", 0, 5)], 1)


def test_a_query_that_something_else_stopped_has_not_read_everything():
    with pytest.raises(DriverFailure, match="stopped before it had read everything"):
        followed(SimpleNamespace(processAllAvailable=lambda: None, isActive=False))


def test_what_a_query_fails_with_is_raised():
    with pytest.raises(ZeroDivisionError):
        followed(SimpleNamespace(processAllAvailable=lambda: 1 / 0, isActive=False))
