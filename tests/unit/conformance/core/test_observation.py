"""What two answers are compared by."""

import hashlib
import json

import pytest

from tests.support.observations import batch, failed, observed, step, window


@pytest.mark.parametrize("instants", [True, False])
def test_a_digest_is_that_of_the_behaviour_of_every_step(instants) -> None:
    seen = observed(
        step(1, batch(0, window("12:10", "12:20", 2), window("12:00", "12:10", 1.0)), batch(1, kind="no-data")),
        step(2, batch(2, ["é", None, True, {"a": [1]}], dropped=None, state=(7, 8))),
        failed(3, "SparkException", stage="run", message="boom"),
    )
    behaviours = [one.behaviour if instants else one.behaviour.without_instants() for one in seen.steps]
    assert seen.digest(instants=instants) == hashlib.sha256(json.dumps(behaviours).encode()).hexdigest()[:32]
    assert seen.behaviour_digest == seen.digest()


def test_consecutive_ids_leave_out_how_many_ran_in_between() -> None:
    first, later = window("12:00", "12:10", 1), window("12:10", "12:20", 1)
    slow = observed(step(1, batch(0, first), batch(1)), step(2, batch(4, later)))
    fast = observed(step(1, batch(0, first), batch(1)), step(2, batch(7, later)))
    assert slow.behaviour_digest != fast.behaviour_digest
    assert slow.with_consecutive_ids().behaviour_digest == fast.with_consecutive_ids().behaviour_digest
    assert [one.id for seen in slow.with_consecutive_ids().steps for one in seen.batches] == [0, 1, 2]
