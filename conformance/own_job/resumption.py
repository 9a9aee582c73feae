"""Resumes a checkpoint of one's own on another version, on a copy, with the query that its job builds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.checkpoints.awaiting import AwaitingChange, awaiting
from conformance.checkpoints.checkpoint import Checkpoint, copy_detached, lines_of_writer, read, stored_settings
from conformance.checkpoints.files import Files, open_files
from conformance.checkpoints.state import right_rows_prove, state_workarounds
from conformance.core.errors import WrongUsage
from conformance.core.observation import Observation
from conformance.core.temporary_folder import temporary_folder
from conformance.core.values import show_in_full
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.judging.checkpoint_verdict import CheckpointVerdict, resumed_at
from conformance.own_job.job_case import OwnQuery, write_resumption
from conformance.own_job.job_run import CellAnswer, run_cell
from conformance.own_job.sample import Sample
from conformance.own_job.statements import awaiting_statements, why
from conformance.own_job.verdict import TriedWorkaround
from conformance.runner.execution import Display
from conformance.runner.resources import EngineUse
from harness.scheduling.cell_run import CellTask
from harness.targets.targets import Target
from reports.results.checkpoint_status import exit_code, phrase, statement
from reports.results.status import Statement


@dataclass(frozen=True)
class Resumption:
    checkpoint: Checkpoint
    target: Target
    observation: Observation | None
    verdict: CheckpointVerdict
    changes: tuple[AwaitingChange, ...]
    """What is known to await the checkpoint on this version."""
    tried: tuple[TriedWorkaround, ...] = ()
    """Settings with which a copy was resumed again, because the state does not fit the query."""

    @property
    def workaround(self) -> str | None:
        """A setting with which the checkpoint resumes, and Spark reads its state as it was written."""
        return next((tried.setting for tried in self.tried if tried.proven), None)

    @property
    def exit_code(self) -> int:
        """0 if it resumes, 1 if not, 2 if the job itself fails, 3 without an answer."""
        own_code = self.observation is not None and self.observation.own_code_error is not None
        return 2 if own_code else exit_code(self.verdict)


@dataclass(frozen=True)
class GivenCheckpoint:
    """A checkpoint that a user names, to be resumed with the query of a job."""

    files: Files
    checkpoint: Checkpoint

    @classmethod
    def at(cls, where: str) -> GivenCheckpoint:
        """See `conformance.checkpoints.checkpoint.read` for errors."""
        files = open_files(where)
        return cls(files, read(files))

    def with_settings(self, use: EngineUse) -> tuple[EngineUse, tuple[str, ...]]:
        """Give engines the settings that the checkpoint stores, which count whatever the session says; with a note on each of the user's
        that has no effect. Raises DamagedCheckpoint: it names a class that is not Spark's."""
        conf = use.runtime.conf
        stored = stored_settings(self.checkpoint, conf)
        ignored = (key for key, value in stored.items() if conf.get(key, value) != value)
        notes = tuple(f"--conf {key}={conf[key]} has no effect: the checkpoint stores {stored[key]}" for key in ignored)
        return replace(use, runtime=replace(use.runtime, conf={**conf, **stored})), notes


def resume(
    given: GivenCheckpoint,
    job: OwnQuery,
    samples: Sequence[Sample],
    target: Target,
    options: EngineUse,
    display: Display[CellAnswer],
) -> Resumption:
    """Resume a copy of a checkpoint, and others with settings that may help if its state does not fit; the original is only read.

    ``samples``: of each stream that the job gets, in the order of the sources; without rows for a stream that stays silent.

    Raises:
        NoSuchCheckpoint, DamagedCheckpoint: it cannot be copied; see `copy_detached`.
        WrongUsage: the query does not read as many streams as it has sources.
        Interrupted, HarnessError: see `conformance.own_job.job_run.run_cell`.
    """
    files, checkpoint = given.files, given.checkpoint
    streams = job.only or [sample.stream for sample in samples]
    if len(checkpoint.sources) != len(streams):
        raise WrongUsage(
            f"{checkpoint.where} is the checkpoint of a query with {counted(len(checkpoint.sources), 'source')}, but "
            f"{job.title} reads {counted(len(streams), 'stream')} here ({', '.join(streams)}){_what_may_help(job)}"
        )
    with temporary_folder() as folder:
        case = write_resumption(job, samples, folder)

        def ran(**setting: str) -> CellAnswer:
            copy = folder / "-".join(["copy", *setting])
            copy_detached(files, checkpoint, copy / "checkpoint", options.runtime.conf)
            of = case.model_copy(update={"conf": {**case.conf, **setting}})
            return run_cell(CellTask(of, (target,), resumes=str(copy)), options, display)

        answer = ran()
        verdict = resumed_at(1, answer.observation, reason=answer.lacking)
        (*_, line) = (target.version.line, *lines_of_writer(checkpoint))
        may_help = state_workarounds(verdict.differences, SparkVersion.parse(f"{line}.0"), target.version)
        tried = tuple(
            TriedWorkaround(
                f"{key}={value}",
                (resumed_at(1, again.observation, reason=again.lacking),),
                reads_other_bytes=not right_rows_prove(key, verdict.differences),
            )
            for key, value in may_help
            if key not in options.runtime.conf
            for again in [ran(**{key: value})]
        )
    return Resumption(checkpoint, target, answer.observation, verdict, awaiting(checkpoint, target.version), tried)


