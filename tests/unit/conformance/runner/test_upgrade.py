"""Checkpoints handed from one miniature engine to another: real processes, no JVM; some lose what they must keep."""

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.core.versions import SparkVersion
from conformance.judging.checkpoint_verdict import cuts, handoffs
from conformance.runner import resources
from conformance.runner.cases import JudgeCases, cell_record
from conformance.runner.execution import CellPlan, run_cells
from conformance.runner.upgrade import handoff_cells
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.answer_cache import AnswerCache
from harness.scheduling.cell_run import Limits
from reports.results.errors import UnusableResults
from reports.results.reading import Results
from reports.results.records import Header, TargetRecord
from reports.results.status import exit_code_of
from reports.results.writing import ResultsWriter
from reports.terminal.upgrades import lines, summary
from tests.support.miniature.target import SPARK_359
from tests.support.miniature.two_versions import NEW, OLD, TwoVersions
from tests.unit.conformance.runner import test_cases


class Recorder(test_cases.Recorder):
    def __init__(self):
        super().__init__()
        self.kept = []

    def keep(self, task, verdict, run):
        self.verdicts[(task.case.id, task.origin.name, task.target.name, verdict.cut)] = verdict
        self.kept.append(cell_record(task, verdict, run))


def case_with(tmp_path, more="", text=None):
    folder = tmp_path / "cases"
    folder.mkdir(exist_ok=True)
    (folder / "mine.yaml").write_text((text or test_cases.WINDOWS.read_text()) + textwrap.dedent(more))
    (case,) = test_cases.cases_at(folder)
    return case


def handed_over(tmp_path, case, *, old="right", new="right", each=True, back=False, jobs=1):
    runtime = TwoVersions(tmp_path, {OLD.name: old, NEW.name: new})
    seen = Recorder()
    pairs = [(OLD, NEW), *([(NEW, OLD)] if back else [])]
    limits = Limits(jobs=jobs, step_timeout=60.0)
    cells = handoff_cells(handoffs([case], each=each), pairs)
    run_cells(CellPlan(tuple(cells), RuntimeOptions(), limits), JudgeCases(), runtime, seen, seen)
    return seen, runtime


def only(tmp_path, case, **modes):
    """The verdict on the one handoff of this case."""
    seen, _ = handed_over(tmp_path, case, each=False, **modes)
    (verdict,) = seen.verdicts.values()
    return verdict


def test_checkpoints_resume_at_every_cut_with_one_engine_per_version(tmp_path):
    seen, runtime = handed_over(tmp_path, case_with(tmp_path), back=True, jobs=2)
    assert {key[1:]: verdict.status for key, verdict in seen.verdicts.items()} == {
        (OLD.name, NEW.name, 2): "conforms",
        (OLD.name, NEW.name, 3): "conforms",
        (NEW.name, OLD.name, 2): "conforms",
        (NEW.name, OLD.name, 3): "conforms",
    }
    assert sorted(runtime.started) == [OLD.name, NEW.name]
    assert all(engine.ended for engine in runtime.engines)


def test_each_version_resumes_from_its_own_copy(tmp_path):
    case = case_with(tmp_path)
    third = replace(SPARK_359, version=SparkVersion(4, 3, 0))
    runtime, seen = TwoVersions(tmp_path, {}), Recorder()
    cells, limits = handoff_cells(handoffs([case]), [(OLD, NEW), (OLD, third)]), Limits(jobs=1, step_timeout=60.0)
    run_cells(CellPlan(tuple(cells), RuntimeOptions(), limits), JudgeCases(), runtime, seen, seen)
    assert [verdict.status for verdict in seen.verdicts.values()] == ["conforms", "conforms"]
    assert len({cell.behaviour for cell in seen.kept}) == 1
    (first,) = [engine for engine in runtime.engines if "3.5.9" in engine._work]
    left = sorted(path.name for path in Path(first._work, "cases").iterdir())
    assert left == ["1-mine.saved"]


def test_lost_state_violates(tmp_path):
    verdict = only(tmp_path, case_with(tmp_path), new="forgets-on-resume")
    assert verdict.status == "violates"
    assert "expected, not emitted" in "\n".join(finding.describe() for finding in verdict.findings)


def test_execution_of_two_engines_are_reused(tmp_path):
    case = case_with(tmp_path)
    pairs, limits = [(OLD, NEW), (NEW, OLD)], Limits(jobs=1, step_timeout=60.0, side_by_side=2)
    ran, reused, asked = [], [], 0
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        for round in ("first", "second"):
            (tmp_path / round).mkdir()
            runtime, seen = TwoVersions(tmp_path / round, {}, reusable=True), Recorder()
            handed = handoff_cells(handoffs([case], each=True), pairs)
            plan = CellPlan(tuple(handed), RuntimeOptions(), limits)
            reused.append(run_cells(plan, JudgeCases(), runtime, seen, seen, cache))
            ran.append(seen.verdicts)
            asked += len(runtime.started)
    assert reused == [0, 4]
    assert asked == 2
    assert ran[0] == ran[1]


REFUSED = """
upgrades:
  - from: <4
    to: ">=4"
    because: the format of the state is another
    link: SPARK-57003
    wayRound: start with a new checkpoint
    refused: {class: STATE_NOT_COMPATIBLE, stage: run}
"""


def test_faults_of_the_old_version_are_found_before_the_cut(tmp_path):
    seen, _ = handed_over(tmp_path, case_with(tmp_path), old="keeps-late-rows", each=True)
    assert [verdict.status for verdict in seen.verdicts.values()] == ["conforms", "conforms"]
    seen, _ = handed_over(tmp_path / "cases", case_with(tmp_path), old="forgets-state", each=True)
    found = {verdict.cut: verdict for verdict in seen.verdicts.values()}
    assert found[3].status == "violates"
    assert found[3].findings[0].place.step < 3


