"""``conformance explain``: why a job's rows are missing, a case has its result, or a query does what its progress says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from conformance.account import explanation
from conformance.cli import job_options, options
from conformance.cli.console import errors_console, print_answer, print_error, print_tables, seen_from_here, width
from conformance.cli.engine_options import ClusterOptions, EngineOptions, JobCode, Speed, one_target
from conformance.cli.job_options import JobOptions, queries
from conformance.cli.options import argument, flag, grouped, known_version, one_of, option, output_option, refuse
from conformance.cli.progress import EngineLines, NoAnswers
from conformance.core.case import Case
from conformance.core.data import Json
from conformance.core.intervals import NotAnInterval, parse_interval
from conformance.core.output_file import OutputFile
from conformance.core.versions import SparkVersion, releases
from conformance.core.wrapping import fitted
from conformance.judging.verdict import not_applicable
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import Prediction, predict
from conformance.oracle.version_divergence import version_divergence
from conformance.own_job.named_job import NamedJob
from conformance.own_job.program import is_program
from conformance.own_job.sample import RECORD_ARRIVAL
from conformance.own_job.sql_file import is_sql_file
from conformance.own_job.trial import MOST_BATCHES
from conformance.policies.case import PolicyCase
from conformance.policies.tables import record as policy_record
from conformance.policies.tables import renderables, replays_of
from conformance.query_progress.query_page import QueryPage
from conformance.runner.resources import EngineUse
from conformance.suite import discovery
from reports.results.checkpoint_status import combined

if TYPE_CHECKING:
    from conformance.checkpoints.state_rows import SparkReader

NO_ANSWER = 3
"""The exit code if no engine answers for a job."""
MICRO_BATCHES = 6
"""Into how many micro-batches the sample of a job is divided: enough for the watermark to move between rows."""
UNKNOWN = 2
"""The exit code if the model does not know what the case does, or the case is not for the version."""

DETAILS = ((2, 1, 0, -1), (2,))
"""How much an answer says: of these the first that fits; everything with --verbose."""
STYLES: dict[explanation.Tone, str] = {
    "head": "bold",
    "step": "bold",
    "moves": "cyan",
    "late": "red",
    "closed": "yellow",
    "emits": "green",
    "error": "bold red",
    "dim": "dim",
    "kept": "dim",
}


@grouped
def explain(
    case: str | None = argument(
        None,
        "A case of the suite, by its id, or a file; or your job, as for `conformance check`.",
        "CASE|PROGRAM|FILE.sql|MODULE:FUNCTION",
    ),
    arguments: list[str] | None = argument(None, "Arguments of the program, after --.", "ARGUMENT"),
    *,
    spark: str | None = option(None, "A version (3.5.9) or a line (3.5); the newest by default.", "VERSION"),
    from_: str | None = option(
        None, "With --to: show where two versions diverge first, and by which rule.", "VERSION", None, "--from"
    ),
    to: str | None = option(None, "The other version.", "VERSION", None, "--to"),
    results: Path | None = option(
        None, "Explain what Spark did, by this results file: also for your own code, which no model predicts.", "FILE"
    ),
    policy: str | None = option(
        None, "Explain the case under this watermark policy; `conformance maintain policies` lists them.", "NAME|all"
    ),
    progress: list[Path] | None = option(
        None,
        "Explain a query by its progress: JSON lines, a driver's log, or an event log, also as a folder. Repeatable.",
        "FILE",
    ),
    checkpoint: str | None = option(
        None,
        "Add the state that waits in the query's checkpoint, with --progress or alone: its folder, or a URL that fsspec reads. With "
        "--spark, an engine reads a copy of what the suite does not read, such as RocksDB.",
        "DIR",
    ),
    symptom: str | None = option(
        None,
        "Show the causes of a symptom, each with a case that shows it: no-output, rows-missing, rows-twice, output-late, state-grows, "
        "watermark-stands-still or watermark-jumped.",
        "NAME",
    ),
    call: job_options.Call = None,
    job_settings: JobOptions,
    sample_options: job_options.SampleOptions,
    batches: int = option(
        MICRO_BATCHES, "Micro-batches to divide them into.", "N", job_options.INPUT, min=1, max=MOST_BATCHES
    ),
    arrival_time: list[str] | None = option(
        None,
        "When the rows of a sample arrived: a column, as --event-time names it; the schema need not have it. Repeatable.",
        "STREAM=COLUMN",
        job_options.INPUT,
    ),
    trigger_interval: str | None = option(
        None, "With --arrival-time, in place of --batches: '1 minute'.", "DURATION", job_options.INPUT
    ),
    delays: bool = flag(
        "--delays",
        "Answer which delay the watermark needs: for each, rows dropped, results changed, state, and when results come.",
    ),
    code: JobCode,
    engines: EngineOptions,
    settings: ClusterOptions,
    speed: Speed,
    output: Path | None = output_option(None, "Folder for the answer as a page with pictures over time.", "FOLDER"),
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Explain a job's rows, a case, or a query by its progress.

    Of a job, an engine of one version runs its queries on a sample: the answer is what became of each row, and why. It runs your
    code, as `conformance check` does. Of a case, the reference model says what arrived, how the watermark moved, which rows were late,
    and which windows closed; with --results, what a Spark did says so. With --progress, what a query left behind says why it emits
    nothing, drops rows or keeps ever more state, and with --checkpoint what waits in its state. -o writes a page that needs no other
    file, of a job or of progress.

    With --delays, the answer is which delay the query needs, as in `conformance explain orders.py --sample orders=orders.csv --delays`;
    it exits with 1 if your delay drops rows.

    Of a job, exits with 0 if no cause is known, 1 with a cause, 2 if your code fails, 3 without an answer. Else exits with 2 if the model
    does not know what the case does, or there is no progress.
    """
    if symptom is not None:
        causes = _causes_of(symptom)
        of_a_cause = ("{seen}: {cause}", "  conformance explain {case}", "  fix: {fix}")
        lines_of_all = (_styled(line.format(**cause)) for cause in causes for line in of_a_cause)
        print_answer(lines_of_all, [*causes], as_json=as_json, verbose=verbose)
        return
    if progress and case is not None and not _names_a_job(case) and Path(case).exists():
        # A shell makes them of --progress *.jsonl.
        progress, case, arguments = [*progress, Path(case), *map(Path, arguments or ())], None, None
    if call is not None or job_settings.main is not None or (case is not None and _names_a_job(case)):
        of_a_case = {"--from": from_, "--to": to, "--results": results, "--policy": policy}
        others = {**of_a_case, "--progress": progress, "--checkpoint": checkpoint}
        refuse(others, "a job is explained on one version, by its sample: omit it")
        named = job_settings.named(case, call, arguments)
        where = job_options.options_of_job(engines, settings, speed, code)
        files = sample_options.files(where, allow_silent=named.kind != "a function", arrival_time=arrival_time)
        every_us = _interval(trigger_interval, files)
        what = f"in another order than that of the file no row is as late as it was; {RECORD_ARRIVAL}"
        refuse({"--arrival": delays and files.arrival != "file"}, what)
        on = spark or str(releases()[-1])
        asked = named, on, where, files, batches, every_us
        raise typer.Exit(_explain_job(*asked, delays=delays, output=output, verbose=verbose, as_json=as_json))
    of_a_job: dict[str, object] = {
        "--sample": sample_options.sample,
        "ARGUMENT": arguments,
        "--event-time": sample_options.event_time,
        "--schema": sample_options.schema,
        "--output-mode": job_settings.output_mode,
        "--watermark": job_settings.watermark,
        "--set": job_settings.set_,
        "--arrival-time": arrival_time,
        "--trigger-interval": trigger_interval,
        "--delays": delays and not progress,
        "--output": output if not (progress or checkpoint) else None,
    }
    refuse(of_a_job, f"{case} is not a job: name a program, a file of SQL or a function" if case else "name a job")
    if progress or checkpoint is not None:
        alone = all(other is None for other in (case, None if checkpoint else spark, from_, to, results, policy))
        given = {"--progress": progress, "--checkpoint": checkpoint}
        refuse(given, "use it alone, or with --json or --output", clashes=not alone)
        refuse({"--checkpoint": checkpoint}, "use it without --delays", clashes=delays)
        with ExitStack() as stack:
            reader = None
            if spark is not None:
                from conformance.runner.state_reader import spark_reader

                target, notes = one_target(spark, "--spark")
                use = job_options.options_of_job(engines, settings, speed, code)
                reader = stack.enter_context(spark_reader(target, use, EngineLines().says))
                errors_console(notes)
            shown = progress or [], checkpoint, reader
            _explain_progress(*shown, delays=delays, output=output, verbose=verbose, as_json=as_json)
        return
    if case is None:
        raise typer.BadParameter("name your job or a case, or pass --progress or --symptom", param_hint="CASE")
    question = discovery.find(case)
    if results is not None:
        if policy is not None or from_ is not None or to is not None or isinstance(question, PolicyCase):
            raise typer.BadParameter("use it alone, or with --spark", param_hint="--results")
        # What reads results is not needed to explain a prediction.
        from conformance.runner.cases import answer_in

        version, answer, columns = answer_in(results, question, spark)
        if len(columns) > 1:
            errors_console().print(Text(f"{results} has {', '.join(columns)}; newest answer: {version} (--spark)"))
        seen = question, version, answer
        lines, record = explanation.observed_lines(*seen), explanation.observed_record(*seen)
    elif policy is not None or isinstance(question, PolicyCase):
        replays = replays_of(question, policy)
        records = [policy_record(replay) for replay in replays]
        print_tables(renderables(replays), records, as_json=as_json, verbose=verbose)
        return
    elif from_ is not None and to is not None:
        refuse({"--spark": spark}, "use it for one version, --from and --to for two")
        before = _predicted(question, known_version(from_, "--from"))
        after = _predicted(question, known_version(to, "--to"))
        parts = version_divergence(question, before, after)
        lines = explanation.divergence_lines(question, before, after, parts)
        record = explanation.divergence_record(before, after, parts, question)
    elif from_ is None and to is None:
        predicted = _predicted(question, known_version(spark, "--spark"))
        lines, record = explanation.explanation_lines(question, predicted), explanation.record(question, predicted)
    else:
        raise typer.BadParameter("pass both, or neither", param_hint="--from and --to")
    styled = [(Text(str(line), STYLES.get(line.tone, "")), _detail(line)) for line in lines]
    rows = fitted(lambda most: [text for text, detail in styled if detail <= max(most, 0)], DETAILS[verbose], width())
    print_answer(rows, record, as_json=as_json, verbose=verbose)


