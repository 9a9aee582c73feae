"""``conformance upgrade``: checkpoints that one version wrote, and what the next makes of them."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Annotated, Literal, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from conformance import suite
from conformance.case import Case
from conformance.cli.running import introduced, said_when_interrupted
from conformance.conduct import only_tagged
from conformance.observation import Identity, Observation
from conformance.upgrade import UpgradeVerdict, handovers
from conformance.upgrading import conduct_upgrades
from harness.engine import Place
from harness.pairs import Policy, TargetPair, between, pairs
from harness.runtimes import Name, Wishes
from harness.runtimes import runtime as runtime_for
from harness.scheduler import Limits
from harness.state_stores import Name as StoreName
from harness.state_stores import StateStore
from harness.target import Target
from harness.targets import Targets
from reports.records import Header, UpgradeCell
from reports.records import Target as TargetRecord
from reports.results import Results, ResultsWriter
from reports.upgrades import EXPECTED, MARKS, exit_code, show

EXAMPLES = """
Examples:

  conformance upgrade --from 3.5.9 --to 4.0.5            will my checkpoints of 3.5.9 go on under 4.0.5?

  conformance upgrade --from 4.0 --to 3.5                and can I go back?

  conformance upgrade --from 3.5 --to lines              to the newest release of every line

  conformance upgrade                                    the changes people make, and one step back from each

  conformance upgrade --pairs all --cuts each            every line to every other, at every step

  conformance upgrade my/cases --from 3.5 --to 4.0 --state-store rocksdb
