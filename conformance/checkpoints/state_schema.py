"""The schema of the rows of a state store, as Spark writes it beside the state since 3.1.

The file holds strings as Java's ``DataOutputStream.writeUTF`` writes them: two bytes of length, then modified UTF-8. Source:
``StateSchemaCompatibilityChecker`` and ``SchemaHelper`` of Spark.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from conformance.checkpoints.errors import DamagedCheckpoint

NEWEST = 3
"""The newest format of these files that we know."""


@dataclass(frozen=True)
class Field:
    """A column of a schema, at any depth."""

    name: str
    """``key.window.start``: the names down to it."""
    type: str
    """``long``, ``void``; ``struct``, ``array`` or ``map`` for a nested one."""
    nullable: bool


@dataclass(frozen=True)
class StateSchema:
    """The rows of one column family."""

    format: int
    family: str
    """``default``, or the name of a state variable (``transformWithState``)."""
    key: tuple[Field, ...]
    value: tuple[Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.key + self.value


def parse(path: PurePosixPath, content: bytes) -> tuple[StateSchema, ...]:
    """Read a schema file.

    Raises:
        DamagedCheckpoint: it does not have the format that Spark writes, or one newer than we know.
    """
    try:
        return tuple(_schemas(path, _Reader(content)))
    except (struct.error, ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, DamagedCheckpoint):
            raise
        raise DamagedCheckpoint(path, "this is not a state schema, or it is incomplete") from error


def _schemas(path: PurePosixPath, reader: _Reader) -> Iterator[StateSchema]:
    version = reader.text()
    if version not in {f"v{number}" for number in range(1, NEWEST + 1)}:
        raise DamagedCheckpoint(path, f"the format of this state schema is {version!r}; known are v1 to v{NEWEST}")
    format = int(version[1:])
    if format == 1:
        yield StateSchema(1, "default", _fields(reader.text()), _fields(reader.text()))
        return
    for _ in range(1 if format == 2 else reader.number()):
        family = "default" if format == 2 else reader.text()
        schema = StateSchema(format, family, _fields(reader.long_text()), _fields(reader.long_text()))
        if format > 2:
            # How the key is encoded, and the schema of the user's key.
            reader.long_text()
            reader.long_text()
        yield schema


class _Reader:
    """Reads what Java's ``DataOutputStream`` writes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def number(self) -> int:
        return int(self._unpacked(">i", 4))

    def text(self) -> str:
        length = int(self._unpacked(">H", 2))
        raw = self._content[self._at : self._at + length]
        if len(raw) < length:
            raise ValueError("the text is incomplete")
        self._at += length
        # Modified UTF-8 writes NUL as two bytes, and each half of a surrogate pair as a character.
        text = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return text.encode("utf-16", "surrogatepass").decode("utf-16")

    def long_text(self) -> str:
        """A text in several pieces."""
        pieces = self.number()
        if not 0 <= pieces <= len(self._content):
            raise ValueError("the number of pieces is wrong")
        return "".join(self.text() for _ in range(pieces))

    def _unpacked(self, format: str, length: int) -> Any:
        found = struct.unpack_from(format, self._content, self._at)
        self._at += length
        return found[0]


def _fields(text: str) -> tuple[Field, ...]:
    return tuple(_nested(json.loads(text), ()))


def _nested(schema: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[Field]:
    for field in schema["fields"]:
        names = (*above, str(field["name"]))
        type_ = field["type"]
        nested = isinstance(type_, dict)
        yield Field(".".join(names), str(type_["type"]) if nested else str(type_), bool(field["nullable"]))
        if nested and type_["type"] == "struct":
            yield from _nested(type_, names)
