"""Options that many commands share: each has one name, one type and one help text.

A command takes a group of options as one frozen value: with ``@grouped`` each field of the group is an option of its own.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from conformance.core.versions import NotAVersion, SparkVersion, named, releases

Name = TypeVar("Name", bound=str)

SELECT_CASES, SELECT_VERSIONS = "Select cases", "Select versions"
ENGINES, SPEED, OUTPUT = "Where engines run", "Speed", "Output"
"""Panels of the help."""


def option(
    default: Any, help: str, metavar: str | None = None, panel: str | None = None, *names: str, **extra: Any
) -> Any:
    """An option of a command: ``...`` is the default of a required one, None the placeholder of a flag."""
    return typer.Option(default, *names, help=help, metavar=metavar, rich_help_panel=panel, **extra)


def flag(name: str, help: str, panel: str | None = None) -> Any:
    """A switch that is off by default."""
    return option(False, help, None, panel, name)


def argument(default: Any, help: str, metavar: str) -> Any:
    return typer.Argument(default, help=help, metavar=metavar)


def output_option(default: Any, help: str, metavar: str = "FILE") -> Any:
    """The option for what a command writes: each has ``--output`` and ``-o``."""
    return option(default, help, metavar, OUTPUT, "--output", "-o")


shared = partial(option, ...)
"""An option that several commands share, in an annotation: each parameter has a default of its own."""

Paths = Annotated[list[Path] | None, argument(..., "Cases or folders of cases; by default the suite.", "PATH")]
Tag = Annotated[list[str] | None, shared("Only cases with this tag. Repeatable.", "TAG", SELECT_CASES)]
Cases = Annotated[list[Path] | None, shared("The cases that ran, if not the suite's. Repeatable.", "PATH")]
Verbose = Annotated[bool, shared("Print everything, not only what fits into 24 rows.", None, None, "--verbose")]
AsJson = Annotated[bool, shared("Print JSON, for programs.", None, None, "--json")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Make each field of a command's groups of options an option of the command. It takes keyword arguments only."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if not is_dataclass(parameter.annotation):
            parameters.append(parameter)
            continue
        groups[name] = parameter.annotation
        hints = get_type_hints(parameter.annotation, include_extras=True)
        parameters += [
            inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
            for field in fields(parameter.annotation)
            if field.init
        ]

    @wraps(command)
    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group) if field.init})
        command(**values)

    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


def refuse(given: Mapping[str, object], why: str, *, clashes: bool = True) -> None:
    """Raise BadParameter for the first of these options that has a value, if it clashes with others."""
    for name, value in given.items():
        if value and clashes:
            raise typer.BadParameter(why, param_hint=name)


def one_of(names: Sequence[Name], text: str, option: str) -> Name:
    """The name that an option gives as text, else BadParameter: typer has no lists of literals."""
    for name in names:
        if name == text:
            return name
    raise typer.BadParameter(f"{text!r} is not one of {', '.join(names)}", param_hint=option)


def known_version(text: str | None, option: str) -> SparkVersion:
    """The release that an option names, by version or line, else BadParameter; the newest without one."""
    known = releases()
    if text is None:
        return known[-1]
    wanted = text.removeprefix("spark-")
    if release := named(wanted, known, lambda version: version, lambda version: (str(version),)):
        return release[0]
    near = get_close_matches(wanted, [*map(str, known), *dict.fromkeys(version.line for version in known)], 2)
    try:
        SparkVersion.parse(wanted)
        why = f"{text!r} is not a known release of Spark"
    except NotAVersion:
        why = f"{text!r} is not a version of Spark"
    suggestion = f" Did you mean {' or '.join(near)}?" if near else ""
    lines = ", ".join(dict.fromkeys(version.line for version in known))
    raise typer.BadParameter(f"{why}.{suggestion} Known lines: {lines}", param_hint=option)
