"""What a YAML file holds, each value with its place: what the readers work on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

Json: TypeAlias = Any


@dataclass(frozen=True)
class SourceLocation:
    """Where something stands in a file, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, eq=False)
class Scalar(SourceLocation):
    """A text, number, boolean or null, as the YAML 1.2 core schema reads it."""

    value: str | int | float | Decimal | bool | None
    indent: int | None = 0
    """How many characters (an opening quote) stand before its text; None where offsets in it are not columns."""

    def plain(self) -> Json:
        return self.value

    def at(self, offset: int) -> SourceLocation:
        """The place of a character of its text; where that cannot be told, of the whole."""
        return self if self.indent is None else SourceLocation(self.line, self.column + self.indent + offset)


@dataclass(frozen=True, eq=False)
class Entry:
    """A key of a mapping and what it says."""

    key: Scalar
    value: Node


@dataclass(frozen=True, eq=False)
class Entries(SourceLocation):
    """A mapping; keys are distinct."""

    entries: tuple[Entry, ...] = field(repr=False)

    @cached_property
    def _by_key(self) -> dict[Json, Entry]:
        return {entry.key.value: entry for entry in self.entries}

    def get(self, key: str) -> Node | None:
        """What the key says; None where it is not there."""
        entry = self._by_key.get(key)
        return entry.value if entry else None

    def key(self, key: str) -> SourceLocation:
        """Where the key stands; the mapping itself where it does not."""
        entry = self._by_key.get(key)
        return entry.key if entry else self

    def keys(self) -> tuple[Json, ...]:
        return tuple(self._by_key)

    def plain(self) -> dict[Json, Json]:
        return {entry.key.value: entry.value.plain() for entry in self.entries}


@dataclass(frozen=True, eq=False)
class Items(SourceLocation):
    """A list."""

    items: tuple[Node, ...] = field(repr=False)

    def plain(self) -> list[Json]:
        return [item.plain() for item in self.items]


Node: TypeAlias = Scalar | Entries | Items


def items_of(node: Node | None) -> tuple[Node, ...]:
    """The items of a list; none where it is not a list."""
    return node.items if isinstance(node, Items) else ()


def entries_of(node: Node | None) -> Iterator[Entry]:
    """The entries of a mapping; none where it is not a mapping."""
    return iter(node.entries if isinstance(node, Entries) else ())


def child(node: Node | None, key: str) -> Node | None:
    """What a key of a mapping says; None where it is not there, or the node is not a mapping."""
    return node.get(key) if isinstance(node, Entries) else None


def text_of(node: Node | None) -> str | None:
    """The text of a scalar; None where it is none."""
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None


def inside(node: Node, path: tuple[str | int, ...]) -> Node:
    """The node at a path of keys and indices, or the nearest on the way there."""
    for step in path:
        below: Node | None = None
        if isinstance(node, Entries):
            below = node.get(step)  # type: ignore[arg-type]  # a key may be a number
        elif isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
            below = node.items[step]
        if below is None:
            break
        node = below
    return node
