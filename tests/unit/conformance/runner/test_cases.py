"""The suite catches every deliberately wrong engine and names what is wrong; and what `record` takes from an answer."""

from pathlib import Path

import pytest

from conformance.core.observation import OwnCodeError
from conformance.language.reader import case_from
from conformance.language.source import ProblemReport, read_yaml
from conformance.own_job.case_run import run_on
from conformance.runner import resources
from conformance.runner.cases import JudgeCases, NoObservation, cells_of, observation_in, observe
from conformance.runner.execution import CellPlan, Engines, run_cells
from conformance.runner.resources import RunInterrupted
from conformance.suite import discovery
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import Limits
from tests.support.cells import CALM, CASE, FAILED, results, seen
from tests.support.miniature.runtime import MiniatureRuntime
from tests.support.miniature.target import SPARK_359
from tests.support.observations import case as case_of

CASES = Path(__file__).parents[3] / "support" / "miniature" / "cases"
WINDOWS = CASES / "late-drops" / "windows.yaml"


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


def recorded(runtime, cases, *, cache=None, allow_code=False, **limits):
    """What a recorder is told of these cases, which run on this runtime."""
    seen, limits = Recorder(), Limits(**{"jobs": 1, "step_timeout": 60.0, **limits})
    plan = CellPlan(cells_of(cases, [SPARK_359]), RuntimeOptions(), limits, allow_code=allow_code)
    run_cells(plan, JudgeCases(), runtime, seen, seen, cache)
    return seen


def cases_at(path):
    loaded = discovery.load([path])
    loaded.raise_for_problems()
    return loaded.cases


@pytest.fixture
def verdict_of(tmp_path):
    def verdict_of(mode, *, steps=None, **limits):
        cases = [case.model_copy(update={"steps": case.steps[:steps]}) for case in cases_at(CASES)]
        return recorded(MiniatureRuntime(tmp_path, mode), cases, **limits).verdicts["late-drops/windows"]

    return verdict_of


def test_a_right_engine_conforms(verdict_of):
    assert verdict_of("right").status == "conforms"


@pytest.mark.parametrize(
    ("mode", "status", "said"),
    [
        ("one-batch-late", "violates", "step 2"),
        ("forgets-state", "violates", "expected, not emitted"),
        ("keeps-late-rows", "violates", "dropped: expected 1, observed 0"),
        ("drops-a-column", "violates", "3 values"),
        ("two-watermarks", "violates", "offset log"),
        ("dies", "broken", "the engine's process ended with exit code 137 at step 2 of late-drops/windows"),
        ("babbles", "broken", "not a message: 'this is no message"),
        ("driver-fails", "broken", "the driver failed at step 1 of late-drops/windows"),
        ("does-not-start", "broken", "the engine did not start"),
        ("speaks-another-protocol", "broken", "version 99 of the protocol"),
        ("splits-a-batch", "broken", "the rows of step 1 were not read as the case means"),
        ("sees-no-rows", "broken", "the rows of step 1 were not read as the case means"),
    ],
)
def test_a_wrong_engine_violates_and_one_without_an_answer_is_broken_and_never_judged(verdict_of, mode, status, said):
    verdict = verdict_of(mode)
    assert verdict.status == status
    assert said in verdict.describe()


def test_an_engine_that_hangs_is_broken_and_never_judged(verdict_of):
    """The limit may be short because no step before the last must keep within it."""
    verdict = verdict_of("hangs", step_timeout=0.5, steps=1)
    assert verdict.status == "broken"
    assert "no answer within 0.5 s at step 1 of late-drops/windows; the engine was ended" in verdict.describe()


def test_a_lost_engine_is_replaced_for_the_other_cases(tmp_path):
    (case,) = cases_at(CASES)
    runtime = MiniatureRuntime(tmp_path, "dies", only_first=True)
    verdicts = recorded(runtime, [case, case.model_copy(update={"id": "late-drops/other"})]).verdicts
    expected = {"late-drops/windows": "broken", "late-drops/other": "conforms"}
    assert {id: verdict.status for id, verdict in verdicts.items()} == expected
    assert runtime.started == 2


