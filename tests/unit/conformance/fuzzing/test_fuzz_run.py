"""An engine as an oracle: one process for many cases, several at a time, and ended with the campaign."""

import pytest

from conformance.fuzzing.campaign import EngineOracle
from conformance.fuzzing.comparison import ByTheModel
from harness.scheduling.cell_run import Limits
from tests.support.miniature.runtime import MiniatureRuntime
from tests.support.miniature.target import SPARK_359
from tests.unit.conformance.runner.test_cases import CASES, cases_at


class Quiet:
    def __init__(self):
        self.ready = 0

    def engine_says(self, target, line): ...

    def engine_ready(self, target, identity, place):
        self.ready += 1


@pytest.fixture
def voice_of(tmp_path):
    made = []

    def make(mode, conf=None, settings=""):
        runtime, listener = MiniatureRuntime(tmp_path, mode), Quiet()
        limits = Limits(jobs=1, step_timeout=60.0, side_by_side=3, conf=conf or {})
        made.append(EngineOracle(runtime, SPARK_359, limits, listener, settings=settings))
        return made[-1], runtime

    yield make
    for oracle in made:
        oracle.close()
        oracle.close()


def cases(count):
    return [*cases_at(CASES)] * count


def test_one_engine_answers_many_cases_of_one_name(voice_of):
    oracle, runtime = voice_of("right")
    answers = [*oracle.answers(cases(4)), *oracle.answers(cases(4))]
    assert runtime.started == 1
    assert oracle.at_once == 3
    assert all(answer.observation is not None for answer in answers)


@pytest.mark.parametrize(("mode", "found"), [("right", False), ("keeps-late-rows", True)])
def test_an_engine_is_judged_by_the_model(voice_of, mode, found):
    oracle, _ = voice_of(mode)
    (answer,) = oracle.answers(cases(1))
    said = ByTheModel().judge(cases(1)[0], {oracle.name: answer}, {oracle.name: oracle})
    assert bool(said.differences) is found


def test_an_engine_that_dies_says_nothing_and_why(voice_of):
    oracle, _ = voice_of("dies")
    answers = oracle.answers(cases(2))
    assert all(answer.observation is None and answer.why for answer in answers)


def test_settings_are_part_of_the_name(voice_of):
    assert voice_of("right")[0].name == "spark-3.5.9"
    assert voice_of("right", {"spark.x": "y"}, "rocksdb")[0].name == "spark-3.5.9 with rocksdb"
