"""The list of commands, and how little it needs."""

import json
import re
import signal
import subprocess
import sys
import tomllib
from contextlib import suppress
from functools import cache
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
import typer
from typer.testing import CliRunner

from conformance.cli import commands
from conformance.cli.main import app, main

HEAVY = {
    *("docker", "harness", "hypothesis", "jinja2", "jsonschema", "pydantic", "reports", "sqlglot"),
    *("testcontainers", "yaml"),
}
"""What takes long to import, and what it takes long for."""


def imported_by(*lines):
    """What a process has imported, all modules, after each of the command lines that it carried out one after the other."""
    program = (
        "import json, sys\n"
        "from conformance.cli.main import main\n"
        "for line in json.loads(sys.argv[1]):\n"
        "    sys.argv[1:] = line\n"
        "    try:\n        main()\n"
        "    except SystemExit as stopped:\n        assert not stopped.code, stopped.code\n"
        "    print('\\nimported ' + json.dumps([*sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(lines)], capture_output=True, text=True, check=True
    )
    return [set(json.loads(said)) for said in re.findall(r"^imported (.*)$", done.stdout, re.MULTILINE)]


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_what_tells_nothing_of_a_run_imports_nothing_for_one(arguments):
    (modules,) = imported_by(arguments)
    assert "conformance.cli.main" in modules
    assert not HEAVY & {module.partition(".")[0] for module in modules}
    ours = {module for module in modules if module.startswith("conformance.") and "cli" not in module}
    assert ours == {
        "conformance.core",
        "conformance.core.errors",
        "conformance.core.wording",
        "conformance.core.wrapping",
    }


SPARED = {
    "targets": {"sqlglot", "jinja2", "docker", "reports"},
    "case new": {"sqlglot", "jinja2", "docker", "reports"},
    "maintain combine": {"sqlglot", "jinja2", "docker", "conformance.model"},
    "maintain diff": {"sqlglot", "jinja2", "docker", "conformance.model"},
    "case validate": {"sqlglot", "jinja2", "docker", "conformance.model"},
    "case record": {"sqlglot", "jinja2", "docker", "conformance.model"},
    "run": {"sqlglot", "jinja2", "docker", "conformance.model"},
    "upgrade": {"sqlglot", "jinja2", "docker", "conformance.model"},
    "explain": {"jinja2", "docker"},
}
"""What a command does not need. Each may import what those above it may."""


def test_a_command_imports_nothing_that_only_others_need():
    imported = imported_by(*([*command.split(), "--help"] for command in SPARED))
    found = {command: spared & modules for (command, spared), modules in zip(SPARED.items(), imported, strict=True)}
    assert found == {command: set() for command in SPARED}


def commands_with_help():
    """Each command line that has a help of its own, and its examples."""
    for path in commands.COMMANDS.keys() - commands.GROUPS:
        command = commands.load(path)
        yield tuple(path.split()), command
        yield from (((path, below), one) for below, one in getattr(command, "commands", {}).items())


COMMANDS = dict(sorted(commands_with_help()))


@cache
def help_of(*arguments):
    """The lines of the help on a terminal of 80 columns."""
    done = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, [*arguments, "--help"], prog_name="conformance")
    assert done.exit_code == 0, done.output
    return [line.rstrip() for line in done.output.splitlines()]


@pytest.mark.parametrize("path", commands.COMMANDS)
def test_the_list_shows_the_first_line_of_the_docstring(path):
    *group, name = path.split()
    listed = commands.COMMANDS[path]
    if path not in commands.GROUPS:
        function = getattr(import_module(f"conformance.cli.{name}"), name)
        assert getdoc(function).splitlines()[0] == listed.summary
    assert any(re.fullmatch(rf"│ {name} +{re.escape(listed.summary)} +│", line) for line in help_of(*group))
    alone = help_of(*group, name)
    assert f" {listed.summary}" in alone
    assert any(line.startswith(f" Usage: conformance {path}") for line in alone)