def test_repeated_runs_that_disagree_are_flaky(verdict_of):
    verdict = verdict_of("right-every-other-time", repeat=2)
    assert verdict.status == "flaky"
    assert "run 1: conforms" in verdict.describe()
    assert "run 2: violates" in verdict.describe()


KILLED = """
  - name: killed at rest
    restart: kill
    expect: {watermark: "12:10"}
  - name: killed with its rows out
    restart: {how: kill, at: emitted, add: {events: [["12:50", 1]]}}
    expect: {rows: []}
  - name: the window of 12:35 comes out of the state of before
    add: {events: [["13:10", 1]]}
    expect: {rows: [["12:30", "12:40", 1]], watermark: "12:45"}
"""


@pytest.mark.parametrize(
    ("mode", "status", "said", "started"),
    [
        ("right", "conforms", "", 3),
        ("forgets-on-resume", "violates", "expected, not emitted", 3),
        ("always-misses", "broken", "the engine was killed too late at step 4", 5),
    ],
)
def test_a_killed_engine_is_replaced_and_the_next_resumes_its_checkpoint(tmp_path, mode, status, said, started):
    (tmp_path / "mine.yaml").write_text(WINDOWS.read_text() + KILLED)
    runtime = MiniatureRuntime(tmp_path, mode)
    verdict = recorded(runtime, cases_at(tmp_path / "mine.yaml")).verdicts["mine"]
    assert verdict.status == status, verdict.describe()
    assert said in verdict.describe()
    assert runtime.started == started


@pytest.fixture
def nothing_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The verdict on a miniature engine's answer to the case without its expectations."""
    monkeypatch.setattr(resources, "runtime_for", lambda *_, **__: MiniatureRuntime(tmp_path))

    def run():
        written = read_yaml(WINDOWS, ProblemReport(WINDOWS)).plain()
        written["steps"] = [{"add": step["add"]} for step in written["steps"]]
        with Engines(RuntimeOptions(), Limits(jobs=1, step_timeout=60)) as engines:
            return run_on(engines, case_from(written, "mine"), SPARK_359).verdict

    return run


def test_it_says_how_to_fill_it_in(nothing_expected):
    found = nothing_expected()
    assert found.status == "broken"
    assert found.notes[0] == (
        "the case expects nothing yet: `conformance case record mine.yaml` fills in what Spark does"
    )
    # What came out is shown.
    assert "12:10" in found.describe()


MISTAKE = OwnCodeError(
    raised="KeyError('k')", at="jobs.py:2", during="in a UDF", traceback="File \"jobs.py\", line 2, in f\nKeyError: 'k'"
)


def taken(path, answer):
    results(path, {CASE: {"3.5.9": answer}})
    return observation_in(path, case_of(None, id=CASE), "3.5.9")


def test_an_error_of_spark_is_taken(tmp_path):
    assert taken(tmp_path / "r.jsonl", FAILED).steps[0].error.name == "SparkException"
    assert taken(tmp_path / "r.jsonl", CALM).steps[0].error is None


def test_a_mistake_in_the_authors_code_is_not(tmp_path):
    error = FAILED.steps[0].error.model_copy(update={"own_code": MISTAKE})
    with pytest.raises(NoObservation) as caught:
        taken(tmp_path / "r.jsonl", seen(FAILED.steps[0].model_copy(update={"error": error})))
    assert str(caught.value) == (
        f"{CASE}: no answer from Spark (your code raised KeyError('k') at jobs.py:2, in a UDF\n"
        "  File \"jobs.py\", line 2, in f\n  KeyError: 'k'); nothing was recorded"
    )


class Interrupting(Recorder):
    """The user presses Ctrl-C as soon as a case starts."""

    def started(self, task):
        raise KeyboardInterrupt


def test_an_interruption_of_a_single_case_ends_its_engine_and_says_so(tmp_path, monkeypatch):
    runtime = MiniatureRuntime(tmp_path)
    monkeypatch.setattr(resources, "runtime_for", lambda *_, **__: runtime)
    (case,) = discovery.load([WINDOWS]).cases
    with pytest.raises(
        RunInterrupted, match=r"^interrupted: 1 of 1 answers are missing; no engine is left running$"
    ) as end:
        observe(case, SPARK_359, RuntimeOptions(), Interrupting())
    assert end.value.exit_code == 130
