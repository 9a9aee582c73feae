"""A query tried on two miniature engines: what it writes and says, with what repeated rows show beside the sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.own_job.job_run import own_function
from conformance.own_job.statements import summary
from conformance.own_job.trial import Known, Trial
from conformance.own_job.verdict import JobVerdict
from conformance.runner.resources import EngineUse
from harness.scheduling.kept_engines import KeptEngines
from reports.results.reading import Results
from reports.results.status import Statement
from tests.support.miniature.two_versions import NEW, OLD, TwoVersions
from tests.unit.conformance.own_job.test_job_run import Silent, sample_in


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

    @contextmanager
    def progress(self, *, many_rows: bool) -> Iterator[Progress]:
        yield self.shown


class Published:
    """What is published: one bug."""

    def statements(self) -> Sequence[Statement]:
        return (Statement("bug", "▲", "1 known bug"),)

    def record(self) -> dict[str, object]:
        return {"known_bugs": ["a bug"], "known_changes": []}

    def reasons(self) -> Sequence[str]:
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
