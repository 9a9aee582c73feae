"""Checkpoints handed from version to version: planned from what the user asked for, judged, and kept in a results file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from conformance.core.case import Case, Source
from conformance.core.wording import counted
from conformance.judging.checkpoint_verdict import CheckpointHandoff, handoffs
from conformance.judging.verdict import Verdict
from conformance.runner.cases import JudgeCases, cell_record
from conformance.runner.execution import CellPlan, Display, ResultsSink, Reuse, execute, unseen
from conformance.runner.resources import OptionsClash, SessionOptions, choose_targets, not_confined
from conformance.suite import discovery
from conformance.suite.selection import only_tagged
from harness.environments import provision
from harness.runtimes.connect import NoConnect
from harness.scheduling.cell_run import CellTask
from harness.targets.targets import PairPolicy, Target, TargetChoice, TargetPair, Targets, between, pairs, runs_anywhere
from harness.targets.targets import having as having_store
from reports.results.records import Header

Cuts: TypeAlias = Literal["first", "each"]
ConnectSide: TypeAlias = Literal["from", "to"]


@dataclass(frozen=True)
class UpgradeOptions(SessionOptions):
    before: Sequence[str] = ()
    """These versions write checkpoints; those of ``policy`` if empty."""
    after: Sequence[str] = ()
    """These versions resume them."""
    policy: PairPolicy | None = None
    cuts: Cuts = "first"
    connect_side: ConnectSide | None = None
    """The Connect server of ``runtime`` runs the versions of this side; None without a server."""


@dataclass(frozen=True)
class UpgradePlan:
    options: UpgradeOptions
    suite: str
    handoffs: tuple[CheckpointHandoff, ...]
    pairs: tuple[TargetPair, ...]
    notes: tuple[str, ...]

    @property
    def cells(self) -> int:
        return len(self.handoffs) * len(self.pairs)

    @property
    def cuts(self) -> dict[str, tuple[int, ...]]:
        """Case id → the steps before which the version changes."""
        cuts: dict[str, tuple[int, ...]] = {}
        for handoff in self.handoffs:
            cuts[handoff.case.id] = (*cuts.get(handoff.case.id, ()), handoff.cut)
        return cuts

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

    Raises InvalidCase; WrongUsage, HarnessError: nothing is left, see `Targets.choose` and `check_those_by_name`; NoConnect.
    """
    loaded = discovery.valid(options.paths)
    cases = only_tagged(loaded.cases, options.tags)
    possible = handoffs((case for case in cases if why_not_copied(case) is None), each=options.cuts == "each")
    if not possible:
        what = "none of these cases keeps state for more than one step"
        raise OptionsClash(f"{what}, so they leave no checkpoint to resume")
    chosen, notes = _pairs(options)
    if options.store is not None:
        having = having_store(options.store, tuple(dict.fromkeys(target for pair in chosen for target in pair)))
        chosen = tuple(pair for pair in chosen if pair[0] in having and pair[1] in having)
    if not chosen:
        raise OptionsClash("no pair of versions is left that matches --from, --to, --pairs and --state-store")
    notes = (*notes, *not_confined(options.runtime, loaded.cases), *_without_handoff(cases))
    return UpgradePlan(options, loaded.digest, possible, chosen, notes)


_NOT_COPIED: Mapping[Source, str] = {
    "kafka": "a topic of Kafka",
    "memory": "a stream in memory",
    "delta": "a Delta table",
    "iceberg": "an Iceberg table",
}


def why_not_copied(case: Case) -> str | None:
    """Say what a case reads or writes that is not copied with its checkpoint: each version that resumes it would add to that."""
    if case.source in _NOT_COPIED:
        return f"{_NOT_COPIED[case.source]} is not copied with a checkpoint"
    return "what its sink writes is not copied with a checkpoint" if case.written is not None else None


def _without_handoff(cases: Sequence[Case]) -> tuple[str, ...]:
    counts = Counter(reason for case in cases if (reason := why_not_copied(case)) is not None)
    return tuple(f"{counted(count, 'case')} left out: {reason}" for reason, count in counts.items())


def run_plan(plan: UpgradePlan, display: Display[Verdict]) -> Reuse:
    """Run a plan and write its results: see ``execute``."""
    options = plan.options
    limits = options.concurrency.limits(len(plan.targets), store=options.store)
    cells = handoff_cells(plan.handoffs, plan.pairs)
    sink = ResultsSink(options.output, plan.header, cell_record)
    return execute(CellPlan.of(options, cells, limits), JudgeCases(), sink, display)


def handoff_cells(handoffs: Sequence[CheckpointHandoff], pairs: Sequence[TargetPair]) -> list[CellTask]:
    """Every case handed over between the versions of every pair; also with the workaround that the case documents for it."""
    return [
        CellTask(handoff.case, pair, handoff.cut, workaround=_workaround(handoff, pair))
        for pair in pairs
        for handoff in handoffs
    ]


def _workaround(handoff: CheckpointHandoff, pair: TargetPair) -> Mapping[str, str]:
    versions, interfaces = (pair[0].version, pair[1].version), (pair[0].interface, pair[1].interface)
    entry = handoff.case.upgrade_between(*versions, handoff.cut, interfaces)
    return entry.setting if entry is not None else {}


def _pairs(options: UpgradeOptions) -> tuple[tuple[TargetPair, ...], tuple[str, ...]]:
    """The pairs that were asked for: every one if both sides are named and no policy is; else those of the policy that fit."""
    before, after = (choose_targets(specs) if specs else None for specs in (options.before, options.after))
    here, choices = options.runtime.uses_java_here, [choice for choice in (before, after) if choice]
    if here:
        provision.check_those_by_name(target for choice in choices for target in choice.targets)
    notes = tuple(note for choice in choices for note in choice.notes)
    if options.connect_side is not None:
        return _pairs_with_connect(options.connect_side, before, after, options.policy), notes
    if before is not None and after is not None and options.policy is None:
        return between(before.targets, after.targets), notes
    fitting = tuple(
        pair
        for pair in pairs(Targets.load(), options.policy, obstacle=provision.obstacle if here else runs_anywhere)
        if (before is None or pair[0] in before.targets) and (after is None or pair[1] in after.targets)
    )
    return fitting, notes


def _pairs_with_connect(
    side: ConnectSide, before: TargetChoice | None, after: TargetChoice | None, policy: PairPolicy | None
) -> tuple[TargetPair, ...]:
    """Every version of one side with the one that the server runs, the same version too."""
    if before is None or after is None or policy is not None:
        raise OptionsClash("with --connect, name the versions of both sides with --from and --to, without --pairs")
    server = (before if side == "from" else after).targets
    if len(server) != 1:
        names = ", ".join(target.name for target in server)
        raise OptionsClash(f"--{side} means {names}, and the server of --connect runs one version: name that one")
    if not server[0].connect:
        raise NoConnect(server[0])
    through = (replace(server[0], through_connect=True),)
    return between(through, after.targets) if side == "from" else between(before.targets, through)
