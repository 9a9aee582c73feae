"""Cases on versions: planned from what the user asked for, judged, and kept in a results file; or the answer to a single case.

A case that violates runs again with Spark's defaults of all settings that the engine has of its own, then of fewer: they may explain it.
The column `MODEL` answers cases on watermark policies: such a case is ``not-applicable`` on every Spark, and a Spark case in this column;
neither counts.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import product
from math import ceil
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from conformance.core.case import AnyCase, Case, RunSource
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted, redact
from conformance.judging import verdict as verdicts
from conformance.judging.checkpoint_verdict import CheckpointHandoff, VersionPair, judge_upgrade, no_checkpoint
from conformance.judging.expected import expects_nothing_yet
from conformance.judging.verdict import AS_THE_CASE_SAYS, NoAnswer, Verdict, judge, no_answer, not_applicable
from conformance.policies.case import TARGET, PolicyCase, check
from conformance.runner import resources
from conformance.runner.execution import CellPlan, Collector, Display, Judge, ResultsSink, Reuse, execute, unseen
from conformance.runner.resources import OptionsClash, SessionOptions
from conformance.suite import discovery
from conformance.suite.discovery import Suite
from conformance.suite.selection import SMOKE, Shard, SmokeCases, affected_since, estimated_batches, only_tagged
from conformance.variants.catalogue import VariedCase, varied
from harness.driver.backend import DEFAULTS
from harness.driver.checkpoint import READ_STATE
from harness.environments import provision
from harness.runtimes.line_packages import Accelerator, accelerator
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import CellRun, CellTask, Limits
from harness.scheduling.scheduler import queues
from harness.targets.targets import Target
from harness.targets.targets import having as having_store
from reports.results.errors import CellKey, first_of
from reports.results.published import find
from reports.results.reading import Results
from reports.results.records import Cell, Header, TargetRecord
from reports.results.status import NO_RESULT

NOTHING_YET = "the case expects nothing yet: `conformance case record {file}` fills in what Spark does"
StateEvidence: TypeAlias = Literal["statestore"]
"""``statestore``: Spark's data source for the state in a checkpoint."""


class NothingChanged(ValueError):
    """No case has changed since a revision, so there is nothing to run."""

    exit_code: ClassVar[int] = 0


@dataclass(frozen=True)
class RunOptions(SessionOptions):
    every_case: bool = False
    """Whether to run every case of the suite where nothing else names cases; else the smoke cases run."""
    spark: Sequence[str] = ()
    """The newest version if empty."""
    variants: Sequence[str] = ()
    """Names of variants, or ``all``."""
    source: RunSource = "files"
    """The rows of cases that do not say it come from there."""
    since: str | None = None
    """A git revision: only cases that have changed since then run."""
    shard: str | None = None
    spark_home: Path | None = None
    """An unpacked Spark, which ``installed`` means then."""
    label: str | None = None
    repeat: int = 1
    evidence: StateEvidence | None = None
    accelerator: str | None = None
    """The name of the plugin that runs operators of its plans."""
    resume: bool = False
    """Whether the answers in the results file of the same command are kept."""


SHARD_MINUTES = 15
_START_S, _BATCH_S = 20, 0.08
"""Seconds: engines of a version start; a micro-batch takes so long, four cases at a time. Of 916 cases on 4.3.0, 611 s on two cores."""


