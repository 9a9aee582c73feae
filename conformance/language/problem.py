"""What is wrong in a case, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from conformance.language.node import Node, SourceLocation


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong in a file.

    Attributes:
        path: the file, or the directory that is no suite.
        line: from 1; 0 where it is about the file as a whole.
        column: from 1; 0 where it is about the file as a whole.
        message: what is wrong, the value it is about, and what is allowed.
    """

    path: Path
    line: int
    column: int
    message: str

    def render(self, relative_to: Path | None = None) -> str:
        """``file:line:column: message``, the path relative to a directory that it is below."""
        shown = self.path
        if relative_to is not None and shown.is_relative_to(relative_to):
            shown = shown.relative_to(relative_to)
        return f"{shown}:{self.line}:{self.column}: {self.message}" if self.line else f"{shown}: {self.message}"

    def __str__(self) -> str:
        return self.render()


class InvalidCase(ValueError):
    """A file that is no case. ``problems`` are all of its problems, by position."""

    exit_code: ClassVar[int] = 2
    """Of a command that it ends."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


@dataclass
class Report:
    """Collects the problems of one file while it is read."""

    path: Path
    problems: list[Problem] = field(default_factory=list)
    _unsound: set[int] = field(default_factory=set)

    def add(self, place: SourceLocation, message: str) -> None:
        self.problems.append(Problem(self.path, place.line, place.column, message))

    def spoil(self, node: Node) -> None:
        """Remember that the node is not in the shape it should be, so that no later check trips over it."""
        self._unsound.add(id(node))

    def sound(self, node: Node | None) -> bool:
        """Whether the node is there and, with all below it, in the shape it should be."""
        return node is not None and id(node) not in self._unsound
