"""Spark SQL data types as a DDL schema writes them: ``event_time TIMESTAMP, place STRUCT<name: STRING>``.

Parses two notations: the DDL of a case's streams (``parse_schema``) and the simple strings in which an engine reports the
type of a column, ``struct<start:timestamp,end:timestamp>`` (``parse_type``). Type names and aliases are those of Spark's
``SqlBaseParser.g4``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

DEFAULT_DECIMAL = (10, 0)
"""Spark's ``DecimalType.USER_DEFAULT``, the meaning of ``DECIMAL`` alone."""

TYPE_NAMES = (
    *("array", "bigint", "binary", "boolean", "date", "decimal", "double", "float", "int", "map", "smallint", "string"),
    *("struct", "timestamp", "timestamp_ntz", "tinyint"),
)
"""The column types allowed in a stream, for messages."""
_NAMES = {
    **{name: name for name in (*TYPE_NAMES, "void", "variant", "interval")},
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "null": "void",
    **dict.fromkeys(("dec", "numeric"), "decimal"),
    **dict.fromkeys(("char", "character", "varchar"), "string"),
}
"""Name or alias of a type → its Spark name."""


@dataclass(frozen=True)
class DataType:
    """A type with its Spark name in lower case: ``timestamp``, ``int``, ``decimal``, ``struct``, ``array`` …"""

    name: str
    fields: tuple[Field, ...] = ()
    """The fields of a struct."""
    elements: tuple[DataType, ...] = ()
    """The element of an array, or key and value of a map."""
    precision: int | None = None
    scale: int | None = None

    def __str__(self) -> str:
        """Spark's simple string, the form that ``parse_type`` reads."""
        if self.name == "struct":
            return f"struct<{','.join(map(str, self.fields))}>"
        if self.elements:
            return f"{self.name}<{','.join(map(str, self.elements))}>"
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


@dataclass(frozen=True)
class Field:
    """A column, or a field of a struct."""

    name: str
    type: DataType

    def __str__(self) -> str:
        quoted = re.search(r"[`:<>,\s]", self.name) is not None
        return f"`{self.name.replace('`', '``')}`:{self.type}" if quoted else f"{self.name}:{self.type}"


@dataclass(frozen=True)
class Schema:
    """The columns of a stream, in order."""

    ddl: str
    fields: tuple[Field, ...]

    @property
    def struct(self) -> DataType:
        return DataType("struct", self.fields)


class NotAType(ValueError):
    """The text is not a schema or type; ``offset`` is the position of the problem, from 0."""

    def __init__(self, offset: int, reason: str, near: str | None = None) -> None:
        super().__init__(reason)
        self.offset = offset
        self.near = near
        """The word that is not a type, for a suggestion."""


@lru_cache(maxsize=4096)
def parse_schema(ddl: str) -> Schema:
    """Read a DDL schema: ``event_time TIMESTAMP, count INT``; raise `NotAType` for anything else, and for a duplicate column
    (ignoring case, as Spark does)."""
    return Schema(ddl, _Parser(ddl, simple=False).fields(end=None))


@lru_cache(maxsize=4096)
def parse_type(text: str) -> DataType:
    """Read a type: DDL (``ARRAY<INT>``) or Spark's simple string (``struct<start:timestamp,end:timestamp>``); raise `NotAType`
    for anything else."""
    parser = _Parser(text, simple=True)
    parsed = parser.type()
    parser.finish()
    return parsed


MAX_DEPTH = 60
"""How deep types may be nested; Spark has no limit but its stack."""
_MAX_DIGITS = 9
_SPACE = re.compile(r"\s*")
_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)*`)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<word>\w+)|(?P<mark>[<>(),:]))"
)
_SIMPLE_NAME = re.compile(r"\s*([^`:<>,]+):")
"""A field name in a simple string, where names are not quoted: ``struct<sum(count):bigint>``."""


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


