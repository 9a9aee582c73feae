"""The tokens of Spark SQL, as its ``SqlBaseLexer.g4`` cuts them.

Only the part of it on which all versions agree: comments, raw strings, variables and characters outside ASCII are refused rather
than read, so that no text means one thing here and another to Spark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["word", "quoted", "text", "number", "mark", "end"]

_TOKEN = re.compile(
    r"(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<quoted>`(?:[^`]|``)*`)"
    r"|(?P<number>\d+\.\d+(?:[eE][+-]?\d+)?\w*|\d\w*)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<mark><=>|->|=>|<=|>=|<>|!=|==|\|\||::|[-+*/%^&|~!<>=(),.\[\]:])",
    re.DOTALL | re.ASCII,
)
_SPACE = re.compile(r"[ \t\r\n]*")
_NOT_READ = (
    (re.compile(r"\$\{"), "`${…}` stands for a setting or a variable of the environment"),
    (re.compile(r"--|/\*"), "a comment: write it as a YAML comment"),
    (re.compile(r"[rR](?=['\"])"), "a raw string: write it without the letter before the quote"),
    (re.compile(r"\|>"), "the pipe operator `|>`"),
    (re.compile(r";"), "`;`: write one statement, without an end"),
)
_QUOTES = {"'": "a string", '"': "a string", "`": "a quoted name"}


@dataclass(frozen=True)
class Token:
    kind: Kind
    text: str
    offset: int
    """Of its first character, from 0."""

    @property
    def name(self) -> str:
        """A word or a quoted name in lower case; empty for any other token."""
        if self.kind == "quoted":
            return self.text[1:-1].replace("``", "`").lower()
        return self.text.lower() if self.kind == "word" else ""

    @property
    def keyword(self) -> str:
        """A word in lower case; empty for any other token: a quoted name is never a keyword."""
        return self.text.lower() if self.kind == "word" else ""

    def is_mark(self, mark: str) -> bool:
        return self.kind == "mark" and self.text == mark


class NotReadable(ValueError):
    """The text has something that is not read here; ``offset`` is its position, from 0."""

    is_mistake = False
    """Whether Spark cannot read it either."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


class NotClosed(NotReadable):
    """A quote or a bracket has no counterpart."""

    is_mistake = True


@lru_cache(4096)
def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens of an expression or a statement, and an ``end``.

    Raises:
        NotClosed: a quote is not closed.
        NotReadable: it has a comment, a variable or another thing that is not read.
    """
    # Spark replaces variables before it reads the text, in strings too.
    if variable := _NOT_READ[0][0].search(text):
        raise NotReadable(variable.start(), _NOT_READ[0][1])
    found = []
    at = _space(text, 0)
    while at < len(text):
        for pattern, reason in _NOT_READ:
            if pattern.match(text, at):
                raise NotReadable(at, reason)
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup is None:
            if text[at] in _QUOTES:
                raise NotClosed(at, f"{_QUOTES[text[at]]} is not closed: {text[at]} has no counterpart")
            raise NotReadable(at, f"unexpected {text[at]!r} in Spark SQL")
        found.append(Token(token.lastgroup, token[0], at))  # type: ignore[arg-type]  # the groups are the kinds
        at = _space(text, token.end())
    return (*found, Token("end", "", len(text)))


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def closing(tokens: tuple[Token, ...]) -> dict[int, int]:
    """Index of each opening bracket → index of its counterpart.

    Raises:
        NotClosed: one has no counterpart.
    """
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind != "mark" or token.text not in "()[]":
            continue
        if token.text in "([":
            opened.append(index)
            continue
        if not opened or tokens[opened[-1]].text != {")": "(", "]": "["}[token.text]:
            raise NotClosed(token.offset, f"{token.text!r} has no counterpart: is a bracket missing before it?")
        pairs[opened.pop()] = index
    if opened:
        left = tokens[opened[-1]]
        raise NotClosed(left.offset, f"{left.text!r} is not closed: is a bracket missing at the end?")
    return pairs


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
