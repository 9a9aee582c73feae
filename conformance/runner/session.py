"""A run from what the user asked for to a results file: choose cases and versions, run them, keep every answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar

from conformance.core.case import Case, Source
from conformance.core.observation import Identity
from conformance.core.versions import Name as StoreName
from conformance.core.versions import StateStore
from conformance.core.wording import counted
from conformance.judging.verdict import Verdict
from conformance.policies.case import PolicyCase
from conformance.runner import policy_engines
from conformance.runner.policy_engines import ChosenEngines
from conformance.runner.resources import Concurrency, OptionsClash, interruptible, not_confined, open_runtime
from conformance.runner.run import JudgeCases, cells_of
from conformance.runner.run_cells import Display, Judge, Sink, run_cells
from conformance.suite import discovery
from conformance.suite.discovery import Suite
from conformance.suite.selection import SMOKE, Shard, SmokeCases, affected_since, only_tagged
from conformance.variants.catalogue import KAFKA, varied
from harness.engine.engine import EngineLocation
from harness.engine.request import READ_STATE
from harness.environments import readiness
from harness.environments.cache_directory import answers_file
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.answer_cache import AnswerCache
from harness.scheduling.cell_run import CellRun, CellTask, Limits
from harness.scheduling.scheduler import queues
from harness.targets.catalogue import Choice, Targets
from harness.targets.state_store_support import having as having_store
from harness.targets.target import Target
from reports.analysis.policy_columns import MODEL, engine_target
from reports.analysis.policy_columns import cells as cells_on_policies
from reports.results.reading import Results
from reports.results.records import Cell, Header, UpgradeCell
from reports.results.records import Target as TargetRecord
from reports.results.writing import ResultsWriter

V = TypeVar("V")
Witness: TypeAlias = Literal["statestore"]
"""``statestore``: Spark's data source for the state in a checkpoint."""
Record: TypeAlias = Callable[[CellTask, V, CellRun | None], Cell | UpgradeCell]
"""A judged cell as it stands in a results file; without a run if it needed none."""


class NothingChanged(ValueError):
    """No case has changed since a revision, so there is nothing to run."""

    exit_code: ClassVar[int] = 0

    def __init__(self, revision: str) -> None:
        super().__init__(f"nothing to run: no case has changed since {revision}")


@dataclass(frozen=True)
class SessionOptions:
    """What the user asks of a run, with one version a cell or with two."""

    output: Path
    """The results file."""
    command: str
    """The command line, for the header of the results."""
    paths: Sequence[Path] = ()
    """Cases and folders; the suite that ships if empty."""
    tags: Sequence[str] = ()
    state_store: StoreName | None = None
    fresh: bool = False
    """Whether cached results are ignored."""
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    work: Path | None = None
    concurrency: Concurrency = field(default_factory=Concurrency)

    @property
    def store(self) -> StateStore | None:
        return StateStore.named(self.state_store) if self.state_store else None


@dataclass(frozen=True)
class RunOptions(SessionOptions):
    """What the user asks of a run on single versions."""

    every_case: bool = False
    """Whether to run every case of the suite where nothing else names cases; else the smoke cases run."""
    spark: Sequence[str] = ()
    """Versions; the newest if empty."""
    variants: Sequence[str] = ()
    """Names of variants, or ``all``."""
    source: Source = "files"
    """Where the rows of cases come from that do not say it."""
    since: str | None = None
    """A git revision: only cases that changed since run."""
    shard: str | None = None
    spark_home: Path | None = None
    """An unpacked Spark, which ``installed`` means then."""
    label: str | None = None
    """Name of the column of the only version."""
    policy_engines: Sequence[str] = ()
    """Names of real engines that cases on watermark policies run on, or ``all``."""
    repeat: int = 1
    witness: Witness | None = None
    """What else is asked after each step."""