def test_an_engine_without_an_answer_is_broken(tmp_path):
    seen, runtime = handed_over(tmp_path, case_with(tmp_path), old="dies", each=True)
    found = {verdict.cut: verdict for verdict in seen.verdicts.values()}
    assert (found[2].status, found[3].status) == ("conforms", "broken")
    assert "exit code 137 at step 2" in found[3].notes[0]
    assert runtime.started.count(OLD.name) == 2  # the first had run the other cut before


def test_a_version_that_cannot_reach_the_cut_hands_nothing_over(tmp_path):
    more = """
    differs:
      - spark: <4
        unsupported: not there yet
      - spark: ">=4"
        because: it is refused
        steps: {2: {error: {class: X}}}
    """
    case = case_with(tmp_path, more)
    seen, runtime = handed_over(tmp_path, case, back=True, each=True)
    expected = {(OLD.name, NEW.name, 2): "not-applicable", (OLD.name, NEW.name, 3): "not-applicable"}
    assert {key[1:]: verdict.status for key, verdict in seen.verdicts.items() if key[1] == OLD.name} == expected
    back = {key[3]: verdict for key, verdict in seen.verdicts.items() if key[1] == NEW.name}
    assert back[3].status == "not-applicable"
    assert back[2].status == "violates"
    assert runtime.started.count(NEW.name) == 1


def test_a_kill_at_the_cut_happens_on_the_version_that_writes(tmp_path):
    more = """
      - name: killed with its rows out
        restart: {how: kill, at: emitted, add: {events: [["12:50", 1]]}}
      - name: the window of 12:35 comes out
        add: {events: [["13:10", 1]]}
        expect: {rows: [["12:30", "12:40", 1]], watermark: "12:45"}
    """
    case = case_with(tmp_path, text=test_cases.WINDOWS.read_text() + textwrap.indent(textwrap.dedent(more), "  "))
    assert cuts(case) == (4,)
    seen, runtime = handed_over(tmp_path, case, each=False)
    assert [verdict.status for verdict in seen.verdicts.values()] == ["conforms"]
    assert sorted(runtime.started) == [OLD.name, OLD.name, NEW.name]


def results_of(tmp_path, seen, finish=True):
    path = tmp_path / "upgrades.jsonl"
    header = Header(
        suite="5" * 64,
        cases=(),
        targets=tuple(TargetRecord(name=target.name, spark=str(target.version)) for target in (OLD, NEW)),
        started="2026-01-02T03:04:05Z",
        pairs=((OLD.name, NEW.name),),
        cuts={"mine": (2,)},
    )
    with ResultsWriter(path, header) as writer:
        for cell in seen.kept:
            writer.write(cell)
        if finish:
            writer.finish()
    return path


@pytest.mark.parametrize(
    ("new", "more", "code", "said"),
    [
        ("right", "", 0, "● 1 of 1 checkpoint resumed: (no family)"),
        ("refuses-to-resume", REFUSED, 0, "⊘ 1 checkpoint refused, as documented"),
        ("refuses-to-resume", "", 1, "✗ 1 checkpoint not as expected with STATE_NOT_COMPATIBLE"),
        ("dies", "", 3, "! 1 checkpoint broken: the harness or your code failed"),
    ],
)
def test_the_printed_matrix(tmp_path, new, more, code, said):
    seen, _ = handed_over(tmp_path, case_with(tmp_path, more), new=new, each=False)
    results = Results.read(results_of(tmp_path, seen))
    assert exit_code_of(cell.status for cell in results.upgrades) == code
    shown = "\n".join(map(str, lines(results, 120)))
    assert "workaround" not in shown  # a sentence is not tried
    assert [text in shown for text in (said, summary(results), "3.5.9 → 4.0.5")] == [True] * 3


def test_results_with_a_missing_cell_are_never_green(tmp_path):
    seen = Recorder()
    with pytest.raises(UnusableResults, match=r"mine on spark-3\.5\.9 → spark-4\.0\.5 before step 2"):
        Results.read(results_of(tmp_path, seen))
    text = results_of(tmp_path, seen).read_text().splitlines()
    (tmp_path / "cut.jsonl").write_text(text[0] + "\n")
    with pytest.raises(UnusableResults, match="after 0 of 1 cells"):
        Results.read(tmp_path / "cut.jsonl")


def test_the_command(tmp_path, monkeypatch):
    case_with(tmp_path, REFUSED)
    monkeypatch.setattr(
        resources, "runtime_for", lambda *_, **__: TwoVersions(tmp_path, {NEW.name: "refuses-to-resume"})
    )
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["upgrade", "cases", "--from", "3.5.9", "--to", "4.0.5"])
    assert done.exit_code == 0, done.output
    assert (
        "1 checkpoint refused, as documented with STATE_NOT_COMPATIBLE: the format of the state is another (SPARK-57003)"
        in " ".join(done.output.split())
    )
    assert Results.read(tmp_path / "upgrades.jsonl").upgrades[0].outcome == "refused"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "3.5.9", "--pairs", "lts", "--to", "3.0"], "no pair of versions is left"),
        (["--from", "3.5.9", "--to", "4.0.5", "--memory", "3g"], "only for containers"),
    ],
)
def test_wrong_usage(tmp_path, monkeypatch, arguments, said):
    case_with(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["upgrade", "cases", *arguments])
    assert done.exit_code == 2
    assert said in done.output
