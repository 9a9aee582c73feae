"""Which data batches a step may have: one for each arrival, and each reads every stream that has one waiting."""

from pathlib import Path

import pytest

from conformance.core.case import (
    Add,
    Advance,
    Backlog,
    Case,
    FileSource,
    Idle,
    KafkaSource,
    Partitioned,
    Restart,
    RestartChange,
    Step,
)
from conformance.core.observation import BatchSeen, SourceRead, TopicRead
from conformance.core.operations import From, Pipeline, read_pipeline
from conformance.core.spark_types import parse_schema
from harness.engine.alignment import MisalignedBatches, check_alignment
from tests.support.observations import batch, failed, observed, step

ROWS = Partitioned(partitions=((("12:00", 1),),))


def reads(*streams: str) -> Pipeline:
    first, *others = ([{"from": stream}] for stream in streams)
    return read_pipeline([*first, *({"union": other} for other in others)])


BOTH = reads("a", "b")


def case_of(
    *actions: Add | Advance | Backlog | Idle | Restart, query: Pipeline = BOTH, trigger: str = "default"
) -> Case:
    steps = tuple(Step(number=number, action=action) for number, action in enumerate(actions, 1))
    streams = {name: parse_schema("event_time TIMESTAMP, count INT") for name in ("a", "b")}
    about = {"id": "x", "path": Path("x.yaml"), "digest": "0" * 64, "lines": {}, "title": "x", "needs_code": ()}
    return Case(**about, streams=streams, query=query, steps=steps, trigger=trigger)


def test_with_a_clock_that_the_case_drives_each_trigger_reads_one_arrival() -> None:
    actions = (backlog(3), Advance(ms=35), Advance(ms=4), Advance(ms=1), Restart(how="graceful"), Advance(ms=10))
    driven = case_of(*actions, trigger="processingTime").model_copy(update={"interval_ms": 10})
    check_alignment(driven, steps([], [moves(0, "a", "b")], [], [moves(1, "a", "b")], [moves(2, "a", "b")], []))
    for wrong in (
        steps([moves(0, "a", "b")]),
        steps([], [moves(0, "a", "b"), moves(1, "a", "b")]),
        steps([], [moves(0, "a", "b")], [moves(1, "a", "b")]),
        steps([], [moves(0, "a", "b")], [], []),
        steps([], [moves(0, "a", "b")], [], [moves(1, "a", "b")], []),
    ):
        with pytest.raises(MisalignedBatches):
            check_alignment(driven, wrong)


def add(*streams: str) -> Add:
    return Add(streams=dict.fromkeys(streams, ROWS))


def backlog(entries: int) -> Backlog:
    return Backlog(entries=({"a": ROWS, "b": ROWS},) * entries)


def moves(id: int, *streams: str, of: tuple[str, ...] = ("a", "b")) -> BatchSeen:
    """A micro-batch of a query that reads the streams ``of``."""
    sources = tuple(SourceRead(stream=name, rows=1, moved=name in streams) for name in of)
    return batch(id, kind="data" if streams else "no-data", sources=sources)


def counted(id: int, *records: int) -> BatchSeen:
    """A micro-batch that read so many records of each partition of ``a``, or so many commits to it."""
    source = TopicRead(stream="a", rows=sum(records), moved=any(records), records=records)
    return batch(id, kind="data" if any(records) else "no-data", sources=(source,))