@dataclass(frozen=True)
class RunPlan:
    options: RunOptions
    suite: str
    cases: tuple[Case, ...]
    policy_cases: tuple[PolicyCase, ...]
    targets: tuple[Target, ...]
    notes: tuple[str, ...]
    shard: Shard | None
    smoke: SmokeCases | None
    """The number of smoke cases, if the options name no cases."""
    resumed: Results | None = None
    """What an earlier run of the same command has left, of which answers are kept."""

    @property
    def kept(self) -> dict[CellKey, Cell]:
        results = self.resumed.cells if self.resumed is not None else ()
        return {cell.key: cell for cell in results if cell.status not in NO_RESULT and cell.target != MODEL.name}

    @property
    def cells(self) -> int:
        """The number of cells that engines answer."""
        return len(self.cases) * len(self.targets) - len(self.kept)

    @property
    def minutes(self) -> float:
        """How long engines take to answer, about, on two cores that do nothing else."""
        batches = sum(map(estimated_batches, self.cases))
        return len(self.targets) * (_START_S + batches * _BATCH_S) / 60

    @property
    def shards(self) -> tuple[str, ...]:
        """Values of ``shard`` for as many machines as answer within `SHARD_MINUTES`."""
        starts = len(self.targets) * _START_S / 60  # of engines, on each machine
        of = max(1, ceil((self.minutes - starts) / max(1, SHARD_MINUTES - starts)))
        return tuple(f"{number}/{of}" for number in range(1, of + 1))

    @property
    def header(self) -> Header:
        targets = [unseen(target, self.options.runtime.runtime) for target in self.targets]
        if self.resumed is not None:
            targets = [target for target in self.resumed.header.targets if target.name != MODEL.name]
        return Header(
            suite=self.suite,
            cases=tuple(case.id for case in (*self.cases, *self.policy_cases)),
            targets=(*targets, *([MODEL] if self.policy_cases else [])),
            started=datetime.now(UTC),
            command=self.options.command,
            shard=(self.shard.number, self.shard.of) if self.shard else None,
        )

    def __str__(self) -> str:
        """``2 cases × 3 versions, locally; into results.jsonl``."""
        runtime = self.options.runtime
        elsewhere = runtime.cluster or runtime.endpoint
        where = f"on {elsewhere}" if elsewhere else {"local": "locally", "container": "in containers"}[runtime.runtime]
        cells = f"{counted(len(self.cases), 'case')} × {counted(len(self.targets), 'version')}, {where}"
        parts = [cells] if self.cases else []
        if self.policy_cases:
            parts.append(f"{counted(len(self.policy_cases), 'case')} on the model")
        return f"{'; '.join(parts)}; into {self.options.output}"


def plan_run(options: RunOptions) -> RunPlan:
    """Choose cases and versions.

    Raises InvalidCase; NothingChanged if ``since`` leaves no case; WrongUsage, HarnessError: an option does not fit, see `Targets.choose`.
    """
    loaded = discovery.valid(options.paths)
    default = "installed" if options.spark_home else "newest" if loaded.cases else MODEL.name
    plugin = accelerator(options.accelerator) if options.accelerator is not None else None
    specs = list(options.spark) or [plugin.newest_line if plugin is not None else default]
    all_cases = loaded.cases if specs != [MODEL.name] else ()
    all_policy_cases = loaded.policy_cases if MODEL.name in specs else ()
    named = _names_cases(options)
    tags = options.tags if named else (SMOKE,)
    cases, policy_cases = only_tagged(all_cases, tags), only_tagged(all_policy_cases, tags)
    if not cases and not policy_cases:
        raise _no_cases(loaded, tags, specs)
    smoke = SmokeCases(len(cases) + len(policy_cases), len(all_cases) + len(all_policy_cases)) if not named else None
    shard = Shard.parse(options.shard) if options.shard else None
    if options.since is not None:
        own_code = options.runtime.own_code
        code = [file for _, _, files in own_code.files() for file in files] if own_code else ()
        cases, policy_cases = affected_since(options.since, cases, code), affected_since(options.since, policy_cases)
        if not cases and not policy_cases:
            raise NothingChanged(f"nothing to run: no case has changed since {options.since}")
    cases = resources.having_source(options.source, cases)
    if options.variants:
        cases = (*cases, *varied(cases, [] if "all" in options.variants else options.variants))
    if shard is not None:
        cases, policy_cases = shard.among(cases), shard.among(policy_cases)
    choice = resources.choose_targets([spec for spec in specs if spec != MODEL.name], spark_home=options.spark_home)
    if options.runtime.uses_java_here:
        provision.check_those_by_name(choice.targets)
    resources.check_packages(options.source, choice.targets)
    targets = choice.targets
    if plugin is not None:
        options, targets = _accelerated(options, plugin, targets)
    targets = _labelled(targets, options.label)
    targets = having_store(options.store, targets) if options.store else targets
    notes = (*choice.notes, *resources.not_confined(options.runtime, cases))
    plan = RunPlan(options, loaded.digest, cases, policy_cases, targets, notes, shard, smoke)
    return _resumed(plan) if options.resume else plan


