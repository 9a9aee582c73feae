"""Results of older formats, read as the current format has them."""

from __future__ import annotations

import hashlib
import json

import pytest

from conformance.core.observation import Observation
from reports.results.migrations import in_current_format
from reports.results.records import Cell, Run, Target, UpgradeCell
from tests.support.observations import batch, failed, observed, step, window
from tests.support.runs import case_named, cell

NAME = "spark-3.5.3"
TARGETS = {NAME: Target(name=NAME, spark="3.5.3")}
FAILED = observed(step(1, batch(0, window("12:00", "12:10", 1)), watermark=5), failed(2, "SparkException"))
FINE = observed(step(1, batch(0, window("12:00", "12:10", 1)), watermark=5))


def of_format_2(observation: Observation, *, instants: bool = True) -> str:
    """The digest up to format 2: the stage of an error and not its class."""
    steps = [one.behaviour if instants else one.behaviour.without_instants() for one in observation.steps]
    content = [(one.batches, one.watermark, one.error.stage if one.error else None) for one in steps]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def differing(spark: str, status: str = "differs") -> Cell:
    one = cell("late/a", NAME, "differs")
    assert one.differs is not None
    return one.model_copy(update={"status": status, "differs": one.differs.model_copy(update={"spark": spark})})


def upgrade(**keys: object) -> UpgradeCell:
    of = case_named("late/a")
    about = {
        "case": of.id,
        "family": of.family,
        "case_digest": of.digest,
        "origin": NAME,
        "to": "spark-4.3.0",
        "cut": 2,
    }
    return UpgradeCell(**{**about, "status": "resumes", "observation": FAILED, **keys})


@pytest.mark.parametrize(
    ("spark", "status"),
    [
        (">=3.5,<3.5.4", "bug"),  # gone in 3.5.4, a patch release
        (">=3.5,<4.0", "differs"),  # gone in a feature release
        (">=3.5", "differs"),  # never gone
    ],
)
def test_a_difference_of_format_1_that_a_patch_release_ended_is_a_bug(spark, status) -> None:
    before = differing(spark)
    read = in_current_format(before, 1, TARGETS)
    assert isinstance(read, Cell)
    assert (read.status, read.differs and read.differs.bug) == (status, status == "bug")
    for format in (2, 3):
        assert in_current_format(before, format, TARGETS) == before


@pytest.mark.parametrize("status", ["broken", "bug", "conforms", "unsupported", "violates"])
def test_other_statuses_of_format_1_stay(status) -> None:
    before = differing(">=3.5,<3.5.4", status)
    assert in_current_format(before, 1, TARGETS) == before


def test_a_difference_of_format_1_without_an_entry_stays() -> None:
    before = differing(">0").model_copy(update={"differs": None})
    assert in_current_format(before, 1, TARGETS) == before


def test_a_difference_of_format_1_on_a_target_without_a_spark_version_stays() -> None:
    before = differing(">=3.5,<3.5.4")
    assert in_current_format(before, 1, {NAME: Target(name=NAME, spark="nightly")}) == before


@pytest.mark.parametrize("instants", [True, False])
@pytest.mark.parametrize("format", [1, 2])
def test_the_digest_of_an_error_gets_its_class(format, instants) -> None:
    old, new = of_format_2(FAILED, instants=instants), FAILED.digest(instants=instants)
    assert old != new
    run = Run(status="conforms", behaviour=old, observation=FAILED)
    before = cell("late/a", NAME).model_copy(update={"behaviour": old, "observation": FAILED, "runs": (run, run)})
    read = in_current_format(before, format, TARGETS)
    assert isinstance(read, Cell)
    assert read.behaviour == new
    assert [one.behaviour for one in read.runs] == [new, new]
    assert in_current_format(before, 3, TARGETS) == before


@pytest.mark.parametrize("instants", [True, False])
def test_the_digest_in_the_upgrade_matrix_gets_the_class_of_the_error(instants) -> None:
    before = upgrade(behaviour=of_format_2(FAILED, instants=instants))
    for format in (1, 2):
        assert in_current_format(before, format, TARGETS).behaviour == FAILED.digest(instants=instants)
    assert in_current_format(before, 3, TARGETS) == before


@pytest.mark.parametrize("digest", ["0" * 64, "f" * 64, None])
def test_another_digest_stays(digest) -> None:
    before = cell("late/a", NAME).model_copy(update={"behaviour": digest, "observation": FAILED})
    assert in_current_format(before, 2, TARGETS) == before


@pytest.mark.parametrize("observation", [FINE, observed(), None])
def test_the_digest_of_an_answer_without_an_error_stays(observation) -> None:
    digest = of_format_2(observation) if observation is not None else "0" * 64
    before = cell("late/a", NAME).model_copy(update={"behaviour": digest, "observation": observation})
    assert in_current_format(before, 2, TARGETS) == before