def steps(*seen: list[BatchSeen]):
    return observed(*(step(number, *batches) for number, batches in enumerate(seen, 1)))


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([moves(0, "a"), moves(1, "b")], id="the streams in two micro-batches"),
        pytest.param([moves(0, "a")], id="one stream of two"),
        pytest.param([moves(0, "b")], id="the other stream of two"),
        pytest.param([moves(0, "a", "b"), moves(1, "a")], id="the rest of a stream afterwards"),
        pytest.param([moves(0)], id="a micro-batch without data"),
        pytest.param([], id="no micro-batch"),
    ],
)
def test_the_rows_of_an_add_are_read_in_one_micro_batch(batches: list[BatchSeen]) -> None:
    asked = case_of(add("a", "b"))
    check_alignment(asked, steps([moves(0, "a", "b"), moves(1)]))
    with pytest.raises(MisalignedBatches, match="the rows of step 1 were not read as the case means"):
        check_alignment(asked, steps(batches))


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([moves(0, "a", "b")], id="two entries in one micro-batch"),
        pytest.param([moves(0, "a", "b"), moves(1, "b")], id="two entries of one stream in one micro-batch"),
        pytest.param([moves(0, "a"), moves(1, "a", "b"), moves(2, "b")], id="one stream runs ahead"),
    ],
)
def test_each_entry_of_a_backlog_has_a_micro_batch_of_its_own(batches: list[BatchSeen]) -> None:
    asked = case_of(backlog(2))
    check_alignment(asked, steps([moves(0, "a", "b"), moves(1, "a", "b"), moves(2)]))
    with pytest.raises(MisalignedBatches) as caught:
        check_alignment(asked, steps(batches))
    assert caught.value.batches == tuple(one.id for one in batches)


def test_a_stream_that_an_add_does_not_name_stays_where_it_is() -> None:
    check_alignment(case_of(add("a")), steps([moves(0, "a")]))
    with pytest.raises(MisalignedBatches, match="one data batch for each of: a; data batches seen: 0"):
        check_alignment(case_of(add("a")), steps([moves(0, "a", "b")]))


def test_a_stream_that_is_read_twice_moves_in_both_sources() -> None:
    twice = reads("a", "a")
    for moved, fine in (((True, True), True), ((True, False), False), ((False, True), False)):
        sources = tuple(SourceRead(stream="a", rows=1, moved=one) for one in moved)
        seen = steps([batch(0, sources=sources)])
        if fine:
            check_alignment(case_of(add("a"), query=twice), seen)
        else:
            with pytest.raises(MisalignedBatches):
                check_alignment(case_of(add("a"), query=twice), seen)


def test_nothing_is_read_where_nothing_arrives() -> None:
    asked = case_of(add("a"), Idle())
    check_alignment(asked, steps([moves(0, "a")], [moves(1)]))
    with pytest.raises(MisalignedBatches, match=r"step 2 .*one data batch for each of: nothing; data batches seen: 1"):
        check_alignment(asked, steps([moves(0, "a")], [moves(1, "a")]))


def test_before_an_error_only_the_micro_batches_that_are_meant_have_run() -> None:
    asked = case_of(backlog(2))
    check_alignment(asked, observed(failed(1)))
    check_alignment(asked, observed(step(1, moves(0, "a", "b"), error=failed(1).error)))
    with pytest.raises(MisalignedBatches):
        check_alignment(asked, observed(step(1, moves(0, "a"), error=failed(1).error)))


@pytest.mark.parametrize(
    ("trigger", "again"),
    [
        ("default", [[moves(0, "a")], [moves(1, "b")]]),
        ("availableNow", [[], [moves(0, "a"), moves(1, "b")]]),
        # A run of `once` is one micro-batch: what arrived waits for the next.
        ("once", [[], [moves(0, "a")], [moves(1, "b")]]),
    ],
)
def test_what_was_not_committed_is_read_again_first(trigger: str, again: list[list[BatchSeen]]) -> None:
    asked = case_of(add("a"), Restart(how="crash-before-commit"), add("b"), Idle(), trigger=trigger)
    check_alignment(asked, steps([moves(0, "a")], *again))
    with pytest.raises(MisalignedBatches):
        check_alignment(asked, steps([moves(0, "a")], [], [moves(1, "b")]))


def test_after_a_graceful_restart_nothing_is_read_again() -> None:
    asked = case_of(add("a"), Restart(how="graceful"), add("b"), trigger="once")
    check_alignment(asked, steps([moves(0, "a")], [], [moves(1, "b")]))
    with pytest.raises(MisalignedBatches, match="step 3"):
        check_alignment(asked, steps([moves(0, "a")], [], [moves(0, "a")]))


