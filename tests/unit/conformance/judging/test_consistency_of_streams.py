"""A query that does not read the stream to which the case gives rows has not run the case."""

import pytest

from conformance.core.case import Add, Backlog, Case, Partitioned, Restart, RestartChange, Step
from conformance.core.observation import BatchSeen, SourceRead
from conformance.core.operations import Pipeline, read_pipeline
from conformance.core.spark_types import parse_schema
from conformance.judging.verdict import judge
from tests.support.observations import NEWEST, batch, case, expect, failed, observed, step

ROWS = Partitioned(partitions=((("12:00", 1),),))
EVENTS = read_pipeline([{"from": "events"}])
OTHER = read_pipeline([{"from": "other"}])


def reads(*streams: str, id: int = 0) -> BatchSeen:
    return batch(id, sources=tuple(SourceRead(stream=name, rows=1, moved=True) for name in streams))


def doing(*actions: Add | Backlog | Restart, query: Pipeline = EVENTS) -> Case:
    schema = parse_schema("event_time TIMESTAMP, count INT")
    steps = tuple(Step(number=number, action=one) for number, one in enumerate(actions, 1))
    return case(query=query, streams={"events": schema, "other": schema}).model_copy(update={"steps": steps})


def notes(of: Case, *steps) -> tuple[str, ...]:
    verdict = judge(of, NEWEST, observed(*steps))
    return verdict.notes if verdict.status == "broken" else ()


ADD = Add(streams={"events": ROWS})


@pytest.mark.parametrize(
    "action",
    [ADD, Backlog(entries=({"events": ROWS},)), Restart(how="kill", at="emitted", add={"events": ROWS})],
    ids=["add", "backlog", "kill"],
)
def test_rows_that_no_micro_batch_read_break_the_cell(action: Add | Backlog | Restart) -> None:
    assert notes(doing(action), step(1, reads("events"))) == ()
    assert notes(doing(action), step(1, reads("RateStreamV2"))) == (
        "step 1 places rows on the stream 'events', but no micro-batch of the query has it as a source; "
        "it reads RateStreamV2 instead",
    )


def test_user_code_is_told_what_to_do() -> None:
    code = read_pipeline([*EVENTS.wire(), {"call": "mine:function"}])
    (note,) = notes(doing(ADD, query=code), step(1, reads("RateStreamV2")))
    advice = "The function that `call` names must build on the DataFrame that it is given"
    assert note.endswith(advice)
    plain = read_pipeline([*EVENTS.wire(), {"alias": "a"}, {"where": "true"}])
    assert advice not in notes(doing(ADD, query=plain), step(1, reads("RateStreamV2")))[0]


def test_a_query_that_was_refused_has_read_nothing() -> None:
    of = doing(ADD).model_copy(
        update={"steps": (Step(number=1, action=ADD, expect=expect(error={"stage": "run"})),)},
    )
    assert judge(of, NEWEST, observed(failed(1))).status == "conforms"
    assert judge(doing(ADD), NEWEST, observed(failed(1, stage="start"))).status == "violates"


def test_a_batch_of_no_rows_need_not_be_read() -> None:
    nothing = Add(streams={"events": Partitioned(partitions=((),))})
    assert notes(doing(nothing), step(1, reads("RateStreamV2"))) == ()


def test_rows_on_a_stream_that_the_query_does_not_name_are_ignored() -> None:
    assert notes(doing(ADD, Add(streams={"other": ROWS})), step(1, reads("events")), step(2)) == ()


def test_each_query_reads_the_streams_it_names() -> None:
    changed = Restart(how="graceful", change=RestartChange(query=OTHER))
    other = Add(streams={"other": ROWS})
    # `events` is read before the restart and `other` after it; what arrives later on `events` concerns no query.
    of = doing(ADD, changed, other, ADD)
    seen = step(1, reads("events")), step(2)
    assert notes(of, *seen, step(3, reads("other", id=1)), step(4)) == ()
    (note,) = notes(of, *seen, step(3, reads("events", id=1)), step(4))
    assert note.startswith("step 3 places rows on the stream 'other'")