class _Parser:
    def __init__(self, text: str, *, simple: bool) -> None:
        self._text = text
        self._simple = simple
        self._at = 0
        self._depth = 0

    def fields(self, end: str | None) -> tuple[Field, ...]:
        fields: list[Field] = []
        names: set[str] = set()
        while True:
            name, offset = self._name()
            if name.lower() in names and not self._simple:
                raise NotAType(offset, f"duplicate column {name!r}")
            names.add(name.lower())
            colon = self._peek()
            if self._take(":") and end is None and colon is not None:
                raise NotAType(colon.offset, "write a space, not ':', between a column and its type")
            fields.append(Field(name, self.type()))
            self._skip_constraints()
            if not self._take(","):
                break
        if end is None:
            self.finish()
        return tuple(fields)

    def type(self) -> DataType:
        token = self._next("a type")
        name = _NAMES.get(token.text.lower()) if token.kind == "word" else None
        if name is None:
            raise NotAType(token.offset, f"{token.text!r} is not a Spark type", near=token.text)
        if name in ("struct", "array", "map"):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise NotAType(token.offset, f"nested more than {MAX_DEPTH} levels deep")
            nested = self._nested(name, token)
            self._depth -= 1
            return nested
        if name == "interval":
            self._skip_words("year", "month", "day", "hour", "minute", "second", "to")
            return DataType(name)
        if token.text.lower() == "timestamp" and (rest := self._peek()) and rest.text.lower() in ("with", "without"):
            self._skip_words("with", "without", "local", "time", "zone")
            return DataType("timestamp_ntz" if rest.text.lower() == "without" else "timestamp")
        numbers = self._numbers()
        if name != "decimal":
            return DataType(name)
        precision, scale = (*numbers, *(DEFAULT_DECIMAL[len(numbers) :]))[:2]
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise NotAType(token.offset, f"DECIMAL({precision},{scale}): precision 1 to 38, scale 0 to precision")
        return DataType(name, precision=precision, scale=scale)

    def finish(self) -> None:
        if token := self._peek():
            raise NotAType(token.offset, f"unexpected {token.text!r} after the type: is a comma missing?")

    def _nested(self, name: str, opening: _Token) -> DataType:
        if not self._take("<"):
            raise NotAType(opening.offset, f"{opening.text} needs its element types: {_EXAMPLES[name]}")
        if name == "struct":
            start = _SPACE.match(self._text, self._at)
            empty = start is not None and self._text.startswith(">", start.end())
            nested = DataType(name, () if empty else self.fields(end=">"))
        elif name == "array":
            nested = DataType(name, elements=(self.type(),))
        else:
            key = self.type()
            if not self._take(","):
                raise NotAType(self._offset(), f"MAP needs a key and a value type: {_EXAMPLES[name]}")
            nested = DataType(name, elements=(key, self.type()))
        if not self._take(">"):
            raise NotAType(self._offset(), f"'>' is missing: {opening.text}< is not closed")
        return nested

    def _name(self) -> tuple[str, int]:
        if self._simple and (match := _SIMPLE_NAME.match(self._text, self._at)):
            self._at = match.end(1)
            return match[1], match.start(1)
        token = self._next("a column name")
        if token.kind == "quoted":
            return token.text[1:-1].replace("``", "`"), token.offset
        if token.kind != "word":
            raise NotAType(token.offset, f"{token.text!r} is not a column name")
        return token.text, token.offset

    def _numbers(self) -> tuple[int, ...]:
        if not self._take("("):
            return ()
        numbers: list[int] = []
        while True:
            token = self._next("a number")
            if not token.text.isdecimal() or len(token.text) > _MAX_DIGITS:
                raise NotAType(token.offset, f"{token.text!r} is not a whole number")
            numbers.append(int(token.text))
            if not self._take(","):
                break
        if not self._take(")"):
            raise NotAType(self._offset(), "')' is missing")
        return tuple(numbers)

    def _skip_constraints(self) -> None:
        """Skip ``NOT NULL`` and ``COMMENT '…'``, which do not affect values: a file source makes every column nullable."""
        self._skip_words("not", "null")
        if (token := self._peek()) and token.text.lower() == "comment":
            self._next("COMMENT")
            text = self._next("the text of the comment")
            if text.kind != "text":
                raise NotAType(text.offset, f"COMMENT needs quoted text, not {text.text!r}")

    def _skip_words(self, *words: str) -> None:
        while (token := self._peek()) and token.kind == "word" and token.text.lower() in words:
            self._next("")

    def _take(self, mark: str) -> bool:
        token = self._peek()
        if token is None or token.text != mark:
            return False
        self._at = token.offset + 1
        return True

    def _peek(self) -> _Token | None:
        start = _SPACE.match(self._text, self._at)
        assert start is not None
        if start.end() == len(self._text):
            return None
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            raise NotAType(start.end(), f"unexpected {self._text[start.end()]!r} in a schema")
        return _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))

    def _next(self, expected: str) -> _Token:
        token = self._peek()
        if token is None:
            raise NotAType(self._offset(), f"{expected} is missing at the end")
        self._at = token.offset + len(token.text)
        return token

    def _offset(self) -> int:
        token = self._peek()
        return token.offset if token else len(self._text)


_EXAMPLES = {"struct": "STRUCT<name: STRING>", "array": "ARRAY<INT>", "map": "MAP<STRING, INT>"}
