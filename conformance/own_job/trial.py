"""One query of a job, tried on two versions with its samples: its cases run, are judged and written, and become one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from conformance.core.case import TABLE_FORMATS, Case, RunSource
from conformance.core.data import Json
from conformance.core.temporary_folder import temporary_folder
from conformance.judging.comparison import BehaviourChange
from conformance.language.streams import FILES, KAFKA
from conformance.own_job.answer_folder import PAGE, RESULTS
from conformance.own_job.conclusion import Conclusion, conclude, not_tried
from conformance.own_job.job_case import OwnQuery, is_silent, rows_in_files, through_topics, write_job, write_options
from conformance.own_job.job_run import CellAnswer, JobRun, JobRuns, expecting
from conformance.own_job.records import NOTHING_KNOWN, record, write_results
from conformance.own_job.resumption import GivenCheckpoint, Resumption, resume
from conformance.own_job.resumption import record as record_of_checkpoint
from conformance.own_job.resumption import statements as statements_of_checkpoint
from conformance.own_job.sample import Sample
from conformance.own_job.sample_arrivals import FAR_AHEAD_COMES, too_many_for_a_case
from conformance.own_job.sample_rows import RowsOfVersions
from conformance.own_job.source_options import not_acting
from conformance.own_job.statements import statements, stress_statement
from conformance.own_job.verdict import JobVerdict, Stress, combined_exit_code, judge_job
from conformance.runner.execution import Display
from conformance.runner.resources import EngineUse
from harness.scheduling.cell_run import CellTask
from harness.targets.targets import Target
from reports.results.checkpoint_status import combined
from reports.results.status import Statement

MOST_BATCHES = 50
_MORE_CLOSING = 50
"""How many of a stream's latest rows come much later if the query lets the latest one not through, as a filter may do."""
_ROWS_OF_A_BATCH = 100_000
"""The most rows of one micro-batch, unless there would be more than `MOST_BATCHES`."""
_BATCHES_IF_SILENT = 2
"""The micro-batches of a sample whose streams are silent in turn; the one after the restart is then divided by stream."""
CONDITIONS = {
    "repeated_rows": "with repeated and late rows",
    "silent_streams": "with a silent stream after the restart, read from files",
    "silent_topics": "with a silent stream after the restart, read from a topic",
    "unfit_rows": "with rows that do not parse, divide or fit",
    "other_partitions": "with another number of shuffle partitions after the restart",
    "options_of_files": "with files that wait when it starts, and",
    "options_of_topics": "with a topic that has rows when it starts, and",
    "options_of_tables": "with a table that has commits when it starts, and",
}
"""Stress, as in the JSON document → what it does."""


class Progress(Display[CellAnswer], Protocol):
    """What a person sees while the cells of a query run."""

    def add(self, cells: int, steps: int = 0) -> None:
        """So many more cells run; if a step of theirs runs long, with so many steps."""


class TrialListener(Protocol):
    """What a person sees of a trial."""

    def begins(self, query: OwnQuery, case: Case, samples: Sequence[Sample], folder: Path) -> None:
        """A query is tried with these samples; ``folder``: where its answer is written."""

    def begins_again(self, why: str) -> None:
        """The same query is tried once more."""

    def progress(self, *, many_rows: bool) -> AbstractContextManager[Progress]:
        """``many_rows``: whether a step of a cell runs long."""


class Known(Protocol):
    """What is published about both versions that a query can meet."""

    def statements(self) -> Iterable[Statement]: ...

    def record(self) -> Mapping[str, Json]: ...

    def reasons(self, change: BehaviourChange) -> Sequence[str]:
        """Return why the two versions may differ so, most likely first, each a sentence without a full stop."""


_OPTIONS_OF: Mapping[RunSource, str] = {
    FILES: "options_of_files",
    KAFKA: "options_of_topics",
    **dict.fromkeys(TABLE_FORMATS, "options_of_tables"),
}
"""Source → the stress in which options of such sources act."""