def _detail(line: explanation.ExplanationLine) -> int:
    """Return with how much detail a line is shown: what happens always, the contents of the state only where all fits."""
    background = not line.text or (line.tone == "dim" and line.depth > 1)
    return 2 if line.tone == "kept" else 1 if background else 0


def _causes_of(symptom: str) -> list[dict[str, Json]]:
    """Return the decision table of a symptom, of the page on symptoms; raises BadParameter."""
    package = Path(__file__).parents[1]
    page = next(path for path in (package / "symptoms.md", package.parent / "docs" / "symptoms.md") if path.is_file())
    tables = re.findall(r"^## (.+)\n\n\|.*\n\|.*\n((?:\|.*\n)+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    named = {title.lower().replace(" ", "-"): rows for title, rows in tables}
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", named[one_of(list(named), symptom, "--symptom")])
    rows = [line.strip("| ").split(" | ") for line in plain.splitlines()]
    return [dict(zip(("seen", "cause", "case", "fix"), row, strict=True)) for row in rows]


def _names_a_job(text: str) -> bool:
    return not text.endswith((".yaml", ".yml")) and (":" in text or is_sql_file(text) or is_program(text))


def _interval(text: str | None, files: job_options.SampleFiles) -> int | None:
    """The trigger interval in µs; BadParameter if it is none, or no column says when rows arrived."""
    if text is None:
        return None
    if not files.arrived:
        raise typer.BadParameter(f"no column has arrival times: {RECORD_ARRIVAL}", param_hint="--trigger-interval")
    try:
        if (every_us := parse_interval(text).delay_us) > 0:
            return every_us
    except NotAnInterval:
        pass
    raise typer.BadParameter(f"{text!r} is not a duration, such as '1 minute'", param_hint="--trigger-interval")


def _explain_job(
    named: NamedJob,
    spark: str,
    where: EngineUse,
    files: job_options.SampleFiles,
    batches: int,
    every_us: int | None = None,
    *,
    delays: bool = False,
    output: Path | None = None,
    verbose: bool,
    as_json: bool,
) -> int:
    """Print the explanation of each query of a job, or the table of its delays; return the exit code."""
    from conformance.own_job.delays import DelayTable, delay_table_of
    from conformance.own_job.explained_job import JobExplanation, NoAnswer, explain_query

    target, notes = one_target(spark, "--spark")
    answers: list[JobExplanation | DelayTable] = []
    codes: list[int] = []
    with _begun(output) as page, ExitStack() as stack:
        asked = queries(named, target, where, files, stack, notes)
        errors_console(asked.notes)
        for query, samples in asked.queries:
            errors = errors_console((), f"{query.title}: running it on {target.version}")
            job_options.print_samples([each for each in samples if each.rows], errors)
            try:
                on = target, asked.where, NoAnswers()
                answer = explain_query(query, samples, *on, batches=batches, every_us=every_us)
                answers.append(delay_table_of(answer, *on[1:]) if delays else answer)
            except NoAnswer as none:
                print_error(f"conformance explain: {query.title}: {none}")
                codes.append(UNKNOWN if none.of_the_code else NO_ANSWER)
        if answers:
            record: Json = {"queries": [answer.record() for answer in answers]} if as_json else None
            shown = record, page, [answer.page for answer in answers]
            _show(
                lambda detail: chain(*(one.lines(detail) for one in answers)), *shown, verbose=verbose, as_json=as_json
            )
        elif page is not None:
            page.discard()
    return combined([*codes, *(answer.exit_code for answer in answers)])


def _explain_progress(
    paths: list[Path],
    checkpoint: str | None,
    reader: SparkReader | None,
    *,
    delays: bool = False,
    output: Path | None = None,
    verbose: bool,
    as_json: bool,
) -> None:
    # What reads progress is not needed to explain a case.
    from conformance.checkpoints.files import open_files
    from conformance.cli.progress import FileRead
    from conformance.query_progress.answer import explain_files
    from conformance.query_progress.waiting import waiting_state

    with _begun(output) as page:
        with ExitStack() as bars:
            answer = explain_files(
                paths,
                lambda path: bars.enter_context(FileRead(path, errors_console())).watched(path.open("rb")),
                pictured=page is not None,
            )
        if paths and not answer.queries:
            first = f" ({answer.skipped.first[0]})" if answer.skipped.first else ""
            files, where = ", ".join(map(str, paths)), "a driver's log has it at level INFO, an event log always"
            print_error(f"conformance explain: {files} has no progress of a streaming query{first}; {where}")
            raise typer.Exit(UNKNOWN)
        if checkpoint is not None:
            queries = [each.query for each in answer.queries] if paths else None
            answer = replace(answer, state=waiting_state(open_files(checkpoint), queries, reader))
        disorder = (*answer.disorder_lines(), RECORD_ARRIVAL) if delays else ()
        lines_of = (lambda _: disorder) if delays else answer.lines
        notes, pages = [*disorder, *answer.notes()], [query.page for query in answer.queries]
        _show(lines_of, answer.record() if as_json else None, page, pages, notes, verbose=verbose, as_json=as_json)


def _begun(folder: Path | None) -> AbstractContextManager[OutputFile | None]:
    """Begin the page, if there is a folder for it; what is not written is discarded."""
    if folder is None:
        return nullcontext()
    # What makes pages is not needed for an answer in the terminal.
    from reports.html.standalone import make_folder, page_kind

    make_folder(folder)
    return OutputFile(folder / "explanation.html", page_kind("a page of `explain`"))


def _show(
    lines_of: Callable[[int], Iterable[str]],
    record: Json,
    page: OutputFile | None,
    pages: Sequence[QueryPage],
    notes: Iterable[str] = (),
    *,
    verbose: bool = False,
    as_json: bool,
) -> None:
    """Print an answer, and write its page."""
    last: list[Text] = []
    if page is not None:
        from reports.html.standalone import explanation_page

        page.write(explanation_page(pages, notes))
        last = [Text(f"The answer as a page: {seen_from_here(page.path)}", style="dim")]
    rows = fitted(lambda most: map(_styled, lines_of(most)), DETAILS[verbose], width(), len(last))
    print_answer([*rows, *last], record, as_json=as_json, verbose=verbose)


def _styled(line: str) -> Text:
    mark = line.strip()[:1]
    return Text(line, "bold" if not line.startswith(" ") else {"✗": "bold red", "●": "green"}.get(mark, ""))


def _predicted(case: Case, version: SparkVersion) -> Prediction:
    outside = not_applicable(case, version)
    try:
        if outside is None:
            return predict(case, version)
        why = f"{case.id} is not for Spark {version}: {outside.notes[0]}"
    except Unpredictable as unknown:
        why = f"{case.id} on Spark {version}: {unknown}"
        if case.own_sink or any(case.calls()):
            why += ". To see what Spark did, pass the results of a run: --results results.jsonl"
    print_error(f"conformance explain: {why}")
    raise typer.Exit(UNKNOWN)