def _what_may_help(job: OwnQuery) -> str:
    """What a user may do whose query reads another number of streams than the checkpoint has."""
    called = job.called if isinstance(job.called, dict) else {}
    if "query" in called:
        return ": is another of its queries meant, with --query?"
    if "program" in called or "main" in called:
        return ": is the checkpoint of another query, or of other arguments?"
    return ": give each with --sample or --schema, in the order in which the query reads them"


def statements(resumption: Resumption) -> Iterator[Statement]:
    """What a version did with the copy, and then what else is known to await the checkpoint there."""
    error = resumption.verdict.error
    if error is not None and error.own_code is not None:
        yield Statement("broken", "!", str(error.own_code), error.own_code.evidence())
        return
    version = resumption.target.version
    met = next((change for change in resumption.changes if error is not None and change.explains(error, version)), None)
    if resumption.verdict.outcome == "resumed" and resumption.observation is not None:
        details = tuple(_batches(resumption.observation))
    else:
        workaround = [*map(_tried, resumption.tried)]
        if not workaround and met is not None and met.workaround is not None:
            workaround = [f"workaround: {met.workaround}"]
        reasons = why(resumption.verdict, resumption.changes, version)
        details = (*reasons, *workaround, *_message_of_spark(resumption.verdict))
    yield statement(resumption.verdict, str(version), details=details)
    if resumption.observation is not None:
        yield from awaiting_statements(change for change in resumption.changes if change is not met)


def _tried(tried: TriedWorkaround) -> str:
    (verdict,) = tried.verdicts
    if tried.proven:
        return f"workaround: {tried.setting}; tried: {phrase(verdict)}"
    wrong = verdict.outcome == "resumed"
    why_not = "Spark reads the bytes of one type as another" if wrong else f"tried: {phrase(verdict)}"
    return f"{tried.setting} does not help, do not use it: {why_not}"


def _message_of_spark(verdict: CheckpointVerdict) -> Iterator[str]:
    """What Spark says beyond its first line: both schemas, the name of a damaged file."""
    lines = verdict.error.reason if verdict.error is not None else ()
    yield from (f"Spark: {line}" for line in lines[:_MOST_LINES] if line != verdict.why)


_MOST_LINES = 12
"""Spark's message is shown up to this many lines."""


def _batches(observation: Observation) -> Iterator[str]:
    for batch in observation.batches:
        state = sum(batch.state)
        dropped = f", {batch.dropped} dropped as late" if batch.dropped else ""
        ran = f"ran with watermark {show_in_full(batch.watermark * 1000)}" if batch.watermark is not None else "ran"
        emitted = counted(len(batch.rows), "row")
        yield f"micro-batch {batch.id} {ran}: {emitted} emitted{dropped}, {counted(state, 'row')} in state"


def record(resumption: Resumption) -> dict[str, Any]:
    error = resumption.verdict.error
    return {
        "checkpoint": resumption.checkpoint.where,
        "to": str(resumption.target.version),
        "outcome": resumption.verdict.outcome,
        "error": error and {"class": error.name, "reason": "\n".join(error.reason), "message": error.message},
        "tried": [
            {"setting": tried.setting, "outcome": tried.verdicts[0].outcome, "proven": tried.proven}
            for tried in resumption.tried
        ],
        "failure": resumption.verdict.reason if resumption.observation is None else None,
        "micro_batches": [
            {
                "id": batch.id,
                "watermark_ms": batch.watermark,
                "rows": [list(row) for row in batch.rows],
                "dropped": batch.dropped,
                "state": list(batch.state),
            }
            for batch in (resumption.observation.batches if resumption.observation is not None else ())
        ],
        "known": [
            {key: getattr(change, key) for key in ("effect", "because", "link", "error", "workaround")}
            for change in resumption.changes
        ],
    }
