"""The text of a rule as the model executes it: the function that is its value, and the places where the model reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_PACKAGE = "conformance.model"
_LONGEST = 16
"""Lines of a place that are shown; of a longer one, the statement that reads the rule."""
_NOT_READERS = ("catalogue.py", "rules.py", "rule_text.py")


@dataclass(frozen=True)
class RuleReader:
    """A place where the model reads a rule."""

    module: str
    """``conformance/model/operators.py``."""
    function: str
    """The function or method around it: ``is_late``."""
    text: str
    """The whole function if it is short, else the statement; Python that can be parsed."""


def value_text(rule: str, value: str) -> str | None:
    """The function behind a value that ``rules.yaml`` names, as Python.

    Args:
        rule: its name.
        value: the name of the value: ``at or before``.

    Returns:
        ``lambda highest, delay: highest - delay``; None if the value is data and no function.
    """
    found = _functions().get((rule, value))
    return None if found is None else ast.unparse(found)


@cache
def readers(rule: str) -> tuple[RuleReader, ...]:
    """Where the model reads a rule, by module and line."""
    return tuple(reader for module in _modules() for reader in _readers_in(module, rule))


def _modules() -> tuple[str, ...]:
    """The modules of the model as paths below its folder."""
    names = [
        *(entry.name for entry in files(_PACKAGE).iterdir()),
        *(f"catalyst/{entry.name}" for entry in (files(_PACKAGE) / "catalyst").iterdir()),
    ]
    return tuple(
        sorted(
            name
            for name in names
            if name.endswith(".py") and name not in _NOT_READERS and not name.startswith("wrong_")
        )
    )


@cache
def _source(module: str) -> tuple[str, ast.Module]:
    text = (files(_PACKAGE) / module).read_text(encoding="utf-8")
    return text, ast.parse(text)


@cache
def _functions() -> Mapping[tuple[str, str], ast.AST]:
    """Rule and name of a value → the expression or the function of ``RULE_FUNCTIONS``."""
    _, tree = _source("catalogue.py")
    defined = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    table = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "RULE_FUNCTIONS"
    )
    return {
        (rule, name): defined.get(value.id, value) if isinstance(value, ast.Name) else value
        for rule, values in _items(table)
        for name, value in _items(values)
    }


def _items(table: ast.expr | None) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(table, ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), value


def _readers_in(module: str, rule: str) -> Iterator[RuleReader]:
    text, _ = _source(module)
    seen: set[str] = set()
    for function, read in _rules_by_function(module):
        if function.name in seen or rule not in read:
            continue
        seen.add(function.name)
        whole = _lines(text, function)
        statements = (
            [whole]
            if len(whole.splitlines()) <= _LONGEST
            else [_shortened(text, one, rule) for one in _smallest(function, rule)]
        )
        yield RuleReader(f"conformance/model/{module}", function.name, "\n# …\n".join(dict.fromkeys(statements)))


@cache
def _rules_by_function(module: str) -> tuple[tuple[ast.FunctionDef, frozenset[str]], ...]:
    """Every function of a module, and the names of what it reads of the rules; asked for each rule."""
    _, tree = _source(module)
    return tuple(
        (function, frozenset(name for node in ast.walk(function) if (name := _read(node)) is not None))
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
    )


def _read(node: ast.AST) -> str | None:
    """The rule that is read by ``rules.late_watermark``, ``context.rules.late_watermark`` or ``self._rules.late_watermark``."""
    if not isinstance(node, ast.Attribute):
        return None
    owner = node.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return node.attr if name.lstrip("_") == "rules" else None


def _smallest(function: ast.FunctionDef, rule: str) -> Iterator[ast.stmt]:
    """The innermost statements that read the rule."""
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and node is not function and _own(node, rule):
            yield node


def _own(node: ast.AST, rule: str) -> bool:
    """Whether a statement, or a case of ``match``, reads the rule outside the statements that it contains."""
    below = [one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.stmt)]
    return any(
        _own(part, rule) if isinstance(part, ast.match_case) else any(_read(one) == rule for one in ast.walk(part))
        for part in below
    )


def _shortened(text: str, statement: ast.stmt, rule: str) -> str:
    """The statement as it is written; of a long one only what decides, and of ``match`` only the cases that read the rule."""
    lines = _lines(text, statement)
    if isinstance(statement, ast.Match):
        statement = ast.Match(statement.subject, [one for one in statement.cases if _own(one, rule)])
    elif len(lines.splitlines()) <= _LONGEST and not lines.startswith("elif "):
        return lines
    short = ast.unparse(statement)
    if len(short.splitlines()) <= _LONGEST:
        return short
    for field in ("body", "orelse"):
        if getattr(statement, field, None):
            statement = copy(statement)
            setattr(statement, field, [ast.Expr(ast.Constant(...))])
    return ast.unparse(statement)


def _lines(text: str, node: ast.stmt) -> str:
    """The lines of a statement, without the indentation of the first."""
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[margin:] for line in lines)