def _resumed(plan: RunPlan) -> RunPlan:
    """The plan with what an earlier run has left. Raises OptionsClash if that was of another command, other cases or other versions."""
    old, new, file = Results.read(plan.options.output), plan.header, plan.options.output

    def identity(header: Header) -> tuple[object, ...]:
        words = [word for word in redact(header.command or "").split() if word != "--resume"]
        return words, header.suite, header.expected_cells()

    if identity(old.header) != identity(new):
        raise OptionsClash(f"--resume: {file} is of another run than this: {old.header.command}; omit --resume")
    plan = replace(plan, resumed=old)
    return replace(plan, notes=(*plan.notes, f"keeps {counted(len(plan.kept), 'answer')} of {file}"))


def run_plan(plan: RunPlan, display: Display[Verdict]) -> Reuse:
    """Run a plan and write its results: see `execute`."""
    options, cells = plan.options, cells_of(plan.cases, plan.targets)
    kept = plan.kept
    cells = tuple(cell for cell in cells if (cell.case.id, cell.target.name) not in kept)
    store, repeat, cluster = options.store, options.repeat, options.runtime.cluster
    limits = options.concurrency.limits(len(queues(cells)), store=store, repeat=repeat, cluster=cluster)
    if options.evidence is not None:
        limits = replace(limits, conf={**limits.conf, READ_STATE: "true"})
    names = [target.name for target in plan.targets]
    answered = policy_cells(plan.cases, plan.policy_cases, names) if plan.policy_cases else ()
    sink = ResultsSink(options.output, plan.header, cell_record, (*answered, *kept.values()))
    return execute(CellPlan.of(options, cells, limits), JudgeCases(), sink, display)


def cell_record(task: CellTask, verdict: Verdict, run: CellRun | None) -> Cell:
    """Record a judged cell; its run is None if it needed none."""
    origin = task.origin.name if task.cut is not None else None
    if run is None:
        return Cell.of(task.case, task.target.name, verdict, origin=origin)
    observations, milliseconds = run.observations, int(run.seconds * 1000)
    return Cell.of(task.case, task.target.name, verdict, observations, milliseconds, origin=origin, reused=run.reused)


def _names_cases(options: RunOptions) -> bool:
    """Whether the options say which cases run; versions, variants and places are the same for whatever runs."""
    named = {"PATH": options.paths, "--tag": options.tags, "--since": options.since is not None}
    for name, given in named.items():
        if given and options.every_case:
            raise OptionsClash(f"--all runs every case of the suite: omit it or {name}")
    # The shards of a suite are together the whole of it.
    return options.every_case or options.shard is not None or any(named.values())


def _accelerated(
    options: RunOptions, plugin: Accelerator, targets: tuple[Target, ...]
) -> tuple[RunOptions, tuple[Target, ...]]:
    """The options with the accelerator, and targets that are named after it: none is a column of Apache's Spark."""
    if not options.runtime.uses_java_here:
        own = "the jars of a container or a Connect server are its own"
        raise OptionsClash(f"--with: {own}: omit --runtime and --connect")
    plugin.check(target.version for target in targets)
    names = [f"{plugin.release(target.version)} on Spark {target.version}" for target in targets]
    labelled = tuple(replace(target, label=name) for target, name in zip(targets, names, strict=True))
    return replace(options, runtime=replace(options.runtime, accelerator=plugin)), labelled


def _labelled(targets: tuple[Target, ...], label: str | None) -> tuple[Target, ...]:
    if label is None:
        return targets
    if len(targets) != 1:
        raise OptionsClash(f"--label names one column, but there are {len(targets)} versions")
    if not label.strip() or not label.isprintable() or label.startswith("spark-"):
        raise OptionsClash(f"{label!r} is not a label: write a name on one line that does not start with spark-")
    return (replace(targets[0], label=label.strip()),)


def _no_cases(loaded: Suite, tags: Sequence[str], specs: Sequence[str]) -> OptionsClash:
    if loaded.policy_cases and not loaded.cases and MODEL.name not in specs:
        return OptionsClash(f"cases on watermark policies run on the model, not on Spark: pass --spark {MODEL.name}")
    if loaded.cases and not loaded.policy_cases and list(specs) == [MODEL.name]:
        what = "only cases on watermark policies run on the model"
        return OptionsClash(f"{what}; for a case for Spark use `conformance explain`")
    known = sorted({tag for case in loaded.all_cases for tag in case.tags})
    near = [match for tag in tags for match in get_close_matches(tag, known, 1)]
    suggestion = f" Did you mean {' or '.join(near)}?" if near else ""
    listed = ", ".join(known) or "none"
    return OptionsClash(f"no case has the tag {' or '.join(tags)}.{suggestion} Tags of these cases: {listed}")


