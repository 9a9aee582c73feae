"""``conformance run``: every case on every chosen Spark, judged, kept and shown as a matrix."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from conformance.cli import options, running
from conformance.cli.progress import LiveDisplay, PlainDisplay
from conformance.core.state_stores import StateStore
from conformance.judging.verdict import Verdict
from conformance.runner.run import cells_of, only_tagged, run_cases
from conformance.runner.run_cells import Sink
from conformance.suite import discovery
from conformance.suite.discovery import Suite
from conformance.suite.selection import Shard, affected_since
from conformance.variants.catalogue import varied
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import CellRun, CellTask
from harness.scheduling.scheduler import queues
from harness.targets.state_store_support import having as having_store
from reports.analysis.model_column import MODEL
from reports.analysis.model_column import cells as cells_of_the_model
from reports.results.reading import Results, ResultsWriter
from reports.results.records import Cell, Header
from reports.terminal.matrix import exit_code, show

EXAMPLES = """
Examples:

  conformance run                                    the whole suite on the newest Spark this machine can run

  conformance run --spark 3.5 --spark 4.0            on the newest release of two lines

  conformance run --spark lines                      on the newest release of every line

  conformance run --spark all                        on every target, known-bad patch releases too

  conformance run cases/late-drops --tag smoke       some of the cases

  conformance run --state-store rocksdb --spark lines          with state in RocksDB, on every line that has it

  conformance run --spark lines --shard 2/5 --results 2.jsonl      the second of five parts; conformance combine *.jsonl

  conformance run --since main                       what a change touches

  conformance run cases/late-drops --variants all    each case as it is, and in every way that must not change its answer

  conformance run --variants rocksdb --variants restart        with state in RocksDB, and restarted before every step

  conformance run my/cases --spark installed         one's own cases, on the pyspark of this environment

  conformance run --spark-home /opt/my-spark --label ours --results ours.jsonl     a build of one's own, as a column of its own

  conformance run --spark 3.5 --master spark://host:7077 --storage /mnt/shared     in a cluster, with a folder all machines share

  conformance run --spark 4.3 --connect sc://localhost:15002      on a Spark Connect server

  conformance run cases/policies --spark model       the rules of other engines, on the reference model

  conformance run --spark 3.5 --runtime container    in a container of Apache's image, with nothing installed here

  conformance run --runtime container --image 3.5=registry/my-spark:1     in one's own image
