"""What engines answer, kept by case."""

from harness.scheduling.cell_run import CellTask, Limits
from harness.scheduling.scheduler import Listener, Scheduler


class Remembering(Listener):
    """Takes no cell without an answer."""

    def __init__(self):
        self.seen = {}
        self.kept = {}

    def cell_done(self, run):
        assert run.failure is None, run.failure
        self.seen[run.case.id], self.kept[run.case.id] = run.observations[0], run.kept

    def asked(self, runtime, target, cases, *, side_by_side):
        """Run the cases; case id → the digest of its answer, of everything that was ever asked."""
        limits = Limits(jobs=1, step_timeout=600.0, side_by_side=side_by_side)
        Scheduler(runtime, limits, self).run([CellTask(case, (target,)) for case in cases])
        return {id: observation.behaviour_digest for id, observation in self.seen.items()}