def from_topics(cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases that can have their rows come from topics, so changed, and those that read topics anyway.

    Raises:
        OptionsClash: there is none.
    """
    found = (*varied(cases, [KAFKA]), *(case for case in cases if case.topics))
    if not found:
        raise OptionsClash("--source kafka: none of these cases can have its rows come from a topic")
    return found


@dataclass(frozen=True)
class RunPlan:
    """What a run will do."""

    options: RunOptions
    suite: str
    """Digest of the suite."""
    cases: tuple[Case, ...]
    policy_cases: tuple[PolicyCase, ...]
    targets: tuple[Target, ...]
    notes: tuple[str, ...]
    """What the user should know about the choice of versions and the place of the run."""
    shard: Shard | None
    smoke: SmokeCases | None = None
    """If the options name no cases."""
    model: bool = False
    """Whether policy cases run on the model."""
    policy_engines: ChosenEngines = field(default_factory=ChosenEngines)

    @property
    def cells(self) -> int:
        """How many cells engines answer."""
        return len(self.cases) * len(self.targets)

    @property
    def header(self) -> Header:
        return Header(
            suite=self.suite,
            cases=(*(case.id for case in self.cases), *(case.id for case in self.policy_cases)),
            targets=(
                *(unseen(target, self.options.runtime.runtime) for target in self.targets),
                *((MODEL,) if self.policy_cases and self.model else ()),
                *((engine_target(engine.name) for engine in self.policy_engines.engines) if self.policy_cases else ()),
            ),
            started=datetime.now(UTC),
            command=self.options.command,
            shard=(self.shard.number, self.shard.of) if self.shard else None,
        )

    def __str__(self) -> str:
        """``2 cases × 3 versions, locally; into results.jsonl``."""
        cells = f"{counted(len(self.cases), 'case')} × {counted(len(self.targets), 'version')}, {self._where()}"
        parts = [cells] if self.cases else []
        if self.policy_cases:
            engines = [engine.title for engine in self.policy_engines.engines]
            places = [*(["the model"] if self.model else []), *engines]
            parts.append(f"{counted(len(self.policy_cases), 'case')} on {', '.join(places)}")
        return f"{'; '.join(parts)}; into {self.options.output}"

    def _where(self) -> str:
        options = self.options.runtime
        elsewhere = options.cluster or options.endpoint
        return f"on {elsewhere}" if elsewhere else {"local": "locally", "container": "in containers"}[options.runtime]


@dataclass(frozen=True)
class RunOutcome:
    """A finished run."""

    results: Results
    reused: int
    """Cells taken from the cache."""
    cache_problem: str | None = None
    """Why answers were not kept for the next run."""


def plan_run(options: RunOptions) -> RunPlan:
    """Choose cases and versions.

    Raises:
        InvalidCase: a case is invalid.
        NothingChanged: ``since`` leaves no case.
        OptionsClash, WrongUsage: an option does not fit these cases.
        UnknownTarget, NothingRuns, NoPyspark, UnusablePyspark, NoSparkThere: see `Targets.choose`.
        CannotRunHere: see `readiness.check_those_by_name`.
        WrongUsage, NoSuchJava, BadJavaOptions: see `policy_engines.choose`.
    """
    loaded = discovery.load(options.paths or None)
    loaded.raise_for_problems()
    chosen = policy_engines.choose(options.policy_engines)
    on_policies = bool(chosen.engines) or not loaded.cases
    default = "installed" if options.spark_home else MODEL.name if on_policies else "newest"
    specs = list(options.spark) or [default]
    all_cases = loaded.cases if specs != [MODEL.name] else ()
    all_policy_cases = loaded.policy_cases if MODEL.name in specs or chosen.engines else ()
    tags = options.tags if _names_cases(options) else (SMOKE,)
    cases, policy_cases = only_tagged(all_cases, tags), only_tagged(all_policy_cases, tags)
    if not cases and not policy_cases:
        raise _no_cases(loaded, tags, specs)
    smoke = None
    if not _names_cases(options):
        smoke = SmokeCases(len(cases) + len(policy_cases), len(all_cases) + len(all_policy_cases))
    shard = Shard.parse(options.shard) if options.shard else None
    if options.since is not None:
        cases, policy_cases = affected_since(options.since, cases), affected_since(options.since, policy_cases)
        if not cases and not policy_cases:
            raise NothingChanged(options.since)
    if options.source == KAFKA:
        cases = from_topics(cases)
    if options.variants:
        cases = (*cases, *varied(cases, [] if "all" in options.variants else options.variants))
    if shard is not None:
        cases, policy_cases = shard.among(cases), shard.among(policy_cases)
    choice = choose_targets(
        [spec for spec in specs if spec != MODEL.name],
        spark_home=options.spark_home,
    )
    if options.runtime.uses_java_here:
        readiness.check_those_by_name(choice.targets)
    targets = _labelled(choice.targets, options.label)
    targets = having_store(options.store, targets) if options.store else targets
    notes = (*choice.notes, *chosen.notes, *not_confined(options.runtime, cases))
    return RunPlan(
        options, loaded.digest, cases, policy_cases, targets, notes, shard, smoke, MODEL.name in specs, chosen
    )


def run_plan(plan: RunPlan, display: Display[Verdict]) -> RunOutcome:
    """Run a plan and write its results: ``run_and_write``."""
    options, cells = plan.options, cells_of(plan.cases, plan.targets)
    limits = options.concurrency.limits(
        len(queues(cells)), store=options.store, repeat=options.repeat, cluster=options.runtime.cluster
    )
    if options.witness is not None:
        limits = replace(limits, conf={**limits.conf, READ_STATE: "true"})
    names = [target.name for target in plan.targets]
    if not plan.policy_cases:
        return run_and_write(options, plan.header, cells, JudgeCases(), limits, display, cell_record)
    columns = policy_engines.columns(plan.policy_engines, plan.policy_cases)
    answered = cells_on_policies(plan.cases, plan.policy_cases, names, model=plan.model, columns=columns)
    of_spark = [target for target in plan.header.targets if target.name not in {one.target.name for one in columns}]
    header = plan.header.model_copy(update={"targets": (*of_spark, *(column.target for column in columns))})
    return run_and_write(options, header, cells, JudgeCases(), limits, display, cell_record, answered)


def run_and_write(
    options: SessionOptions,
    header: Header,
    cells: Iterable[CellTask],
    judge: Judge[V],
    limits: Limits,
    display: Display[V],
    record: Record[V],
    answered: Iterable[Cell] = (),
) -> RunOutcome:
    """Run cells and write a results file; ``answered`` are cells that need no engine.

    Raises:
        Interrupted: Ctrl-C or SIGTERM; what it left has no footer.
        CannotWriteFile, OtherContent, BeingWritten: see `conformance.core.output_file`.
        HarnessError: engines cannot be started at all; the results file is untouched.
    """
    with ExitStack() as stack:
        # An error in opening the runtime must leave earlier results as they are.
        runtime = stack.enter_context(open_runtime(options.runtime, options.work))
        writer = stack.enter_context(ResultsWriter(options.output, header))
        stack.enter_context(
            interruptible(lambda: f"{writer.left_at} lacks {counted(len(writer.missing()), 'cell')} and its footer")
        )
        # Repetitions are run to see whether answers change.
        cache = None if limits.repeat > 1 else stack.enter_context(AnswerCache(answers_file(), fresh=options.fresh))
        reused = run_cells(
            cells,
            judge,
            runtime,
            limits,
            display=display,
            sink=ResultsSink(writer, record),
            allow_code=options.runtime.own_code is not None,
            cache=cache,
        )
        for cell in answered:
            writer.write(cell)
        writer.finish()
    return RunOutcome(Results.read(options.output), reused, cache.problem if cache is not None else None)


def choose_targets(specs: Sequence[str], *, spark_home: Path | None = None) -> Choice:
    """The targets these specs mean, and what the user should know about the choice.

    Args:
        specs: see `Targets.choose`.
        spark_home: an unpacked Spark, which ``installed`` means then.

    Raises:
        UnknownTarget, NothingRuns, NoPyspark, UnusablePyspark: see `Targets.choose`.
    """
    return replace(Targets.load(), spark_home=spark_home).choose(specs, obstacle=readiness.obstacle)


def unseen(target: Target, runtime: str) -> TargetRecord:
    """The record of a target whose engine has not introduced itself yet."""
    return TargetRecord(name=target.name, spark=str(target.version), runtime=runtime)


def target_record(target: Target, identity: Identity, place: EngineLocation) -> TargetRecord:
    """The record of a target whose engine has introduced itself."""
    return TargetRecord(
        name=target.name,
        spark=identity.spark,
        java=identity.java,
        python=identity.python,
        scala=identity.scala,
        os=identity.os,
        runtime=place.runtime,
        image=place.image,
        image_digest=place.image_digest,
        master=place.master,
        kafka=place.kafka,
    )


class ResultsSink(Sink[V], Generic[V]):
    """Writes cells to the results file as they come, and each engine the first time it introduces itself."""

    def __init__(self, writer: ResultsWriter, record: Record[V]) -> None:
        self._writer = writer
        self._record = record
        self._introduced: set[str] = set()

    def introduce(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        if target.name in self._introduced:
            return
        self._introduced.add(target.name)
        self._writer.introduce(target_record(target, identity, place))

    def keep(self, task: CellTask, verdict: V, run: CellRun | None) -> None:
        self._writer.write(self._record(task, verdict, run))


def cell_record(task: CellTask, verdict: Verdict, run: CellRun | None) -> Cell:
    """A case on one version, as it stands in a results file."""
    if run is None:
        return Cell.of(task.case, task.target.name, verdict)
    milliseconds = int(run.seconds * 1000)
    return Cell.of(task.case, task.target.name, verdict, run.observations, milliseconds, reused=run.reused)


def _names_cases(options: RunOptions) -> bool:
    """Whether the options say which cases run; versions, variants and places are the same for whatever runs.

    Raises:
        OptionsClash: they say both every case and only some.
    """
    named = {"PATH": options.paths, "--tag": options.tags, "--since": options.since is not None}
    for name, given in named.items():
        if given and options.every_case:
            raise OptionsClash(f"--all runs every case of the suite: omit it or {name}")
    # The shards of a suite are together the whole of it.
    return options.every_case or options.shard is not None or any(named.values())


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
        return OptionsClash(
            "only cases on watermark policies run on the model; for a case for Spark use `conformance explain`"
        )
    known = sorted({tag for case in loaded.all_cases for tag in case.tags})
    near = [match for tag in tags for match in get_close_matches(tag, known, 1)]
    suggestion = f" Did you mean {' or '.join(near)}?" if near else ""
    return OptionsClash(
        f"no case has the tag {' or '.join(tags)}.{suggestion} Tags of these cases: {', '.join(known) or 'none'}"
    )