@dataclass(frozen=True)
class QueryAnswer:
    query: OwnQuery
    samples: tuple[Sample, ...]
    """Those with rows."""
    folder: Path
    """Where its case and its results are."""
    verdict: JobVerdict
    """On the sample as it is."""
    stresses: tuple[Stress, ...]
    known: Known | None
    """None if nothing is published about the versions."""
    accept_lost: bool = False
    """Whether a query whose rows are lost still ends with 0."""
    checkpoint: Resumption | None = None
    """What the later version did with the user's own checkpoint; None without one."""
    by_runner: tuple[Statement, ...] = ()
    """What Spark's runner of pipelines did with it, if it is a flow."""

    @cached_property
    def rows(self) -> RowsOfVersions:
        return RowsOfVersions.of(self.verdict, self.samples)

    @property
    def files(self) -> tuple[Path, ...]:
        """The case, unless its rows are too many, the results and the page."""
        case = () if self.verdict.digests else (self.folder / self.verdict.case.path.name,)
        return (*case, self.folder / RESULTS, self.folder / PAGE)

    @property
    def statements(self) -> Iterator[Statement]:
        yield from self.rows.statements()
        yield from statements(self.verdict)
        if self.checkpoint is not None:
            for said in statements_of_checkpoint(self.checkpoint):
                yield replace(said, text=f"{self.checkpoint.checkpoint.where}: {said.text}")
        yield from self.known.statements() if self.known is not None else ()
        yield from self.by_runner
        yield from self.query.statements
        for order in sorted({sample.arrival for sample in self.samples} - {"file"}):
            yield Statement("unsupported", "–", f"not tried: the order of the file, in place of --arrival {order}")
        yield from map(self._stressed, self.stresses)

    def _stressed(self, stress: Stress) -> Statement:
        """What a stress shows; where options of the sources act, with the rows that are lost."""
        said = stress_statement(stress, self.verdict)
        if stress.name not in _OPTIONS_OF.values():
            return said
        rows = RowsOfVersions.of(stress.verdict, self.samples).statements()
        lost = (f"{each.text.partition(':')[0]}: {'; '.join(each.details)}" for each in rows if each.details)
        return replace(said, details=(*said.details, *lost))

    @property
    def exit_code(self) -> int:
        # What a query lost up to an error, or on the only version with an answer, is not what it loses.
        lost = self.rows.lost and not self.accept_lost and self.verdict.answer not in ("fails", "unknown")
        own = [self.checkpoint.exit_code] if self.checkpoint is not None else []
        by_runner = any(said.kind == "violates" for said in self.by_runner)
        return combined([combined_exit_code(self.verdict, self.stresses), int(lost), int(by_runner), *own])

    @cached_property
    def not_tried(self) -> tuple[str, ...]:
        return not_tried(self.statements)

    @cached_property
    def conclusion(self) -> Conclusion:
        reasons = self.known.reasons if self.known is not None else lambda _: ()
        parts = self.verdict, self.stresses, self.rows, reasons, self.exit_code, self.not_tried
        return conclude(*parts, self.checkpoint, [said for said in self.by_runner if said.kind == "violates"])

    def record(self) -> dict[str, Json]:
        known = self.known.record() if self.known is not None else NOTHING_KNOWN
        stresses = {stress.name: record(stress.verdict) for stress in self.stresses}
        for stress in stresses.values():
            del stress["case"]  # it is not kept
        concluded = {"answer": self.conclusion.answer, "summary": self.conclusion.line}
        own = record_of_checkpoint(self.checkpoint) if self.checkpoint is not None else None
        by_runner = [" ".join([said.text, "; ".join(said.details)]).strip() for said in self.by_runner]
        scope = {"lost": self.rows.record(), "notTried": list(self.not_tried), "checkpoint": own, "byRunner": by_runner}
        return {**record(self.verdict, known), **concluded, **scope, **dict.fromkeys(CONDITIONS), **stresses}


