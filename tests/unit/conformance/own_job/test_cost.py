"""How much a check of a job runs: a number of steps that the rows do not change."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.core.case import Case
from conformance.core.observation import SourceRead
from conformance.core.spark_types import parse_schema
from conformance.own_job.job_case import own_function, write_job
from conformance.own_job.job_run import CellAnswer, JobRun, next_cells
from conformance.own_job.sample import Sample
from conformance.runner.resources import EngineUse
from harness.scheduling.cell_run import CellRun, CellTask, SavedCheckpoint
from tests.support.miniature.two_versions import NEW, OLD
from tests.support.observations import batch, observed, step, window
from tests.unit.conformance.own_job.test_verdict import REFUSED

(REFUSES,) = (one.error for one in REFUSED.steps if one.error)
Resumes = Callable[[CellTask], bool]


def cost(case: Case, resumes: Resumes = lambda _: True) -> int:
    """How many steps run until the verdict needs nothing more; ``resumes``: whether the later version takes a checkpoint."""
    run, steps = JobRun.of(case, OLD, NEW, EngineUse()), 0
    read = tuple(SourceRead(stream=stream, rows=1, moved=True) for stream in case.streams)
    rows = [step(each.number, batch(each.number, window("12:00", "12:10", 1), sources=read)) for each in case.steps]
    while cells := next_cells(run):
        assert all(cell.before is not None for cell in cells if cell.cut is not None), "steps before a cut run again"
        outcomes = []
        for cell in cells:
            first = cell.cut or 1
            takes = cell.cut is None or cell.target == OLD or resumes(cell)
            shown = rows if takes else [*rows[: first - 1], step(first, error=REFUSES)]
            seen = observed(*shown).model_copy(update={"case": case.id})
            steps += len(case.steps) - first + 1 if takes else 1
            kept = {cut: SavedCheckpoint(seen, "run", f"run.before-{cut}") for cut in cell.keep}
            outcomes.append(CellAnswer(cell, CellRun(cell, (seen,), None, seconds=0.1, kept=kept)))
        run = replace(run, answers=(*run.answers, *outcomes))
    return steps


def sample(stream: str, rows: int) -> Sample:
    schema = parse_schema("t TIMESTAMP, n INT")
    return Sample(stream, schema, tuple((1_772_366_400 + number, number) for number in range(rows)), 0)


@pytest.mark.parametrize("rows", [8, 2000])
@pytest.mark.parametrize("streams", [1, 3])
def test_the_steps_do_not_grow_with_the_rows(rows: int, streams: int, tmp_path: Path) -> None:
    samples = [sample(f"s{number}", rows) for number in range(streams)]
    case = write_job(own_function("jobs:build"), samples, tmp_path, again=True)
    # Six steps on each version, and what follows the restart and comes before the last two steps.
    assert len(case.steps) == 6
    assert cost(case) == 2 * 6 + 4 + 2 + 1
    # A checkpoint that is refused ends at once; then workarounds. If all are refused, that before the rows that arrive again is not tried.
    settings = 2
    assert cost(case, lambda cell: bool(cell.workaround)) == 2 * 6 + 2 + settings * (4 + 2)
    # A checkpoint refused for the same columns as after the restart, but not resumed with a setting: the earlier version resumes it, too.
    assert cost(case, lambda cell: bool(cell.workaround) and cell.cut != 5) == 2 * 6 + 2 + settings * (4 + 1) + 2
    # If they do not end alike, each checkpoint is tried.
    assert (
        cost(case, lambda cell: bool(cell.workaround) or cell.cut != 5)
        == 2 * 6 + (5 + 4 + 3 + 1) + 1 + 2 + settings * 2
    )


def test_a_silent_stream_adds_a_step_for_each(tmp_path: Path) -> None:
    for streams in (2, 3, 5):
        samples = [sample(f"s{number}", 20) for number in range(streams)]
        case = write_job(own_function("jobs:build"), samples, tmp_path, batches=2, silent=True)
        assert len(case.steps) == streams + 3
        assert cost(case) == 2 * (streams + 3) + (streams + 2) + streams