def test_once_takes_everything_that_waits() -> None:
    asked = case_of(add("a"), Restart(how="crash-before-commit"), add("a"), add("a"), trigger="once")
    check_alignment(asked, steps([moves(0, "a")], [], [moves(0, "a")], [moves(1, "a")]))
    with pytest.raises(MisalignedBatches, match="step 4"):
        check_alignment(asked, steps([moves(0, "a")], [], [moves(0, "a")], [moves(1, "a"), moves(2, "a")]))


def test_the_micro_batch_in_which_an_engine_is_killed_runs_in_the_next_one() -> None:
    asked = case_of(Restart(how="kill", at="emitted", add={"a": ROWS, "b": ROWS}), add("a"))
    check_alignment(asked, steps([]), killed=True)
    check_alignment(asked, steps([moves(0, "a", "b"), moves(1)], [moves(2, "a")]))
    for wrong in ([], [moves(0, "a")], [moves(0, "a", "b"), moves(1, "a")]):
        with pytest.raises(MisalignedBatches, match="step 1"):
            check_alignment(asked, steps(wrong, [moves(2, "a")]))


@pytest.mark.parametrize("trigger", ["once", "availableNow"])
def test_a_run_that_was_killed_is_finished_by_the_next(trigger: str) -> None:
    killed = Restart(how="kill", at="emitted", add={"a": ROWS})
    asked = case_of(killed, add("b"), Idle(), trigger=trigger)
    again = [[moves(0, "a")], [moves(1, "b")]] if trigger == "once" else [[moves(0, "a"), moves(1, "b")], []]
    check_alignment(asked, steps([], *again))
    with pytest.raises(MisalignedBatches, match="step 2"):
        check_alignment(asked, steps([], [moves(0, "a", "b")], []))
    committed = case_of(killed.model_copy(update={"at": "committed"}), add("b"), trigger=trigger)
    check_alignment(committed, steps([moves(0, "a")], [moves(1, "b")]))
    with pytest.raises(MisalignedBatches, match="step 1"):
        check_alignment(committed, steps([], [moves(0, "a"), moves(1, "b")]))


def test_a_split_is_seen_before_the_next_engine_continues() -> None:
    asked = case_of(Restart(how="kill", at="committed", add={"a": ROWS, "b": ROWS}, batch=2))
    check_alignment(asked, steps([moves(0, "a", "b"), moves(1)]), killed=True)
    with pytest.raises(MisalignedBatches):
        check_alignment(asked, steps([moves(0, "a"), moves(1, "b")]), killed=True)


def test_a_stream_that_a_query_does_not_read_waits_for_one_that_does() -> None:
    only_a = reads("a")
    changed = Restart(how="graceful", change=RestartChange(query=BOTH))
    asked = case_of(add("a", "b"), changed, add("a"), query=only_a)
    of_a = moves(0, "a", of=("a",))
    check_alignment(asked, steps([of_a], [moves(1, "b")], [moves(2, "a")]))
    with pytest.raises(MisalignedBatches, match="step 2"):
        check_alignment(asked, steps([of_a], [], [moves(1, "a", "b")]))


def test_what_the_query_does_not_read_at_all_is_left_to_the_verdict() -> None:
    """A case function may read a source of its own."""
    own = batch(0, sources=(SourceRead(stream="RateStreamSource", rows=5, moved=True),))
    check_alignment(case_of(add("a")), steps([own, own]))


def test_damaged_checkpoints_are_for_spark_to_read() -> None:
    """Which micro-batch runs after the newest offsets are gone is what such a case is about."""
    asked = case_of(add("a"), Restart(how="graceful", damage={"gone": "offsets"}), add("a"))
    check_alignment(asked, steps([moves(0, "a")], [moves(0, "a")], [moves(1, "a")]))
    with pytest.raises(MisalignedBatches, match="step 3"):
        check_alignment(asked, steps([moves(0, "a")], [moves(0, "a")], []))
    # Without its commit a micro-batch runs again.
    asked = case_of(add("a"), Restart(how="graceful", damage={"gone": "commit"}))
    with pytest.raises(MisalignedBatches, match="step 2"):
        check_alignment(asked, steps([moves(0, "a")], []))


