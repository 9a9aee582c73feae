"""``conformance new``: a case to start from."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from conformance.cli import own_code_options
from conformance.cli.options import option
from conformance.core.output_file import FileKind, write_file

Kind: TypeAlias = Literal["window", "session", "deduplication", "join", "call"]
"""The query of a new case: a file of ``conformance/suite/templates``, valid but without expectations."""

_NEW = FileKind("empty", lambda _: False)

EXAMPLES = """
Examples:

  # a window aggregation
  conformance new my/cases/late-order.yaml

  # after editing it: fill in what Spark does
  conformance record my/cases/late-order.yaml --spark 3.5

  # a join of two streams
  conformance new my/cases/clicks.yaml --kind join

  # your own function: its parameters are the streams
  conformance new my/cases/job.yaml --call acme_jobs.totals:build
"""


def new(
    case: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write, ending in .yaml.", show_default=False)
    ],
    kind: Annotated[Kind, option("The query: window, session, deduplication, join or call.", "KIND")] = "window",
    call: Annotated[
        str | None, option("A case on your own function, with its streams. It is not executed.", "MODULE:FUNCTION")
    ] = None,
    code: own_code_options.Folders = None,
) -> None:
    """Write a valid case to start from.

    It has no expectations yet: write them, or let `conformance record` fill them in. With --call, it also writes schema.json for
    editors, the JSON Schema of cases, unless the folder has one.
    """
    if case.suffix not in (".yaml", ".yml"):
        raise typer.BadParameter("a case is a file ending in .yaml", param_hint="FILE")
    if case.exists():
        raise typer.BadParameter(f"{case} exists: choose another name", param_hint="FILE")
    if call is not None:
        _write_call(case, call, code or ())
    else:
        template = (files("conformance.suite") / "templates" / f"{kind}.yaml").read_text(encoding="utf-8")
        write_file(case, template, _NEW)
    typer.echo(str(case))


def _write_call(case: Path, call: str, code: Sequence[Path]) -> None:
    """Write a case on a function, and the schema that its first line names."""
    # Other cases are written without these.
    from conformance.language.json_schema import rendered
    from conformance.runner.project import Project, own_job
    from conformance.suite.call_template import SCHEMA_FILE, case_that_calls

    found = own_job(Project.read(Path.cwd()), allow_code=True, code=code).own_code
    write_file(case, case_that_calls(call, found.folders if found else (), case), _NEW)
    schema = case.with_name(SCHEMA_FILE)
    if not schema.exists():
        write_file(schema, rendered(), _NEW)
