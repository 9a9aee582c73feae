"""A case that shows something is made small, and still shows it."""

import pytest

from conformance.fuzzing.coverage import Drawing
from conformance.fuzzing.shrinking import REDUCTIONS, cost, shrunk
from conformance.language import case_from
from conformance.model.catalogue import rules_of
from conformance.model.errors import Unpredictable
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.prediction import predict
from conformance.strategies import FAMILIES


def telling_apart(wrong):
    """Whether cases tell a wrong model from the right one."""
    right = rules_of(wrong.version)

    def differs(asked):
        return [one(case) for case in asked]

    def one(case):
        try:
            seen = [predict(case, wrong.version, rules) for rules in (right, wrong.of(right))]
        except Unpredictable:
            return False
        return len({told.observation.behaviour_digest for told in seen}) == 2

    return differs


def named(name):
    return next(wrong for wrong in WRONG_MODELS if wrong.name == name)


BIG = {
    "title": "A big one",
    "streams": {"events": "event_time TIMESTAMP, key STRING, value INT, event_sent TIMESTAMP"},
    "query": [
        {"from": "events"},
        {"alias": "a"},
        {"withWatermark": ["event_time", "1 minute 30 seconds"]},
        {"dropDuplicates": ["key", "event_time"]},
        {"where": "key IS NOT NULL"},
    ],
    "outputMode": "append",
    "conf": {"spark.sql.streaming.multipleWatermarkPolicy": "max"},
    "steps": [
        {"idle": {}},
        {"add": {"events": [["2019-12-20 00:03:21", "b", 3, None], ["2019-12-20 00:01:11", "c", 2, None]]}},
        {"restart": "crash-before-commit"},
        {"backlog": [{"events": [["2019-12-20 00:07:00", "b", 3, None]]}, {}]},
        {"add": {"events": {"partitions": [[["2019-12-20 00:05:30", "c", None, None]], []]}}},
        {"add": {"events": []}},
    ],
}


def test_a_big_case_becomes_a_small_one():
    differs = telling_apart(named("a time equal to the watermark is not late"))
    assert differs([case_from(BIG, "big")]) == [True]
    small = shrunk(BIG, differs)
    assert differs([case_from(small, "small")]) == [True]
    assert small == {
        "title": "A big one",
        "streams": {"events": "event_time TIMESTAMP"},
        "query": [{"from": "events"}, {"withWatermark": ["event_time", "0 seconds"]}, {"distinct": True}],
        "steps": [{"add": {"events": [["12:00"]]}}],
    } or cost(small)[:4] <= (2, 4, 3, 0)


def test_what_nothing_shows_is_not_touched():
    assert shrunk(BIG, lambda asked: [False for _ in asked]) == BIG


def test_engines_are_asked_so_many_at_a_time():
    sizes = []

    def differs(asked):
        sizes.append(len(asked))
        return [False for _ in asked]

    shrunk(BIG, differs, at_once=8)
    assert max(sizes) == 8
    assert sum(size == 8 for size in sizes) >= 5


def test_every_smaller_case_is_told():
    told = []
    small = shrunk(BIG, telling_apart(named("there is no delay")), smaller=told.append)
    assert told[-1] == small
    assert [*map(cost, told)] == sorted(map(cost, told), reverse=True)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "state-functions"])
def test_the_smallest_of_all_is_found_where_anything_shows_it(family):
    """Whatever is drawn, one step is left, and nothing of what a case can do without."""
    for written in (one.written for one in Drawing([family], 11).some(4)):
        small = shrunk(written, lambda asked: [True for _ in asked])
        assert len(small["steps"]) == 1
        assert len(small["streams"]) == 1
        assert len(small["query"]) == 1
        assert small.keys() <= {"title", "streams", "query", "steps"}


def test_no_reduction_changes_its_argument():
    before = repr(BIG)
    for reduce in REDUCTIONS:
        assert [*reduce(BIG)]
        assert repr(BIG) == before


def test_the_views_of_a_sql_query_are_reduced_too():
    view = [{"from": "events"}, {"where": "value > 1"}]
    query = [{"from": "events"}, {"sql": "SELECT * FROM a UNION ALL SELECT * FROM b", "as": "a", "views": {"b": view}}]
    found = [one["query"] for reduction in REDUCTIONS for one in reduction({**BIG, "query": query})]
    assert [{"from": "events"}, {**query[1], "views": {"b": [{"from": "events"}]}}] in found
