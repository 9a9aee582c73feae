"""Which versions go on from whose checkpoints: the policy, on the catalogue there is."""

import pytest

from conformance.core.versions import StateStore
from harness.errors import HarnessError
from harness.targets.targets import Targets, between, having, pairs

TARGETS = Targets.load()
LINES = tuple(TARGETS.select(["lines"]))


def test_every_line_meets_its_neighbours_both_ways():
    found = pairs(TARGETS, "neighbours")
    assert len(found) == 2 * (len(TARGETS.every_line()) - 1)
    assert (LINES[-2], LINES[-1]) in found
    assert (LINES[-1], LINES[-2]) in found


def test_the_jumps_people_make_are_all_there_by_default():
    default, jumps = pairs(TARGETS), pairs(TARGETS, "lts")
    assert set(jumps) < set(default)
    lines = {(origin.version.line, to.version.line) for origin, to in default}
    newest = LINES[-1].version.line
    assert {("3.3", "3.5"), ("3.5", "4.0"), ("3.5", newest), ("4.0", newest), (newest, "3.5")} <= lines
    assert len(default) == len(set(default))


def test_all_is_every_line_to_every_other():
    every = len(TARGETS.every_line())
    assert len(pairs(TARGETS, "all")) == every * (every - 1)


@pytest.mark.parametrize("policy", [None, "neighbours", "all"])
def test_a_line_that_is_chosen_by_name_is_in_a_pair_where_it_can_run(policy):
    every = TARGETS.every_line()
    (named,) = (target for target in every if target.by_name)
    here = pairs(TARGETS, policy)
    assert {(named, LINES[0]), (LINES[0], named)} <= set(here)
    elsewhere = pairs(TARGETS, policy, obstacle=lambda target: "needs Java 8" if target == named else None)
    assert elsewhere == tuple(pair for pair in here if named not in pair)


def test_pairs_that_are_asked_for_by_name():
    old, new = LINES[0], LINES[-1]
    assert between([old, new], [new]) == ((old, new),)
    assert between([new], [new]) == ((new, new),)


def test_a_state_store_is_only_where_spark_has_it():
    rocksdb = StateStore.named("rocksdb")
    found = having(rocksdb, LINES)
    assert 0 < len(found) < len(LINES)
    assert list(rocksdb.conf) == ["spark.sql.streaming.stateStore.providerClass"]
    assert having(StateStore.named("hdfs"), LINES) == LINES
    with pytest.raises(HarnessError, match="No chosen version has the state store 'rocksdb'"):
        having(rocksdb, [LINES[0]])
