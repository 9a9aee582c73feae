"""``conformance new``: a case to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import typer

from conformance.suite.templates import TEMPLATES, Kind

EXAMPLES = """
Examples:

  conformance new my/cases/late-order.yaml                 a window aggregation; edit it, then

  conformance record my/cases/late-order.yaml --spark 3.5  let a real Spark fill in what it does

  conformance new my/cases/clicks.yaml --kind join         a join of two streams

  conformance new my/cases/job.yaml --kind call            your own function: call: module:function
"""


class AlreadyThere(OSError):
    """There is a file of that name."""

    exit_code: ClassVar[int] = 2

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is there already: choose another name")
        self.path = path


def new(
    case: Annotated[Path, typer.Argument(help="The file to write, ending in .yaml.", show_default=False)],
    kind: Annotated[Kind, typer.Option(help="What the query does.")] = "window",
) -> None:
    """Write a valid case to start from, without expectations."""
    if case.suffix not in (".yaml", ".yml"):
        raise typer.BadParameter("a case is a file ending in .yaml", param_hint="CASE")
    if case.exists():
        raise AlreadyThere(case)
    case.parent.mkdir(parents=True, exist_ok=True)
    case.write_text(TEMPLATES[kind], encoding="utf-8")
    typer.echo(str(case))