def test_every_command_is_listed_in_its_panel():
    group = typer.main.get_command(app)
    assert [*group.commands] == [path for path in commands.COMMANDS if " " not in path]
    assert len(group.commands) <= 12
    for path in commands.GROUPS:
        assert [f"{path} {name}" for name in group.commands[path].commands] == [
            below for below in commands.COMMANDS if below.startswith(f"{path} ")
        ]
    titles = [found[1] for line in help_of() if (found := re.match(r"╭─ ([A-Z][A-Za-z ]+[?]?) ─+╮", line))]
    questions = [
        "Does my job survive the upgrade?",
        "What changes?",
        "Why is my row missing?",
        "Does my Spark conform?",
    ]
    assert titles == ["Options", *questions, "For people who write cases", "For maintainers"]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_examples_are_not_broken_at_80_columns(arguments):
    epilog = COMMANDS[arguments].epilog
    examples = [line.strip() for line in epilog.splitlines() if line.startswith("  ")]
    assert [line for line in examples if line.startswith("conformance")], epilog
    assert all(line.startswith(("# ", "conformance ")) for line in examples)
    shown = {line.strip() for line in help_of(*arguments)}
    assert [line for line in examples if line not in shown] == []


@pytest.mark.parametrize("arguments", [(), *COMMANDS], ids=" ".join)
def test_no_help_shows_a_python_type(arguments):
    assert [line for line in help_of(*arguments) if re.search(r"<(bool|list|str|path|int|float)", line, re.I)] == []


def test_an_option_looks_the_same_in_every_command():
    looks = {}
    for command in COMMANDS.values():
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("-"):
                    looks.setdefault(option, set()).add((parameter.metavar, tuple(parameter.opts)))
    # Each writes either one file or a folder of them; `--policy` of other commands does not accept `all`.
    for option in ("--output", "-o"):
        assert looks.pop(option) == {(kind, ("--output", "-o")) for kind in ("FILE", "FOLDER")}
    # A checkpoint cannot be handed over with a table, and no crash is told of one.
    assert looks.pop("--source") == {(kind, ("--source",)) for kind in ("files|kafka", "files|kafka|delta|iceberg")}
    assert {option: found for option, found in looks.items() if len(found) > 1} == {}


def test_choices_that_are_missing_are_listed_in_a_line():
    done = CliRunner().invoke(app, ["case", "export"], prog_name="conformance")
    assert done.output.startswith("conformance case export: Missing argument 'FORMAT'. Choose from: junit, ")


CHOICES = {
    (arguments, parameter.opts[-1]): get_args(annotation)
    for arguments, command in COMMANDS.items()
    for parameter in command.params
    if parameter.opts[-1].startswith("-") and get_origin(annotation := parameter.type_descriptor.annotation) is Literal
}
"""Command and option → the names that it takes."""


@pytest.mark.parametrize(("arguments", "option"), CHOICES, ids=str)
def test_an_option_with_a_closed_set_of_names_suggests_the_nearest(arguments, option):
    meant = max(CHOICES[arguments, option], key=len)
    done = CliRunner().invoke(app, [*arguments, option, f"{meant}s"], prog_name="conformance")
    assert done.exit_code == 2
    assert f"Did you mean {meant!r}?" in done.output
    done = CliRunner().invoke(app, [*arguments, option, "0"], prog_name="conformance")
    assert "is not one of" in done.output
    assert "Did you mean" not in done.output


