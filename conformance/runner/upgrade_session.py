"""A run over changes of version, from what the user asked for to a results file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from conformance.core.state_stores import Name as StoreName
from conformance.core.state_stores import StateStore
from conformance.core.wording import counted
from conformance.judging.handoff_verdict import CheckpointHandoff, UpgradeVerdict, handoffs
from conformance.runner.resources import Concurrency, interruptible, open_runtime
from conformance.runner.run import only_tagged
from conformance.runner.run_cells import Display, Sink
from conformance.runner.session import EngineRecords, RunOutcome, answer_cache, choose_targets, unseen
from conformance.runner.upgrade import run_upgrades
from conformance.suite import discovery
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import CellRun, CellTask
from harness.targets.catalogue import Targets
from harness.targets.state_store_support import having as having_store
from harness.targets.target import Target
from harness.targets.upgrade_paths import Policy, TargetPair, between, pairs
from reports.results.reading import Results, ResultsWriter
from reports.results.records import Header, UpgradeCell

Cuts: TypeAlias = Literal["first", "each"]


class NoHandoffs(ValueError):
    """The options leave no checkpoint to resume, or no pair of versions."""

    exit_code: ClassVar[int] = 2


@dataclass(frozen=True)
class UpgradeOptions:
    """What the user asks of an upgrade run."""

    output: Path
    """The results file."""
    command: str
    """The command line, for the header of the results."""
    paths: Sequence[Path] = ()
    """Cases and folders; the suite that ships if empty."""
    before: Sequence[str] = ()
    """Versions that write checkpoints; those of ``policy`` if empty."""
    after: Sequence[str] = ()
    """Versions that resume them."""
    policy: Policy | None = None
    cuts: Cuts = "first"
    tags: Sequence[str] = ()
    state_store: StoreName | None = None
    fresh: bool = False
    """Whether cached results are ignored."""
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    work: Path | None = None
    concurrency: Concurrency = field(default_factory=Concurrency)


@dataclass(frozen=True)
class UpgradePlan:
    """What an upgrade run will do."""

    options: UpgradeOptions
    suite: str
    """Digest of the suite."""
    handoffs: tuple[CheckpointHandoff, ...]
    pairs: tuple[TargetPair, ...]
    notes: tuple[str, ...]
    """What the user should know about the choice of versions."""
    store: StateStore | None

    @property
    def cells(self) -> int:
        return len(self.handoffs) * len(self.pairs)

    @property
    def cuts(self) -> dict[str, tuple[int, ...]]:
        """Case id → the steps before which the version changes."""
        found: dict[str, tuple[int, ...]] = {}
        for handoff in self.handoffs:
            found[handoff.case.id] = (*found.get(handoff.case.id, ()), handoff.cut)
        return found

    @property
    def targets(self) -> list[Target]:
        """Every version of the pairs, oldest first."""
        by_name = {target.name: target for pair in self.pairs for target in pair}
        return sorted(by_name.values(), key=lambda target: target.version)

    @property
    def header(self) -> Header:
        return Header(
            suite=self.suite,
            cases=(),
            targets=tuple(unseen(target, self.options.runtime.runtime) for target in self.targets),
            started=datetime.now(UTC),
            command=self.options.command,
            pairs=tuple((before.name, after.name) for before, after in self.pairs),
            cuts=self.cuts,
        )

    def __str__(self) -> str:
        """``5 cases × 2 version changes, 10 cells; into upgrades.jsonl``."""
        cases, changes = counted(len(self.cuts), "case"), counted(len(self.pairs), "version change")
        return f"{cases} × {changes}, {counted(self.cells, 'cell')}; into {self.options.output}"


def plan_upgrades(options: UpgradeOptions) -> UpgradePlan:
    """Choose cases, steps and pairs of versions.

    Raises:
        InvalidCase: a case is invalid.
        NoHandoffs: nothing is left to resume.
        UnknownTarget, NothingRuns, NoPyspark, UnusablePyspark: see `Targets.choose`.
    """
    loaded = discovery.load(options.paths or None)
    loaded.raise_for_problems()
    found = handoffs(only_tagged(loaded.cases, options.tags), each=options.cuts == "each")
    if not found:
        raise NoHandoffs(
            "none of these cases keeps state for more than one step, so they leave no checkpoint to resume"
        )
    chosen, notes = _pairs(options)
    store = StateStore.named(options.state_store) if options.state_store else None
    if store is not None:
        having = having_store(store, tuple(dict.fromkeys(target for pair in chosen for target in pair)))
        chosen = tuple(pair for pair in chosen if pair[0] in having and pair[1] in having)
    if not chosen:
        raise NoHandoffs("no pair of versions is left that matches --from, --to, --pairs and --state-store")
    return UpgradePlan(options, loaded.digest, found, chosen, notes, store)


def run_plan(plan: UpgradePlan, display: Display[UpgradeVerdict]) -> RunOutcome:
    """Run a plan and write its results.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; the results file has no footer.
        HarnessError: engines cannot be started at all; the results file is untouched.
    """
    options = plan.options
    with ExitStack() as stack:
        # An error in opening the runtime must leave earlier results as they are.
        runtime = stack.enter_context(open_runtime(options.runtime, options.work))
        writer = stack.enter_context(ResultsWriter(options.output, plan.header))
        stack.enter_context(
            interruptible(lambda: f"{options.output} lacks {counted(len(writer.missing()), 'cell')} and its footer")
        )
        reused = run_upgrades(
            plan.handoffs,
            plan.pairs,
            runtime,
            options.concurrency.limits(len(plan.targets), store=plan.store),
            display=display,
            sink=_ResultsSink(writer),
            allow_code=options.runtime.code_path is not None,
            cache=stack.enter_context(answer_cache(fresh=options.fresh)),
        )
        writer.finish()
    return RunOutcome(Results.read(options.output), reused)


def _pairs(options: UpgradeOptions) -> tuple[tuple[TargetPair, ...], tuple[str, ...]]:
    """The pairs that were asked for: every one if both sides are named and no policy is; else those of the policy that fit."""
    before, after = (choose_targets(specs) if specs else None for specs in (options.before, options.after))
    notes = (*(before.notes if before else ()), *(after.notes if after else ()))
    if before is not None and after is not None and options.policy is None:
        return between(before.targets, after.targets), notes
    fitting = tuple(
        pair
        for pair in pairs(Targets.load(), options.policy)
        if (before is None or pair[0] in before.targets) and (after is None or pair[1] in after.targets)
    )
    return fitting, notes


class _ResultsSink(EngineRecords, Sink[UpgradeVerdict]):
    """Writes cells to the results file as they come."""

    def keep(self, task: CellTask, verdict: UpgradeVerdict, run: CellRun | None) -> None:
        names = task.origin.name, task.target.name
        observation = next(iter(run.observations), None) if run else None
        milliseconds = int(run.seconds * 1000) if run else 0
        self._writer.write(UpgradeCell.of(task.case, names, verdict, observation, milliseconds))
