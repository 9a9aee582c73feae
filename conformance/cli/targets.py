"""``conformance targets``: the Spark versions, which of them can run here, and how to install them."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from conformance.cli import options
from conformance.cli.commands import Command, CommandGroup
from conformance.cli.console import SafeConsole, errors_console, print_tables
from conformance.cli.options import argument, flag, option
from conformance.core.errors import WrongUsage
from conformance.core.temporary_folder import remove_leftovers
from conformance.core.versions import released_on
from harness.environments import cache_directory, provision
from harness.environments.cache_directory import cache_dir
from harness.environments.installer import specifier
from harness.environments.provision import Readiness
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.targets.installed import NoPyspark, UnusablePyspark
from harness.targets.targets import Target, Targets, UnknownTarget

app = typer.Typer(add_completion=False, cls=CommandGroup)

Specs = Annotated[
    list[str],
    argument(..., "A version (3.5.9), line (3.5) or range ('>=3.4'); newest, lines or all.", "VERSION"),
]


@app.callback(invoke_without_command=True)
def targets(context: typer.Context, verbose: options.Verbose = False, as_json: options.AsJson = False) -> None:
    """List Spark versions and whether this machine can run them.

    Shows the Python and the Java that each would use here, and what keeps it from running; with --verbose, also where it looked.
    """
    if context.invoked_subcommand is not None:
        return
    catalogue = Targets.load()
    listed = list(catalogue.entries)
    with suppress(NoPyspark, UnusablePyspark):
        listed.append(catalogue.installed())
    checked = provision.check_all(listed)
    print_tables(_tables(checked, verbose=verbose), [*map(_record, checked)], as_json=as_json, verbose=verbose)


@app.command(cls=Command)
def prepare(specs: Specs) -> None:
    """Install Spark versions before a run needs them."""

    def work(target: Target, on_progress: ProgressCallback) -> str:
        made = provision.prepare(target, on_progress=on_progress)
        where = _short(made.root or made.spark_home)
        return f"ready: Python {made.python_version}, Java {made.java_version}, in {where}"

    if _failures(specs, "ready", work):
        raise typer.Exit(HarnessError.exit_code)


@app.command(cls=Command, epilog="A run with --runtime container uses these images.\n")
def build(
    specs: Specs,
    base: str | None = option(
        None, "Debian or Ubuntu image to build on; Python and Java are added if it lacks them.", "IMAGE"
    ),
    ca: Path | None = option(
        None,
        "CA bundle for the build; by default the one in this machine's environment variables. No layer keeps it.",
        "FILE",
    ),
    index_url: str | None = option(
        None, "Package index; by default that of this machine's pip. No layer keeps it.", "URL"
    ),
) -> None:
    """Build container images of Spark versions from PyPI.

    For machines that cannot or should not pull Apache's images.
    """
    from harness.runtimes.containers.builder import build as build_image

    def work(target: Target, on_progress: ProgressCallback) -> str:
        began = time.monotonic()
        name = build_image(target, base=base, ca=ca, index_url=index_url, on_progress=on_progress)
        return f"built: {name}, {time.monotonic() - began:.0f} s"

    if failures := _failures(specs, "built", work):
        raise typer.Exit(max(error.exit_code for error in failures))


def _failures(
    specs: list[str], done: str, work: Callable[[Target, ProgressCallback], str]
) -> tuple[HarnessError | WrongUsage, ...]:
    """Work on each version that is meant, print what became of each, and return the errors; ``done``: what a version is after the work."""
    console, failed = errors_console(), dict[str, HarnessError | WrongUsage]()
    for target in _chosen(specs, console):
        try:
            with _progress(target.name, console) as on_progress:
                made = work(target, on_progress)
        except (HarnessError, WrongUsage) as error:
            console.print(f"[red]✗[/] {target.name}: {escape(str(error))}")
            failed[target.name] = error
        else:
            SafeConsole(soft_wrap=True, highlight=False).print(f"[green]✓[/] {target.name} {escape(made)}")
    if failed:
        console.print(f"[red]✗[/] not {done}: {', '.join(failed)}")
    return tuple(failed.values())


@app.command(cls=Command)
def clean(
    everything: bool = flag("--all", "Also of running runs, and of other machines that use this daemon."),
    environments: bool = flag("--environments", "Remove installed versions instead, with their class archives."),
    images: bool = flag("--images", "Remove images of `targets build` instead."),
) -> None:
    """Remove folders, containers and volumes that killed runs left behind.

    Or what runs use and would make again: installed versions, images.
    """
    console = SafeConsole(highlight=False)
    if environments:
        _remove_environments(console)
    if images:
        _remove_images(console)
    if not environments and not images:
        _remove_leftovers(console, everything)


def _remove_leftovers(console: Console, everything: bool) -> None:
    from harness.runtimes.containers import daemon

    removed = kept = 0
    for folder in remove_leftovers():
        console.print(f"✓ removed: folder {escape(str(folder))}", soft_wrap=True)
        removed += 1
    try:
        client = daemon.connect()
    except daemon.NoDaemon:
        console.print(f"{removed} removed; no container engine answers, which may have containers and volumes")
        return
    for leftover in daemon.find_leftovers(client):
        owner = leftover.owner
        if not everything and owner.is_alive() is not False:
            console.print(f"○ kept: {leftover.kind} {leftover.name}, of process {owner.process} on {owner.host}")
            kept += 1
            continue
        daemon.remove_leftover(client, leftover)
        console.print(f"✓ removed: {leftover.kind} {leftover.name}")
        removed += 1
    console.print(f"{removed} removed" + (f", {kept} kept; --all removes them too" if kept else ""))


def _remove_environments(console: Console) -> None:
    freed = 0
    for environment in cache_directory.stored_environments(cache_dir()):
        archives = f", {_megabytes(environment.archives)} of it class archives" if environment.archives else ""
        what = f"environment {escape(environment.root.name)}"
        if (why := cache_directory.remove_environment(environment)) is not None:
            console.print(f"○ kept: {what}: {why}", soft_wrap=True)
            continue
        console.print(f"✓ removed: {what}, {_megabytes(environment.size)}{archives}", soft_wrap=True)
        freed += environment.size
    console.print(f"{_megabytes(freed)} of environments removed")


def _remove_images(console: Console) -> None:
    from harness.runtimes.containers import images
    from harness.runtimes.containers.daemon import connect

    freed = 0
    for name, size in images.remove_built(connect()):
        console.print(f"✓ removed: image {escape(name)}, {_megabytes(size)}", soft_wrap=True)
        freed += size
    console.print(f"{_megabytes(freed)} of images removed")


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.0f} MB"


def _chosen(specs: list[str], console: Console) -> tuple[Target, ...]:
    try:
        choice = Targets.load().choose(specs, obstacle=provision.obstacle)
    except (UnknownTarget, HarnessError) as error:
        console.print(f"[red]✗[/] {escape(str(error))}")
        raise typer.Exit(error.exit_code) from None
    for note in choice.notes:
        console.print(escape(note))
    return choice.targets


@contextmanager
def _progress(name: str, console: Console) -> Iterator[ProgressCallback]:
    """Progress of long work: one changing line on a terminal, else a line each."""
    began = time.monotonic()
    spinner = console.status(f"{name}: checking") if console.is_terminal else None

    def on_progress(line: str, /) -> None:
        if spinner is None:
            console.print(f"{name}: {escape(line)}")
        else:
            spinner.update(f"{name}: {escape(line)} [dim]{time.monotonic() - began:.0f} s[/]")

    with spinner or nullcontext():
        yield on_progress


def _tables(checked: list[Readiness], *, verbose: bool) -> Iterator[RenderableType]:
    table = Table(box=None, pad_edge=False)
    for title in ("target", "here", "released", "Python", "Java"):
        table.add_column(title, overflow="fold")
    for readiness in checked:
        table.add_row(*_row(readiness))
    yield table
    kept = defaultdict[str, list[str]](list)
    for readiness in checked:
        if obstacle := readiness.obstacle:
            kept[obstacle if verbose else obstacle.partition(". ")[0]].append(readiness.target.name)
    for obstacle, names in kept.items():
        yield Text(f"✗ {', '.join(names)}: {obstacle}")
    yield Text("A run installs what it needs; to install a version now: conformance targets prepare VERSION", "dim")


def _row(readiness: Readiness) -> list[Text]:
    state = Text("✓ prepared", "green") if readiness.prepared else Text("○ can be prepared")
    state = Text("✗ cannot run", "red") if readiness.obstacle else state
    released = _released(readiness.target) or "–"
    return [Text(readiness.target.name), state, *map(Text, (released, _python(readiness), _java(readiness)))]


def _python(readiness: Readiness) -> str:
    if environment := readiness.prepared:
        return environment.python_version
    if python := readiness.python:
        return str(python.version)
    return f"{specifier(readiness.target.python)} (uv downloads it)"


def _java(readiness: Readiness) -> str:
    if java := readiness.java:
        return java.version
    if embedded := readiness.embedded:
        return f"{readiness.prepared.java_version} (embedded)" if readiness.prepared else f"embedded ({embedded})"
    return f"needs {readiness.target.java}"


def _released(target: Target) -> str | None:
    day = released_on(target.version) if target.installed is None else None
    return str(day) if day is not None else None


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _record(readiness: Readiness) -> dict[str, Any]:
    target, environment, python, java = readiness.target, readiness.prepared, readiness.python, readiness.java
    return {
        "target": target.name,
        "spark": target.installed.version if target.installed else str(target.version),
        "released": _released(target),
        "image": target.image,
        "runnable": readiness.obstacle is None,
        "obstacle": readiness.obstacle,
        "prepared": environment is not None,
        "environment": str(environment.root) if environment and environment.root else None,
        "python": {
            "wanted": specifier(target.python),
            "version": environment.python_version if environment else str(python.version) if python else None,
            "path": str(environment.python if environment else python.executable if python else "") or None,
        },
        "java": {
            "wanted": str(target.java),
            "version": environment.java_version if environment else java.version if java else None,
            "home": str(environment.java_home if environment else java.home if java else "") or None,
            "embedded": readiness.embedded,
        },
    }
