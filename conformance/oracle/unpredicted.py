"""What the reference model does not predict: each construct for which its source raises ``Unpredictable``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from conformance.model.errors import Unpredictable

VARIES = "…"
"""In place of the part that depends on the query."""
_FOLDERS = ("conformance/model", "conformance/model/catalyst", "conformance/oracle")
_ROOT = Path(__file__).parents[2]


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
    modules = [path for folder in _FOLDERS for path in (_ROOT / folder).glob("*.py")]
    found = {(name, path) for path in modules for name in constructs_in(path.read_text(encoding="utf-8"))}
    return tuple(sorted(UnpredictedConstruct(name, path.relative_to(_ROOT).as_posix()) for name, path in found))


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