def named(stream: str, name: str | None) -> Pipeline:
    return Pipeline((From(stream=stream, source_name=name),))


@pytest.mark.parametrize(
    ("before", "after", "read"),
    [
        pytest.param("orders", "sales", [moves(1, "a", of=("a",))], id="a source with a new name"),
        pytest.param("orders", "orders", [], id="a source that keeps its name"),
        pytest.param(None, "orders", [], id="a source that had no name, whose checkpoint keeps positions"),
    ],
)
def test_a_source_with_a_new_name_is_read_from_the_beginning(
    before: str | None, after: str, read: list[BatchSeen]
) -> None:
    asked = case_of(
        add("a"), Restart(how="graceful", change=RestartChange(query=named("a", after))), query=named("a", before)
    )
    check_alignment(asked, steps([moves(0, "a", of=("a",))], read))
    with pytest.raises(MisalignedBatches):
        check_alignment(asked, steps([moves(0, "a", of=("a",))], [] if read else [moves(1, "a", of=("a",))]))


def test_a_source_that_returns_under_its_name_may_read_from_either_place() -> None:
    without, whole = named("b", "refunds"), named("a", "orders")
    asked = case_of(
        add("a"),
        Restart(how="graceful", change=RestartChange(query=without)),
        Restart(how="graceful", change=RestartChange(query=whole)),
        query=whole,
    )
    for returned in ([], [moves(1, "a", of=("a",))]):
        check_alignment(asked, steps([moves(0, "a", of=("a",))], [], returned))


def test_rows_in_memory_are_counted_too():
    """A real-time micro-batch that ends while rows arrive reads some of them."""
    rows = Partitioned(partitions=((("12:00", 1), ("12:01", 1)),))
    asked = case_of(Add(streams={"a": rows}), query=reads("a"), trigger="realTime")
    asked = asked.model_copy(update={"in_memory": frozenset("a")})
    check_alignment(asked, steps([counted(0, 2), counted(1, 0)]))
    with pytest.raises(MisalignedBatches, match=r"one data batch for each of: a \(2 records\)"):
        check_alignment(asked, steps([counted(0, 1), counted(1, 1)]))


