"""The list of commands, and how little it needs."""

import json
import re
import subprocess
import sys
from importlib import import_module
from inspect import getdoc

import pytest
import typer
from typer.testing import CliRunner

from conformance.cli import commands
from conformance.cli.main import app

HEAVY = {
    "docker",
    "harness",
    "hypothesis",
    "jinja2",
    "jsonschema",
    "pydantic",
    "reports",
    "sqlglot",
    "testcontainers",
    "yaml",
}
"""What takes long to import, and what it takes long for."""


def imported_by(*arguments):
    """The top-level modules, and ours, that a process has imported when it has carried out a command."""
    program = (
        "import json, sys\n"
        "from conformance.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit as stopped:\n    assert not stopped.code, stopped.code\n"
        "finally:\n    print('\\n' + json.dumps([*sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_what_tells_nothing_of_a_run_imports_nothing_for_one(arguments):
    modules = imported_by(*arguments)
    assert "conformance.cli.main" in modules
    assert not HEAVY & {module.partition(".")[0] for module in modules}
    assert {module for module in modules if module.startswith("conformance.") and "cli" not in module} == set()


@pytest.mark.parametrize(
    ("command", "spared"),
    [
        ("targets", {"sqlglot", "jinja2", "docker", "reports"}),
        ("diff", {"sqlglot", "jinja2", "docker", "conformance.model"}),
        ("combine", {"sqlglot", "jinja2", "docker", "conformance.model"}),
        ("new", {"sqlglot", "jinja2", "docker", "reports"}),
        ("validate", {"sqlglot", "jinja2", "docker", "conformance.model"}),
        ("run", {"sqlglot", "jinja2", "docker", "conformance.model"}),
        ("explain", {"jinja2", "docker"}),
        ("record", {"sqlglot", "jinja2", "docker", "conformance.model"}),
        ("upgrade", {"sqlglot", "jinja2", "docker", "conformance.model"}),
    ],
)
def test_a_command_imports_nothing_that_only_others_need(command, spared):
    assert not spared & imported_by(command, "--help")


def words(text):
    """A text without its frame and its lines."""
    return " ".join(re.findall(r"\w+", text))


@pytest.mark.parametrize("name", commands.NAMES)
def test_the_list_says_of_a_command_what_the_command_says_of_itself(name):
    function = getattr(import_module(f"conformance.cli.{name}"), name)
    assert getdoc(function).partition("\n\n")[0] == commands.summary(name)
    listed = CliRunner().invoke(app, ["--help"])
    assert words(commands.summary(name)) in words(listed.output)
    alone = CliRunner().invoke(app, [name, "--help"], prog_name="conformance")
    assert alone.exit_code == 0
    assert words(commands.summary(name)) in words(alone.output)
    assert f"Usage: conformance {name}" in alone.output


def test_every_command_is_listed():
    group = typer.main.get_command(app)
    assert tuple(group.commands) == commands.NAMES


def test_a_module_without_its_command_is_a_defect_that_is_named():
    with pytest.raises(LookupError, match=r"conformance\.cli\.running has no function running"):
        commands.summary("running")


def test_a_command_mistyped():
    done = CliRunner().invoke(app, ["reprot"])
    assert done.exit_code == 2
    assert "Did you mean 'report'" in done.output
