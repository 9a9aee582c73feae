"""Under which condition a job meets what a case shows, derived from what the case does."""

from typing import Any

import pytest

from conformance.core.case import Add, Alter, Case, Restart, RestartChange, Step
from conformance.core.operations import read_pipeline
from conformance.core.spark_types import parse_schema
from conformance.suite.conditions import UNKNOWN, Condition, by_condition, counts
from tests.support.observations import case
from tests.support.whole_suite import whole_suite

STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SHUFFLE, POLICY = "spark.sql.shuffle.partitions", "spark.sql.streaming.multipleWatermarkPolicy"
QUERY = read_pipeline([{"from": "events"}])


def doing(*actions: Add | Alter | Restart, **conf: str) -> Case:
    steps = tuple(Step(number=number, action=action) for number, action in enumerate(actions, 1))
    return case(conf={key.replace("__", "."): value for key, value in conf.items()}).model_copy(update={"steps": steps})


def with_conf(conf: dict[str, str], *actions: Any) -> Case:
    return doing(*actions).model_copy(update={"conf": conf})


def restart(**keys: Any) -> Restart:
    return Restart(how="graceful", **keys)


@pytest.mark.parametrize(
    ("asked", "kind", "needs"),
    [
        (doing(Add(streams={})), "default settings", ()),
        (with_conf({SHUFFLE: "3", POLICY: "min"}), "default settings", ()),
        (with_conf({POLICY: "max"}), "setting", (f"{POLICY}=max",)),
        (with_conf({STORE: ROCKSDB}), "state store", ("RocksDB",)),
        (with_conf({STORE: ROCKSDB, POLICY: "max"}), "setting", (f"{POLICY}=max", "RocksDB")),
        (doing(restart()), "restart", ()),
        (doing(Restart(how="kill", at="planned", add={}, batch=2)), "restart", ()),
        (with_conf({SHUFFLE: "2"}, restart(change=RestartChange(conf={SHUFFLE: "3"}))), "setting", (f"{SHUFFLE}=3",)),
        (with_conf({SHUFFLE: "2"}, restart(change=RestartChange(conf={SHUFFLE: "2"}))), "restart", ()),
        (doing(restart(change=RestartChange(conf={STORE: ROCKSDB}))), "state store", ("RocksDB",)),
        (doing(restart(damage={"gone": "metadata"})), "edits", ("damage",)),
        (doing(restart(change=RestartChange(query=QUERY))), "edits", ("query",)),
        (
            doing(restart(change=RestartChange(output_mode="update", trigger="once"))),
            "edits",
            ("output mode", "trigger"),
        ),
        (
            doing(restart(checkpoint="moved", aged_out=True, repartition=3)),
            "edits",
            ("repartition", "aged out", "checkpoint"),
        ),
        (doing(Alter(columns={"events": parse_schema("more STRING")})), "edits", ("columns",)),
    ],
)
def test_it_is_what_a_job_must_have_beside_its_query(asked: Case, kind: str, needs: tuple[str, ...]) -> None:
    found = Condition.of(asked)
    assert (found.kind, found.needs) == (kind, needs)


def test_what_happens_after_the_step_that_shows_a_behaviour_does_not_count() -> None:
    asked = doing(Add(streams={}), restart(), restart(damage={"gone": "commit"}))
    assert [Condition.of(asked, last).kind for last in (1, 2, 3)] == ["default settings", "restart", "edits"]


def test_who_knows_what_a_restart_alone_does_says_so() -> None:
    assert Condition.of(doing(restart()), restart=False).kind == "default settings"
    assert Condition.of(doing(Add(streams={})), restart=True).kind == "restart"


def test_default_settings_come_first_and_nothing_unknown_counts_as_them() -> None:
    conditions = [Condition.of(with_conf({POLICY: "max"})), Condition.of(doing(restart())), Condition.of(doing())]
    assert by_condition(conditions) == "1 with default settings, 1 only after a restart, 1 only with a setting"
    assert by_condition(conditions[:1]) == "none with default settings, 1 only with a setting"
    assert "default" not in by_condition([UNKNOWN, conditions[0]])
    assert sum(counts([*conditions, UNKNOWN]).values()) == 4


def test_cases_of_the_suite() -> None:
    cases = {case.id: case for case in whole_suite().cases}
    kinds = {
        "join-delays/equal-intervals-on-both-sides-of-a-range.subtracted-twice": "default settings",
        "recovery/counts-go-on-where-the-query-shuffles-by-part-of-their-key.not-strict": "setting",
        "chained-aggregations/rocksdb-deduplication-by-the-keys-of-the-aggregation": "state store",
        "recovery/metadata-gone-is-a-new-query": "edits",
        "recovery/dropped-operator-is-refused": "edits",
        "recovery/inner-join-goes-on-where-the-event-time-has-two-names": "restart",
    }
    assert {id: Condition.of(cases[id]).kind for id in kinds} == kinds
