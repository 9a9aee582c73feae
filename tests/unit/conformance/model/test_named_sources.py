"""Names of sources, and what a restart may read, beside what the cases say of them."""

import pytest

from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.checkpoint import ModelCheckpoint
from conformance.model.checks import EVOLUTION, OFFSET_LOG, QuerySettings
from conformance.model.columns import Ids
from conformance.model.errors import Refused, Unpredictable
from conformance.model.frame import Frame
from conformance.model.query import Query

NAMED = {EVOLUTION: "true", OFFSET_LOG: "2"}


def started(*read, version="4.3.0", conf=NAMED, checkpoint=None):
    """A query on these streams, each with the name of its source."""
    rules, ids = rules_of(SparkVersion.parse(version)), Ids()
    schema = parse_schema("t TIMESTAMP")
    first, *others = (Frame.read(stream, schema, rules, ids, name) for stream, name in read)
    for other in others:
        first = first.union(other)
    return Query(first.plan, QuerySettings("append", "default", conf), checkpoint or ModelCheckpoint(), rules)


def after(query, *streams):
    """The checkpoint after a micro-batch with a row of each of these streams."""
    query.arrive([dict.fromkeys(streams, ((0,),))])
    list(query.run())
    return query.checkpoint


def test_there_are_none_before_4_2():
    with pytest.raises(Refused, match="has no attribute 'name'"):
        started(("a", "x"), version="4.1.4")


def test_without_format_2_only_4_3_keeps_names():
    conf = {EVOLUTION: "true"}
    newest = after(started(("a", "x"), conf=conf), "a")
    started(("a", "x"), ("b", "y"), conf=conf, checkpoint=newest)
    older = after(started(("a", "x"), version="4.2.1", conf=conf), "a")
    with pytest.raises(Refused, match=r"There are \[1\] sources"):
        started(("a", "x"), ("b", "y"), version="4.2.1", conf=conf, checkpoint=older)


def test_a_checkpoint_without_names_gets_none():
    checkpoint = after(started(("a", None), conf={}), "a")
    with pytest.raises(Refused, match="cannot begin"):
        started(("a", "x"), checkpoint=checkpoint)
    started(("a", "x"), version="4.2.1", checkpoint=after(started(("a", None), version="4.2.1", conf={}), "a"))


def test_a_restart_with_other_streams_is_refused_by_their_number_alone():
    checkpoint = after(started(("a", None), ("b", None), conf={}), "a", "b")
    for read in ([("a", None)], [("a", None), ("b", None), ("c", None)]):
        with pytest.raises(Refused, match=r"There are \[2\] sources"):
            started(*read, conf={}, checkpoint=checkpoint)
    # By position the second source would go on where the first was: 3.5.9 and 4.3.0 fail if they change places.
    for read in ("ac", "ba"):
        with pytest.raises(Unpredictable, match="a restart with other sources, or with these in another order"):
            started(*((stream, None) for stream in read), conf={}, checkpoint=checkpoint)


@pytest.mark.parametrize("version", ["3.5.9", "4.3.0"])
@pytest.mark.parametrize(("before", "now"), [("a", "aaa"), ("aa", "a"), ("a", "aa"), ("ab", "aab")])
def test_a_stream_that_is_read_several_times_is_several_sources(version, before, now):
    def reading(streams, **of):
        return started(*((stream, None) for stream in streams), version=version, conf={}, **of)

    checkpoint = after(reading(before), *set(before))
    with pytest.raises(Refused, match=rf"There are \[{len(before)}\] sources"):
        reading(now, checkpoint=checkpoint)
    assert reading(before, checkpoint=checkpoint).checkpoint.sources == tuple((stream, None) for stream in before)
    # The offset log of a query that has read nothing is empty.
    reading(now, checkpoint=reading(before).checkpoint)


def test_what_another_number_of_sources_does_in_format_2_is_not_known():
    checkpoint = after(started(("a", None), conf={OFFSET_LOG: "2"}), "a")
    with pytest.raises(Unpredictable, match="a restart with other sources"):
        started(("a", None), ("a", None), conf={OFFSET_LOG: "2"}, checkpoint=checkpoint)


def test_a_named_source_is_read_once():
    with pytest.raises(Refused, match="the same name"):
        started(("a", "x"), ("a", "x"))


def test_source_evolution_before_names_is_not_predicted():
    with pytest.raises(Unpredictable, match="source evolution where sources have no names"):
        started(("a", None), version="4.1.4")
