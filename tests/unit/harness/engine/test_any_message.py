"""Any line that a driver may write: each is delivered, as a message or as one that is malformed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engine.driver_engine import Dispatcher

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(["hello", "step", "emitted", "reached", "done", "failed", "progressed", "rows", "", "x"])
FIELDS = st.sampled_from(
    ["case", "step", "batch", "rows", "columns", "reason", "message", "identity", "memory", "missed"]
)
MESSAGES = st.builds(
    lambda kind, fields: json.dumps({"kind": kind, "case": "a", **fields}),
    KINDS,
    st.dictionaries(FIELDS, JSON, max_size=5),
)


def delivered(line):
    dispatcher = Dispatcher()
    with dispatcher.listening("a") as mailbox:
        dispatcher.dispatch(line)
        found = mailbox.get(block=False)
        assert mailbox.empty()
        return found


@settings(max_examples=300)
@given(line=st.one_of(st.text(max_size=80), JSON.map(json.dumps), MESSAGES))
def test_every_line_is_delivered_once(line):
    assert delivered(line) is not None


@pytest.mark.parametrize(
    "line", ["[" * 100_000, '{"kind":' * 50_000, "1" * 100_000, "\ud800", '{"kind": "\\ud800"}', "NaN"]
)
def test_extreme_lines_are_malformed(line):
    assert isinstance(delivered(line), str)
