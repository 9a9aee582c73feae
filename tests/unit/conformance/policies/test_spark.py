"""Spark's own rules, and the quantile once proposed for it."""

from decimal import Decimal

import pytest

from conformance.policies.engines import Quantile, rules_for
from conformance.policies.replay import Replay, replay
from conformance.policies.rules import InvalidParameter, WatermarkPolicy
from conformance.policies.trace import MIN, BatchBoundary, Event, Trace, TraceEntry


def batches(*all_rows: list[int], input: str = "events") -> list[TraceEntry]:
    return [entry for rows in all_rows for entry in (*(Event(at, input) for at in rows), BatchBoundary())]


def spark(
    entries: list[TraceEntry], delay: int = 10, inputs: tuple[str, ...] = ("events",), policy: str = "min"
) -> Replay:
    return replay(
        Trace(tuple(entries), inputs), rules_for("spark", {"delay": delay, "multipleWatermarkPolicy": policy})
    )


def at_boundaries(replayed: Replay) -> list[int]:
    return [step.downstream for step in replayed.steps if isinstance(step.entry, BatchBoundary)]


def test_it_starts_at_the_epoch_and_stays_above() -> None:
    assert at_boundaries(spark(batches([5]))) == [0]
    assert spark(batches([0])).steps[0].late is True
    assert spark(batches([1])).steps[0].late is False


@pytest.mark.parametrize(("policy", "watermarks"), [("min", [0, 5]), ("max", [90, 90])])
def test_several_watermarks(policy: str, watermarks: list[int]) -> None:
    entries = [*batches([100], input="fast"), *batches([15], input="slow")]
    assert at_boundaries(spark(entries, inputs=("fast", "slow"), policy=policy)) == watermarks


def test_a_window_is_complete_when_the_watermark_has_reached_its_end() -> None:
    trace = Trace(tuple(batches([5], [19], [20], [3])), window=10)
    replayed = replay(trace, rules_for("spark", {"delay": 10}))
    assert {end: step.number for end, step in replayed.completions.items()} == {10: 6}
    assert [step.number for step in replayed.late] == [7]
    assert replayed.open == (20, 30)


QUANTILES = [
    ("1", [1, 2, 3, 1000], 1000),
    ("0.75", [1, 2, 3, 1000], 3),
    ("0.5", [1000, 3, 2, 1], 2),
    ("0.51", [1, 2, 3, 1000], 3),
    ("0.01", [7, 8], 7),
    ("0.9", [42], 42),
]


@pytest.mark.parametrize(("share", "rows", "watermark"), QUANTILES)
def test_a_quantile_by_nearest_rank(share: str, rows: list[int], watermark: int) -> None:
    policy: WatermarkPolicy = Quantile(Decimal(share))
    for at in rows:
        policy = policy.event(at, 0)
    assert policy.watermark == MIN
    assert policy.boundary(0).watermark == watermark


@pytest.mark.parametrize("share", ["0", "1.01", "-1"])
def test_no_quantile(share: str) -> None:
    with pytest.raises(InvalidParameter, match="above 0 and at most 1"):
        rules_for("quantile", {"quantile": Decimal(share)})
