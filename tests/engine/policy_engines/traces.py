"""Random traces under the policies of a real engine, small and at the ends of 64 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from conformance.policies.replay import replay
from conformance.policies.trace import MIN, BatchBoundary, ClockReading, Event, IdlePoll, Trace, TraceEntry
from tests.engine.policy_engines.questions import PolicyAnswer, PolicyQuestion, answer_of
from tests.engine.policy_engines.running import PolicyEngine
from tests.support.java_longs import MAX

SMALL = st.integers(-50, 500)
EXTREME = st.one_of(
    SMALL,
    st.integers(MIN, MIN + 200),
    st.integers(MAX - 200, MAX),
    st.sampled_from([MIN // 2, MAX // 2, -(2**62), 2**62]),
)
CLOCK = st.integers(0, 600)
DELAY = st.integers(0, 60)
FAR = DELAY | st.sampled_from([MAX, MAX - 1, 2**62])
"""A delay that overflows when it is added or subtracted."""

BEAM_LEAST = -9_223_372_036_854_775
"""``BoundedWindow.TIMESTAMP_MIN_VALUE`` in milliseconds; the highest is its opposite. Beam refuses instants outside."""


def _parameters(policy: str, delay: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, Any]]:
    given: dict[str, st.SearchStrategy[Any]] = {
        "with-fixed-lag": {"lag": delay},
        "limiting-lag-and-delay": {
            "lag": delay | delay.map(lambda one: -one),
            "maxDelay": st.integers(16, 400).map(lambda one: one * 1_000_000),
            "samples": st.integers(1, 16),
        },
        "limiting-lag-and-lull": {"lag": delay, "maxLull": DELAY},
        "limiting-timestamp-and-wall-clock-lag": {"timestampLag": delay, "wallClockLag": delay},
        "bounded-out-of-orderness": {"bound": delay},
        "limited-delay": {"maxDelay": DELAY},
        "stream-time": {"grace": DELAY},
    }[policy]
    return st.fixed_dictionaries(given)


THROTTLES = st.one_of(
    st.none(),
    st.just(("suppress-duplicates", {})),
    st.builds(lambda step: ("emit-by-min-step", {"step": step}), st.integers(1, 60)),
    st.integers(1, 60).flatmap(
        lambda frame: st.builds(
            lambda offset: ("emit-by-frame", {"frame": frame, "offset": offset}), st.integers(0, frame - 1)
        )
    ),
)
FAR_THROTTLES = THROTTLES | st.builds(
    lambda step: ("emit-by-min-step", {"step": step}), st.sampled_from([MAX, MAX - 1, 2**62])
)


@st.composite
def questions(draw: st.DrawFn, engine: PolicyEngine, policy: str, *, extreme: bool = False) -> PolicyQuestion:
    """A trace of up to 40 entries under a policy of an engine; ``extreme``: with times at the ends of what the engine takes."""
    given = draw(_parameters(policy, FAR if extreme else DELAY))
    times = EXTREME if extreme else SMALL
    throttle, window = None, None
    if engine.release is not None:
        given["release"] = engine.release
        throttle = draw(FAR_THROTTLES if extreme else THROTTLES)
    if engine.release == "jet-0.6":
        given |= draw(
            st.sampled_from([{}, {"idleTimeout": 0}]) | st.builds(lambda at: {"idleTimeout": at}, st.integers(1, 200))
        )
    if policy == "bounded-out-of-orderness" and draw(st.booleans()):
        given["idleTimeout"] = draw(st.integers(1, 200))
    if policy == "limited-delay" and extreme:
        times = SMALL | st.integers(BEAM_LEAST, BEAM_LEAST + 200) | st.integers(-BEAM_LEAST - 200, -BEAM_LEAST)
    if policy == "stream-time":
        # Kafka has no negative timestamps.
        times = st.integers(0, 500) | st.integers(MAX - 200, MAX) if extreme else st.integers(0, 500)
    if not extreme and policy not in ("bounded-out-of-orderness", "limited-delay"):
        window = draw(st.none() | st.integers(1, 50))
    inputs = draw(st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]))
    entries: st.SearchStrategy[TraceEntry] = st.one_of(
        st.builds(Event, times, st.sampled_from(inputs)),
        st.builds(ClockReading, CLOCK),
        st.builds(IdlePoll, st.none() | st.sampled_from(inputs)),
        st.just(BatchBoundary()),
    )
    length = draw(st.integers(0, 40))
    trace = Trace(tuple(draw(st.lists(entries, min_size=length, max_size=length))), inputs, window=window)
    return PolicyQuestion(policy, given, trace, throttle)


@dataclass(frozen=True)
class Disagreement:
    """An entry of which the model and an engine say different things."""

    number: int
    """Of the entry, from 1."""
    key: str
    """``late``; ``failure`` if only one of them fails there."""
    model: Any
    engine: Any

    def __str__(self) -> str:
        return f"entry {self.number}: {self.key} is {self.model!r} in the model and {self.engine!r} in the engine"


def disagreements(question: PolicyQuestion, engine: PolicyAnswer) -> tuple[Disagreement, ...]:
    """Where the model and an engine differ, in what the engine decides; in order."""
    model = answer_of(replay(question.trace, question.rules))
    found = [
        Disagreement(number, key, of_the_model[key], value)
        for number, (of_the_model, of_the_engine) in enumerate(zip(model.steps, engine.steps, strict=False), 1)
        for key, value in of_the_engine.items()
        if of_the_model[key] != value
    ]
    if len(model.steps) != len(engine.steps):
        number = min(len(model.steps), len(engine.steps)) + 1
        found.append(Disagreement(number, "failure", model.failure, engine.failure))
    return tuple(found)
