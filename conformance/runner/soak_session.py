"""A soak from what the user asked for to its record: choose a version, run the stream, check the invariants, keep the result."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from conformance.core.output_file import OutputFile
from conformance.core.wording import counted
from conformance.runner.resources import OptionsClash, interruptible, working_folder
from conformance.runner.session import choose_targets
from conformance.runner.soak import late_by, run_soak, settings, stream
from harness.runtimes.cluster import Cluster
from harness.soak.engine import SoakEngine, SoakOptions
from harness.soak.messages import Stream
from harness.soak.soak import Watcher
from harness.targets.target import Target
from reports.results.soak import SOAK_RECORD, InvariantRecord, SoakRecord


@dataclass(frozen=True)
class SoakRequest:
    """What the user asks of a soak."""

    output: Path
    """The file of its record."""
    command: str
    """The command line, for the record."""
    spark: str = "newest"
    rows: int = 10_000_000
    kills: int = 0
    """How many times the engine is killed."""
    seed: int | None = None
    """Determines the rows and the moments of the kills; None for a new one."""
    partitions: int = 4
    stall_timeout: float = 600.0
    """Seconds without progress after which an engine counts as lost."""
    cluster: Cluster | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    """Additional environment variables of each engine."""
    storage: Path | None = None
    """Folder that the machines of the cluster share."""
    work: Path | None = None


@dataclass(frozen=True)
class SoakPlan:
    """What a soak will do."""

    request: SoakRequest
    target: Target
    notes: tuple[str, ...]
    """What the user should know about the choice of the version."""
    stream: Stream

    def __str__(self) -> str:
        request = self.request
        where = f", {request.cluster}" if request.cluster else ""
        kills = counted(request.kills, "kill")
        return f"{request.rows:,} rows, seed {self.stream.seed}, {kills}, on {self.target.name}{where}; into {request.output}"


def plan_soak(request: SoakRequest) -> SoakPlan:
    """Choose the version and the stream.

    Raises:
        OptionsClash: the version or the folder does not fit.
        UnknownTarget, NothingRuns, NoPyspark, UnusablePyspark: see `Targets.choose`.
    """
    choice = choose_targets([request.spark])
    if len(choice.targets) != 1:
        raise OptionsClash(f"a soak runs on one version, but --spark {request.spark} is {len(choice.targets)} versions")
    if request.work is not None and request.work.is_dir() and any(request.work.iterdir()):
        raise OptionsClash(f"--work {request.work} is not empty")
    seed = secrets.randbelow(1 << 31) if request.seed is None else request.seed
    return SoakPlan(request, choice.targets[0], choice.notes, stream(request.rows, seed, request.partitions))


def soak(plan: SoakPlan, watcher: Watcher) -> SoakRecord:
    """Run a soak and write its record.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; nothing is written.
        CannotWriteFile, OtherContent, BeingWritten: see `conformance.core.output_file`.
        HarnessError: an engine did not start, or failed without having been killed.
    """
    request = plan.request
    started = datetime.now(UTC)
    engines: list[SoakEngine] = []
    with ExitStack() as stack:
        # What cannot be written is known before millions of rows have run.
        output = stack.enter_context(OutputFile(request.output, SOAK_RECORD))
        stack.enter_context(interruptible(lambda: f"{request.output} is not written"))
        root = stack.enter_context(working_folder(request.work, request.storage))
        options = SoakOptions(
            plan.target,
            root,
            request.cluster,
            settings(plan.stream, request.conf),
            request.variables,
            request.stall_timeout,
        )

        def start() -> SoakEngine:
            engines.append(SoakEngine.start(options, watcher))
            return engines[-1]

        late = late_by(plan.target.version, request.conf)
        found = run_soak(start, str(root), plan.stream, request.kills, late, watcher)
        identity = engines[0].identity
        record = SoakRecord(
            command=request.command,
            started=started,
            target=plan.target.name,
            spark=identity.spark,
            java=identity.java,
            master=str(request.cluster) if request.cluster else None,
            rows=request.rows,
            seed=plan.stream.seed,
            kills_wanted=request.kills,
            kills=found.run.kills,
            seconds=found.run.seconds,
            arrived=found.totals.arrived,
            counted=found.totals.counted,
            late=found.totals.late,
            in_state=found.totals.in_state,
            laws=tuple(map(InvariantRecord.of, found.invariants)),
        )
        output.write(record.text)
    return record