"""


def upgrade(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Cases or folders of cases; the suite's own by default.")
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            "--from", help="Who writes the checkpoints: a version (3.5.9), a line (3.5), a range, lines. Repeatable."
        ),
    ] = None,
    to: Annotated[list[str] | None, typer.Option("--to", help="Who goes on from them, likewise. Repeatable.")] = None,
    policy: Annotated[
        Policy | None,
        typer.Option(
            "--pairs",
            help="Every line and its neighbours, the jumps people make (lts), or every line and every other; "
            "without --from and --to, neighbours and jumps. With them, only pairs that fit.",
        ),
    ] = None,
    cuts: Annotated[
        Literal["first", "each"],
        typer.Option(
            help="Change versions where the case restarts, else after its first rows; or before each step, one by one."
        ),
    ] = "first",
    tag: Annotated[list[str] | None, typer.Option(help="Only cases with this tag. Repeatable.")] = None,
    results: Annotated[Path, typer.Option(help="Where every answer is kept.")] = Path("upgrades.jsonl"),
    jobs: Annotated[int, typer.Option(min=1, help="Checkpoints handed over at the same time.")] = max(
        1, (os.cpu_count() or 1) // 2 + 1
    ),
    step_timeout: Annotated[float, typer.Option(min=1, help="Seconds one step may take.")] = 120.0,
    state_store: Annotated[
        StoreName | None, typer.Option(help="Where state is kept, where the case does not say it itself.")
    ] = None,
    runtime: Annotated[
        Name, typer.Option(help="Where engines run: on this machine, or each in a container.")
    ] = "local",
    image: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VERSION=IMAGE",
            help="The container image for a version, a line or `all`; {spark} in it is the version. Repeatable.",
        ),
    ] = None,
    memory: Annotated[str | None, typer.Option(help="Of each container; 3g by default.", metavar="SIZE")] = None,
    cpus: Annotated[float | None, typer.Option(help="Of each container; 2 by default.")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Leave Spark's defaults, without the settings that only save time.")
    ] = False,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Let cases call Python code of their authors.")
    ] = False,
    work: Annotated[
        Path | None, typer.Option(help="Folder for engines' working files, kept; a temporary one by default.")
    ] = None,
) -> None:
    """Let one Spark version go on from the checkpoints of another, and say what becomes of state and watermark.

    The steps of a case before the cut run on the first version, the rest on the second, on a copy of its own of the checkpoint.
    """
    for option, given in (("--image", image), ("--memory", memory), ("--cpus", cpus)):
        if given and runtime != "container":
            raise typer.BadParameter("only containers have it: add --runtime container", param_hint=option)
    errors = Console(stderr=True, soft_wrap=True)
    loaded = suite.load(paths or None)
    loaded.raise_for_problems()
    handed = handovers(only_tagged(loaded.cases, tag or ()), each=cuts == "each")
    if not handed:
        raise typer.BadParameter(
            "none of these cases keeps state over more than one step: there is nothing to hand over"
        )
    chosen = _pairs(origin, to, policy, errors)
    store = StateStore.named(state_store) if state_store else None
    if store is not None:
        having = store.among(tuple(dict.fromkeys(target for pair in chosen for target in pair)))
        chosen = tuple(pair for pair in chosen if pair[0] in having and pair[1] in having)
    if not chosen:
        raise typer.BadParameter("no pair of versions is left: --from and --to name one version, or --pairs fits none")
    targets = sorted({target.name: target for pair in chosen for target in pair}.values(), key=lambda t: t.version)
    per_case: dict[str, tuple[int, ...]] = {}
    for handover in handed:
        per_case[handover.case.id] = (*per_case.get(handover.case.id, ()), handover.cut)
    header = Header(
        suite=loaded.digest,
        cases=(),
        targets=tuple(TargetRecord(name=one.name, spark=str(one.version), runtime=runtime) for one in targets),
        started=datetime.now(UTC),
        command=shlex.join(["conformance", *sys.argv[1:]]),
        pairs=tuple((before.name, after.name) for before, after in chosen),
        cuts=per_case,
    )
    cells = len(handed) * len(chosen)
    errors.print(
        f"{len(per_case)} case{'s' * (len(per_case) != 1)} × {len(chosen)} change{'s' * (len(chosen) != 1)} of version, "
        f"{cells} cells, into {results}",
        markup=False,
        highlight=False,
    )
    wishes = Wishes(
        runtime=runtime,
        images=tuple(image or ()),
        memory=memory,
        cpus=cpus,
        plain=plain,
        code_path=Path.cwd() if allow_code else None,
    )
    with ExitStack() as stack:
        root = Path(
            work or stack.enter_context(tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True))
        )
        root.mkdir(parents=True, exist_ok=True)
        engines = stack.enter_context(closing(runtime_for(wishes, root.resolve(), keep=work is not None)))
        writer = stack.enter_context(ResultsWriter(results, header))
        display = stack.enter_context(_Display(cells, errors))
        stack.enter_context(said_when_interrupted(lambda: len(writer.missing_upgrades()), results, errors))
        conduct_upgrades(
            handed,
            chosen,
            engines,
            Limits(jobs=jobs, step_timeout=step_timeout, conf=store.conf if store else {}),
            display=display,
            sink=_Kept(writer),
            allow_code=allow_code,
        )
        writer.finish()
    answered = Results.read(results)
    show(answered, Console())
    raise typer.Exit(exit_code(answered))


def _pairs(
    origin: list[str] | None, to: list[str] | None, policy: Policy | None, errors: Console
) -> tuple[TargetPair, ...]:
    """The pairs that were asked for: those of a policy that fit, or, where both sides are named, all of them."""
    targets = Targets.load()
    sides: list[tuple[Target, ...] | None] = []
    for specs in (origin, to):
        choice = targets.choose(specs) if specs else None
        for note in choice.notes if choice else ():
            errors.print(note, style="yellow", markup=False)
        sides.append(choice.targets if choice else None)
    before, after = sides
    if before is not None and after is not None and policy is None:
        return between(before, after)
    return tuple(
        pair
        for pair in pairs(targets, policy)
        if (before is None or pair[0] in before) and (after is None or pair[1] in after)
    )


class _Display:
    """A bar on a terminal; everywhere else a line for each checkpoint, on standard error."""

    def __init__(self, cells: int, console: Console) -> None:
        self._console = console
        self._live = console.is_terminal
        self._cells = cells
        self._done = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[doing]}", style="dim"),
            console=console,
            transient=True,
            disable=not self._live,
        )
        self._task = self._progress.add_task("checkpoints", total=cells, doing="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def says(self, target: Target, line: str) -> None:
        text = f"{target.name}: {line.removeprefix(f'{target.name}: ')}"
        if self._live:
            self._progress.update(self._task, doing=text)
        else:
            print(text, file=sys.stderr, flush=True)

    def ready(self, target: Target, identity: Identity, place: Place) -> None:
        versions = f"Spark {identity.spark}, Scala {identity.scala}, Java {identity.java}, Python {identity.python}"
        self.says(target, f"{versions}, {place}")

    def crossed(self, verdict: UpgradeVerdict, seconds: float) -> None:
        self._done += 1
        mark = MARKS[verdict.status]
        line = f"{verdict.pair} {mark.glyph} {verdict.status:<14} {verdict.case}, step {verdict.cut}  {seconds:.1f} s"
        if self._live:
            self._progress.update(self._task, advance=1, doing=f"{verdict.pair} {verdict.case}")
            if verdict.status not in EXPECTED:
                self._progress.console.print(line, style=mark.style, markup=False)
        else:
            print(f"[{self._done:{len(str(self._cells))}}/{self._cells}] {line}", file=sys.stderr, flush=True)


class _Kept:
    """Writes cells to the results file as they come."""

    def __init__(self, writer: ResultsWriter) -> None:
        self._writer = writer
        self._introduced: set[str] = set()

    def introduce(self, target: Target, identity: Identity, place: Place) -> None:
        if target.name not in self._introduced:
            self._introduced.add(target.name)
            self._writer.introduce(introduced(target, identity, place))

    def keep(
        self, case: Case, pair: TargetPair, verdict: UpgradeVerdict, observation: Observation | None, seconds: float
    ) -> None:
        names = pair[0].name, pair[1].name
        self._writer.write_upgrade(UpgradeCell.of(case, names, verdict, observation, int(seconds * 1000)))