"""


def run(
    paths: options.Paths = None,
    spark: Annotated[
        list[str] | None,
        typer.Option(
            help="A version (3.5.9), a line (3.5), a range (>=3.4), newest, lines, all, installed, or model: the reference "
            "model, for cases on watermark policies. Repeatable."
        ),
    ] = None,
    tag: options.Tag = None,
    variants: options.Variants = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="REV",
            help="Only cases that what has changed since this git revision touches: their files, or all by the driver.",
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="N/M", help="Only the Nth of M parts, for M machines; `conformance combine` joins them."),
    ] = None,
    results: options.ResultsFile = Path("results.jsonl"),
    jobs: options.Jobs = None,
    side_by_side: options.SideBySide = None,
    repeat: Annotated[int, typer.Option(min=1, help="Run each cell so often; answers that disagree are flaky.")] = 1,
    step_timeout: options.StepTimeout = options.STEP_TIMEOUT_S,
    fresh: options.Fresh = False,
    state_store: options.Store = None,
    runtime: options.RuntimeName = "local",
    image: options.Images = None,
    memory: options.Memory = None,
    cpus: options.Cpus = None,
    connect: options.Connect = None,
    spark_home: options.SparkHome = None,
    label: options.Label = None,
    master: options.Master = None,
    conf: options.Conf = None,
    storage: options.Storage = None,
    plain: options.Plain = False,
    allow_code: options.AllowCode = False,
    work: options.Work = None,
) -> None:
    """Run cases on real Spark versions and print the compatibility matrix."""
    wished = running.wishes(
        runtime,
        images=image or (),
        memory=memory,
        cpus=cpus,
        plain=plain,
        allow_code=allow_code,
        master=master,
        conf=conf or (),
        storage=storage,
        connect=connect,
    )
    errors = running.errors_console()
    loaded = discovery.load(paths or None)
    loaded.raise_for_problems()
    specs = spark or ["installed" if spark_home else "newest" if loaded.cases else MODEL.name]
    cases = only_tagged(loaded.cases, tag or ()) if specs != [MODEL.name] else ()
    policy_cases = only_tagged(loaded.policy_cases, tag or ()) if MODEL.name in specs else ()
    if not cases and not policy_cases:
        raise _nothing_to_run(loaded, tag or [], specs)
    part = Shard.parse(shard) if shard else None
    if since is not None:
        cases, policy_cases = affected_since(since, cases), affected_since(since, policy_cases)
        if not cases and not policy_cases:
            errors.print(f"nothing to run: no case is touched by what has changed since {since}", markup=False)
            raise typer.Exit(0)
    if variants:
        cases = (*cases, *varied(cases, [] if "all" in variants else variants))
    if part is not None:
        cases, policy_cases = part.among(cases), part.among(policy_cases)
    chosen = running.labelled(
        running.chosen(
            [spec for spec in specs if spec != MODEL.name],
            errors,
            any_release=wished.endpoint is not None,
            spark_home=spark_home,
        ),
        label,
    )
    store = StateStore.named(state_store) if state_store else None
    targets = having_store(store, chosen) if store else chosen
    header = Header(
        suite=loaded.digest,
        cases=(*(case.id for case in cases), *(case.id for case in policy_cases)),
        targets=(
            *(running.announced(target, runtime) for target in targets),
            *((MODEL,) if policy_cases else ()),
        ),
        started=datetime.now(UTC),
        command=running.command_line(),
        shard=(part.number, part.of) if part else None,
    )
    what = [f"{_count(len(cases), 'case')} × {_count(len(targets), 'version')}, {_where(wished)}"] if cases else []
    what += [f"{_count(len(policy_cases), 'case')} on the model"] if policy_cases else []
    errors.print(f"{'; '.join(what)}; into {results}", markup=False, highlight=False)
    with ExitStack() as stack:
        # What makes no engine possible is said before anything is written over.
        engines = stack.enter_context(running.engines(wished, work))
        writer = stack.enter_context(ResultsWriter(results, header))
        cells = len(cases) * len(targets)
        display: LiveDisplay | PlainDisplay = LiveDisplay(cells, errors) if errors.is_terminal else PlainDisplay(cells)
        stack.enter_context(display)
        stack.enter_context(running.said_when_interrupted(lambda: len(writer.missing()), results, errors))
        reused = run_cases(
            cases,
            targets,
            engines,
            running.limits(
                len(queues(cells_of(cases, targets))),
                jobs=jobs,
                side_by_side=side_by_side,
                step_timeout=step_timeout,
                store=store,
                repeat=repeat,
                cluster=wished.cluster,
            ),
            display=display,
            sink=Kept(writer),
            allow_code=allow_code,
            # Repetitions are made to see whether answers change.
            cache=None if repeat > 1 else stack.enter_context(running.answer_cache(fresh=fresh)),
        )
        for cell in (
            cells_of_the_model(cases, policy_cases, [target.name for target in targets]) if policy_cases else ()
        ):
            writer.write(cell)
        writer.finish()
    running.say_reused(reused, cells, errors)
    answered = Results.read(results)
    show(answered, Console())
    raise typer.Exit(exit_code(answered))


def _where(wished: RuntimeOptions) -> str:
    elsewhere = wished.cluster or wished.endpoint
    return f"on {elsewhere}" if elsewhere else {"local": "locally", "container": "in containers"}[wished.runtime]


def _nothing_to_run(loaded: Suite, tags: list[str], specs: list[str]) -> typer.BadParameter:
    if loaded.policy_cases and not loaded.cases and MODEL.name not in specs:
        return typer.BadParameter(
            f"cases on watermark policies run on the model, and on no Spark: --spark {MODEL.name}", param_hint="--spark"
        )
    if loaded.cases and not loaded.policy_cases and specs == [MODEL.name]:
        return typer.BadParameter(
            "only cases on watermark policies run on the model; what it says of a case for Spark: conformance explain",
            param_hint="--spark",
        )
    known = sorted({tag for case in loaded.all_cases for tag in case.tags})
    near = [match for tag in tags for match in get_close_matches(tag, known, 1)]
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return typer.BadParameter(
        f"no case has the tag {' or '.join(tags)}.{meant} These cases have: {', '.join(known) or 'no tags'}",
        param_hint="--tag",
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


class Kept(running.Introductions, Sink[Verdict]):
    """Writes cells to the results file as they come."""

    def keep(self, task: CellTask, verdict: Verdict, run: CellRun | None) -> None:
        reused = run is not None and run.reused
        observations = run.observations if run else ()
        milliseconds = int(run.seconds * 1000) if run else 0
        self._writer.write(Cell.of(task.case, task.target.name, verdict, observations, milliseconds, reused=reused))
