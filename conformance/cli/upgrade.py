"""``conformance upgrade``: checkpoints that one version wrote, resumed by another."""

from dataclasses import replace
from pathlib import Path

import typer

from conformance.cli import engine_options, options
from conformance.cli.console import command_line, errors_console, print_answer, print_reused, width
from conformance.cli.engine_options import Code, ConnectSides
from conformance.cli.options import SELECT_CASES, SELECT_VERSIONS, grouped, option, output_option
from conformance.cli.progress import AnswerLine, Answers
from conformance.judging.verdict import Verdict
from conformance.runner.cases import handoff_of
from conformance.runner.upgrade import Cuts, UpgradeOptions, plan_upgrades, run_plan
from harness.scheduling.cell_run import CellTask
from harness.targets.targets import PairPolicy
from reports.results.checkpoint_status import colour_of, mark_of
from reports.results.reading import Results
from reports.results.status import GREEN, exit_code_of
from reports.terminal.upgrades import lines


@grouped
def upgrade(
    *,
    paths: options.Paths = None,
    tag: options.Tag = None,
    cuts: Cuts = option(
        "first",
        "Change versions once, where the case restarts or after its first rows; or before each step in turn.",
        "first|each",
        SELECT_CASES,
    ),
    from_: list[str] | None = option(
        None,
        "Writes checkpoints: a version (3.5.9), line (3.5), range or lines. Repeatable.",
        "VERSION",
        SELECT_VERSIONS,
        "--from",
    ),
    to: list[str] | None = option(None, "Resumes them. Repeatable.", "VERSION", SELECT_VERSIONS),
    policy: PairPolicy | None = option(
        None,
        "neighbours: each line with the next; lts: common jumps; all: each line with every other. By default neighbours "
        "and jumps. With --from or --to, only the pairs that match.",
        "neighbours|lts|all",
        SELECT_VERSIONS,
        "--pairs",
    ),
    engines: engine_options.EngineOptions,
    settings: engine_options.Settings,
    sides: ConnectSides,
    code: Code,
    state_store: engine_options.StateStore = None,
    speed: engine_options.Speed,
    fresh: engine_options.Fresh = False,
    verbose: options.Verbose = False,
    output: Path = output_option(Path("upgrades.jsonl"), "Results file."),
) -> None:
    """Resume checkpoints of one Spark version on another.

    The steps of a case before the cut run on the first version, the rest on the second, on a copy of the checkpoint.
    """
    connect = sides.address
    runtime = engine_options.runtime_options(engines, settings, connect=connect, code=code)
    plan = plan_upgrades(
        UpgradeOptions(
            output=output,
            command=command_line(),
            paths=paths or (),
            before=from_ or (),
            after=to or (),
            policy=policy,
            cuts=cuts,
            connect_side=(sides.connect_side or "to") if connect else None,
            tags=tag or (),
            state_store=state_store,
            fresh=fresh,
            runtime=replace(runtime, beside_connect=connect is not None),
            work=engines.work,
            concurrency=speed,
        )
    )
    errors = errors_console(plan.notes, plan)
    with Answers("checkpoints", plan.cells, errors, _answer_line) as display:
        reuse = run_plan(plan, display)
    print_reused(reuse, plan.cells, errors)
    results = Results.read(output)
    print_answer(lines(results, width()), verbose=verbose)
    raise typer.Exit(exit_code_of(cell.status for cell in results.upgrades))


def _answer_line(task: CellTask, verdict: Verdict, seconds: float) -> AnswerLine:
    _, pair = handoff_of(task)
    mark, colour = mark_of(verdict.status, verdict.outcome), colour_of(verdict.status, verdict.outcome)
    line = f"{pair} {mark.glyph} {colour:<14} {verdict.case}, step {verdict.cut}  {seconds:.1f} s"
    return AnswerLine(line, f"{pair} {verdict.case}", None if verdict.status in GREEN else line, mark.style)
