"""``conformance upgrade``: whether checkpoints of one version resume on another."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from conformance.cli import options, running
from conformance.cli.progress import Bar, Lines, introduced, said
from conformance.core.observation import Identity
from conformance.core.state_stores import StateStore
from conformance.core.wording import counted
from conformance.judging.handoff_verdict import UpgradeVerdict, handoffs
from conformance.runner.run import only_tagged
from conformance.runner.run_cells import Sink
from conformance.runner.upgrade import run_upgrades
from conformance.suite import discovery
from harness.engine.engine import EngineLocation
from harness.scheduling.cell_run import CellRun, CellTask
from harness.targets.catalogue import Targets
from harness.targets.state_store_support import having as having_store
from harness.targets.target import Target
from harness.targets.upgrade_paths import Policy, TargetPair, between, pairs
from reports.results.reading import Results, ResultsWriter
from reports.results.records import Header, UpgradeCell
from reports.results.upgrades import EXPECTED, MARKS, exit_code, show

EXAMPLES = """
Examples:

  conformance upgrade --from 3.5.9 --to 4.0.5            do checkpoints of 3.5.9 resume on 4.0.5?

  conformance upgrade --from 4.0 --to 3.5                do they resume after a downgrade?

  conformance upgrade --from 3.5 --to lines              to the newest release of every line

  conformance upgrade                                    the usual upgrades, and each of them back

  conformance upgrade --pairs all --cuts each            every line to every other, at every step

  conformance upgrade my/cases --from 3.5 --to 4.0 --state-store rocksdb