@pytest.mark.parametrize(("typed", "meant"), [("reprot", "report"), ("validate", "case validate")])
def test_a_command_mistyped_or_named_without_its_group(typed, meant):
    done = CliRunner().invoke(app, [typed], prog_name="conformance")
    assert done.exit_code == 2
    assert done.output.splitlines() == [
        f"conformance: No such command {typed!r}. Did you mean {meant!r}?",
        "Try 'conformance --help'.",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--sprak", "3.5"], "conformance run: No such option: --sprak"),
        (["gate", "--from", "3.5"], "conformance gate: Missing option '--to'"),
        (["run", "--spark", "3.5.99"], "conformance: '3.5.99' is not a known Spark release"),
        (["run", "--tag", "smoek"], "conformance: no case has the tag smoek. Did you mean smoke?"),
        (
            ["run", "late-drop/window-still-opne"],
            "late-drop/window-still-opne: no such file or folder. Did you mean late-drops/window-still-open",
        ),
        (["run", "nowhere"], "nowhere: no such file or folder"),
        (["maintain", "diff", "a.jsonl", "b.jsonl"], "conformance: a.jsonl: there is no such file"),
        (
            ["check", "a.py", "--to", "4.3", "--", "--from", "3.5"],
            "conformance check: Missing option '--from'. Behind --, --from is your program's: write it before --.",
        ),
    ],
)
def test_wrong_usage_is_answered_in_few_lines(arguments, said, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["conformance", *arguments])
    done = CliRunner().invoke(app, arguments, prog_name="conformance")
    assert done.exit_code in (2, 3), done.output
    first, *rest = done.output.splitlines()
    assert first.startswith(said), done.output
    assert len(rest) <= 2


def test_a_fault_that_is_none_is_named_with_those_that_there_are():
    done = CliRunner().invoke(app, ["maintain", "crash", "cases/late-drops/window-still-open.yaml", "--fault", "torm"])
    assert done.exit_code == 2
    assert (
        "'torm' is not one of killed, arrived, torn, empty, lost, unsynced, power, failed, late, stale" in done.output
    )


def test_the_contract_that_keeps_commands_apart_names_all_of_them():
    contracts = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    (apart,) = [contract for contract in contracts if contract["type"] == "independence"]
    assert {*apart["modules"]} == {
        f"conformance.cli.{path.split()[-1]}" for path in commands.COMMANDS.keys() - commands.GROUPS
    }


def advised():
    """Each command line that a message, a comment or a page writes: where, and its words."""
    root = Path(__file__).parents[4]
    files = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in files:
        # The text of a case stays as it was when its published results were written.
        if name.endswith((".py", ".md", ".yml", ".yaml", ".txt", "Dockerfile")) and not re.match("cases/.*/", name):
            text = (root / name).read_text(encoding="utf-8", errors="replace")
            for line in re.findall(r"(?:`|^(?:[ $-]*(?:run:|entry:))?[ $]*)conformance ([^`\n]*)", text, re.MULTILINE):
                yield name, line.split("#")[0].partition(" -- ")[0].split()


def test_each_command_that_is_advised_exists():
    unknown = []
    for name, words in advised():
        command, path = typer.main.get_command(app), []
        while words and hasattr(command, "commands") and re.fullmatch("[a-z]+", words[0]):
            path.append(words.pop(0))
            command = COMMANDS.get(tuple(path)) or command.commands.get(path[-1])
        known = {option for parameter in getattr(command, "params", ()) for option in parameter.opts}
        options = {found[0] for word in words if (found := re.match(r"--[a-z][a-z-]*", word))}
        if command is None or options - known - {"--help", "--version", "--debug"}:
            unknown.append((name, path, sorted(options - known)))
    assert unknown == []


def test_a_compiled_module_that_is_cut_off_is_named(monkeypatch):
    def cut_off(name):
        raise EOFError("marshal data too short")

    monkeypatch.setattr(commands, "import_module", cut_off)
    done = CliRunner().invoke(app, ["maintain", "columns"])
    assert done.exit_code == commands.FAILED
    assert "a defect of this program: EOFError: marshal data too short" in done.stderr


@pytest.mark.parametrize("stopped", [True, False])
def test_what_a_library_makes_of_a_stop_is_no_defect(monkeypatch, capsys, stopped):
    def wraps_what_comes(_):
        with suppress(KeyboardInterrupt):
            if stopped:
                signal.raise_signal(signal.SIGINT)
        raise RuntimeError("Error building the serializer")

    monkeypatch.setattr(commands, "import_module", wraps_what_comes)
    with pytest.raises(SystemExit) as ended:
        main(["gate"])
    said = capsys.readouterr().err
    assert (ended.value.code, "a defect of this program" in said) == ((130, False) if stopped else (3, True))
