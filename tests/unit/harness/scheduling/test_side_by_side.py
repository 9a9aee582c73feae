"""Several cases in one engine: their answers are not mixed up, and a lost engine breaks only the case that caused it."""

import pytest

from conformance.runner.cases import JudgeCases, cells_of
from conformance.runner.execution import CellPlan, run_cells
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import Limits
from tests.support.miniature.runtime import MiniatureRuntime
from tests.support.miniature.target import SPARK_359, cases_named
from tests.unit.conformance.runner.test_cases import Recorder


def run(tmp_path, mode, names, *, side_by_side, **limits):
    cases = cases_named(names)
    seen = Recorder()
    runtime = MiniatureRuntime(tmp_path, mode)
    budget = Limits(jobs=1, step_timeout=60.0, side_by_side=side_by_side, **limits)
    run_cells(CellPlan(cells_of(cases, [SPARK_359]), RuntimeOptions(), budget), JudgeCases(), runtime, seen, seen)
    return {id.partition("/")[2]: verdict for id, verdict in seen.verdicts.items()}, runtime


def test_interleaved_messages_reach_their_cases(tmp_path):
    verdicts, runtime = run(tmp_path, "takes-three-and-answers-the-last-first", "abc", side_by_side=3)
    assert {name: verdict.status for name, verdict in verdicts.items()} == dict.fromkeys("abc", "conforms")
    assert runtime.started == 1


def test_when_an_engine_dies_only_the_case_that_caused_it_is_broken(tmp_path):
    verdicts, _ = run(tmp_path, "dies-of-poison", ["a", "b", "poison", "c", "d"], side_by_side=5)
    statuses = {name: verdict.status for name, verdict in verdicts.items()}
    assert statuses == {**dict.fromkeys("abcd", "conforms"), "poison": "broken"}
    assert "exit code 137 at step 2 of late-drops/poison" in verdicts["poison"].describe()


@pytest.mark.parametrize(
    ("mode", "names", "side_by_side"), [("loses-an-executor-at-first", "ab", 1), ("is-busy-at-first", "abc", 3)]
)
def test_a_case_runs_again_after_its_cluster_lost_an_executor_or_its_machine_was_overloaded(
    tmp_path, mode, names, side_by_side
):
    verdicts, runtime = run(tmp_path, mode, names, side_by_side=side_by_side)
    assert {verdict.status for verdict in verdicts.values()} == {"conforms"}
    assert runtime.started == 1


def test_a_case_is_broken_if_its_cluster_always_loses_executors(tmp_path):
    verdicts, runtime = run(tmp_path, "loses-executors", "a", side_by_side=1)
    assert verdicts["a"].status == "broken"
    assert "the cluster lost 1 of its executors while late-drops/a ran" in verdicts["a"].describe()
    assert runtime.started == 1
