"""The commands by name. A command's module is imported only when the command is called."""

import re
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from conformance.cli.console import flush, safe_streams
from conformance.core.errors import cause, on_stop
from conformance.core.wording import printable

MANY = 11
"""With this many options, the help shows them in panels."""
FAILED = 3
"""The exit code if the harness or the machine failed."""
_LONGEST = 300
"""At most this many characters of an unexpected error are printed."""


@dataclass(frozen=True)
class Listed:
    """``conformance --help`` shows this of a command, without importing it."""

    summary: str
    """The first line of the function's docstring."""
    panel: str | None = None
    """Where the first level lists it."""


_JOB, _CHANGES, _MISSING, _CONFORMS = (
    "Does my job survive the upgrade?",
    "What changes?",
    "Why is my row missing?",
    "Does my Spark conform?",
)
_WRITE, _MAINTAIN = "For people who write cases", "For maintainers"

COMMANDS: Mapping[str, Listed] = {
    "check": Listed("Compare what your own job does on two Spark versions.", _JOB),
    "sample": Listed("Write or record the samples that your program needs.", _JOB),
    "checkpoint": Listed("Inspect a query's checkpoint, or resume a copy of it.", _JOB),
    "gate": Listed("Fail if results change between two Spark versions.", _CHANGES),
    "upgrade": Listed("Resume checkpoints of one Spark version on another.", _CHANGES),
    "explain": Listed("Explain a job's rows, a case, or a query by its progress.", _MISSING),
    "eviction": Listed("Compute when a stream-stream join evicts a row.", _MISSING),
    "run": Listed("Run cases on Spark versions and print the matrix.", _CONFORMS),
    "report": Listed("Write results as HTML pages.", _CONFORMS),
    "targets": Listed("List Spark versions and whether this machine can run them.", _CONFORMS),
    "case": Listed("Write cases: new, validate, record, export, schema.", _WRITE),
    "case new": Listed("Write a valid case to start from."),
    "case validate": Listed("Check cases without running them."),
    "case record": Listed("Fill in a case's expectations from what Spark does."),
    "case export": Listed("Write results for other programs, or a case as one."),
    "case schema": Listed("Print the JSON Schema of a case, for editors."),
    "maintain": Listed("Maintain a Spark or this suite: combine, diff, columns, fuzz, …", _MAINTAIN),
    "maintain combine": Listed("Merge the results of several runs of one suite."),
    "maintain columns": Listed("Check results of another Spark, and compare with Apache's."),
    "maintain crash": Listed("Restart a query from checkpoints that a crash may leave."),
    "maintain diff": Listed("Compare two runs of the same Spark versions."),
    "maintain fuzz": Listed("Generate cases and find where Sparks or the model disagree."),
    "maintain policies": Listed("Show a case under the watermark policies of other engines."),
    "maintain specification": Listed("Write the numbered specification that the cases test."),
}
"""In the order of the help, a group before its commands. The module of the last name holds the command's function;
``examples.yaml`` has its examples."""
GROUPS = frozenset(path.partition(" ")[0] for path in COMMANDS if " " in path)


class _PlainHelp:
    help: str | None

    def get_params(self, ctx: Any) -> Any:
        """The parameters without Python types in the help, and with panels only if there are many."""
        parameters = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
            elif parameter.param_type_name == "argument":
                parameter.display_type_rich = lambda ctx: None  # noqa: ARG005 — typer calls it with ctx=
            if len(parameters) < MANY:
                parameter.rich_help_panel = None
        return parameters

    def format_help(self, ctx: Any, formatter: Any) -> None:
        # Typer keeps the line breaks of the source, except in the first paragraph.
        self.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in (self.help or "").split("\n\n"))
        super().format_help(ctx, formatter)  # type: ignore[misc]


class Command(_PlainHelp, TyperCommand): ...


class CommandGroup(_PlainHelp, TyperGroup): ...


class _ReportsErrors:
    """Reports errors in one or two lines."""

    debug = False

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command line and end the process with its exit code."""
        stops: list[int] = []

        def stop(number: int, frame: FrameType | None) -> None:
            stops.append(number)
            signal.default_int_handler(number, frame)

        with safe_streams(), on_stop(stop):
            try:
                code = super().main(*args, **{**extra, "standalone_mode": False})  # type: ignore[misc]
                flush()
            except Exception as error:
                cause = error.__cause__
                # Click takes each EOFError for the end of what a user types, and nothing is asked here.
                error = cause if isinstance(cause, EOFError) else error
                code = _report_error(error, debug=self.debug, stopped=bool(stops))
            # A command returns nothing, or ends early with `typer.Exit(code)`.
            sys.exit(code or 0)


class ProgramCommand(_ReportsErrors, Command):
    """A command that is a program of its own."""


class Commands(_ReportsErrors, CommandGroup):
    """Imports a command when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        in_group = next((path for path in COMMANDS if path.endswith(f" {args[0]}")), None)
        if in_group is not None and self.name not in GROUPS:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {in_group!r}?")
        name, listed, rest = super().resolve_command(ctx, args)
        path = f"{self.name} {name}" if self.name in GROUPS else str(name)
        return name, listed if path in GROUPS else listed and load(path), rest


