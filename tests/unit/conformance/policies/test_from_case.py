"""Spark cases converted to traces: rows, micro-batches and times, and that Spark's rules then give what the cases expect."""

from contextlib import suppress
from pathlib import Path

import pytest

from conformance.core.case import Add, Backlog, Case, Idle
from conformance.core.values import instant_ms
from conformance.policies.engines import POLICIES, comparable, rules_for
from conformance.policies.replay import replay
from conformance.policies.tables import NoTrace, trace_of
from conformance.policies.trace import BatchBoundary, ClockReading, Event, IdlePoll
from conformance.suite.discovery import load
from tests.support.effort import sample
from tests.support.whole_suite import whole_suite

SPARK_CASE = """
title: A title
streams: {{left: "at TIMESTAMP, n INT", right: at TIMESTAMP}}
query:
  - from: left
  - withWatermark: [at, 10 seconds]
  - groupBy: ["{group}"]
    agg: [count(*) AS total]
  - union: [from: right, withWatermark: [at, {other}]]
steps:
  - add: {{left: {{partitions: [[[100, 1], {{at: 90.5, n: 2}}], [[null, 3]]]}}}}
  - backlog: [{{left: [[110, 1]], right: [[7]]}}, {{right: []}}]
  - idle: {{}}
  - restart: graceful
"""


def case(folder: Path, text: str) -> Case:
    (folder / "case.yaml").write_text(text)
    loaded = load([folder / "case.yaml"])
    assert [str(problem) for problem in loaded.problems] == []
    return loaded.cases[0]


def test_rows_are_events_and_micro_batches_boundaries(tmp_path: Path) -> None:
    trace, delay = trace_of(case(tmp_path, SPARK_CASE.format(group="window(at, '5 seconds')", other="10 seconds")))
    assert delay == 10_000
    assert (trace.inputs, trace.window) == (("left", "right"), 5_000)
    assert trace.entries == (
        *(ClockReading(100_000), Event(100_000, "left"), Event(90_500, "left"), BatchBoundary()),
        *(ClockReading(110_000), Event(110_000, "left"), Event(7_000, "right"), BatchBoundary()),
        *(ClockReading(120_000), BatchBoundary()),
        *(ClockReading(130_000), IdlePoll()),
    )
    assert trace.assumptions == (
        "A Spark case has no clock: it is assumed to start at the highest event time of the first micro-batch and to "
        "advance 10 s per step.",
        "Omitted, because the event time is null: 1 row.",
        "Restarts are omitted.",
    )


@pytest.mark.parametrize(
    ("group", "other", "said"),
    [
        (
            "window(at, '5 seconds')",
            "20 seconds",
            "Omitted, because they have no watermark with the same delay: right.",
        ),
        (
            "window(at, '10 seconds', '5 seconds')",
            "10 seconds",
            "The query has windows other than tumbling ones on the event time: lateness is decided row by row.",
        ),
    ],
)
def test_assumptions_say_what_is_omitted(tmp_path: Path, group: str, other: str, said: str) -> None:
    assert said in trace_of(case(tmp_path, SPARK_CASE.format(group=group, other=other)))[0].assumptions


@pytest.mark.parametrize(
    ("id", "why"),
    [
        ("deduplication/distinct-needs-no-watermark", "its query has no withWatermark"),
        ("event-time-column/negative-delay-is-refused", "its delay '-1 seconds' is negative"),
        ("event-time-column/delay-that-is-no-interval-is-refused", "its delay 'ten minutes' is not an interval"),
        ("event-time-column/other-types-are-refused.string", "is not a TIMESTAMP column of the stream 'events'"),
        (
            "event-time-column/unknown-column-is-refused",
            "its event time 'seen_at' is not a column of the stream 'events'",
        ),
    ],
)
def test_no_trace(id: str, why: str) -> None:
    found = next(one for one in whole_suite().cases if one.id == id)
    with pytest.raises(NoTrace, match=f"^{id} cannot be replayed under watermark policies: .*{why}"):
        trace_of(found)


def convertible() -> list[Case]:
    found = []
    for one in whole_suite().cases:
        with suppress(NoTrace):
            trace_of(one)
            found.append(one)
    return found


def test_most_cases_can_be_replayed_under_every_policy() -> None:
    cases = convertible()
    assert len(cases) > 0.8 * len(whole_suite().cases)
    for one in sample(cases, 100):
        trace, delay = trace_of(one)
        for name in POLICIES:
            assert len(replay(trace, comparable(name, delay)).steps) == len(trace.entries)


HIDDEN_FILTERS = {
    "arbitrary-state/watermark-of-a-view-reaches-transform-with-state": "the SQL of a view filters rows away",
    "event-time-column/cte-over-a-view-stays-streaming": "the SQL of a view filters rows away",
    "event-time-column/redefined-watermark-with-allow-multiple-off": "a second watermark holds the first one back",
    "event-time-column/second-watermark-on-a-branch-is-refused": "a branch has a delay of its own",
    "join-delays/conditions-on-each-side-of-a-left-outer-join": "the condition of a join does",
    "join-delays/constant-of-one-side-keeps-rows-of-the-other-out": "a constant of the other side does",
    "join-delays/rows-filtered-in-the-condition-do-not-move-the-watermark": "the condition of a join does",
    "late-drops/limit-hides-the-rows-it-does-not-read-from-the-watermark": "a limit does not read them",
    "recovery/starting-offsets-count-only-without-a-checkpoint.latest": "the query begins behind them",
}
"""Cases whose watermark a trace of all rows does not reproduce, although no assumption says so."""


def test_the_rules_of_spark_agree_with_the_cases() -> None:
    """Compares the watermark after each step, wherever a Spark case expects one, with the replay."""
    compared, different = 0, set()
    for one in convertible():
        trace, delay = trace_of(one)
        if any(word in said for word in ("no watermark", "filters", "Restarts") for said in trace.assumptions):
            continue
        policy = one.conf.get("spark.sql.streaming.multipleWatermarkPolicy", "min").lower()
        if policy not in ("min", "max"):
            continue
        replayed = replay(trace, rules_for("spark", {"delay": delay, "multipleWatermarkPolicy": policy}))
        batches = [step for step in replayed.steps if isinstance(step.entry, BatchBoundary | IdlePoll)]
        done = 0
        for step in one.steps:
            match step.action:
                case Backlog(entries=entries):
                    done += len(entries)
                case Add() | Idle():
                    done += 1
                case _:
                    continue
            expected = step.expect.watermark if step.expect else None
            if expected is not None:
                compared += 1
                if batches[done - 1].downstream != instant_ms(expected):
                    different.add(one.id)
    assert different == set(HIDDEN_FILTERS)
    assert compared > 450
