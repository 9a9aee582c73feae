"""``conformance case new``: a case to start from."""

from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

import typer

from conformance.cli import engine_options
from conformance.cli.options import argument, option
from conformance.core.output_file import FileKind, write_file

NewCaseKind: TypeAlias = Literal["window", "session", "deduplication", "join", "call"]
"""The query of a new case: a file of ``conformance/suite/templates``, valid but without expectations."""

_NEW = FileKind("empty", lambda _: False)

SCHEMA_FILE = "schema.json"
"""The JSON Schema of the case language stands beside a case, for editors."""


def new(
    case: Path = argument(..., "The file to write, ending in .yaml.", "FILE"),
    kind: NewCaseKind = option("window", "The query: window, session, deduplication, join or call.", "KIND"),
    call: str | None = option(
        None, "A case on your own function, module:function, with its streams. It is not executed.", "CODE"
    ),
    code: engine_options.Folders = None,
) -> None:
    """Write a valid case to start from.

    It has no expectations yet: write them, or let `conformance case record` fill them in. Its first line names the JSON Schema of
    cases, with which editors complete and check it; schema.json is written beside it unless a folder above has one.
    """
    if case.suffix not in (".yaml", ".yml"):
        raise typer.BadParameter("a case is a file ending in .yaml", param_hint="FILE")
    if case.exists():
        raise typer.BadParameter(f"{case} exists: choose another name", param_hint="FILE")
    schema = _schema_for(case)
    if call is not None:
        # Other cases are written without these.
        from conformance.runner.project import ProjectSettings, own_job
        from conformance.suite.call_template import case_that_calls

        own_code = own_job(ProjectSettings.read(Path.cwd()), allow_code=True, code=code or ()).own_code
        text = case_that_calls(call, own_code.folders if own_code else (), case, schema)
    else:
        template = (files("conformance.suite") / "templates" / f"{kind}.yaml").read_text(encoding="utf-8")
        text = f"# yaml-language-server: $schema={schema}\n{template}"
    write_file(case, text, _NEW)
    typer.echo(str(case))


def _schema_for(case: Path) -> str:
    """The address of the schema for the case's first line: a file above it up to the working folder, else one made beside it."""
    from conformance.language.json_schema import rendered

    folder, here = case.absolute().parent, Path.cwd()
    above = [folder, *(parent for parent in folder.parents if parent.is_relative_to(here))]
    for steps, ancestor in enumerate(above):
        if (ancestor / SCHEMA_FILE).is_file():
            return "../" * steps + SCHEMA_FILE
    write_file(folder / SCHEMA_FILE, rendered(), _NEW)
    return SCHEMA_FILE
