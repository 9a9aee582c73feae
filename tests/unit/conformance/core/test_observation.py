"""What two answers are compared by."""

from __future__ import annotations

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
    assert seen.digest(instants=instants) == hashlib.sha256(json.dumps(behaviours).encode()).hexdigest()
    assert seen.behaviour_digest == seen.digest()
