"""The script on the page of a case, on a real Spark: it emits the rows that the case expects."""

import json
import subprocess
from pathlib import Path

from conformance.core.case import Expectation, Restart
from conformance.core.observation import BatchSeen, Column, Observation, StepSeen
from conformance.judging.consistency import reads_the_clock
from conformance.judging.expected import Steps, expected
from conformance.judging.verdict import judge
from harness.environments.provision import prepare
from harness.progress import ignore_progress
from harness.targets.targets import tuning
from reports.exports.programs import pyspark_script
from tests.support.effort import FULL
from tests.support.whole_suite import whole_suite

ROOT = Path(__file__).parents[2]
RUNNER = Path(__file__).with_name("scripts_here.py")
SAMPLE = (
    "late-drops/window-still-open",
    "recovery/replay-filters-late-rows-as-the-first-attempt-did",
    "recovery/graceful-restart-keeps-the-watermark",
    "join-delays/left-outer-null-row-at-window-end",
    "no-data-batches/available-now-works-off-a-backlog",
)


def runnable(target):
    """Case → its script, for the cases whose every step succeeds on the version."""
    for case in whole_suite().cases:
        wanted = expected(case, target.version)
        if not FULL and case.id not in SAMPLE:
            continue
        if not isinstance(wanted, Steps) or any(step.ends_the_case for step in wanted.steps) or reads_the_clock(case):
            continue
        script = pyspark_script(case)
        if script is not None:
            yield case, wanted, script


def test_a_script_emits_what_its_case_expects(target, tmp_path):
    chosen = {case.id: (case, wanted, script) for case, wanted, script in runnable(target)}
    if not FULL:
        assert set(chosen) == set(SAMPLE)
    environment = prepare(target, on_progress=ignore_progress)
    environ = {**environment.environ(), "PYTHONPATH": str(ROOT), "TZ": "UTC"}
    done = subprocess.run(
        [str(environment.python), str(RUNNER), str(tmp_path / "rows.json")],
        input=json.dumps(
            {"conf": tuning(target.version), "scripts": {id: script for id, (_, _, script) in chosen.items()}}
        ),
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert set(found) == set(chosen)
    wrong = {
        id: problem for id, (case, wanted, _) in chosen.items() if (problem := differs(case, wanted, found[id], target))
    }
    assert wrong == {}


def differs(case, wanted, answer, target):
    """What is not as the case expects; the order of micro-batches within a step is not compared."""
    if answer["error"]:
        return answer["error"][-600:]
    if any(isinstance(step.action, Restart) and step.action.change.query for step in case.steps):
        return None  # the columns of the earlier query are not told
    rows_only = {
        step.step.number: step.step.model_copy(update={"expect": Expectation(rows=step.expectation.rows)})
        for step in wanted.steps
    }
    plain = case.model_copy(
        update={
            "differs": (),
            "steps": tuple(rows_only.get(step.number, step.model_copy(update={"expect": None})) for step in case.steps),
        }
    )
    columns = tuple(Column(name=name, type=type_) for name, type_ in answer["columns"])
    seen = Observation.of(
        case.id, columns, tuple(step_seen(step.number, answer["rows"], columns) for step in case.steps)
    )
    verdict = judge(plain, target.version, seen)
    return None if verdict.status == "conforms" else [str(finding) for finding in verdict.findings]


def step_seen(number, rows, columns):
    emitted = tuple(tuple(row) for step, _, row in rows if step == number)
    one = BatchSeen(
        id=number, kind="data", sources=(), watermark=None, logged=0, next_watermark=None, rows=emitted, dropped=0,
        state=(), event_time=None, duration_ms=0, progress={},
    )  # fmt: skip
    return StepSeen(number=number, batches=(one,), watermark=0, plan=None, error=None, wall_ms=0, columns=columns)