def cells_of(cases: Sequence[Case], targets: Sequence[Target]) -> tuple[CellTask, ...]:
    return tuple(CellTask(case, (target,)) for target in targets for case in cases)


class JudgeCases(Judge[Verdict]):
    """Judges cells of every plan: of one target, and of two between which a checkpoint is handed over."""

    def without_run(self, task: CellTask, lacking: str | None) -> Verdict | None:
        alone = task.cut is None
        verdict = not_applicable(task.case, task.target.version) if alone else no_checkpoint(*handoff_of(task))
        return _no_answer(task, "not-applicable", lacking) if verdict is None and lacking is not None else verdict

    def verdict(self, run: CellRun) -> Verdict:
        task = run.task
        if run.failure is not None:
            return _no_answer(task, "not-run" if run.not_run else "broken", run.failure)
        if task.cut is not None:
            return judge_upgrade(*handoff_of(task), *run.observations)
        verdict = verdicts.combine(
            [_judged(task.case, task.target.version, observation) for observation in run.observations]
        )
        return _explained(verdict, run, _conformed(run)) if verdict.status == "violates" else verdict

    def again(self, run: CellRun) -> Mapping[str, str] | None:
        names, _ = settings_to_try(run, _conformed(run))
        return {DEFAULTS: " ".join(names)} if names and self.verdict(run).status == "violates" else None


def _conformed(run: CellRun) -> list[bool]:
    """Whether the case did in each of the runs with other settings what it expects."""
    tried = (seen and _judged(run.case, run.task.target.version, seen).status for seen in run.tried)
    return [status in AS_THE_CASE_SAYS for status in tried]


def handoff_of(task: CellTask) -> tuple[CheckpointHandoff, VersionPair]:
    """Return the handoff of a cell with a cut, and the versions between which it happens."""
    assert task.cut is not None
    interfaces = task.origin.interface, task.target.interface
    return CheckpointHandoff(task.case, task.cut), VersionPair(task.origin.version, task.target.version, interfaces)


def _no_answer(task: CellTask, status: NoAnswer, reason: str) -> Verdict:
    origin = task.origin.version if task.cut is not None else None
    return no_answer(task.case, task.target.version, status, reason, origin=origin, cut=task.cut)


def _judged(case: Case, version: SparkVersion, observation: Observation) -> Verdict:
    """The verdict on one observation; on a violation, with what the reference model predicts."""
    if isinstance(case, VariedCase):
        # What differs by version may depend on the source.
        written = case.original.model_copy(update={"topics": case.topics, "tables": case.tables})
        verdict_on_original = _judged(written, version, case.observation_of_original(observation))
        return replace(verdict_on_original, case=case.id)
    verdict = judge(case, version, observation)
    if verdict.status != "violates":
        return verdict
    if expects_nothing_yet(case):
        return replace(verdict, status="broken", notes=(NOTHING_YET.format(file=case.file), *verdict.notes))
    # The model is slow to import, and most runs never need it.
    from conformance.oracle.cross_check import notes_of_the_model

    return replace(verdict, notes=(*verdict.notes, *notes_of_the_model(case, verdict, observation)))


class NoObservation(RuntimeError):
    exit_code: ClassVar[int] = 3

    def __init__(self, case: str, why: str) -> None:
        super().__init__(f"{case}: no answer from Spark ({why}); nothing was recorded")


def observe(case: Case, target: Target, options: RuntimeOptions, display: Display[Verdict]) -> Observation:
    """Run a single case; raises NoObservation if the engine gives no answer, and what `execute` raises."""
    limits = Limits(jobs=1, step_timeout=resources.STEP_TIMEOUT_S)
    plan = CellPlan(cells_of([case], [target]), options, limits, allow_code=options.own_code is not None)
    collector: Collector[Verdict] = Collector(1)
    execute(plan, JudgeCases(), collector, display)
    ((verdict, run),) = collector.kept
    if run is None or not run.observations:
        raise NoObservation(case.id, "; ".join(verdict.notes) or verdict.status)
    return _of_spark(run.observations[0])


def observation_in(path: Path, case: Case, spark: str) -> Observation:
    """The answer of Spark to a case in a results file; raises what `answer_in` raises, and NoObservation if own code ended it."""
    return _of_spark(answer_in(path, case, spark)[1])


