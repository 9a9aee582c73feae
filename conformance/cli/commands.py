"""The commands by name. A command's module is imported when it is called: what one needs, no other waits for."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from importlib.resources import files
from typing import Any

import typer
from typer.core import TyperGroup

NAMES = (
    "validate",
    "run",
    "explain",
    "policies",
    "upgrade",
    "soak",
    "diff",
    "combine",
    "report",
    "gate",
    "export",
    "new",
    "record",
    "fuzz",
    "targets",
)
"""In the order of the help. Each is a module beside this one, and in it the function that is the command."""


class Commands(TyperGroup):
    """Knows each command by its name and its summary, until it is called."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command as it is listed."""
        listed = super().get_command(ctx, cmd_name)
        if listed is not None and not listed.short_help:
            listed.short_help = summary(cmd_name)
        return listed

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that is called, with its options.

        Raises:
            click.UsageError: there is none of that name.
        """
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and loaded(str(name)), rest


def list_all(app: typer.Typer) -> None:
    """Make the commands known to an app whose class is `Commands`."""
    for name in NAMES:
        app.command(name)(_listed)


def summary(name: str) -> str:
    """The first paragraph of a command's docstring, read from its module without importing that.

    Raises:
        LookupError: the module holds no function of the command's name.
    """
    source = (files(__package__) / f"{name}.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return inspect.cleandoc(ast.get_docstring(node) or "").partition("\n\n")[0]
    raise LookupError(f"{_module(name)} has no function {name}: it would be the command of that name")


def loaded(name: str) -> Any:
    """A command with its options and examples, its module imported."""
    module = import_module(_module(name))
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False)
        app.command(name, epilog=module.EXAMPLES)(getattr(module, name))
    command = typer.main.get_command(app)
    command.name = name
    return command


def _module(name: str) -> str:
    return f"{__package__}.{name}"


def _listed() -> None:
    """Never called: `Commands.resolve_command` puts the command itself in its place."""
