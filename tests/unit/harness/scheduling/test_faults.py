"""Engines that stop, stall, answer twice, lose their context or talk nonsense, at drawn moments of drawn cases.

As FoundationDB and TigerBeetle do, with a fake engine: whatever happens, every cell has a status, no cell is green without its own
evidence, and no cell is broken for what happened to another.
"""

import threading
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st

from conformance.judging.verdict import judge
from conformance.runner.cases import JudgeCases, cells_of
from conformance.runner.execution import CellPlan, run_cells
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import Limits
from tests.support.miniature.runtime import KINDS, Fault, MiniatureRuntime
from tests.support.miniature.target import SPARK_359, cases_named
from tests.unit.conformance.runner.test_cases import Recorder

NAMES = "abcdef"
STEP_TIMEOUT = 2.0
FAULTS = st.builds(Fault, st.sampled_from(KINDS), st.integers(0, 4))


def run(faults, side_by_side):
    cases = cases_named(NAMES)
    seen = Recorder()
    with TemporaryDirectory() as root:
        runtime = MiniatureRuntime(Path(root), faults={f"late-drops/{name}": deepcopy(faults[name]) for name in faults})
        budget = Limits(jobs=1, step_timeout=STEP_TIMEOUT, side_by_side=side_by_side)
        cells = cells_of(cases, [SPARK_359])
        running = threading.Thread(
            target=run_cells, args=(CellPlan(cells, RuntimeOptions(), budget), JudgeCases(), runtime, seen, seen)
        )
        running.start()
        running.join(60)
        assert not running.is_alive(), "it hangs"
    return {case.id.removeprefix("late-drops/"): case for case in cases}, seen


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(FAULTS, min_size=1, max_size=3), max_size=3), st.integers(1, 3))
@example({"a": [Fault("stops", 4)]}, 1).via("the process ended between two cases")
@example({"a": [Fault("loses its context", 4)]}, 1).via("code of a case had stopped the context")
@example({"a": [Fault("answers twice", 4)]}, 1).via("an answer comes again while the next case runs")
@example({"a": [Fault("talks nonsense", 4)]}, 1).via("the line belongs to no case")
def test_only_the_cells_that_faults_hit_may_be_broken(faults, side_by_side):
    cases, seen = run(faults, side_by_side)
    assert seen.verdicts.keys() == {case.id for case in cases.values()}
    for name, case in cases.items():
        verdict, of_run = seen.verdicts[case.id], seen.runs[case.id]
        assert verdict.status in (("conforms", "broken") if name in faults else ("conforms",)), verdict.describe()
        if verdict.status == "conforms":
            (observation,) = of_run.observations
            assert (observation.case, [step.number for step in observation.steps]) == (case.id, [1, 2, 3])
            assert judge(case, SPARK_359.version, observation).findings == ()