"""


def upgrade(
    paths: options.Paths = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            "--from", help="The version that writes checkpoints: 3.5.9, a line (3.5), a range, or lines. Repeatable."
        ),
    ] = None,
    to: Annotated[
        list[str] | None, typer.Option("--to", help="The version that resumes them, likewise. Repeatable.")
    ] = None,
    policy: Annotated[
        Policy | None,
        typer.Option(
            "--pairs",
            help="neighbours: each line with the next; lts: common jumps; all: each line with every other. "
            "By default, neighbours and jumps. With --from or --to, only the pairs that match.",
        ),
    ] = None,
    cuts: Annotated[
        Literal["first", "each"],
        typer.Option(
            help="Change versions once, where the case restarts or after its first rows, or before each step in turn."
        ),
    ] = "first",
    tag: options.Tag = None,
    results: options.ResultsFile = Path("upgrades.jsonl"),
    jobs: options.Jobs = None,
    side_by_side: options.SideBySide = None,
    step_timeout: options.StepTimeout = options.STEP_TIMEOUT_S,
    fresh: options.Fresh = False,
    state_store: options.Store = None,
    runtime: options.RuntimeName = "local",
    image: options.Images = None,
    memory: options.Memory = None,
    cpus: options.Cpus = None,
    plain: options.Plain = False,
    allow_code: options.AllowCode = False,
    work: options.Work = None,
) -> None:
    """Resume checkpoints of one Spark version on another, and check state and watermark.

    The steps of a case before the cut run on the first version, the rest on the second, on a copy of the checkpoint.
    """
    wished = running.wishes(runtime, images=image or (), memory=memory, cpus=cpus, plain=plain, allow_code=allow_code)
    errors = running.errors_console()
    loaded = discovery.load(paths or None)
    loaded.raise_for_problems()
    found = handoffs(only_tagged(loaded.cases, tag or ()), each=cuts == "each")
    if not found:
        raise typer.BadParameter(
            "none of these cases keeps state for more than one step, so they leave no checkpoint to resume"
        )
    chosen = _pairs(origin, to, policy, errors)
    store = StateStore.named(state_store) if state_store else None
    if store is not None:
        having = having_store(store, tuple(dict.fromkeys(target for pair in chosen for target in pair)))
        chosen = tuple(pair for pair in chosen if pair[0] in having and pair[1] in having)
    if not chosen:
        raise typer.BadParameter("no pair of versions is left that matches --from, --to, --pairs and --state-store")
    targets = sorted({target.name: target for pair in chosen for target in pair}.values(), key=lambda t: t.version)
    per_case: dict[str, tuple[int, ...]] = {}
    for handoff in found:
        per_case[handoff.case.id] = (*per_case.get(handoff.case.id, ()), handoff.cut)
    header = Header(
        suite=loaded.digest,
        cases=(),
        targets=tuple(running.announced(target, runtime) for target in targets),
        started=datetime.now(UTC),
        command=running.command_line(),
        pairs=tuple((before.name, after.name) for before, after in chosen),
        cuts=per_case,
    )
    cells = len(found) * len(chosen)
    errors.print(
        f"{counted(len(per_case), 'case')} × {counted(len(chosen), 'version change')}, {counted(cells, 'cell')}, into {results}",
        markup=False,
        highlight=False,
    )
    with ExitStack() as stack:
        # Errors that prevent any engine appear before an existing file is replaced.
        engines = stack.enter_context(running.engines(wished, work))
        writer = stack.enter_context(ResultsWriter(results, header))
        display = _LiveDisplay(cells, errors) if errors.is_terminal else _PlainDisplay(cells)
        stack.enter_context(display)
        stack.enter_context(running.said_when_interrupted(lambda: len(writer.missing()), results, errors))
        reused = run_upgrades(
            found,
            chosen,
            engines,
            running.limits(len(targets), jobs=jobs, side_by_side=side_by_side, step_timeout=step_timeout, store=store),
            display=display,
            sink=_Kept(writer),
            allow_code=allow_code,
            cache=stack.enter_context(running.answer_cache(fresh=fresh)),
        )
        writer.finish()
    running.say_reused(reused, cells, errors)
    answered = Results.read(results)
    show(answered, Console())
    raise typer.Exit(exit_code(answered))


def _pairs(
    origin: list[str] | None, to: list[str] | None, policy: Policy | None, errors: Console
) -> tuple[TargetPair, ...]:
    """The requested pairs: those of a policy that match, or, if only both sides are given, all of them."""
    before, after = (running.chosen(specs, errors) if specs else None for specs in (origin, to))
    if before is not None and after is not None and policy is None:
        return between(before, after)
    return tuple(
        pair
        for pair in pairs(Targets.load(), policy)
        if (before is None or pair[0] in before) and (after is None or pair[1] in after)
    )


class _PlainDisplay(Lines):
    """A line per checkpoint."""

    def started(self, task: CellTask) -> None:
        pass

    def judged(self, task: CellTask, verdict: UpgradeVerdict, seconds: float) -> None:  # noqa: ARG002
        self.answered(_line(verdict, seconds))


class _LiveDisplay(Bar):
    """A bar over all checkpoints, with the latest message beside it."""

    def __init__(self, cells: int, console: Console) -> None:
        super().__init__("checkpoints", cells, console)

    def says(self, target: Target, line: str) -> None:
        self._progress.update(self._all, doing=said(target, line))

    def ready(self, target: Target, identity: Identity, place: EngineLocation) -> None:
        self.says(target, introduced(identity, place))

    def started(self, task: CellTask) -> None:
        pass

    def judged(self, task: CellTask, verdict: UpgradeVerdict, seconds: float) -> None:  # noqa: ARG002
        self.answered(
            doing=f"{verdict.pair} {verdict.case}",
            loud=None if verdict.status in EXPECTED else _line(verdict, seconds),
            style=MARKS[verdict.status].style,
        )


def _line(verdict: UpgradeVerdict, seconds: float) -> str:
    glyph = MARKS[verdict.status].glyph
    return f"{verdict.pair} {glyph} {verdict.status:<14} {verdict.case}, step {verdict.cut}  {seconds:.1f} s"


class _Kept(running.Introductions, Sink[UpgradeVerdict]):
    """Writes cells to the results file as they come."""

    def keep(self, task: CellTask, verdict: UpgradeVerdict, run: CellRun | None) -> None:
        names = task.origin.name, task.target.name
        observation = next(iter(run.observations), None) if run else None
        milliseconds = int(run.seconds * 1000) if run else 0
        self._writer.write(UpgradeCell.of(task.case, names, verdict, observation, milliseconds))
