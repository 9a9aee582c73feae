"""What is asked of Spark's data source for state, with a session of a few lines in place of Spark's."""

from types import SimpleNamespace

import pytest

from harness.driver.checkpoint import read_state, stored_state

BATCHES = [{"id": 6, "next_watermark": 0}, {"id": 7, "next_watermark": 0}]


class Reader:
    """Keeps what it was asked, and answers from a table: the options of a load → its rows."""

    def __init__(self, table, asked=()):
        self.table, self.asked = table, asked

    def format(self, name):
        return Reader(self.table, (*self.asked, name))

    def option(self, name, value):
        return Reader(self.table, (*self.asked, (name, value)))

    def load(self, checkpoint):
        assert checkpoint == "/work/checkpoint"
        rows = self.table[frozenset(self.asked)]
        return SimpleNamespace(collect=lambda: rows, count=lambda: rows)


def session(operators, counts, version="4.0.0"):
    metadata = [SimpleNamespace(operatorId=id, operatorName=name) for id, name in operators]
    table = {frozenset({"state-metadata", ("batchId", 7)}): metadata}
    for (id, *side), count in counts.items():
        sides = [("joinSide", one) for one in side]
        table[frozenset({"statestore", ("batchId", 7), ("operatorId", id), *sides})] = count
    return SimpleNamespace(version=version, read=Reader(table))


def test_every_operator_after_the_last_micro_batch_in_the_order_of_ids():
    found = session([(1, "dedupe"), (0, "stateStoreSave")], {(0,): 3, (1,): 5})
    assert stored_state(found, "/work/checkpoint", BATCHES) == [
        {"operator": "stateStoreSave", "rows": 3},
        {"operator": "dedupe", "rows": 5},
    ]


def test_a_join_has_the_rows_of_both_sides():
    """Its metadata has an entry for each of its four stores."""
    found = session([(0, "symmetricHashJoin")] * 4, {(0, "left"): 2, (0, "right"): 7})
    assert stored_state(found, "/work/checkpoint", BATCHES) == [{"operator": "symmetricHashJoin", "rows": 9}]


def test_variables_of_a_processor_are_not_counted():
    found = session([(0, "transformWithStateInPandasExec")], {})
    assert stored_state(found, "/work/checkpoint", BATCHES) == [
        {"operator": "transformWithStateInPandasExec", "rows": None}
    ]


@pytest.mark.parametrize(
    ("version", "batches"), [("3.5.9", BATCHES), ("4.3.0", []), ("4.3.0", [{"id": 7, "next_watermark": None}])]
)
def test_nothing_to_read(version, batches):
    """No data source before 4.0, no micro-batch in the step, none that is committed."""
    assert stored_state(session([], {}, version), "/work/checkpoint", batches) is None


class State:
    """Spark's reader, which reads the store of operator 0 only, and remembers the settings of its session."""

    def __init__(self):
        self.conf, self.read, self.settings = self, self, {}
        self.set = self.settings.__setitem__

    def format(self, name):
        assert name == "statestore"
        return self

    def options(self, operatorId):  # noqa: N803 — Spark's name
        self.operator = operatorId
        return self

    def load(self, checkpoint):
        assert checkpoint == "/work/checkpoint"
        return self

    def selectExpr(self, *expressions):  # noqa: N802 — Spark's name
        if self.operator != "0":
            raise RuntimeError("[STDS_X] no such store\nSQLSTATE: 42K03")
        return SimpleNamespace(collect=lambda: [tuple(map(len, expressions))])


def test_expressions_over_the_state_are_answered_or_what_spark_says():
    def asked(*operators):
        reads = [{"options": {"operatorId": operator}, "expressions": ["count(*)", "1"]} for operator in operators]
        return {"checkpoint": "/work/checkpoint", "conf": {"a": "b"}, "reads": reads}

    state = State()
    assert read_state(state, asked("0", "0")) == {"values": [[8, 1], [8, 1]], "error": None}
    assert state.settings == {"a": "b"}
    assert read_state(state, asked("0", "1")) == {"values": [], "error": "[STDS_X] no such store"}