@dataclass(frozen=True)
class Trial:
    """Two versions, and how the queries of a job are tried on them."""

    before: Target
    after: Target
    where: EngineUse
    batches: int
    silent_streams: bool
    repeat_rows: bool
    source: RunSource
    known: Callable[[JobVerdict], Known | None]
    """What is published about the query of a verdict."""
    listener: TrialListener
    accept_lost: bool = False
    checkpoint: GivenCheckpoint | None = None
    """The user's own, a copy of which the later version resumes."""
    closing: int = 1
    """How many of each stream's latest rows come much later."""

    def answer(self, query: OwnQuery, samples: Sequence[Sample], output: Path, command: str) -> QueryAnswer:
        """Try a query with its samples; write its case and the results into a folder, with the command line.

        Raises InvalidCase, CannotWriteFile: see `write_job`; Interrupted, HarnessError: see `conformance.runner.execution.execute`.
        """
        sending = tuple(sample for sample in samples if sample.rows)
        verdict, stresses = self._tried(query, samples, output)
        comes = any(step.name == FAR_AHEAD_COMES for step in verdict.case.steps)
        several = any(len(sample.rows) > 1 for sample in sending)
        if comes and several and not RowsOfVersions.of(verdict, sending).closed:
            self.listener.begins_again("the row much later moved no watermark: again with copies of more rows")
            verdict, stresses = replace(self, closing=_MORE_CLOSING)._tried(query, samples, output)
        if stresses and self.repeat_rows and not stresses[0].fails_before:
            verdict = replace(verdict, not_shown=stresses[0].verdict.not_shown)
        verdict = replace(verdict, asked_otherwise=query.changes)
        write_results(verdict, output / RESULTS, command)
        known, own = self.known(verdict), None
        ran = {stress.name for stress in stresses}
        left = (not_acting(options, self.source) for options in query.options if _OPTIONS_OF[options.source] not in ran)
        query = replace(query, statements=(*query.statements, *left))
        if self.checkpoint is not None and verdict.answer != "fails":
            silent_streams = [replace(sample, rows=()) for sample in samples]
            with self.listener.progress(many_rows=False) as progress:
                own = resume(self.checkpoint, query, silent_streams, self.after, self.where, progress)
        return QueryAnswer(query, sending, output, verdict, stresses, known, self.accept_lost, own)

    def _tried(self, query: OwnQuery, samples: Sequence[Sample], output: Path) -> tuple[JobVerdict, tuple[Stress, ...]]:
        """Return the verdict on the sample as it is, whose case is in the folder, and what other conditions show."""
        sending = tuple(sample for sample in samples if sample.rows)
        with temporary_folder() as folder:
            cases = {"repeated_rows": self._case(query, samples, folder, again=self.repeat_rows)}
            if self.closing == 1:
                self.listener.begins(query, cases["repeated_rows"], sending, output)
            if self.silent_streams and len(sending) > 1:
                silent = cases["silent_streams"] = self._case(query, samples, folder, silent=True)
                for case in through_topics(silent) if self.source == KAFKA else ():
                    cases["silent_topics"] = case
            cases["other_partitions"] = self._case(query, samples, folder, again=self.repeat_rows, partitions=True)
            cases["unfit_rows"] = self._case(query, samples, folder, unfit=True)
            sources = () if too_many_for_a_case(sending) else (FILES, self.source)
            acting = {_OPTIONS_OF[each.source]: each for each in query.options if each.source in sources}
            cases |= {name: write_options(query, samples, folder, options) for name, options in acting.items()}
            runs = dict(zip(cases, self._runs([*cases.values()], samples, folder), strict=True))
            run = runs["repeated_rows"]
            kept = output if not run.files else folder / "sample"
            verdict = judge_job(expecting(run.as_far_as(self._case(query, samples, kept)), kept))
            shown = {name: f" {options.shown}" for name, options in acting.items()}
            asked = {name: of for name, of in runs.items() if of.wholes and (of is not run or self.repeat_rows)}
            stresses = tuple(
                Stress(name, CONDITIONS[name] + shown.get(name, ""), judge_job(expecting(stressed, folder)))
                for name, stressed in asked.items()
                if verdict.answer in ("same", "differs")
            )
        return verdict, stresses

    def _case(self, query: OwnQuery, samples: Sequence[Sample], folder: Path, **condition: bool) -> Case:
        """Write a case; ``condition``: as in `write_job`."""
        batches = self._batches(samples, silent="silent" in condition)
        return write_job(query, samples, folder, batches=batches, closing=self.closing, **condition)

    def _batches(self, samples: Sequence[Sample], *, silent: bool) -> int:
        """Into how many micro-batches a sample is divided, of which each must fit into the memory of an engine."""
        needed = sum(len(sample.rows) for sample in samples) // _ROWS_OF_A_BATCH + 1
        return max(_BATCHES_IF_SILENT if silent else self.batches, min(needed, MOST_BATCHES))

    def _runs(self, cases: Sequence[Case], samples: Sequence[Sample], folder: Path) -> Sequence[JobRun]:
        """Run the first case on both versions and, once both have an answer for it, the cases with silent streams at the same time."""
        files = {
            silent: rows_in_files(
                samples,
                folder,
                batches=self._batches(samples, silent=silent),
                silent=silent,
                again=self.repeat_rows and not silent,
                closing=self.closing,
            )
            for silent in dict.fromkeys(map(is_silent, cases))
        }
        runs = [JobRun.of(case, self.before, self.after, self.where, files[is_silent(case)]) for case in cases]
        many_rows = bool(runs[0].files)
        with self.listener.progress(many_rows=many_rows) as progress:

            def announce(cells: Sequence[CellTask]) -> None:
                steps = sum(len(cell.case.steps) - (cell.cut or 1) + 1 for cell in cells) if many_rows else 0
                progress.add(len(cells), steps)

            return JobRuns(runs, announce).complete(self.where, progress)
