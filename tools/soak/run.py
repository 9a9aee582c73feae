"""A soak from what the user asked for to its record: choose a version, run the stream, check every invariant on what it left behind."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from conformance.core.output_file import OutputFile
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.model.catalogue import rules_of
from conformance.model.checks import ALLOW_MULTIPLE
from conformance.runner.resources import EngineUse, OptionsClash, interruptible, single_target, working_folder
from harness.engine.engine import DriverFailed
from harness.errors import HarnessError
from harness.targets.targets import Target
from tools.soak.engine import Ask, InvariantQuery, Late, Soak, SoakEngine, SoakStream, Watcher
from tools.soak.invariants import INVARIANTS, STREAM_TOTALS, Invariant, InvariantVerdict, StreamTotals, judge
from tools.soak.record import SOAK_RECORD, SoakRecord

MAX_ROWS = 5
"""At most this many rows of a broken invariant are shown."""

_MAX_BATCHES, _MIN_BATCHES, _ROWS_PER_BATCH = 100, 12, 10_000

NEEDED: Mapping[str, str] = {
    # The invariants need every entry of the logs, and every progress.
    "spark.sql.streaming.minBatchesToRetain": "1000000",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
}


def stream(rows: int, seed: int, files: int) -> SoakStream:
    """A stream of at least 100 rows for a soak. ``files``: per micro-batch; also the number of state partitions."""
    batches = max(_MIN_BATCHES, min(_MAX_BATCHES, rows // _ROWS_PER_BATCH))
    return SoakStream(rows=rows, seed=seed, batches=batches, files=files)


def settings(stream: SoakStream, conf: Mapping[str, str]) -> dict[str, str]:
    """The Spark settings for a soak; those of ``conf`` override the others."""
    return {**NEEDED, "spark.sql.shuffle.partitions": str(stream.files), **conf}


def ask(
    engine: SoakEngine, folder: str, stream: SoakStream, late: Late, invariants: Sequence[Invariant] = INVARIANTS
) -> tuple[StreamTotals, tuple[InvariantVerdict, ...]]:
    """Check invariants on what a soak left behind; `late_by` tells which watermark decides that rows are late."""
    questions = (
        InvariantQuery(name="totals", sql=STREAM_TOTALS),
        *(InvariantQuery(name=f"{invariant.name}, looked", sql=invariant.checked_sql) for invariant in invariants),
        *(InvariantQuery(name=invariant.name, sql=invariant.violations_sql, most=MAX_ROWS) for invariant in invariants),
    )
    request = Ask(folder=folder, stream=stream, late=late, questions=questions)
    answers = engine.rows(request)
    (totals,) = answers["totals"].rows
    verdicts = tuple(
        judge(
            invariant,
            answers[f"{invariant.name}, looked"].rows[0][0],
            answers[invariant.name].columns,
            answers[invariant.name].rows,
        )
        for invariant in invariants
    )
    return StreamTotals(**dict(zip([field.name for field in fields(StreamTotals)], totals, strict=True))), verdicts


def late_by(version: SparkVersion, conf: Mapping[str, str]) -> Late:
    """Which watermark decides that rows are late (SPARK-40925): it depends on the version, and a setting restores the old one."""
    if conf.get(ALLOW_MULTIPLE) == "false":
        return "own batch"
    return rules_of(version).late_watermark


@dataclass(frozen=True)
class SoakRequest(EngineUse):
    output: Path
    command: str
    spark: str = "newest"
    rows: int = 10_000_000
    kills: int = 0
    seed: int | None = None
    """It determines the rows and the moments of the kills; None for a new one."""
    partitions: int = 4
    stall_timeout: float = 600.0
    """Seconds without progress after which an engine counts as lost."""


@dataclass(frozen=True)
class SoakPlan:
    request: SoakRequest
    target: Target
    notes: tuple[str, ...]
    stream: SoakStream

    def __str__(self) -> str:
        request = self.request
        where = f", {request.runtime.cluster}" if request.runtime.cluster else ""
        kills = counted(request.kills, "kill")
        return f"{request.rows:,} rows, seed {self.stream.seed}, {kills}, on {self.target.name}{where}; into {request.output}"


def plan_soak(request: SoakRequest) -> SoakPlan:
    """Choose the version and the stream; raises WrongUsage if the version or the folder does not fit, and what `Targets.choose` raises."""
    spark = request.spark
    target, notes = single_target(
        spark, lambda number: OptionsClash(f"a soak runs on one version, but --spark {spark} is {number} versions")
    )
    if request.work is not None and request.work.is_dir() and any(request.work.iterdir()):
        raise OptionsClash(f"--work {request.work} is not empty")
    seed = secrets.randbelow(1 << 31) if request.seed is None else request.seed
    return SoakPlan(request, target, notes, stream(request.rows, seed, request.partitions))


def run_plan(plan: SoakPlan, watcher: Watcher) -> SoakRecord:
    """Run a soak and write its record.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; nothing is written.
        CannotWriteFile, OtherContent, BeingWritten: see `conformance.core.output_file`.
        HarnessError: an engine did not start, or failed without having been killed.
    """
    request = plan.request
    started = datetime.now(UTC)
    runtime = replace(request.runtime, conf=settings(plan.stream, request.runtime.conf))
    engines: list[SoakEngine] = []
    with ExitStack() as stack:
        # What cannot be written is known before millions of rows have run.
        output = stack.enter_context(OutputFile(request.output, SOAK_RECORD))
        stack.enter_context(interruptible(lambda: f"{request.output} is not written"))
        root = stack.enter_context(working_folder(request.work, runtime.storage))

        def start() -> SoakEngine:
            engines.append(SoakEngine.start(plan.target, root, runtime, request.stall_timeout, watcher))
            return engines[-1]

        try:
            run = Soak(start, str(root), plan.stream, request.kills, watcher).run()
            watcher("checking the invariants")
            with closing(start()) as engine:
                late = late_by(plan.target.version, request.runtime.conf)
                totals, invariants = ask(engine, str(root), plan.stream, late)
        except DriverFailed as failed:
            # Below the traceback, and not indented, stands what was raised.
            raised = [line for line in failed.message.splitlines() if line and not line[0].isspace()][-1]
            raise HarnessError(
                f"the engine failed, so {request.output} is not written: {raised}. If its JVM was killed, for instance "
                "for want of memory, run the soak again; --debug shows the driver's traceback."
            ) from failed
        identity = engines[0].identity
        record = SoakRecord(
            command=request.command,
            started=started,
            target=plan.target.name,
            spark=identity.spark,
            java=identity.java,
            master=str(runtime.cluster) if runtime.cluster else None,
            rows=request.rows,
            seed=plan.stream.seed,
            kills_wanted=request.kills,
            kills=run.kills,
            seconds=run.seconds,
            **vars(totals),
            laws=invariants,
        )
        output.write(record.text)
    return record
