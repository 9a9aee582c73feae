"""What holds of every trace under every policy."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.policies.catalogue import POLICIES, comparable, rules
from conformance.policies.int64 import MIN
from conformance.policies.reading import Reading, read
from conformance.policies.trace import Boundary, Clock, Entry, Event, Idle, Trace

INPUTS = ("a", "b")
ENTRIES: st.SearchStrategy[Entry] = st.one_of(
    st.builds(Event, st.integers(-50, 500), st.sampled_from(INPUTS)),
    st.builds(Clock, st.integers(0, 500)),
    st.builds(Idle, st.none() | st.sampled_from(INPUTS)),
    st.just(Boundary()),
)
TRACES = st.builds(
    lambda entries, window: Trace(tuple(entries), INPUTS, window=window),
    st.lists(ENTRIES, max_size=40),
    st.none() | st.integers(1, 50),
)
ONE_INPUT = st.lists(st.builds(Event, st.integers(0, 500)) | st.just(Boundary()), max_size=40).map(
    lambda entries: Trace(tuple(entries))
)
READ = settings(deadline=None, max_examples=60)


@pytest.mark.parametrize("name", POLICIES)
@READ
@given(trace=TRACES, delay=st.integers(0, 60))
def test_the_watermark_never_goes_back(name: str, trace: Trace, delay: int) -> None:
    reading = read(trace, comparable(name, delay))
    downstream = [moment.downstream for moment in reading.moments]
    assert downstream == sorted(downstream)
    before = reading.rules.coalescing.initial
    for moment in reading.moments:
        assert moment.emitted == (moment.downstream if moment.downstream > before else None)
        before = moment.downstream


@pytest.mark.parametrize("name", POLICIES)
@READ
@given(trace=TRACES, delay=st.integers(0, 60))
def test_windows_close_once_and_late_events_are_in_none(name: str, trace: Trace, delay: int) -> None:
    reading = read(trace, comparable(name, delay))
    closed = [end for moment in reading.moments for end in moment.closed]
    on_time = {moment.window for moment in reading.moments if moment.late is False and moment.window is not None}
    assert on_time == {*closed, *reading.open}
    assert len(closed) == len(set(closed))
    assert set(closed).isdisjoint(reading.open)


@READ
@given(trace=TRACES, delay=st.integers(0, 60))
def test_the_quantile_of_1_is_sparks_maximum(trace: Trace, delay: int) -> None:
    quantile = read(trace, rules("quantile", {"quantile": Decimal(1), "delay": delay}))
    spark = read(trace, rules("spark", {"delay": delay}))
    assert quantile.moments == spark.moments


@READ
@given(trace=ONE_INPUT, lag=st.integers(0, 60))
def test_a_fixed_lag_is_the_running_maximum(trace: Trace, lag: int) -> None:
    reading = read(trace, rules("with-fixed-lag", {"lag": lag}))
    seen = [moment for moment in reading.moments if isinstance(moment.entry, Event)]
    highest = accumulate((moment.entry.at for moment in seen if isinstance(moment.entry, Event)), max)
    assert [moment.downstream for moment in seen] == [at - lag for at in highest]


@READ
@given(trace=ONE_INPUT, lag=st.integers(0, 60))
def test_at_a_boundary_flink_is_one_behind_a_fixed_lag(trace: Trace, lag: int) -> None:
    flink = read(trace, rules("bounded-out-of-orderness", {"bound": lag}))
    jet = read(trace, rules("with-fixed-lag", {"lag": lag}))
    for one, other in zip(flink.moments, jet.moments, strict=True):
        if isinstance(one.entry, Boundary):
            assert one.downstream == (MIN if other.downstream == MIN else other.downstream - 1)


@READ
@given(trace=ONE_INPUT, lag=st.integers(0, 60), step=st.integers(1, 50))
def test_a_throttle_emits_less_and_never_another(trace: Trace, lag: int, step: int) -> None:
    def emitted(reading: Reading) -> list[int]:
        return [moment.emitted for moment in reading.moments if moment.emitted is not None]

    everything = emitted(read(trace, rules("with-fixed-lag", {"lag": lag})))
    by_step = emitted(read(trace, rules("with-fixed-lag", {"lag": lag}, ("emit-by-min-step", {"step": step}))))
    by_frame = emitted(read(trace, rules("with-fixed-lag", {"lag": lag}, ("emit-by-frame", {"frame": step}))))
    assert set(by_step) | set(by_frame) <= set(everything)
    assert all(later - earlier >= step for earlier, later in pairwise(by_step))
    assert len({at // step for at in by_frame}) == len(by_frame), "at most one a frame"


@READ
@given(trace=TRACES)
def test_reading_does_not_depend_on_what_was_read_before(trace: Trace) -> None:
    for name in POLICIES:
        made = comparable(name, 7)
        assert read(trace, made) == read(replace(trace), made)
