"""Nothing lost and nothing twice: what engines gave over every interruption, against a run without it."""

from pathlib import Path

from harness.runtimes.local import LocalRuntime
from reports.results.published import published
from reports.results.reading import Results
from tests.engine.remembering import Remembering
from tests.support.effort import full_run_only
from tests.support.uninterrupted import emitted, same_rows, uninterrupted
from tests.support.whole_suite import whole_suite


@full_run_only
def test_nothing_lost_and_nothing_twice(tmp_path: Path, target):
    """The published results hold the interrupted runs; this engine now runs the same cases without the interruption."""
    over = {
        cell.case: cell.observation
        for cell in Results.read_all(list(published())).cells
        if cell.target == target.name and cell.observation is not None
    }
    interrupted = {case.id: case for case in whole_suite().cases if case.id in over and uninterrupted(case)}
    wholes = tuple(whole for case in interrupted.values() if (whole := uninterrupted(case)) is not None)
    assert len(wholes) >= 30
    remembering = Remembering()
    remembering.asked(LocalRuntime(tmp_path), target, wholes, side_by_side=4)
    assert len(remembering.seen) == len(wholes)
    lost_or_doubled = {
        id: (emitted(over[id]), emitted(remembering.seen[id]))
        for id, case in interrupted.items()
        if id in remembering.seen and not same_rows(case, over[id], remembering.seen[id])
    }
    assert lost_or_doubled == {}
