"""A query tried on two miniature engines: what it writes and says, with what repeated rows show beside the sample."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.judging.comparison import BehaviourChange
from conformance.own_job.job_case import ActingOptions, own_function
from conformance.own_job.job_run import CellAnswer
from conformance.own_job.resumption import GivenCheckpoint
from conformance.own_job.sample_rows import RowsOfVersions
from conformance.own_job.statements import summary
from conformance.own_job.trial import Known, Trial
from conformance.own_job.verdict import JobVerdict
from conformance.runner.resources import EngineUse
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import CellRun, CellTask
from harness.scheduling.kept_engines import KeptEngines
from reports.results.reading import Results
from reports.results.status import Statement
from tests.support.checkpoints import small
from tests.support.miniature.two_versions import NEW, OLD, TwoVersions
from tests.support.observations import observed, step
from tests.unit.conformance.own_job.test_job_run import Silent, sample_in
from tests.unit.conformance.own_job.test_resumption import RAN
from tests.unit.conformance.own_job.test_verdict import CHECKED, OF_A_SUM, ErrorSeen


class Progress(Silent):
    cells = 0

    def add(self, cells: int, steps: int = 0) -> None:
        self.cells += cells


class Listener:
    def __init__(self) -> None:
        self.begun: list[tuple[str, int, Path]] = []
        self.shown = Progress()

    def begins(self, query, case, samples, folder: Path) -> None:
        self.begun.append((query.title, len(case.steps), folder))

    def begins_again(self, why: str) -> None:
        self.begun.append((why, 0, Path()))

    @contextmanager
    def progress(self, *, many_rows: bool) -> Iterator[Progress]:
        yield self.shown


class Published:
    """What is published: one bug."""

    def statements(self) -> Sequence[Statement]:
        return (Statement("bug", "▲", "1 known bug"),)

    def record(self) -> dict[str, object]:
        return {"known_bugs": ["a bug"], "known_changes": []}

    def reasons(self, change: BehaviourChange) -> Sequence[str]:
        return ("3.5.9 has a known bug (SPARK-1)",)


@pytest.mark.parametrize("repeat_rows", [True, False])
def test_only_repeated_rows_show_that_late_rows_are_kept(tmp_path: Path, repeat_rows: bool) -> None:
    asked: list[JobVerdict] = []

    def known(verdict: JobVerdict) -> Known:
        asked.append(verdict)
        return Published()

    output, listener = tmp_path / "check", Listener()
    with closing(KeptEngines(TwoVersions(tmp_path, {NEW.name: "keeps-late-rows"}))) as kept:
        where = EngineUse(kept=kept)
        trial = Trial(OLD, NEW, where, 3, True, repeat_rows, "files", known, listener)
        answer = trial.answer(own_function("jobs:build"), [sample_in(tmp_path)], output, "conformance check")
    assert listener.begun == [("jobs:build", 5 + repeat_rows, output)]
    assert listener.shown.cells > 2
    assert asked == [answer.verdict]
    assert (answer.verdict.answer, answer.exit_code) == ("same", int(repeat_rows))
    texts = [statement.text for statement in answer.statements]
    # What became of the sample's rows comes first.
    assert texts[0].startswith("both versions: ")
    assert texts[1].startswith("same rows, watermarks and state")
    # What is published follows the sample, and what rows under another condition show comes last.
    stressed = [text for text in texts if text.startswith("with repeated and late rows: 1 more row than before")]
    assert texts[-1 - len(stressed) :] == ["1 known bug", *stressed]
    assert len(stressed) == repeat_rows
    record = answer.record()
    assert record["known_bugs"] == ["a bug"]
    # One line concludes, in the words of the exit code and of the JSON document.
    assert (record["answer"], record["lost"]) == ("differs" if repeat_rows else "same", [])
    if repeat_rows:
        assert record["summary"] == (
            "3.5.9 → 4.0.5: same rows; the checkpoint resumes; with repeated and late rows: 1 more row than before, 1 fewer dropped as "
            "late; the checkpoint resumes with other rows. 3.5.9 has a known bug (SPARK-1)."
        )
    else:
        assert record["summary"].startswith("3.5.9 → 4.0.5: same rows; the checkpoint resumes; not tried: ")
        assert len(record["notTried"]) == 1
    assert (record["repeated_rows"] is None, record["silent_streams"]) == (not repeat_rows, None)
    # The case and the results are those of the sample as it is: five steps, without the rows that come again.
    cells = Results.read(output / "results.jsonl").cells
    assert [(cell.status, len(cell.observation.steps)) for cell in cells if cell.observation] == [("conforms", 5)] * 2
    assert record["case"] == str(answer.verdict.case.path) == str(output / "jobs.build.yaml")


def test_options_of_the_sources_act_in_a_case_of_their_own_or_are_not_tried(tmp_path: Path) -> None:
    keys = {"files": {"maxFilesPerTrigger": 1}, "kafka": {"source": "kafka", "startingOffsets": "latest"}}
    options = tuple(ActingOptions(source, {"events": own}, f"options of {source}") for source, own in keys.items())
    query = replace(own_function("jobs:build"), options=options)
    with closing(KeptEngines(TwoVersions(tmp_path, {}))) as kept:
        trial = Trial(OLD, NEW, EngineUse(kept=kept), 3, True, False, "files", lambda _: None, Listener())
        sorted_by_time = replace(sample_in(tmp_path), arrival="time")
        answer = trial.answer(query, [sorted_by_time], tmp_path / "check", "conformance check")
    texts = [statement.text for statement in answer.statements]
    assert "not tried: options of kafka: --source kafka lets them act" in texts
    assert "not tried: the order of the file, in place of --arrival time" in texts
    assert texts[-1].startswith("also with files that wait when it starts, and options of files: same rows")
    record = answer.record()
    assert (record["options_of_files"]["change"], record["options_of_topics"]) == (None, None)
    assert "not tried: options of kafka: --source kafka lets them act" in record["notTried"]


def test_where_a_query_lets_the_row_much_later_not_through_copies_of_more_rows_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RowsOfVersions, "closed", property(lambda _: False))
    sample, listener = sample_in(tmp_path), Listener()
    with closing(KeptEngines(TwoVersions(tmp_path, {}))) as kept:
        trial = Trial(OLD, NEW, EngineUse(kept=kept), 3, True, False, "files", lambda _: None, listener)
        answer = trial.answer(own_function("jobs:build"), [sample], tmp_path / "check", "conformance check")
    assert [title for title, *_ in listener.begun] == [
        "jobs:build",
        "the row much later moved no watermark: again with copies of more rows",
    ]
    (rows,) = answer.verdict.case.steps[-1].arrivals()
    assert sum(len(part) for part in rows["events"].partitions) == len(sample.rows) > 1


def test_a_program_that_asks_for_something_else_is_a_change_though_its_rows_are_the_same(tmp_path: Path) -> None:
    query = replace(own_function("jobs:build"), changes=("output mode: append on 3.5.9, update on 4.0.5",))
    with closing(KeptEngines(TwoVersions(tmp_path, {}))) as kept:
        trial = Trial(OLD, NEW, EngineUse(kept=kept), 3, True, False, "files", lambda _: None, Listener())
        answer = trial.answer(query, [sample_in(tmp_path)], tmp_path / "check", "conformance check")
    assert (answer.verdict.answer, answer.exit_code) == ("same", 1)
    (said,) = [statement for statement in answer.statements if statement.details == query.changes]
    assert (said.kind, said.text) == ("violates", "the program does not ask 4.0.5 for what it asks 3.5.9")
    assert answer.record()["asked_otherwise"] == list(query.changes)
    assert "same rows; the program asks for something else" in summary(answer.verdict)


NULLABLE = OF_A_SUM.replace("DoubleType", "LongType").replace("sum,LongType,true", "sum,LongType,false", 1)
OFF = "spark.sql.streaming.stateStore.stateSchemaCheck"


@pytest.mark.parametrize(
    ("message", "ends", "told"),
    [
        ("", "● {}: the checkpoint resumes on 4.0.5", ""),
        (
            NULLABLE,
            f"; {{}}: the checkpoint is refused. Start it on 4.0.5 with {OFF}=false: tried, it resumes.",
            f"workaround: {OFF}=false; tried: the checkpoint resumes",
        ),
        (
            OF_A_SUM,
            "no setting is proven to help.",
            f"{OFF}=false does not help, do not use it: Spark reads the bytes of one type as another",
        ),
    ],
)
def test_the_checkpoint_of_the_user_is_resumed_too_also_with_the_settings_that_may_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str, ends: str, told: str
) -> None:
    def run_cell(task: CellTask, *_: object) -> CellAnswer:
        refused = message and OFF not in task.case.conf
        error = ErrorSeen(stage="run", classes=(CHECKED,), message=message)
        return CellAnswer(task, CellRun(task, (observed(step(1, error=error) if refused else RAN),), None, seconds=0.1))

    monkeypatch.setattr("conformance.own_job.resumption.run_cell", run_cell)
    given = GivenCheckpoint.at(str(small(tmp_path / "own")))
    with closing(KeptEngines(TwoVersions(tmp_path, {}))) as kept:
        where = EngineUse(kept=kept)
        trial = Trial(OLD, NEW, where, 3, True, False, "files", lambda _: None, Listener(), checkpoint=given)
        answer = trial.answer(
            own_function("jobs:build"), [sample_in(tmp_path)], tmp_path / "check", "conformance check"
        )
    lines = [f"{line.glyph} {text}" for line in answer.statements for text in (line.text, *line.details)]
    assert any(line.endswith(told) for line in lines)
    assert any(line.endswith(ends.format(tmp_path / "own")) for line in (*lines, answer.conclusion.line))
    record = answer.record()
    assert (answer.exit_code, record["answer"]) == ((1, "refused") if message else (0, "same"))
    assert record["checkpoint"]["outcome"] == ("refused" if message else "resumed")


def test_what_a_checkpoint_pins_counts_and_a_setting_beside_it_has_no_effect(tmp_path: Path) -> None:
    given = GivenCheckpoint.at(str(small(tmp_path / "own")))
    key = "spark.sql.shuffle.partitions"
    use, notes = given.with_settings(EngineUse(runtime=RuntimeOptions(conf={key: "7", "spark.a": "b"})))
    assert use.runtime.conf == {key: "2", "spark.a": "b", "spark.sql.streaming.join.stateFormatVersion": "2"}
    assert notes == (f"--conf {key}=7 has no effect: the checkpoint stores 2",)
