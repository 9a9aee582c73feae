"""What every command that runs engines does alike: how it opens and closes them, and what it writes down of a run."""

from __future__ import annotations

import re
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console

from conformance.core.observation import Identity
from conformance.core.state_stores import StateStore
from harness.engine.engine import EngineLocation, Runtime
from harness.environments import readiness
from harness.environments.cache_directory import answers_file
from harness.errors import HarnessError
from harness.runtimes.cluster import Cluster, settings_of
from harness.runtimes.connect import Endpoint
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.options import runtime as runtime_for
from harness.runtimes.storage import Storage, StorageUrl
from harness.runtimes.storage import parse_storage as storage_of
from harness.scheduling.answer_cache import AnswerCache
from harness.scheduling.budget import ENGINE_MEMORY_LIMIT, MAX_IN_A_CLUSTER, Budget, budget
from harness.scheduling.cell_run import Limits
from harness.scheduling.machine import Machine
from harness.targets.catalogue import Targets
from harness.targets.target import Target
from reports.results.reading import ResultsWriter
from reports.results.records import Target as TargetRecord

INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C has ended."""


def errors_console() -> Console:
    """Standard error, for what is said beside the answer; lines are never broken."""
    return Console(stderr=True, soft_wrap=True)


def chosen(
    specs: Sequence[str], errors: Console, *, any_release: bool = False, spark_home: Path | None = None
) -> tuple[Target, ...]:
    """The targets that were asked for; what whoever asked should know is said.

    ``any_release``: not only those of the catalogue, for somebody else's Spark may be of any number.

    Raises:
        UnknownTarget, NothingRuns, NoPyspark, UnusablePyspark: see `Targets.choose`.
    """
    targets = replace(Targets.load(), spark_home=spark_home)
    if any_release:
        targets = targets.with_releases(specs)
    choice = targets.choose(specs, obstacle=readiness.obstacle)
    for note in choice.notes:
        errors.print(note, style="yellow", markup=False)
    return choice.targets


def labelled(targets: tuple[Target, ...], label: str | None) -> tuple[Target, ...]:
    """The targets, the one there is by the name its user gave it.

    Raises:
        typer.BadParameter: there are several, or the label is no name.
    """
    if label is None:
        return targets
    if len(targets) != 1:
        raise typer.BadParameter(f"it names one column, and there are {len(targets)}", param_hint="--label")
    if not label.strip() or not label.isprintable() or label.startswith("spark-"):
        raise typer.BadParameter("a name of your own, on one line", param_hint="--label")
    return (replace(targets[0], label=label.strip()),)


def wishes(
    runtime: str,
    *,
    images: Sequence[str] = (),
    memory: str | None = None,
    cpus: float | None = None,
    plain: bool = False,
    allow_code: bool = False,
    master: str | None = None,
    conf: Sequence[str] = (),
    storage: str | None = None,
    connect: str | None = None,
) -> RuntimeOptions:
    """What a person said about where engines run.

    Raises:
        typer.BadParameter: something that only containers have was asked for, and no container, or the other way round; or a
            cluster or a server on other machines, and no storage that they share.
        NotAMaster, NotASetting: see `harness.runtimes.cluster`.
        NotAnEndpoint: see `harness.runtimes.connect`.
    """
    for option, given in (("--image", images), ("--memory", memory), ("--cpus", cpus)):
        if given and runtime != "container":
            raise typer.BadParameter("only containers have it: add --runtime container", param_hint=option)
    if storage and runtime == "container":
        raise typer.BadParameter("containers have a volume of their own: leave out --runtime", param_hint="--storage")
    for option, here in (("--master", master), ("--conf", conf), ("--connect", connect)):
        if here and runtime == "container":
            raise typer.BadParameter("a container has an engine of its own: leave out --runtime", param_hint=option)
    for option, there in (("--master", master), ("--conf", conf), ("--plain", plain)):
        if there and connect:
            raise typer.BadParameter("the server behind --connect has its own already", param_hint=option)
    cluster = Cluster.parse(master) if master else None
    endpoint = Endpoint.parse(connect) if connect else None
    elsewhere = cluster or endpoint
    if elsewhere is not None and not elsewhere.on_this_machine and storage is None:
        raise typer.BadParameter(
            f"the machines of {elsewhere} must see what this one writes: name a folder that all of them share, or a URL",
            param_hint="--storage",
        )
    return RuntimeOptions(
        runtime=runtime,
        cluster=cluster,
        endpoint=endpoint,
        conf=settings_of(conf),
        storage=storage_of(storage) if storage else None,
        images=tuple(images),
        memory=memory,
        cpus=cpus,
        plain=plain,
        # People's own modules lie beside where they work, as for `python -m`.
        code_path=Path.cwd() if allow_code else None,
    )


class CannotWrite(HarnessError):
    """Engines have no place for their working files.

    Attributes:
        folder: where they were to be.
    """

    def __init__(self, folder: Path, why: OSError) -> None:
        super().__init__(
            f"nothing can be written to {folder}: {why.strerror}. Input, checkpoints and state are written there."
        )
        self.folder = folder


@contextmanager
def working_folder(work: Path | None = None, storage: Storage | None = None) -> Iterator[Path]:
    """The folder for engines' working files.

    Args:
        work: kept; where it is None, a temporary one.
        storage: where the temporary one is made, if it is a folder; else it is where this machine has them.

    Raises:
        CannotWrite: nothing can be written there.
    """
    shared = None if isinstance(storage, StorageUrl) else storage
    with ExitStack() as stack:
        try:
            root = Path(
                work
                or stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="conformance-", dir=shared, ignore_cleanup_errors=True)
                )
            )
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotWrite(work or shared or Path(tempfile.gettempdir()), error) from error
        yield root.resolve()


@contextmanager
def engines(wished: RuntimeOptions, work: Path | None = None) -> Iterator[Runtime]:
    """The runtime that was wished for, closed at the end.

    Args:
        wished: where engines run.
        work: see ``working_folder``.

    Raises:
        NotAnImage, NotALimit, InvalidCase, NoDaemon: see `harness.runtimes.options.runtime`.
        CannotWrite: see ``working_folder``.
    """
    with (
        working_folder(work, wished.storage) as root,
        closing(runtime_for(wished, root, keep=work is not None)) as runtime,
    ):
        yield runtime


def limits(
    engines: int,
    *,
    jobs: int | None,
    side_by_side: int | None,
    step_timeout: float,
    store: StateStore | None,
    repeat: int = 1,
    cluster: Cluster | None = None,
) -> Limits:
    """What runs at once, and for how long; ``engines``: for how many there is work.

    One engine takes all the slots of a cluster, and runs as many cases as it has slots.
    """
    if cluster is None:
        shared = budget(Machine.here(), engines, jobs=jobs, side_by_side=side_by_side)
    else:
        shared = Budget(jobs or 1, side_by_side or MAX_IN_A_CLUSTER)
    return Limits(
        jobs=shared.jobs,
        step_timeout=step_timeout,
        side_by_side=shared.side_by_side,
        repeat=repeat,
        engine_memory=ENGINE_MEMORY_LIMIT,
        conf=store.conf if store else {},
    )


def answer_cache(*, fresh: bool) -> AnswerCache:
    """The answers of earlier runs on this machine; ``fresh``: without using them."""
    return AnswerCache(answers_file(), fresh=fresh)


def say_reused(reused: int, cells: int, errors: Console) -> None:
    """Say how many answers no engine was asked for, if any."""
    if reused:
        errors.print(f"{reused} of {cells} answers known from earlier runs; --fresh asks again", highlight=False)


@contextmanager
def said_when_interrupted(missing: Callable[[], int], results: Path, errors: Console) -> Iterator[None]:
    """Let SIGTERM end the engines as Ctrl-C does, and say how many cells are missing then.

    Raises:
        typer.Exit: it was interrupted.
    """
    with stopped(lambda: f"{results} lacks {missing()} cells and its footer", errors):
        yield


@contextmanager
def stopped(left: Callable[[], str], errors: Console) -> Iterator[None]:
    """Let SIGTERM end the engines as Ctrl-C does, and say what that leaves behind.

    Raises:
        typer.Exit: it was interrupted.
    """
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    except KeyboardInterrupt:
        errors.print(f"interrupted: {left()}; no engine is left running", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def command_line() -> str:
    """The command as it was typed, for the results' header."""
    words = [_without_parameters(word) for word in sys.argv[1:]]
    return shlex.join(["conformance", *words])


def _without_parameters(word: str) -> str:
    """The address of a Connect server may hold a token."""
    return re.sub(r"(sc://[^\s;]*);\S*", r"\1;…", word)


def announced(target: Target, runtime: str) -> TargetRecord:
    """The record of a target before any engine has spoken."""
    return TargetRecord(name=target.name, spark=str(target.version), runtime=runtime)


class Introductions:
    """The part of a sink that is the same for every run: engines go into the results file, each target once."""

    def __init__(self, writer: ResultsWriter) -> None:
        self._writer = writer
        self._introduced: set[str] = set()

    def introduce(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        if target.name not in self._introduced:
            self._introduced.add(target.name)
            self._writer.introduce(_introduced(target, identity, place))


def _introduced(target: Target, identity: Identity, place: EngineLocation) -> TargetRecord:
    """The record of an engine that has introduced itself."""
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
    )


def _interrupt(*_: object) -> None:
    # Not by raising SIGINT: a process that a shell put in the background ignores that one.
    raise KeyboardInterrupt
