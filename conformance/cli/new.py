"""``conformance new``: a case to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from conformance.cli.options import option
from conformance.core.output_file import FileKind, write_file

Kind: TypeAlias = Literal["window", "session", "deduplication", "join", "call"]
"""The query of a new case: a file of ``conformance/suite/templates``, valid but without expectations."""

EXAMPLES = """
Examples:

  # a window aggregation
  conformance new my/cases/late-order.yaml

  # after editing it: fill in what Spark does
  conformance record my/cases/late-order.yaml --spark 3.5

  # a join of two streams
  conformance new my/cases/clicks.yaml --kind join

  # a call of your own function, module:function
  conformance new my/cases/job.yaml --kind call
"""


def new(
    case: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write, ending in .yaml.", show_default=False)
    ],
    kind: Annotated[Kind, option("The query: window, session, deduplication, join or call.", "KIND")] = "window",
) -> None:
    """Write a valid case to start from.

    It has no expectations yet: write them, or let `conformance record` fill them in.
    """
    if case.suffix not in (".yaml", ".yml"):
        raise typer.BadParameter("a case is a file ending in .yaml", param_hint="FILE")
    if case.exists():
        raise typer.BadParameter(f"{case} exists: choose another name", param_hint="FILE")
    template = (files("conformance.suite") / "templates" / f"{kind}.yaml").read_text(encoding="utf-8")
    write_file(case, template, FileKind("empty", lambda _: False))
    typer.echo(str(case))
