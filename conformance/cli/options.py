"""Options that many commands share: each has one name, one type and one help text.

A command takes a group of options as one frozen value: with ``@grouped`` each field of the group is an option of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

SELECT_CASES, SELECT_VERSIONS = "Select cases", "Select versions"
ENGINES, SPEED, OUTPUT = "Where engines run", "Speed", "Output"
"""Panels of the help."""

Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", help="Cases or folders of cases; by default the suite."),
]
Tag = Annotated[
    list[str] | None,
    typer.Option(metavar="TAG", help="Only cases with this tag. Repeatable.", rich_help_panel=SELECT_CASES),
]
Cases = Annotated[
    list[Path] | None,
    typer.Option(metavar="PATH", help="The cases that ran, if not the suite's. Repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def output(help: str, metavar: str = "FILE") -> Any:
    """The option for what a command writes: ``--output``, ``-o`` in every command."""
    return typer.Option("--output", "-o", metavar=metavar, help=help, rich_help_panel=OUTPUT)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Make each field of a command's groups of options an option of the command. It takes keyword arguments only."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name not in groups:
            parameters.append(parameter)
            continue
        hints = get_type_hints(groups[name], include_extras=True)
        for one in fields(groups[name]):
            parameters.append(
                inspect.Parameter(one.name, parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
            )

    @wraps(command)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{one.name: values.pop(one.name) for one in fields(group)})
        command(**values)

    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call
