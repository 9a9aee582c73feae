"""What holds of every trace under every policy."""

from dataclasses import replace
from decimal import Decimal
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.policies.engines import POLICIES, comparable, rules_for
from conformance.policies.replay import Replay, replay
from conformance.policies.trace import MIN, BatchBoundary, ClockReading, Event, IdlePoll, Trace, TraceEntry

INPUTS = ("a", "b")
ENTRIES: st.SearchStrategy[TraceEntry] = st.one_of(
    st.builds(Event, st.integers(-50, 500), st.sampled_from(INPUTS)),
    st.builds(ClockReading, st.integers(0, 500)),
    st.builds(IdlePoll, st.none() | st.sampled_from(INPUTS)),
    st.just(BatchBoundary()),
)
TRACES = st.builds(
    lambda entries, window: Trace(tuple(entries), INPUTS, window=window),
    st.lists(ENTRIES, max_size=40),
    st.none() | st.integers(1, 50),
)
ONE_INPUT = st.lists(st.builds(Event, st.integers(0, 500)) | st.just(BatchBoundary()), max_size=40).map(
    lambda entries: Trace(tuple(entries))
)


@pytest.mark.parametrize("name", POLICIES)
@given(trace=TRACES, delay=st.integers(0, 60))
def test_the_watermark_never_goes_back(name: str, trace: Trace, delay: int) -> None:
    replayed = replay(trace, comparable(name, delay))
    downstream = [step.downstream for step in replayed.steps]
    assert downstream == sorted(downstream)
    before = replayed.rules.coalescing.initial
    for step in replayed.steps:
        assert step.emitted == (step.downstream if step.downstream > before else None)
        before = step.downstream


@pytest.mark.parametrize("name", POLICIES)
@given(trace=TRACES, delay=st.integers(0, 60))
def test_windows_close_once_and_late_events_are_in_none(name: str, trace: Trace, delay: int) -> None:
    replayed = replay(trace, comparable(name, delay))
    closed = [end for step in replayed.steps for end in step.closed]
    on_time = {step.window for step in replayed.steps if step.late is False and step.window is not None}
    assert on_time == {*closed, *replayed.open}
    assert len(closed) == len(set(closed))
    assert set(closed).isdisjoint(replayed.open)


@given(trace=TRACES, delay=st.integers(0, 60))
def test_the_quantile_of_1_is_sparks_maximum(trace: Trace, delay: int) -> None:
    quantile = replay(trace, rules_for("quantile", {"quantile": Decimal(1), "delay": delay}))
    spark = replay(trace, rules_for("spark", {"delay": delay}))
    assert quantile.steps == spark.steps


@given(trace=ONE_INPUT, lag=st.integers(0, 60))
def test_a_fixed_lag_is_the_running_maximum(trace: Trace, lag: int) -> None:
    replayed = replay(trace, rules_for("with-fixed-lag", {"lag": lag}))
    seen = [step for step in replayed.steps if isinstance(step.entry, Event)]
    highest = accumulate((step.entry.at for step in seen if isinstance(step.entry, Event)), max)
    assert [step.downstream for step in seen] == [at - lag for at in highest]


@given(trace=ONE_INPUT, lag=st.integers(0, 60))
def test_at_a_boundary_flink_is_one_behind_a_fixed_lag(trace: Trace, lag: int) -> None:
    flink = replay(trace, rules_for("bounded-out-of-orderness", {"bound": lag}))
    jet = replay(trace, rules_for("with-fixed-lag", {"lag": lag}))
    for one, other in zip(flink.steps, jet.steps, strict=True):
        if isinstance(one.entry, BatchBoundary):
            assert one.downstream == (MIN if other.downstream == MIN else other.downstream - 1)


@given(trace=ONE_INPUT, lag=st.integers(0, 60), step=st.integers(1, 50))
def test_a_throttle_emits_less_and_never_another(trace: Trace, lag: int, step: int) -> None:
    def emitted(replayed: Replay) -> list[int]:
        return [step.emitted for step in replayed.steps if step.emitted is not None]

    everything = emitted(replay(trace, rules_for("with-fixed-lag", {"lag": lag})))
    by_step = emitted(replay(trace, rules_for("with-fixed-lag", {"lag": lag}, ("emit-by-min-step", {"step": step}))))
    by_frame = emitted(replay(trace, rules_for("with-fixed-lag", {"lag": lag}, ("emit-by-frame", {"frame": step}))))
    assert set(by_step) | set(by_frame) <= set(everything)
    assert all(later - earlier >= step for earlier, later in pairwise(by_step))
    assert len({at // step for at in by_frame}) == len(by_frame), "at most one a frame"


@given(trace=TRACES)
def test_reading_does_not_depend_on_what_was_read_before(trace: Trace) -> None:
    for name in POLICIES:
        made = comparable(name, 7)
        assert replay(trace, made) == replay(replace(trace), made)