def list_all(app: typer.Typer) -> None:
    """Add every command to an app whose class is `Commands`, which replaces each by the command itself when it is called."""
    groups = {"": app}
    for path, listed in COMMANDS.items():
        group, _, name = path.rpartition(" ")
        if path in GROUPS:
            groups[path] = typer.Typer(cls=Commands, no_args_is_help=True)
            app.add_typer(groups[path], name=path, help=listed.summary, rich_help_panel=listed.panel)
        else:
            groups[group].command(name, short_help=listed.summary, rich_help_panel=listed.panel)(lambda: None)


def load(path: str) -> Any:
    """Import a command."""
    # The list of the commands does without it, and YAML takes long to import.
    from conformance.core.data import read_data

    name = path.rpartition(" ")[2]
    module = import_module(f"{__package__}.{name}")
    if (app := getattr(module, "app", None)) is None:
        app = typer.Typer(add_completion=False)
        app.command(name, cls=Command)(getattr(module, name))
    command = typer.main.get_command(app)
    command.name = name
    _show_examples(command, path, read_data("conformance.cli", "examples.yaml"))
    return command


def _show_examples(command: Any, path: str, examples: Mapping[str, Mapping[str, str | list[str]]]) -> None:
    """Put the examples of a command, and of the commands in it, before what their help ends with."""
    texts = [
        "\n".join(f"  {line}" for line in (f"# {purpose}", *([lines] if isinstance(lines, str) else lines)))
        for purpose, lines in examples.get(path, {}).items()
    ]
    if texts:
        command.epilog = "\n".join(["\nExamples:\n", *(f"{text}\n" for text in texts), command.epilog or ""])
    for name, inner in getattr(command, "commands", {}).items():
        _show_examples(inner, f"{path} {name}", examples)


def _with_remedy(message: str, arguments: Sequence[str]) -> str:
    """Add what Typer leaves out: the nearest of the choices of an option, and that an option that is missing stands behind ``--``."""
    behind = arguments[arguments.index("--") :] if "--" in arguments else ()
    if (missing := re.search("Missing option '(--[^']*)'", message)) and missing[1] in behind:
        return f"{message} Behind --, {missing[1]} is your program's: write it before --."
    if (listed := re.search("'([^']*)' is not one of (.+)", message)) is None:
        return message
    # Few commands need it.
    from difflib import get_close_matches

    near = get_close_matches(listed[1], re.findall(r"[\w-]+", listed[2]), 1)
    return f"{message.rstrip('.')}. Did you mean {near[0]!r}?" if near else message


def _report_error(error: Exception, *, debug: bool, stopped: bool) -> int:
    """Print what went wrong; returns the exit code, which counts also where nothing can be printed, because the disk is full.

    ``stopped``: a signal came before. Python 3.11 and pydantic wrap a KeyboardInterrupt that comes while they make a class.
    """
    code = getattr(error, "exit_code", None)
    # Of an InvalidCase, which takes long to import.
    problems = getattr(error, "problems", None)
    if problems is not None:
        lines = [problem.render(relative_to=Path.cwd()) for problem in problems]
    elif type(error).__name__ == "NoArgsIsHelpError":
        # Typer has printed the help already.
        lines = []
    elif (format_message := getattr(error, "format_message", None)) is not None:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "conformance"
        # Typer validates with pydantic, whose prefix tells a user nothing, and lists choices below each other.
        message = format_message().replace("Value error, ", "").replace("\n\t", " ")
        lines = [f"{command}: {_with_remedy(message, sys.argv)}", f"Try '{command} --help'."]
    elif code is not None:
        lines = [f"conformance: {error}"]
    elif isinstance(error, OSError):
        lines = [f"conformance: {f'{error.filename}: ' if error.filename else ''}{cause(error)}"]
    elif isinstance(error, MemoryError):
        lines = ["conformance: there is not enough memory for these files"]
    elif stopped:
        code, lines = 130, []
    else:
        what = printable(f"{type(error).__name__}: {error}")[:_LONGEST]
        lines = [
            f"conformance: a defect of this program: {what}; `conformance --debug …` shows where. Please report it."
        ]
    with suppress(OSError):
        if debug:
            traceback.print_exception(error)
        for line in lines:
            print(printable(line, keep="\n"), file=sys.stderr)
    with suppress(OSError):
        flush()
    return FAILED if code is None else int(code)
