"""Reads YAML with the 1.2 core schema and the position of every value. Nothing is executed; size and depth are bounded.

PyYAML only parses. Its resolver implements YAML 1.1, in which ``12:00`` is 720 and ``on`` is true, so plain scalars are
resolved here (https://yaml.org/spec/1.2.2/#103-core-schema).
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from itertools import takewhile
from operator import is_
from pathlib import Path
from typing import Any, TypeAlias, cast

import yaml

from conformance.core.data import LOADER, Json
from conformance.core.errors import WrongUsage


@dataclass(frozen=True)
class SourceLocation:
    """A position in a file; both numbers start at 1."""

    line: int
    column: int


@dataclass(frozen=True, eq=False)
class Scalar(SourceLocation):
    """A text, number, boolean or null, as the YAML 1.2 core schema reads it."""

    value: str | int | float | Decimal | bool | None
    indent: int | None = 0
    """Characters (an opening quote) before its text; None if offsets in it do not correspond to columns."""

    def plain(self) -> Json:
        return self.value

    def at(self, offset: int) -> SourceLocation:
        """Return the position of a character of its text, or of the whole scalar if unknown."""
        return self if self.indent is None else SourceLocation(self.line, self.column + self.indent + offset)


@dataclass(frozen=True, eq=False)
class Entry:
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
        """Return the value of the key; None if absent."""
        entry = self._by_key.get(key)
        return entry.value if entry else None

    def key(self, key: str) -> SourceLocation:
        """Return the position of the key, or of the mapping if absent."""
        entry = self._by_key.get(key)
        return entry.key if entry else self

    def plain(self) -> dict[Json, Json]:
        return {entry.key.value: entry.value.plain() for entry in self.entries}


@dataclass(frozen=True, eq=False)
class Items(SourceLocation):
    items: tuple[Node, ...] = field(repr=False)

    def plain(self) -> list[Json]:
        return [item.plain() for item in self.items]


Node: TypeAlias = Scalar | Entries | Items


def child(node: Node | None, *keys: str) -> Node | None:
    """Return the value below keys of nested mappings; None if a key is absent or a node above it is not a mapping."""
    for key in keys:
        node = node.get(key) if isinstance(node, Entries) else None
    return node


def items_of(node: Node | None, *keys: str) -> tuple[Node, ...]:
    """Return the items of a list, below keys; empty if it is not a list."""
    node = child(node, *keys)
    return node.items if isinstance(node, Items) else ()


def each_of(node: Node | None, *keys: str) -> tuple[Node, ...]:
    """Return the items of a list, or the value that stands in place of a list; empty for a mapping."""
    node = child(node, *keys)
    return (node,) if isinstance(node, Scalar) else items_of(node)


def entries_of(node: Node | None, *keys: str) -> Iterator[Entry]:
    """Return the entries of a mapping, below keys; empty if it is not a mapping."""
    node = child(node, *keys)
    return iter(node.entries if isinstance(node, Entries) else ())


def text_of(node: Node | None, *keys: str) -> str | None:
    """Return the text of a scalar, below keys; None if it is not text."""
    node = child(node, *keys)
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None


def changed(node: Node, path: tuple[str, ...], change: Callable[[Node], Node]) -> Node:
    """Change each value at a path of keys, where ``*`` stands for every item of a list or value of a mapping; return the same node where
    nothing changes."""
    if not path:
        return change(node)
    key, rest = path[0], path[1:]
    if isinstance(node, Items) and key == "*":
        items = tuple(changed(item, rest, change) for item in node.items)
        return node if all(map(is_, items, node.items)) else replace(node, items=items)
    if not isinstance(node, Entries) or (key != "*" and node.get(key) is None):
        return node

    def entry_of(entry: Entry) -> Entry:
        value = changed(entry.value, rest, change) if key in ("*", entry.key.value) else entry.value
        return entry if value is entry.value else Entry(entry.key, value)

    entries = tuple(map(entry_of, node.entries))
    return node if all(map(is_, entries, node.entries)) else replace(node, entries=entries)


def node_of(value: Json, place: SourceLocation, indent: int | None = 0) -> Node:
    """Return the node of a plain value, with the same position for everything in it; ``indent`` is that of its scalars."""
    if isinstance(value, Mapping):
        pairs = ((Scalar(place.line, place.column, key), node_of(item, place, indent)) for key, item in value.items())
        return Entries(place.line, place.column, tuple(Entry(key, item) for key, item in pairs))
    if isinstance(value, list | tuple):
        return Items(place.line, place.column, tuple(node_of(item, place, indent) for item in value))
    return Scalar(place.line, place.column, value, indent)


def inside(node: Node, path: tuple[str | int, ...]) -> Node:
    """Return the node at a path of keys and indices, or its nearest existing ancestor."""
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


@dataclass(frozen=True, order=True)
class Problem:
    """What is wrong in a file, or with a folder that is not a suite; line and column are 0 if it concerns the whole file."""

    path: Path
    line: int
    column: int
    message: str

    def render(self, relative_to: Path | None = None) -> str:
        """Return ``file:line:column: message``, with the path relative to a directory that contains it."""
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
class ProblemReport:
    """Collects the problems of a file while it is read."""

    path: Path
    problems: list[Problem] = field(default_factory=list)
    row_files: set[Path] = field(default_factory=set)
    """The files of rows that the case reads: absolute paths without links."""
    not_checked: set[tuple[int, int, str]] = field(default_factory=set)
    """SQL that the check does not read: the line, the column and the reason."""
    _invalid: set[int] = field(default_factory=set)

    def add(self, place: SourceLocation, message: str) -> None:
        """Add a problem; raise `InvalidCase` after so many that nobody reads more."""
        self.problems.append(Problem(self.path, place.line, place.column, message))
        if len(self.problems) == MAX_PROBLEMS:
            message = f"more than {MAX_PROBLEMS} problems; the rest is not looked for"
            self.problems.append(Problem(self.path, 0, 0, message))
            raise InvalidCase(self.problems)

    def forbid(self, node: Node | None, key: str, message: str) -> bool:
        """Report a key that a mapping must not have here; whether it has it."""
        if not isinstance(node, Entries) or node.get(key) is None:
            return False
        self.add(node.key(key), message)
        return True

    def mark_invalid(self, node: Node) -> None:
        """Exclude the node from later checks, which expect valid nodes."""
        self._invalid.add(id(node))

    def is_valid(self, node: Node | None) -> bool:
        """Return whether the node exists and its shape check passed, including everything below it."""
        return node is not None and id(node) not in self._invalid


MAX_BYTES = 2_000_000
MAX_DEPTH = 60
MAX_PROBLEMS = 1_000
MAX_VALUES = 100_000
"""The most values a file may hold after its aliases are expanded; an alias bomb has far more."""
_MAX_DIGITS = 400
"""A number with more digits or a larger exponent than any Spark type allows is text."""

_HALF = re.compile("[\ud800-\udfff]")
"""Half of a pair of UTF-16, which no text can hold."""

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"(?P<true>true|True|TRUE)|false|False|FALSE")
_INT = re.compile(r"(?P<decimal>[-+]?[0-9]+)|0o(?P<octal>[0-7]+)|0x(?P<hex>[0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_ENDLESS = re.compile(r"(?P<sign>[-+]?)\.(?:inf|Inf|INF)|(?P<nan>\.(?:nan|NaN|NAN))")

_FIRST_OF_OTHERS = frozenset("~nNtTfF+-.0123456789")
"""The first character of every non-empty plain scalar that is not a string."""


def read_yaml(path: Path, report: ProblemReport) -> Node | None:
    """Read the only document in a file; problems go into the report. None if reading stopped: the file cannot be opened, is not UTF-8, not
    YAML, not exactly one document, too large, too deeply nested or an alias bomb. Duplicate keys and tags do not stop it."""
    try:
        return _composed(_text(path), report)
    except OSError as error:
        report.problems.append(Problem(path, 0, 0, f"cannot read the file: {error.strerror}"))
    except _Stop as stop:
        report.add(stop.place, stop.message)
    return None


def resolve(text: str) -> str | int | float | Decimal | bool | None:
    """Return the value of a plain scalar in the core schema; a number that a double cannot represent exactly is a ``Decimal``."""
    if text and text[0] not in _FIRST_OF_OTHERS:
        return text
    if _NULL.fullmatch(text):
        return None
    if match := _BOOL.fullmatch(text):
        return match["true"] is not None
    if len(text) > _MAX_DIGITS:
        return text
    if match := _INT.fullmatch(text):
        if match["octal"]:
            return int(match["octal"], 8)
        return int(match["hex"], 16) if match["hex"] else int(text)
    if _FLOAT.fullmatch(text):
        exact = Decimal(text)
        if abs(exact.adjusted()) > _MAX_DIGITS:
            return text
        return float(text) if Decimal(repr(float(text))) == exact else exact
    if match := _ENDLESS.fullmatch(text):
        return float("nan") if match["nan"] else float(f"{match['sign']}inf")
    return text


class _Stop(Exception):
    def __init__(self, place: SourceLocation, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message


def _text(path: Path) -> str:
    start = SourceLocation(1, 1)
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "it is not a regular file" if path.exists() else "there is no such file")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise _Stop(start, f"the file has more than {MAX_BYTES} bytes, the limit")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _Stop(start, "the file is UTF-16: save it as UTF-8")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8")
        raise _Stop(_place_of(before, len(before)), f"byte 0x{content[error.start]:02x} is not UTF-8") from None
    if not text.removeprefix("\ufeff").strip():
        raise _Stop(start, "the file is empty: a case starts with `title: …`")
    return text.removeprefix("\ufeff")


def _place_of(text: str, offset: int) -> SourceLocation:
    before = text[:offset]
    return SourceLocation(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def _composed(text: str, report: ProblemReport) -> Node:
    """Parse with libyaml if available (ten times as fast), and after an error again with PyYAML's own parser, the only one whose errors
    are reported: messages do not depend on how PyYAML was built."""
    before = len(report.problems)
    try:
        return _Composer(text, report, LOADER).document()
    except yaml.YAMLError:
        del report.problems[before:]
    try:
        return _Composer(text, report, yaml.SafeLoader).document()
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error, text) from None
    except yaml.reader.ReaderError as error:
        place = _place_of(text, error.position)
        raise _Stop(place, f"character U+{int(error.character):04X} is not allowed in YAML") from None


class _Composer:
    """Builds the nodes of a document from the events of the parser."""

    def __init__(self, text: str, report: ProblemReport, parser: Any) -> None:
        self._lines = text.splitlines()
        self._report = report
        self._events = yaml.parse(text, Loader=parser)
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        """The value of an anchor and how many values are in it; None while it is read."""
        self._values = 0

    def document(self) -> Node:
        root: Node | None = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    raise _Stop(_place(event), "a second document starts here: a file has only one")
                root = self._node(next(self._events), depth=1)
        if root is None:
            raise _Stop(SourceLocation(1, 1), "the file contains only comments: a case starts with `title: …`")
        return root

    def _node(self, event: Any, depth: int) -> Node:
        place = _place(event)
        if depth > MAX_DEPTH:
            raise _Stop(place, f"nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, place)
        if event.tag is not None and event.tag != "!":
            shown = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._report.add(place, f"tag {shown} is not allowed: write a plain value, and quote text")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        before = self._values
        self._count(1, place)
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, place)
        elif isinstance(event, yaml.SequenceStartEvent):
            items = takewhile(lambda item: not isinstance(item, yaml.SequenceEndEvent), self._events)
            node = Items(place.line, place.column, tuple(self._node(item, depth + 1) for item in items))
        else:
            node = self._entries(place, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node, self._values - before
        return node

    def _alias(self, event: Any, place: SourceLocation) -> Node:
        if event.anchor not in self._anchors:
            raise _Stop(place, f"undefined alias *{event.anchor}: no &{event.anchor} precedes it")
        anchored = self._anchors[event.anchor]
        if anchored is None:
            raise _Stop(place, f"recursive alias *{event.anchor}: it refers to a value that contains it")
        node, values = anchored
        self._count(values, place)
        return node

    def _count(self, values: int, place: SourceLocation) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise _Stop(place, f"the file has more than {MAX_VALUES} values after its aliases are expanded")

    def _scalar(self, event: yaml.ScalarEvent, place: SourceLocation) -> Scalar:
        if (half := _HALF.search(event.value)) is not None:
            raise _Stop(place, f"\\u{ord(half[0]):04x} is half of a character: write the whole one")
        indent = 1 if event.style in ("'", '"') else 0
        first = self._lines[place.line - 1] if place.line <= len(self._lines) else ""
        at = place.column - 1 + indent
        plain = event.style in (None, "") and event.tag is None
        return Scalar(
            place.line,
            place.column,
            resolve(event.value) if plain else event.value,
            indent if first[at : at + len(event.value)] == event.value else None,
        )

    def _entries(self, place: SourceLocation, depth: int) -> Entries:
        entries: dict[object, Entry] = {}
        for event in takewhile(lambda event: not isinstance(event, yaml.MappingEndEvent), self._events):
            key, value = self._node(event, depth + 1), self._node(next(self._events), depth + 1)
            if not isinstance(key, Scalar):
                self._report.add(key, "a list or a mapping cannot be a key")
            elif key.value in entries:
                first = entries[key.value].key.line
                self._report.add(key, f"duplicate key {key.value!r}, first used in line {first}")
            else:
                entries[key.value] = Entry(key, value)
        return Entries(place.line, place.column, tuple(entries.values()))


def _not_yaml(error: yaml.MarkedYAMLError, text: str) -> _Stop:
    mark = cast(Any, error.problem_mark or error.context_mark)
    place = SourceLocation(mark.line + 1, mark.column + 1)
    said = f"invalid YAML: {error.problem or error.context}"
    line = [*text.splitlines(), ""][mark.line]
    if "'\\t'" in said:
        said = "invalid YAML: tab character; indent with spaces"
    elif "mapping values are not allowed" in said and ": " not in line[: mark.column]:
        said = "invalid YAML: this key continues the text of the line above; check the indentation"
    elif "mapping values are not allowed" in said:
        said = "invalid YAML: second ': ' in this line; quote the text that contains it"
        if "<" in line:
            said += ', such as the schema "place STRUCT<name: STRING>"'
    elif match := re.search(r"character '(.)' that cannot start", said):
        said = f"invalid YAML: unquoted text cannot start with {match[1]}; quote it"
    elif "expected <block end>, but found" in said and error.context_mark:
        above = error.context_mark.line + 1
        said = f"invalid YAML: this does not continue the block that starts in line {above}; check the indentation"
    elif error.context and error.context_mark and error.context_mark.line + 1 != place.line:
        said += f" ({error.context} of line {error.context_mark.line + 1})"
    return _Stop(place, said)


def _place(event: Any) -> SourceLocation:
    mark = event.start_mark
    return SourceLocation(mark.line + 1, mark.column + 1)