def answer_in(path: Path, case: Case, spark: str | None) -> tuple[SparkVersion, Observation, tuple[str, ...]]:
    """The version, or the newest with an answer, what it did with a case, and the columns to choose from, in a results file.

    Raises NoSuchVersion: the results lack the version; NoObservation: they have no answer to the case.
    """
    results = Results.read(path)
    targets = results.header.targets if spark is None else (find(results, spark),)
    seen = {cell.target: cell.observation for cell in results.cells if cell.case == case.id and cell.observation}
    versions = [(SparkVersion.parse(target.spark), target.name) for target in targets if target.name in seen]
    if not versions:
        raise NoObservation(case.id, f"none in {path}")
    version, name = max(versions)
    return version, seen[name], tuple(target.title for target in targets)


def _of_spark(observation: Observation) -> Observation:
    """The observation, unless a mistake in the author's code ended it, which must not become an expectation: then NoObservation."""
    if observation.own_code_error is not None:
        raise NoObservation(observation.case, "\n  ".join(observation.own_code_error.lines()))
    return observation


def _narrowed(names: tuple[str, ...]) -> Generator[tuple[str, ...], bool, tuple[str, ...]]:
    """Narrow settings down to those that a case needs at Spark's defaults to conform; none if all of them do not help.

    Yields the settings to try at their defaults, and is sent whether the case then conforms.
    """
    if not (names and (yield names)):
        return ()
    size, at = len(names) // 2, 0
    while size:
        others = names[:at] + names[at + size :]  # without a part, from the first to the last
        if others and (yield others):
            names = others
        else:
            at += size
        if at >= len(names):
            size, at = size // 2, 0
    return names


def settings_to_try(run: CellRun, conformed: Sequence[bool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The settings with whose defaults the case runs next, and those that explain a violation: all that it does not set itself may.

    ``conformed``: whether it did as expected in each of ``run.tried``."""
    names = (text.partition("=")[0] for text in run.identity.settings) if run.identity is not None else ()
    searching = _narrowed(tuple(name for name in names if name not in run.case.conf))
    try:
        wanted = next(searching)
        for conforms in conformed:
            wanted = searching.send(conforms)
    except StopIteration as end:
        return (), end.value
    return wanted, ()


def _explained(verdict: Verdict, run: CellRun, conformed: Sequence[bool]) -> Verdict:
    """Say which settings explain a violation, or what else of the engine's own may be its cause."""
    own, blame = run.identity, "the engine is probably wrong"
    if own is None or not (own.settings or own.fixed):
        return verdict
    _, causes = settings_to_try(run, conformed)
    said = tuple(text.split(" (by default ")[0] for text in own.settings if text.partition("=")[0] in causes)
    notes, instead = [], "these settings are the cause"
    if said:
        notes.append(f"explained by {' and '.join(said)}: with Spark's default the case conforms, as was tried")
    else:
        answered = any(run.tried)
        instead = blame if answered and not own.fixed else "what the engine has of its own or Spark is the cause"
        if run.tried:
            did = "violates as well" if answered else "gives no answer"
            notes.append(f"with Spark's defaults of the engine's own settings, the case {did}")
        if own.fixed:
            notes.append(f"not tried, as no session changes it: {first_of(own.fixed, 5)}; --conf changes settings")
    changed = (note.replace(blame, instead) for note in verdict.notes)
    return replace(verdict, explained_by=said, notes=(*notes, *changed))


MODEL = TargetRecord(name=TARGET, spark=TARGET, runtime=TARGET)


def policy_cells(cases: Iterable[Case], policy_cases: Sequence[PolicyCase], targets: Iterable[str]) -> Iterator[Cell]:
    """Yield every cell of a run except those of Spark cases on Spark, whose targets are named; policy cases are judged here."""
    for case in cases:
        yield _cell(case, TARGET, "not-applicable", "this case runs on Spark")
    for name, policy_case in product(targets, policy_cases):
        why = "this case tests a watermark policy, which Spark does not have"
        yield _cell(policy_case, name, "not-applicable", why)
    for policy_case in policy_cases:
        findings = check(policy_case)
        yield _cell(policy_case, TARGET, "violates" if findings else "conforms", *map(str, findings))


def _cell(case: AnyCase, target: str, status: verdicts.Status, *notes: str) -> Cell:
    return Cell(case=case.id, family=case.family, case_digest=case.digest, target=target, status=status, notes=notes)
