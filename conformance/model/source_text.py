"""What the specification shows of the model's own source.

The text of a rule as the model executes it, which is the function that is its value and the places where the model reads it; and what
the model does not predict, which is each construct for which its source raises ``Unpredictable``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from conformance.model.errors import Unpredictable

_MODEL = Path(__file__).parent
_LONGEST = 16
"""Lines of a place that are shown; of a longer one, the statement that reads the rule."""
_NOT_READERS = ("catalogue", "rules", "source_text", "wrong_models")


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
    """The function behind a value that ``rules.yaml`` names, as Python: ``lambda highest, delay: highest - delay``.

    None if the value, such as ``at or before``, is data and no function.
    """
    found = _functions().get((rule, value))
    return None if found is None else ast.unparse(found)


@cache
def readers(rule: str) -> tuple[RuleReader, ...]:
    """Where the model reads a rule, by module and line."""
    found: dict[tuple[str, str], RuleReader] = {}
    for module, text, function, read in _reading_functions():
        if rule in read:
            shown = [_lines(text, function)]
            if len(shown[0].splitlines()) > _LONGEST:
                smallest = (node for node in ast.walk(function) if isinstance(node, ast.stmt) and _own(node, rule))
                shown = [_shortened(text, one, rule) for one in smallest if one is not function]
            reader = RuleReader(module, function.name, "\n# …\n".join(dict.fromkeys(shown)))
            found.setdefault((module, function.name), reader)
    return tuple(found.values())


@cache
def _functions() -> Mapping[tuple[str, str], ast.AST]:
    """Rule and name of a value → the expression or the function of ``RULE_FUNCTIONS``."""
    body = ast.parse((_MODEL / "catalogue.py").read_text(encoding="utf-8")).body
    defined = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    (table,) = (
        one.value for one in body if isinstance(one, ast.AnnAssign) and "RULE_FUNCTIONS" in ast.unparse(one.target)
    )
    return {
        (rule, name): defined.get(ast.unparse(value), value)
        for rule, values in _items(table)
        for name, value in _items(values)
    }


def _items(table: ast.expr | None) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(table, ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), value


@cache
def _reading_functions() -> tuple[tuple[str, str, ast.FunctionDef, frozenset[str]], ...]:
    """Every function of the model, with its module, the text of the module, and the names of the rules that it reads."""
    return tuple(
        (f"conformance/model/{module}", text, function, frozenset(filter(None, map(_read, ast.walk(function)))))
        for module in sorted(path.relative_to(_MODEL).as_posix() for path in _MODEL.rglob("*.py"))
        if module.removesuffix(".py") not in _NOT_READERS
        for text in [(_MODEL / module).read_text(encoding="utf-8")]
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef)
    )


def _read(node: ast.AST) -> str | None:
    """The rule that is read by ``rules.late_watermark``, ``context.rules.late_watermark`` or ``self._rules.late_watermark``."""
    if not isinstance(node, ast.Attribute):
        return None
    owner = node.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return node.attr if name.lstrip("_") == "rules" else None


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
    statement = copy(statement)
    for field in ("body", "orelse"):
        if getattr(statement, field, None):
            setattr(statement, field, [ast.Expr(ast.Constant(...))])
    return ast.unparse(statement)


def _lines(text: str, node: ast.stmt) -> str:
    """The lines of a statement, without the indentation of the first."""
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[margin:] for line in lines)


VARIES = "…"
"""In place of the part of a construct that depends on the query."""


@dataclass(frozen=True, order=True)
class UnpredictedConstruct:
    """A construct without a prediction, as the model names it."""

    name: str
    """``a filter above an outer join``; ``function …`` for every function that the model does not know."""
    module: str
    """Which declares it: ``conformance/model/catalyst/optimizer.py``."""


@cache
def unpredicted() -> tuple[UnpredictedConstruct, ...]:
    """All of them, by name."""
    root = _MODEL.parents[1]
    modules = [*_MODEL.rglob("*.py"), *(root / "conformance" / "oracle").glob("*.py")]
    found = {(name, path) for path in modules for name in constructs_in(path.read_text(encoding="utf-8"))}
    return tuple(sorted(UnpredictedConstruct(name, path.relative_to(root).as_posix()) for name, path in found))


def constructs_in(source: str) -> Iterator[str]:
    """The constructs that the text of a module declares.

    Raises:
        ValueError: a construct has no fixed words, so its name says nothing.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == Unpredictable.__name__:
            name = _words(node.args[0])
            if not name.replace(VARIES, "").strip():
                raise ValueError(f"line {node.lineno}: {ast.unparse(node)} names no construct")
            yield name


def _words(text: ast.expr) -> str:
    if isinstance(text, ast.JoinedStr):
        return "".join(_words(part) for part in text.values)
    return str(text.value) if isinstance(text, ast.Constant) else VARIES
