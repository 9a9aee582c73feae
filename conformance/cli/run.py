"""``conformance run``: every case on every chosen version, judged, kept, and printed as a matrix."""

from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Literal

import typer
from rich.text import Text

from conformance.cli import engine_options, options
from conformance.cli.console import command_line, errors_console, print_answer, print_reused, width
from conformance.cli.engine_options import Code
from conformance.cli.options import argument, flag, grouped, option, output_option
from conformance.cli.progress import CaseAnswers
from conformance.core.case import RunSource
from conformance.runner.cases import SHARD_MINUTES, RunOptions, RunPlan, StateEvidence, plan_run, run_plan
from conformance.runner.project import ProjectSettings
from reports.analysis.matrix import Matrix
from reports.results.reading import Results
from reports.terminal.matrix import lines


@grouped
def run(
    *,
    paths: list[Path] | None = argument(None, "Cases or folders of cases; by default the suite's smoke cases.", "PATH"),
    every_case: bool = flag("--all", "Every case of the suite, not only the smoke cases.", options.SELECT_CASES),
    tag: options.Tag = None,
    since: str | None = option(
        None,
        "Only cases changed since this git revision; all cases if the engine driver changed.",
        "REVISION",
        options.SELECT_CASES,
    ),
    shard: str | None = option(None, "Only part N of M, to split a run over M machines.", "N/M", options.SELECT_CASES),
    variant: list[str] | None = option(
        None, "Run each case this way too; its result must not change. Repeatable.", "NAME|all", options.SELECT_CASES
    ),
    source: RunSource = option(
        "files",
        "Where rows come from: with kafka each case that can runs from a topic, as CASE@kafka; with delta or iceberg from a table.",
        "files|kafka|delta|iceberg",
        options.SELECT_CASES,
    ),
    spark: list[str] | None = option(
        None,
        "A version (3.5.9), line (3.5) or range (>=3.4); newest (default), lines, all, installed, model. Repeatable.",
        "VERSION",
        options.SELECT_VERSIONS,
    ),
    spark_home: Path | None = option(
        None, "An unpacked Spark: what `--spark installed` means.", "FOLDER", options.SELECT_VERSIONS
    ),
    connect: str | None = option(
        None,
        "Run on this Spark Connect server (3.5 or newer): sc://host:15002, parameters after /;.",
        "URL",
        options.SELECT_VERSIONS,
        envvar=engine_options.CONNECT,
    ),
    label: str | None = option(
        None, 'Name of the column, such as "Databricks 17.3"; for one version.', "NAME", options.SELECT_VERSIONS
    ),
    with_: str | None = option(
        None, "Let an accelerator run what it can of Spark's plans: comet.", "NAME", options.SELECT_VERSIONS, "--with"
    ),
    engines: engine_options.EngineOptions,
    code: Code,
    cluster: engine_options.ClusterOptions,
    state_store: engine_options.StateStore = None,
    evidence: StateEvidence | None = option(
        None,
        "After each step, count the rows of the state with Spark's data source too (4.0 or newer).",
        "statestore",
        options.ENGINES,
    ),
    speed: engine_options.Speed,
    fresh: engine_options.Fresh = False,
    resume: bool = flag(
        "--resume", "Keep the answers in the results file of this command; only cells without one run.", options.SPEED
    ),
    repeat: int = option(1, "Run each cell N times; results that disagree are flaky.", "N", options.SPEED, min=1),
    only_plan: Literal["text", "json"] | None = option(
        None,
        "Run nothing: say what would run, in how many minutes, about, and in which shards.",
        "text|json",
        options.SPEED,
        "--plan",
    ),
    verbose: options.Verbose = False,
    output: Path = output_option(Path("results.jsonl"), "Results file."),
) -> None:
    """Run cases on Spark versions and print the matrix.

    Without PATH, --tag, --since, --shard or --all, runs the smoke cases: a few of each family. Writes every answer to a results
    file, for gate, diff, report and export.
    """
    plan = plan_run(
        RunOptions(
            output=output,
            command=command_line(),
            paths=paths or (),
            every_case=every_case,
            # Asked only where the option leaves it open: a project's other keys may be wrong.
            spark=spark or (() if spark_home else ProjectSettings.read(Path.cwd()).spark),
            tags=tag or (),
            variants=variant or (),
            source=source,
            since=since,
            shard=shard,
            spark_home=spark_home,
            label=label,
            state_store=state_store,
            repeat=repeat,
            evidence=evidence,
            accelerator=with_,
            resume=resume,
            fresh=fresh,
            runtime=engine_options.runtime_options(engines, cluster, connect=connect, code=code),
            work=engines.work,
            concurrency=speed,
        )
    )
    if only_plan is not None:
        print_answer([Text(line) for line in _lines(plan)], _record(plan), as_json=only_plan == "json")
        return
    errors = errors_console(plan.notes, plan)
    with CaseAnswers(plan.cells, errors) as display:
        reuse = run_plan(plan, display)
    print_reused(reuse, plan.cells, errors)
    results = Results.read(output)
    answer = lines(results, width(), verbose=verbose)
    if plan.smoke is not None:
        answer.insert(1, Text(str(plan.smoke)))
    print_answer(answer, verbose=verbose)
    raise typer.Exit(Matrix.of(results).exit_code)


def _lines(plan: RunPlan) -> Iterator[str]:
    yield str(plan)
    yield f"about {ceil(plan.minutes)} min on two quiet cores, without answers that are cached"
    if len(plan.shards) > 1:
        first, *_, last = plan.shards
        yield f"within {SHARD_MINUTES} min each on {len(plan.shards)} machines: --shard {first} to --shard {last}"


def _record(plan: RunPlan) -> dict[str, object]:
    return {
        "cases": len(plan.cases),
        "versions": [target.name for target in plan.targets],
        "cells": plan.cells,
        "minutes": ceil(plan.minutes),
        "shards": plan.shards,
    }