class TestTopics:
    """Of a topic the offsets tell how many records of each partition a micro-batch read."""

    ACROSS = Partitioned(partitions=((("12:00", 1), ("12:01", 1)), (), (("12:02", 1),)))

    def case(self, *actions, trigger="default"):
        topics = {"a": KafkaSource(partitions=3)}
        return case_of(*actions, query=reads("a"), trigger=trigger).model_copy(update={"topics": topics})

    def test_the_records_of_an_arrival_are_read_in_one_micro_batch(self):
        asked = self.case(Add(streams={"a": self.ACROSS}))
        check_alignment(asked, steps([counted(0, 2, 0, 1), counted(1, 0, 0, 0)]))
        for batches in (
            [counted(0, 2, 0, 0), counted(1, 0, 0, 1)],
            [counted(0, 2, 0, 0)],
            [counted(0, 1, 1, 1)],
            [counted(0, 2, 0, 2)],
        ):
            with pytest.raises(MisalignedBatches, match=r"one data batch for each of: a \(2, 0, 1 records\)"):
                check_alignment(asked, steps(batches))

    def test_an_arrival_without_rows_is_a_record(self):
        asked = self.case(Add(streams={"a": Partitioned(partitions=((),))}))
        check_alignment(asked, steps([counted(0, 1, 0, 0)]))
        with pytest.raises(MisalignedBatches, match="data batches seen: none"):
            check_alignment(asked, steps([counted(0, 0, 0, 0)]))

    def test_each_entry_of_a_backlog_has_a_micro_batch_of_its_own(self):
        asked = self.case(Backlog(entries=({"a": self.ACROSS}, {"a": ROWS})))
        check_alignment(asked, steps([counted(0, 2, 0, 1), counted(1, 1)]))
        with pytest.raises(MisalignedBatches, match=r"which read a \(3, 0, 1 records\)"):
            check_alignment(asked, steps([counted(0, 3, 0, 1)]))

    def test_once_reads_the_records_of_all_arrivals(self):
        asked = self.case(Add(streams={"a": self.ACROSS}), Add(streams={"a": ROWS}), trigger="once")
        check_alignment(asked, steps([counted(0, 2, 0, 1)], [counted(1, 1, 0, 0)]))

    def test_the_first_micro_batch_of_an_empty_topic_reads_nothing(self):
        check_alignment(self.case(Idle(), Add(streams={"a": ROWS})), steps([counted(0, 0, 0, 0)], [counted(1, 1)]))

    def test_a_query_may_begin_behind_records_that_are_there_when_it_starts(self):
        begins = {"a": KafkaSource(partitions=3, starting_offsets="latest")}
        late = self.case(Add(streams={"a": self.ACROSS}), Add(streams={"a": ROWS})).model_copy(
            update={"topics": begins}
        )
        check_alignment(late, steps([counted(0, 0, 0, 0)], [counted(1, 1)]))
        with pytest.raises(MisalignedBatches):
            check_alignment(late, steps([counted(0, 0, 0, 0)], [counted(1, 3, 0, 1)]))

    def test_a_replay_reads_the_same_records(self):
        asked = self.case(Add(streams={"a": self.ACROSS}), Restart(how="crash-before-commit"))
        check_alignment(asked, steps([counted(0, 2, 0, 1)], [counted(0, 2, 0, 1)]))
        with pytest.raises(MisalignedBatches, match="step 2"):
            check_alignment(asked, steps([counted(0, 2, 0, 1)], [counted(0, 2, 0, 2)]))

    def test_with_a_limit_spark_cuts_an_arrival_as_it_likes(self):
        asked = self.case(Add(streams={"a": self.ACROSS}))
        asked = asked.model_copy(update={"topics": {"a": KafkaSource(partitions=3, max_offsets_per_trigger=2)}})
        check_alignment(asked, steps([counted(0, 1, 0, 1), counted(1, 1), counted(2)]))
        with pytest.raises(MisalignedBatches):
            check_alignment(asked, steps([counted(0, 1, 0, 1)]))


def test_files_that_a_query_chooses_for_itself_are_read_in_as_many_micro_batches_as_it_likes():
    """A file that is too old is read in none."""
    backlog = Backlog(entries=({"a": ROWS}, {"a": ROWS}, {"a": ROWS}))
    asked = case_of(backlog, query=reads("a"))
    asked = asked.model_copy(update={"files": {"a": FileSource(max_files_per_trigger=2)}})
    check_alignment(asked, steps([moves(0, "a", of=("a",)), moves(1, "a", of=("a",))]))
    with pytest.raises(MisalignedBatches):
        check_alignment(asked, steps([]))
    aged = asked.model_copy(update={"files": {"a": FileSource(max_file_age="1s")}})
    check_alignment(aged, steps([]))


def test_what_a_query_reads_of_a_source_that_was_made_again_is_left_to_the_verdict():
    again = Restart(how="graceful", recreated={"a": ROWS})
    asked = case_of(Add(streams={"a": ROWS}), again, Add(streams={"a": ROWS}), query=reads("a"))
    first = [moves(0, "a", of=("a",))]
    check_alignment(asked, steps(first, [], []))
    check_alignment(asked, steps(first, [moves(1, "a", of=("a",))], []))
    with pytest.raises(MisalignedBatches):
        check_alignment(asked, steps([], []))


def test_a_micro_batch_reads_one_commit_to_a_table():
    """Whatever its rows: an arrival without any is a commit too."""
    rows = Partitioned(partitions=((("12:00", 1), ("12:01", 1)), ()))
    backlog = Backlog(entries=({"a": rows}, {"a": Partitioned(partitions=((),))}))
    asked = case_of(backlog, query=reads("a")).model_copy(update={"tables": {"a": "delta"}})
    check_alignment(asked, steps([counted(0, 1), counted(1, 1)]))
    message = r"one data batch for each of: a \(1 commits\); a \(1 commits\); data batches seen: 0, which read a \(2 commits\)"
    with pytest.raises(MisalignedBatches, match=message):
        check_alignment(asked, steps([counted(0, 2)]))
