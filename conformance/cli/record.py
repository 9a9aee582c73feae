"""``conformance case record``: what Spark does with a case, as the expectations of the case."""

from pathlib import Path

import typer

from conformance.cli import engine_options
from conformance.cli.console import errors_console
from conformance.cli.engine_options import Code
from conformance.cli.options import argument, flag, grouped, option
from conformance.cli.progress import NoAnswers
from conformance.core.output_file import FileKind, any_content, write_file
from conformance.runner.cases import observation_in, observe
from conformance.suite import discovery
from conformance.suite.record_expectations import fill_in_expectations


@grouped
def record(
    *,
    case: Path = argument(..., "The case to fill in.", "FILE"),
    spark: str = option(
        "newest", "A version (3.5.9), line (3.5), newest or installed, to take the answer from.", "VERSION"
    ),
    results: Path | None = option(None, "Take the answer from this results file; run nothing.", "FILE"),
    replace: bool = flag("--replace", "Replace existing expectations, too."),
    runtime: engine_options.RuntimeOption = "local",
    env: engine_options.Env = None,
    settings: engine_options.Settings,
    code: Code,
) -> None:
    """Fill in a case's expectations from what Spark does.

    Comments and order stay; the case is marked `observed`. Check the result: it is what this version does, which may not
    be what it should do.
    """
    loaded = discovery.valid([case])
    if len(loaded.cases) != 1:
        raise typer.BadParameter("it must contain one case for Spark", param_hint="FILE")
    (read,) = loaded.cases
    if read.expansion:
        what = f"{case} has a `matrix`, whose cases differ in what they show"
        raise typer.BadParameter(f"{what}: record a case without one", param_hint="FILE")
    if results:
        observation = observation_in(results, read, spark)
    else:
        target, notes = engine_options.one_target(spark, "--spark")
        errors_console(notes)
        engines = engine_options.EngineOptions(runtime=runtime, env=env)
        where = engine_options.runtime_options(engines, settings, code=code)
        observation = observe(read, target, where, NoAnswers())
    filled_in = fill_in_expectations(case.read_text(encoding="utf-8"), read, observation, replace=replace)
    write_file(case, filled_in, FileKind("a case", any_content))
    typer.echo(str(case))
