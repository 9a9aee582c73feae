"""A case whose event time is the clock behaves the same whenever it runs."""

import pytest

from conformance.core.operations import read_pipeline
from conformance.judging.consistency import behaviour, digest_omits_instants, reads_the_clock
from tests.support.observations import batch, case, expect, observed, step, window


def asking(expression):
    return case(expect(rows=[])).model_copy(
        update={"query": read_pipeline([{"from": "events"}, {"withColumn": ["seen_at", expression]}])}
    )


@pytest.mark.parametrize(
    "expression", ["current_timestamp()", "now()", "CURRENT_TIMESTAMP", "date_trunc('hour', now( ))"]
)
def test_what_asks_the_clock(expression):
    assert reads_the_clock(asking(expression))


@pytest.mark.parametrize("expression", ["event_time", "nowhere", "current_timestamps", "know(1)"])
def test_what_does_not(expression):
    assert not reads_the_clock(asking(expression))


def seen(watermark, total=1):
    ran = batch(0, window("12:00", "12:10", total), watermark=watermark, next_watermark=watermark + 5)
    return observed(step(1, ran, watermark=watermark + 5))


def test_only_the_instants_do_not_count():
    asks = asking("now()")
    assert behaviour(asks, seen(1000)) == behaviour(asks, seen(2000))
    assert behaviour(asks, seen(1000)) != behaviour(asks, seen(1000, total=2))
    plain = asking("event_time")
    assert behaviour(plain, seen(1000)) != behaviour(plain, seen(2000))
    assert behaviour(plain, seen(1000)) == seen(1000).behaviour_digest


def test_a_digest_tells_whether_it_was_made_with_instants():
    for watermark in range(1000, 9000, 1000):
        answer = seen(watermark)
        assert digest_omits_instants(answer.digest(instants=False), answer)
        assert not digest_omits_instants(answer.behaviour_digest, answer)
        assert not digest_omits_instants(None, answer)
