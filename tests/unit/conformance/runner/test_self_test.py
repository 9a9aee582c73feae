"""The suite tests itself first: it catches every deliberately wrong engine, and names what is wrong."""

from pathlib import Path

import pytest

from conformance.runner.run import JudgeCases, cells_of
from conformance.runner.run_cells import run_cells
from conformance.suite import discovery
from harness.scheduling.cell_run import Limits
from tests.support.miniature.runtime import MiniatureRuntime
from tests.support.miniature.target import SPARK_359

CASES = Path(__file__).parents[3] / "support" / "miniature" / "cases"


class Recorder:
    """Display and sink in one; records what they are told."""

    def __init__(self):
        self.verdicts = {}
        self.identities = []
        self.runs = {}

    def engine_says(self, target, line): ...
    def engine_ready(self, target, identity, place): ...
    def started(self, task): ...
    def judged(self, task, verdict, seconds): ...

    def introduce(self, target, identity, place):
        self.identities.append(identity)

    def keep(self, task, verdict, run):
        self.verdicts[task.case.id] = verdict
        self.runs[task.case.id] = run


@pytest.fixture
def verdict_of(tmp_path):
    def verdict_of(mode, *, repeat=1, step_timeout=60.0, steps=None, only_first=False):
        loaded = discovery.load([CASES])
        loaded.raise_for_problems()
        seen = Recorder()
        runtime = MiniatureRuntime(tmp_path, mode, only_first=only_first)
        limits = Limits(jobs=1, step_timeout=step_timeout, repeat=repeat)
        cases = [case.model_copy(update={"steps": case.steps[:steps]}) for case in loaded.cases]
        run_cells(cells_of(cases, [SPARK_359]), JudgeCases(), runtime, limits, display=seen, sink=seen)
        return seen.verdicts["late-drops/windows"]

    return verdict_of


def test_a_right_engine_conforms(verdict_of):
    assert verdict_of("right").status == "conforms"


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("one-batch-late", "step 2"),
        ("forgets-state", "expected, not emitted"),
        ("keeps-late-rows", "dropped: expected 1, observed 0"),
        ("drops-a-column", "3 values"),
        ("two-watermarks", "offset log"),
    ],
)
def test_a_wrong_engine_violates_and_the_verdict_says_how(verdict_of, mode, said):
    verdict = verdict_of(mode)
    assert verdict.status == "violates"
    assert said in verdict.describe()


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("dies", "the engine's process ended with exit code 137 at step 2 of late-drops/windows"),
        ("babbles", "not a message: 'this is no message"),
        ("driver-fails", "the driver failed at step 1 of late-drops/windows"),
        ("does-not-start", "the engine did not start"),
        ("speaks-another-protocol", "version 99 of the protocol"),
        ("splits-a-batch", "the rows of step 1 were not read as the case means"),
        ("sees-no-rows", "the rows of step 1 were not read as the case means"),
    ],
)
def test_an_engine_that_gives_no_answer_is_broken_and_never_judged(verdict_of, mode, said):
    verdict = verdict_of(mode)
    assert verdict.status == "broken"
    assert said in verdict.describe()


def test_an_engine_that_hangs_is_broken_and_never_judged(verdict_of):
    """The limit may be short because no step before the last must keep within it."""
    verdict = verdict_of("hangs", step_timeout=0.5, steps=1)
    assert verdict.status == "broken"
    assert "no answer within 0.5 s at step 1 of late-drops/windows; the engine was ended" in verdict.describe()


def test_a_lost_engine_is_replaced_for_the_other_cases(tmp_path):
    (case,) = discovery.load([CASES]).cases
    other = case.model_copy(update={"id": "late-drops/other"})
    seen = Recorder()
    runtime = MiniatureRuntime(tmp_path, "dies", only_first=True)
    run_cells(
        cells_of([case, other], [SPARK_359]),
        JudgeCases(),
        runtime,
        Limits(jobs=1, step_timeout=60.0),
        display=seen,
        sink=seen,
    )
    assert {id: verdict.status for id, verdict in seen.verdicts.items()} == {
        "late-drops/windows": "broken",
        "late-drops/other": "conforms",
    }
    assert runtime.started == 2


def test_repeated_runs_that_disagree_are_flaky(verdict_of):
    verdict = verdict_of("right-every-other-time", repeat=2)
    assert verdict.status == "flaky"
    assert "run 1: conforms" in verdict.describe()
    assert "run 2: violates" in verdict.describe()


def test_repeated_runs_that_agree_are_one_answer(verdict_of):
    assert verdict_of("right", repeat=20).status == "conforms"


def run_text(tmp_path, text, mode):
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "mine.yaml").write_text(text)
    loaded = discovery.load([folder])
    loaded.raise_for_problems()
    seen = Recorder()
    runtime = MiniatureRuntime(tmp_path, mode)
    run_cells(
        cells_of(loaded.cases, [SPARK_359]),
        JudgeCases(),
        runtime,
        Limits(jobs=1, step_timeout=60.0),
        display=seen,
        sink=seen,
    )
    return seen.verdicts["mine"], runtime


KILLED = """
  - name: killed at rest
    restart: kill
    expect: {watermark: "12:10"}
  - name: killed with its rows out
    restart: {how: kill, at: emitted, add: {events: [["12:50", 1]]}}
    expect: {rows: [], unchecked_here: true}
  - name: the window of 12:35 comes out of the state of before
    add: {events: [["13:10", 1]]}
    expect: {rows: [["12:30", "12:40", 1]], watermark: "12:45"}
"""


def killed(at):
    text = (CASES / "late-drops" / "windows.yaml").read_text() + KILLED.replace(", unchecked_here: true", "")
    return text.replace("at: emitted", f"at: {at}")


def test_a_killed_engine_is_replaced_and_the_next_resumes_its_checkpoint(tmp_path):
    verdict, runtime = run_text(tmp_path, killed("emitted"), "right")
    assert verdict.status == "conforms", verdict.describe()
    assert runtime.started == 3


def test_an_engine_that_loses_state_in_a_kill_violates(tmp_path):
    verdict, _ = run_text(tmp_path, killed("emitted"), "forgets-on-resume")
    assert verdict.status == "violates"
    assert "expected, not emitted" in verdict.describe()


def test_an_engine_that_was_always_killed_too_late_is_broken(tmp_path):
    verdict, runtime = run_text(tmp_path, killed("emitted"), "always-misses")
    assert verdict.status == "broken"
    assert "the engine was killed too late at step 4" in verdict.describe()
    assert runtime.started == 5
