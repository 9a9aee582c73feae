"""Problems in a case file, where they are, and the similar name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from conformance.core.errors import WrongUsage
from conformance.language.node import Node, SourceLocation

SHOWN = 30
"""How many allowed names a message lists."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The most similar known name, ignoring case; None if none is similar."""
    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def similar(word: str, known: Iterable[str]) -> str | None:
    """The known name that a word is a slip of; None if it may be meant as it stands."""
    found = get_close_matches(word.lower(), list(known), n=1, cutoff=0.8)
    return found[0] if found else None


def unknown(
    what: str, word: str, known: Iterable[str], synonyms: Mapping[str, str] | None = None, *, where: str = ""
) -> str:
    """``unknown key 'titel': did you mean 'title'?``, or the allowed names if none is similar.

    Args:
        what: what the word should have been.
        word: what was found.
        known: the allowed words.
        synonyms: words that are not allowed, each with the allowed one that it means.
        where: follows the word: ``" in a step"``.
    """
    names = list(known)
    others = synonyms or {}
    near = nearest(word, [*names, *others])
    near = others.get(near, near) if near is not None else None
    found = f"unknown {what} {word!r}{where}"
    if near is not None:
        return f"{found}: did you mean {near!r}?"
    if not names:
        return f"{found}: none is defined"
    more = f", … ({len(names)} in total)" if len(names) > SHOWN else ""
    return f"{found}: expected one of {', '.join(names[:SHOWN])}{more}"


@dataclass(frozen=True, order=True)
class Problem:
    """One problem in a file.

    Attributes:
        path: the file, or the directory that is not a suite.
        line: from 1; 0 if the problem concerns the whole file.
        column: from 1; 0 if the problem concerns the whole file.
        message: what is wrong, with the value found and what is allowed.
    """

    path: Path
    line: int
    column: int
    message: str

    def render(self, relative_to: Path | None = None) -> str:
        """``file:line:column: message``, with the path relative to a directory that contains it."""
        shown = self.path
        if relative_to is not None and shown.is_relative_to(relative_to):
            shown = shown.relative_to(relative_to)
        return f"{shown}:{self.line}:{self.column}: {self.message}" if self.line else f"{shown}: {self.message}"

    def __str__(self) -> str:
        return self.render()


class InvalidCase(WrongUsage):
    """A file that is not a valid case. ``problems`` has all of its problems, sorted by position."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


@dataclass
class Report:
    """Collects the problems of one file while it is read."""

    path: Path
    problems: list[Problem] = field(default_factory=list)
    _invalid: set[int] = field(default_factory=set)

    def add(self, place: SourceLocation, message: str) -> None:
        self.problems.append(Problem(self.path, place.line, place.column, message))

    def mark_invalid(self, node: Node) -> None:
        """Exclude the node from later checks, which expect valid nodes."""
        self._invalid.add(id(node))

    def is_valid(self, node: Node | None) -> bool:
        """Whether the node exists and its shape check passed, including everything below it."""
        return node is not None and id(node) not in self._invalid
