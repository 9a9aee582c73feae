"""What plans of runs share: options, chosen targets, limits, working files, a runtime, and a clean end when a run is interrupted."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Self

from conformance.core.case import TABLE_FORMATS, Case, RunSource
from conformance.core.errors import WrongUsage, cause, on_stop
from conformance.core.temporary_folder import temporary_folder
from conformance.core.versions import StateStore, StoreName
from conformance.suite.discovery import shipped
from conformance.variants.catalogue import varied
from harness.engine.engine import Runtime
from harness.environments import provision
from harness.errors import HarnessError
from harness.runtimes.cluster import Cluster, Storage, StorageUrl
from harness.runtimes.line_packages import package_of
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.options import runtime as runtime_for
from harness.scheduling.budget import ENGINE_MEMORY_LIMIT, MAX_IN_A_CLUSTER, Budget, Machine, budget
from harness.scheduling.cell_run import Limits
from harness.scheduling.kept_engines import KeptEngines
from harness.targets.targets import Target, TargetChoice, Targets

STEP_TIMEOUT_S = 120.0


class OptionsClash(WrongUsage):
    """The user's options do not fit together, or leave nothing to do."""


class RunInterrupted(RuntimeError):
    """Ctrl-C, SIGTERM, SIGHUP or SIGQUIT ended the run; every engine has ended."""

    exit_code: ClassVar[int] = 130
    """Shells expect this of a program that Ctrl-C has ended."""

    def __init__(self, left: str) -> None:
        super().__init__(f"interrupted: {left}")


@dataclass(frozen=True)
class Concurrency:
    """How much may run at once, and how long one step may take."""

    jobs: int | None = None
    """The number of engines at a time; None for what cores and memory allow."""
    side_by_side: int | None = None
    """The number of cases at a time in each engine; None for what the cores allow."""
    step_timeout: float = STEP_TIMEOUT_S

    def limits(
        self, engines: int, *, store: StateStore | None = None, repeat: int = 1, cluster: Cluster | None = None
    ) -> Limits:
        """The scheduler's limits for so many ``engines`` with work; ``store``: where cases that do not choose keep their state.

        The only engine of a ``cluster`` takes all its slots, and runs as many cases as it has slots.
        """
        if cluster is None:
            shared = budget(Machine.here(), engines, jobs=self.jobs, side_by_side=self.side_by_side)
        else:
            cases = self.side_by_side or MAX_IN_A_CLUSTER
            shared = Budget(self.jobs or 1, cases, cases)
        return Limits(
            jobs=shared.jobs,
            step_timeout=self.step_timeout,
            side_by_side=shared.side_by_side,
            most_side_by_side=shared.most,
            repeat=repeat,
            engine_memory=ENGINE_MEMORY_LIMIT,
            conf=store.conf if store else {},
        )

    def one_by_one(self) -> Self:
        """Let the runs follow each other, because what they write outside the trial may be one table, one file."""
        return replace(self, jobs=1, side_by_side=1)


@contextmanager
def working_folder(work: Path | None = None, storage: Storage | None = None) -> Iterator[Path]:
    """The folder for engines' working files: ``work``, which is kept, else a temporary one, in ``storage`` if that is a folder.

    Raises HarnessError: the folder cannot be made.
    """
    shared = None if isinstance(storage, StorageUrl) else storage
    with ExitStack() as stack:
        try:
            if work is None:
                root = stack.enter_context(temporary_folder(shared))
            else:
                root = work
                root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            # Without any folder for temporary files, the text of the error names those that were tried.
            what = f"cannot write to {work or shared or error.filename or 'a temporary folder'}: {cause(error)}"
            raise HarnessError(f"{what}. Input, checkpoints and state are written there.") from error
        yield root.resolve()


def not_confined(options: RuntimeOptions, cases: Iterable[Case]) -> tuple[str, ...]:
    """A note for a user who runs the cases of others on this machine, else nothing."""
    suite = shipped()
    if options.runtime == "container" or all(case.path.is_relative_to(suite) for case in cases):
        return ()
    return ("Cases run on this machine with your rights: this is not a sandbox. --runtime container confines them.",)


@contextmanager
def open_runtime(options: RuntimeOptions, work: Path | None = None) -> Iterator[Runtime]:
    """The runtime of these options, closed at the end; raises what `working_folder` and `harness.runtimes.options.runtime` raise."""
    with (
        working_folder(work, options.storage) as root,
        closing(runtime_for(options, root, keep=work is not None)) as runtime,
    ):
        yield runtime


@contextmanager
def interruptible(left: Callable[[], str]) -> Iterator[None]:
    """Let a signal that stops the run end the engines, and raise `Interrupted`; ``left`` says what it leaves behind."""
    try:
        with on_stop():
            yield
    except KeyboardInterrupt:
        raise RunInterrupted(f"{left()}; no engine is left running") from None


@dataclass(frozen=True, kw_only=True)
class EngineUse:
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    work: Path | None = None
    """Working files are kept in this folder; None for a temporary one."""
    concurrency: Concurrency = field(default_factory=Concurrency)
    kept: KeptEngines | None = None
    """Engines that one run leaves to the next; None to end engines with their run."""

    @contextmanager
    def keeping_engines(self) -> Iterator[KeptEngines]:
        """What several runs need to use the same engines, one run after another; see `open_runtime` for errors."""
        with (
            open_runtime(self.runtime, self.work) as runtime,
            closing(KeptEngines(runtime)) as kept,
            interruptible(lambda: "the answer is not complete"),
        ):
            try:
                yield kept
            except BaseException:
                kept.kill()
                raise


@dataclass(frozen=True)
class SessionOptions(EngineUse):
    output: Path
    command: str
    """The header of the file has the command line."""
    paths: Sequence[Path] = ()
    """Cases and folders of cases; the suite that ships if empty."""
    tags: Sequence[str] = ()
    state_store: StoreName | None = None
    fresh: bool = False

    @property
    def store(self) -> StateStore | None:
        return StateStore.named(self.state_store) if self.state_store else None


def choose_targets(specs: Sequence[str], *, spark_home: Path | None = None) -> TargetChoice:
    """The targets of specs, with notes; ``spark_home``: what ``installed`` means. See `Targets.choose` for errors."""
    return replace(Targets.load(), spark_home=spark_home).choose(specs, obstacle=provision.obstacle)


def single_target(
    spec: str, otherwise: Callable[[int], Exception], *, runs: bool = True
) -> tuple[Target, tuple[str, ...]]:
    """The only target of a spec, which ``runs`` here, with notes; `Targets.choose` has the errors.

    ``otherwise`` makes the error for a spec that means several, from their number.
    """
    choice = choose_targets([spec]) if runs else Targets.load().choose([spec])
    if len(choice.targets) != 1:
        raise otherwise(len(choice.targets))
    return choice.targets[0], choice.notes


def having_source(source: RunSource, cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases that can have their rows come from this source, so changed, and those that read it anyway; OptionsClash if none can."""
    if source == "files":
        return tuple(cases)
    reading = (*varied(cases, [source]), *(case for case in cases if case.source == source))
    if not reading:
        kind = "topic" if source == "kafka" else "table"
        raise OptionsClash(f"--source {source}: none of these cases can have its rows come from a {kind}")
    return reading


def check_packages(source: RunSource, targets: Sequence[Target]) -> None:
    """OptionsClash if no version has a package for tables of this format. If only some versions lack it, their cells say so."""
    if source in TABLE_FORMATS and targets:
        reasons = [package_of(source).lacking(target.version) for target in targets]
        if all(reasons):
            raise OptionsClash(f"--source {source}: {reasons[0]}")
