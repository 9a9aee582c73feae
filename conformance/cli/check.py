"""``conformance check``: whether one's own job behaves differently on another version."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import typer
from rich.text import Text

from conformance.cli import engine_options, job_options, options
from conformance.cli.console import command_line, errors_console, print_answer
from conformance.cli.engine_options import JobCode
from conformance.cli.options import SELECT_VERSIONS, argument, grouped, one_of, option, output_option
from conformance.cli.progress import AnswerLine, Answers
from conformance.core.case import Case
from conformance.core.wording import counted
from conformance.own_job import job_run
from conformance.own_job import verdict as verdicts
from conformance.suite import discovery
from harness.scheduling.cell_run import CellTask
from reports.analysis.published import published_results
from reports.html.dossier import write_verdict
from reports.results.status import final_style

EXAMPLES = """
Examples:

  # same rows on 4.1? does its checkpoint resume there?
  conformance check jobs:build --from 3.5 --to 4.1 --sample orders=o.jsonl

  # a job of two streams
  conformance check j:f --from 3.5 --to 4.1 --sample a=a.csv --sample b=b.csv

  # in more and smaller micro-batches
  conformance check j:f --from 3.5 --to 4.1 --sample a=a.csv --batches 9
"""
PAGE = "verdict.html"


@grouped
def check(
    function: str = argument(
        ..., "Your function of the session and a DataFrame for each sample, in order.", "MODULE:FUNCTION"
    ),
    *,
    from_: str = option(
        ..., "The version the job runs on: 3.5.9, or a line such as 3.5.", "VERSION", SELECT_VERSIONS, "--from"
    ),
    to: str = option(..., "The version it will run on.", "VERSION", SELECT_VERSIONS),
    sample: job_options.Samples,
    event_time: list[str] | None = option(
        None,
        "Column with the event time; by default the first TIMESTAMP. Repeatable.",
        "STREAM=COLUMN",
        job_options.INPUT,
    ),
    schema: job_options.Schemas = None,
    rows: job_options.Rows = 200,
    batches: int = option(4, "Micro-batches to divide them into.", "N", job_options.INPUT, min=2, max=50),
    silent_streams: bool = option(
        True,
        "Also let each stream be silent once after a restart, if there are several.",
        None,
        job_options.INPUT,
        "--silent-streams/--no-silent-streams",
    ),
    repeat_rows: bool = option(
        True,
        "Also send the earliest and the latest row of each stream again: as duplicates, and late.",
        None,
        job_options.INPUT,
        "--repeat-rows/--no-repeat-rows",
    ),
    output_mode: job_options.OutputMode = "append",
    code: JobCode,
    engines: engine_options.Engines,
    settings: engine_options.Settings,
    speed: engine_options.Speed,
    output: Path = output_option(Path("check"), "Folder for the case, the results and the verdict.", "FOLDER"),
    as_json: options.AsJson = False,
) -> None:
    """Compare what your own job does on two Spark versions.

    Divides the samples into micro-batches by event time, with a restart, duplicates and a late row; runs the job twice on both
    versions; and hands the checkpoint of the first over to the second before each step. Then the same with each stream silent once.
    Runs your code. Writes the case, which you may keep, and the results.

    Exits with 0 if nothing changes, 1 if rows differ or a checkpoint does not resume, 2 if your code fails, 3 without
    an answer.
    """
    job = job_run.Job(function, one_of(job_run.MODES, output_mode, "--output-mode"))
    where = job_options.options_of_job(engines, settings, speed, code)
    samples = job_options.read_samples(sample, schema, rows, where, event_time=event_time)
    before, notes_on_before = engine_options.one_target(from_, "--from")
    after, notes_on_after = engine_options.one_target(to, "--to")
    if before == after:
        raise typer.BadParameter(f"{from_} and {to} are both {before}: name two versions", param_hint="--to")
    own_code = where.runtime.own_code
    parameters = job_run.check_function(job, [each.stream for each in samples], own_code.folders if own_code else ())
    case = job_run.write_job(job, samples, output, batches=batches, again=repeat_rows)
    errors = errors_console(
        [*notes_on_before, *notes_on_after, *parameters],
        f"{function}: {counted(len(case.steps), 'step')}, {before.version} → {after.version}; into {output}",
    )
    job_options.print_samples(samples, errors)

    def judged(case: Case, folder: Path) -> verdicts.JobVerdict:
        with Answers("answers", len(job_run.cells_of_job(case, before, after)), errors, _answer_line) as display:
            run = job_run.run_job(case, before, after, where, display)
        if cells := job_run.workaround_cells(run):
            errors.print(f"handing over {counted(len(cells), 'refused checkpoint')} again, with settings that may help")
            with Answers("answers", len(cells), errors, _answer_line) as display:
                run = job_run.try_workarounds(run, cells, where, display)
        return verdicts.judge_job(run, folder, command_line())

    verdict, silent = judged(case, output), None
    verdict.write(output / "results.jsonl")
    if silent_streams and len(samples) > 1 and verdict.answer in ("same", "differs"):
        errors.print("the same again, with each stream silent once after the restart")
        with TemporaryDirectory(prefix="conformance-") as folder:
            scenario = job_run.write_job(job, samples, Path(folder), batches=batches, silent=True, again=repeat_rows)
            silent = judged(scenario, Path(folder))
    asked = published_results((str(before.version), str(after.version)))
    uses, conf, plan = verdict.features, where.runtime.conf, verdict.plan
    about = verdicts.known(asked, discovery.load(), before.version, after.version, uses, conf, plan)
    answers = [*verdicts.statements(verdict, about)]
    if silent is not None:
        answers.append(verdicts.silent_statement(silent))
    title = f"{function}: {verdicts.summary(verdict)}"
    write_verdict(output / PAGE, title, [*map(job_options.described, samples)], answers)
    exit_code = verdicts.combined_exit_code(verdict, silent)
    lines = (
        *job_options.statement_lines(answers),
        Text(f"The case is in {verdict.case.path}, the verdict as a page in {output / PAGE}.", style="dim"),
        Text(),
        Text(verdicts.summary(verdict), style=final_style(exit_code)),
    )
    of_silent = {"silent_streams": verdicts.record(silent, None) if silent is not None else None}
    print_answer(lines, {**verdicts.record(verdict, about), **of_silent}, as_json=as_json)
    raise typer.Exit(exit_code)


def _answer_line(task: CellTask, _: job_run.Outcome, seconds: float) -> AnswerLine:
    versions = " → ".join(str(target.version) for target in task.targets)
    settings = "".join(f", {key}={value}" for key, value in task.workaround.items())
    cell = versions if task.cut is None else f"{versions}, checkpoint before step {task.cut}{settings}"
    return AnswerLine(f"{cell}  {seconds:.1f} s", doing=cell)
