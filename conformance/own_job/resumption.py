"""Resumes a checkpoint of one's own on another version, on a copy, with the query that its job builds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.checkpoints.awaiting import AwaitingChange, awaiting
from conformance.checkpoints.checkpoint import Checkpoint, read
from conformance.checkpoints.detached_copy import copy_detached
from conformance.checkpoints.files import open_files
from conformance.core.errors import WrongUsage
from conformance.core.observation import ErrorSeen, Observation
from conformance.core.values import show_in_full
from conformance.core.wording import counted
from conformance.own_job.job_run import Outcome, TrialOptions, outcomes
from conformance.own_job.sample import Sample
from conformance.own_job.statements import Kind, Statement
from conformance.own_job.trial import Job, write_resumption
from conformance.runner.execution import Display
from harness.scheduling.cell_run import CellTask
from harness.targets.target import Target


class OtherSources(WrongUsage):
    """The checkpoint is of a query with another number of sources."""

    def __init__(self, checkpoint: Checkpoint, streams: Sequence[str]) -> None:
        super().__init__(
            f"{checkpoint.where} is the checkpoint of a query with {counted(len(checkpoint.sources), 'source')}, but "
            f"{counted(len(streams), 'stream')} {'is' if len(streams) == 1 else 'are'} given ({', '.join(streams)}): "
            "give each with --sample or --schema, in the order in which the query reads them"
        )


@dataclass(frozen=True)
class Resumption:
    """What became of the checkpoint."""

    checkpoint: Checkpoint
    target: Target
    observation: Observation | None
    failure: str | None
    """Why there is no answer."""
    changes: tuple[AwaitingChange, ...]
    """What is known to await the checkpoint on this version."""

    @property
    def error(self) -> ErrorSeen | None:
        return self.observation.error if self.observation is not None else None

    @property
    def resumed(self) -> bool:
        """Whether a micro-batch ran on its state, and no error ended the query."""
        ran = self.observation is not None and any(step.batches for step in self.observation.steps)
        return ran and self.error is None

    @property
    def exit_code(self) -> int:
        """0 if it resumes, 1 if not, 2 if the job itself fails, 3 without an answer."""
        if self.error is not None:
            return 1 if self.error.own_code is None else 2
        return 0 if self.resumed else 3


def resume(
    where: str, job: Job, samples: Sequence[Sample], target: Target, options: TrialOptions, display: Display[Outcome]
) -> Resumption:
    """Resume a copy of a checkpoint; the original is only read.

    Args:
        where: path or URL of the checkpoint.
        job: builds the query.
        samples: of each stream, in the order of the sources; without rows for a stream that stays silent.
        target: the version that resumes it.

    Raises:
        NoSuchCheckpoint, DamagedCheckpoint: it cannot be read.
        OtherSources: the samples are not of as many streams as it has sources.
        Interrupted, HarnessError: see `conformance.own_job.job_run.run_trial`.
    """
    files = open_files(where)
    found = read(files)
    if len(found.sources) != len(samples):
        raise OtherSources(found, [sample.stream for sample in samples])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-")))
        copy_detached(files, found, folder / "copy" / "checkpoint")
        case = write_resumption(job, samples, folder)
        task = CellTask(case, (target,), resumes=str(folder / "copy"))
        ((outcome, _),) = outcomes([task], options, display).kept
    return Resumption(found, target, outcome.observation, outcome.lacking, awaiting(found, target.version))


def statements(found: Resumption) -> Iterator[Statement]:
    """What was found, the answer first."""
    version = found.target.version
    if found.observation is None:
        yield Statement("broken", "?", f"no answer from {version}: {found.failure}")
        return
    error = found.error
    if error is not None and error.own_code is not None:
        yield Statement("broken", "!", str(error.own_code), error.own_code.evidence())
        return
    if error is not None:
        done = any(step.batches for step in found.observation.steps)
        verb = "resumes, then the query fails" if done else "is refused"
        yield Statement(
            "violates", "⊘", f"the checkpoint {verb} on {version}: {error.name or 'an error'}", _why(found, error)
        )
    elif not found.resumed:
        yield Statement("broken", "?", f"no micro-batch ran on {version}, so the state was not read")
    else:
        yield Statement("conforms", "●", f"the checkpoint resumes on {version}", tuple(_batches(found.observation)))
    for change in found.changes:
        if error is None or change.error != error.name:
            kind: Kind = "differs" if change.effect == "changes" else "bug"
            text = f"{change.effect}: {change.because} ({change.link})"
            yield Statement(kind, "◆" if kind == "differs" else "▲", text, _workaround(change))


def _why(found: Resumption, error: ErrorSeen) -> tuple[str, ...]:
    known = [change for change in found.changes if change.error == error.name]
    if known:
        return (f"{known[0].because} ({known[0].link})", *_workaround(known[0]))
    return tuple(error.message.strip().splitlines()[:1])


def _workaround(change: AwaitingChange) -> tuple[str, ...]:
    return (f"workaround: {change.workaround}",) if change.workaround else ()


def _batches(observation: Observation) -> Iterator[str]:
    for step in observation.steps:
        for batch in step.batches:
            state = sum(batch.state)
            dropped = f", {batch.dropped} dropped as late" if batch.dropped else ""
            ran = f"ran with watermark {show_in_full(batch.watermark * 1000)}" if batch.watermark is not None else "ran"
            emitted = counted(len(batch.rows), "row")
            yield f"micro-batch {batch.id} {ran}: {emitted} emitted{dropped}, {counted(state, 'row')} in state"


def record(found: Resumption) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "checkpoint": found.checkpoint.where,
        "to": str(found.target.version),
        "resumes": found.resumed,
        "error": None if found.error is None else {"class": found.error.name, "message": found.error.message},
        "failure": found.failure,
        "micro_batches": [
            {
                "id": batch.id,
                "watermark_ms": batch.watermark,
                "rows": [list(row) for row in batch.rows],
                "dropped": batch.dropped,
                "state": list(batch.state),
            }
            for step in (found.observation.steps if found.observation is not None else ())
            for batch in step.batches
        ],
        "known": [
            {
                "effect": one.effect,
                "because": one.because,
                "link": one.link,
                "error": one.error,
                "workaround": one.workaround,
            }
            for one in found.changes
        ],
    }
