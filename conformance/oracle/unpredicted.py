"""What the reference model does not predict: each construct for which its source raises ``Unpredictable``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from conformance.model.errors import Unpredictable

PACKAGES = ("conformance.model", "conformance.model.catalyst", "conformance.oracle")
VARIES = "…"
"""In place of the part that depends on the query."""


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
    return tuple(sorted({one for package in PACKAGES for one in _declared(package)}))


def _declared(package: str) -> Iterator[UnpredictedConstruct]:
    folder = package.replace(".", "/")
    for file in files(package).iterdir():
        if file.name.endswith(".py"):
            for name in constructs_in(file.read_text(encoding="utf-8")):
                yield UnpredictedConstruct(name, f"{folder}/{file.name}")


def constructs_in(source: str) -> Iterator[str]:
    """The constructs that a module declares.

    Args:
        source: its text.

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
