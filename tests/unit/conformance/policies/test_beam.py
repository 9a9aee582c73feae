"""Beam's KafkaIO against CustomTimestampPolicyWithLimitedDelayTest: times are offsets from a now, in milliseconds."""

import pytest

from conformance.policies.engines import LEAST, LimitedDelay
from conformance.policies.trace import MIN

NOW = 1_700_000_000_000
POLICY = LimitedDelay(60_000)
BEHIND = [-200_000, -150_000, -120_000, -140_000, -100_000, -110_000]
AHEAD = [-200_000, -150_000, -120_000, -140_000, 100_000, -100_000, -110_000]


def after(*offsets: int) -> LimitedDelay:
    policy = POLICY
    for offset in offsets:
        policy = policy.event(NOW + offset, NOW)
    return policy


@pytest.mark.parametrize(
    ("policy", "now", "backlog", "checked", "watermark"),
    [
        pytest.param(POLICY, NOW, 100, NOW, LEAST, id="before any record"),
        pytest.param(after(*BEHIND), NOW, 100, NOW, NOW - 100_000 - 60_000, id="(1) highest minus delay"),
        pytest.param(after(*BEHIND, *AHEAD), NOW, 100, NOW, NOW - 60_000, id="(2) capped at now"),
        pytest.param(
            after(*BEHIND, *AHEAD),
            NOW + 300_000,
            0,
            NOW + 290_000,
            NOW + 290_000 - 60_000,
            id="(3) advances when there is no backlog",
        ),
        pytest.param(POLICY, NOW, 0, NOW, LEAST, id="idle and never a record: beam issue 20908"),
    ],
)
def test_limited_delay(policy: LimitedDelay, now: int, backlog: int, checked: int, watermark: int) -> None:
    assert policy.at(now, backlog, checked) == watermark


def test_a_record_within_the_delay_of_the_least_instant_has_no_effect() -> None:
    """``maxEventTimestamp`` starts at ``BoundedWindow.TIMESTAMP_MIN_VALUE`` plus the delay."""
    assert POLICY.event(LEAST + 59_999, NOW).boundary(NOW).watermark == MIN
    assert POLICY.event(LEAST + 60_001, NOW).boundary(NOW).watermark == LEAST + 1
