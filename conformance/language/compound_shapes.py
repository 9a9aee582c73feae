"""Shapes of lists and mappings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from conformance.core.data import Json
from conformance.core.values import literal as literal_value
from conformance.core.wording import counted
from conformance.language.node import Entries, Items, Node, Scalar
from conformance.language.problem import Report, nearest, unknown
from conformance.language.shape import Converted, Definitions, Shape, literal


@dataclass(frozen=True)
class ListOf(Shape):
    """A list whose items all have one shape."""

    item: Shape
    kind: str
    at_least: int = 0
    distinct: bool = False

    @property
    def expected(self) -> str:
        return self.kind

    def validate(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Items):
            hint = ": write it in [brackets]" if isinstance(node, Scalar) and node.value is not None else ""
            report.add(node, f"{literal(node)} is not {self.kind}{hint}")
            return False
        if len(node.items) < self.at_least:
            report.add(node, f"must not be empty: expected {self.kind}")
            return False
        valid = [self.item.check(item, report) for item in node.items]
        seen: list[Json] = []
        for item in node.items if self.distinct else ():
            if item.plain() in seen:
                report.add(item, f"duplicate {literal(item)}")
            seen.append(item.plain())
        return all(valid)

    def schema(self, definitions: Definitions) -> Json:
        found: Json = {"type": "array", "items": self.item.schema(definitions)}
        if self.distinct:
            found["uniqueItems"] = True
        return {**found, "minItems": self.at_least} if self.at_least else found

    def value(self, written: Json) -> tuple[Any, ...]:
        return tuple(map(self.item.value, written))


@dataclass(frozen=True)
class TupleOf(Shape):
    """A list of fixed length, each item with its own shape: ``[event_time, 10 minutes]``."""

    items: tuple[Shape, ...]
    kind: str

    @property
    def expected(self) -> str:
        return self.kind

    def validate(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Items):
            return self.reject(node, report)
        if len(node.items) != len(self.items):
            report.add(node, f"found {counted(len(node.items), 'value')}, expected {self.kind}")
            return False
        valid = [shape.check(item, report) for shape, item in zip(self.items, node.items, strict=True)]
        return all(valid)

    def schema(self, definitions: Definitions) -> Json:
        shapes = [shape.schema(definitions) for shape in self.items]
        return {"type": "array", "items": shapes, "minItems": len(shapes), "maxItems": len(shapes)}


@dataclass(frozen=True)
class MapOf(Shape):
    """A mapping whose keys the author chooses."""

    name: Shape
    item: Shape
    kind: str
    at_least: int = 0

    @property
    def expected(self) -> str:
        return self.kind

    def validate(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Entries):
            return self.reject(node, report)
        if len(node.entries) < self.at_least:
            report.add(node, f"must not be empty: expected {self.kind}")
            return False
        valid = [
            all([self.name.check(entry.key, report), self.item.check(entry.value, report)]) for entry in node.entries
        ]
        return all(valid)

    def schema(self, definitions: Definitions) -> Json:
        name = self.name.schema(definitions)
        found: Json = {"type": "object", "additionalProperties": self.item.schema(definitions)}
        if "pattern" in name:
            found["propertyNames"] = {"pattern": name["pattern"]}
        return {**found, "minProperties": self.at_least} if self.at_least else found

    def value(self, written: Json) -> dict[str, Any]:
        return {name: self.item.value(item) for name, item in written.items()}


@dataclass(frozen=True)
class Key:
    """A key of a record."""

    shape: Shape
    description: str
    """The editor's hover text, and part of the message if the key is missing."""
    required: bool = False
    field: str = ""
    """The field of the model that holds its value, if it has another name."""

    def schema(self, definitions: Definitions) -> Json:
        found = self.shape.schema(definitions)
        described = {"description": self.description[:1].upper() + self.description[1:]}
        # Draft-07 ignores everything next to a $ref.
        return {"allOf": [found], **described} if "$ref" in found else {**found, **described}


@dataclass(frozen=True)
class Record(Shape):
    """A mapping with known keys."""

    kind: str
    keys: Mapping[str, Key]
    at_least: int = 0
    description: str = ""

    @property
    def expected(self) -> str:
        return f"a mapping with the keys of {self.kind}: {', '.join(self.keys)}"

    @cached_property
    def _required(self) -> dict[str, Key]:
        return {name: key for name, key in self.keys.items() if key.required}

    def validate(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Entries):
            return self.reject(node, report)
        valid = [self._entry(entry.key, entry.value, report) for entry in node.entries]
        absent = {name: key for name, key in self._required.items() if node.get(name) is None}
        # Report a misspelt key once, not as missing too. Finding similar names is slow, so only if a key is missing.
        meant = {nearest(_word(entry.key), self.keys) for entry in node.entries} if absent else set()
        for name, key in absent.items():
            if name not in meant:
                report.add(node, f"{self.kind} needs the key `{name}`: {key.description}")
                valid.append(False)
        if len(node.entries) < self.at_least:
            report.add(node, f"{self.kind} must not be empty: expected at least one of {', '.join(self.keys)}")
            valid.append(False)
        return all(valid)

    def _entry(self, name: Scalar, value: Node, report: Report) -> bool:
        key = self.keys.get(name.value) if isinstance(name.value, str) else None
        if key is None:
            report.add(name, unknown("key", _word(name), self.keys, where=f" in {self.kind}"))
            return False
        return key.shape.check(value, report)

    def schema(self, definitions: Definitions) -> Json:
        found: Json = {"type": "object", "additionalProperties": False}
        if self.description:
            found["description"] = self.description
        found["properties"] = {name: key.schema(definitions) for name, key in self.keys.items()}
        if required := [name for name, key in self.keys.items() if key.required]:
            found["required"] = required
        return {**found, "minProperties": self.at_least} if self.at_least else found

    def value(self, written: Json) -> dict[str, Any]:
        """Field of the model → its value, for the keys that are present."""
        return {self.keys[name].field or name: self.keys[name].shape.value(item) for name, item in written.items()}


@dataclass(frozen=True)
class Alternatives(Shape):
    """A mapping that is one of several records, identified by the one key that only that record has."""

    kind: str
    """``step``, where every alternative is an ``action``."""
    alternative: str
    """``action``."""
    records: Mapping[str, Record]
    common: Mapping[str, Key] = field(default_factory=dict)
    """Keys that every alternative takes."""
    identified_by_first_key: bool = False
    listed: bool = True
    """Whether it is an item of a list."""
    synonyms: Mapping[str, str] = field(default_factory=dict)
    """What authors may write instead → the key they mean."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """What authors may look for here → how to say it otherwise."""

    @property
    def expected(self) -> str:
        return f"{_a(self.kind)}: a mapping with one of {', '.join(self.records)}"

    def validate(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Entries):
            return self.reject(node, report)
        identifying = [entry.key for entry in node.entries if entry.key.value in self.records]
        if not identifying:
            return self._unidentified(node, report)
        name = str(identifying[0].value)
        record = self.record(name)
        others = [key for key in identifying[1:] if key.value not in self.records[name].keys]
        for other in others:
            hint = "; start another list item with '-'" if self.listed else ""
            report.add(other, f"{other.value!r} after {name!r}: only one {self.alternative} is allowed here{hint}")
        if self.identified_by_first_key and node.entries[0].key.value not in self.records:
            report.add(identifying[0], f"{name!r} must be the first key of its {self.kind}")
        kept = Entries(node.line, node.column, tuple(entry for entry in node.entries if entry.key not in others))
        return record.check(kept, report) and not others

    @cached_property
    def _with_common(self) -> dict[str, Record]:
        return {
            name: Record(found.kind, {**found.keys, **self.common}, description=found.description)
            for name, found in self.records.items()
        }

    def record(self, name: str) -> Record:
        return self._with_common[name]

    def _unidentified(self, node: Entries, report: Report) -> bool:
        known = [*self.records, *self.common]
        strangers = [entry.key for entry in node.entries if entry.key.value not in known]
        for key in strangers[:1]:
            word = _word(key)
            message = unknown(self.alternative, word, self.records, self.synonyms)
            if word in self.elsewhere:
                message = f"unknown {self.alternative} {word!r}: {self.elsewhere[word]}"
            report.add(key, message)
        if not node.entries:
            report.add(node, f"must not be empty: expected {self.expected}")
        elif not strangers:
            report.add(node, f"{_a(self.kind)} needs {_a(self.alternative)}: one of {', '.join(self.records)}")
        for entry in node.entries:
            if entry.key.value in self.common:
                self.common[str(entry.key.value)].shape.check(entry.value, report)
        return False

    def schema(self, definitions: Definitions) -> Json:
        return {"oneOf": [self.record(name).schema(definitions) for name in self.records]}

    def value(self, written: Json) -> dict[str, Any]:
        return self.record(next(name for name in written if name in self.records)).value(written)


@dataclass(frozen=True)
class ByKind(Shape):
    """Different shapes for a scalar, a list and a mapping; a kind without a shape is not allowed."""

    kind: str
    scalar: Shape | None = None
    items: Shape | None = None
    entries: Shape | None = None

    @property
    def expected(self) -> str:
        return self.kind

    def validate(self, node: Node, report: Report) -> bool:
        shape = self.scalar if isinstance(node, Scalar) else self.items if isinstance(node, Items) else self.entries
        return shape.check(node, report) if shape else self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        shapes = [shape for shape in (self.scalar, self.items, self.entries) if shape]
        return {"anyOf": [shape.schema(definitions) for shape in shapes]}

    def value(self, written: Json) -> Any:
        mapping, listed = isinstance(written, Mapping), isinstance(written, list | tuple)
        shape = self.entries if mapping else self.items if listed else self.scalar
        assert shape is not None, "only valid values are converted"
        return shape.value(written)


@dataclass(frozen=True)
class Definition(Shape):
    """A shape that the JSON Schema defines once under a name; it may contain itself."""

    name: str
    shape: Callable[[], Shape]

    @property
    def expected(self) -> str:
        return self.shape().expected

    def validate(self, node: Node, report: Report) -> bool:
        return self.shape().validate(node, report)

    def schema(self, definitions: Definitions) -> Json:
        if self.name not in definitions:
            definitions[self.name] = {}
            definitions[self.name] = self.shape().schema(definitions)
        return {"$ref": f"#/definitions/{self.name}"}

    def value(self, written: Json) -> Any:
        return self.shape().value(written)


@dataclass(frozen=True)
class EmptyMapping(Shape):
    """``{}``, the value of a key that takes no arguments."""

    key: str

    @property
    def expected(self) -> str:
        return f"{{}}: write `{self.key}: {{}}`"

    def validate(self, node: Node, report: Report) -> bool:
        return (isinstance(node, Entries) and not node.entries) or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:  # noqa: ARG002
        return {"type": "object", "maxProperties": 0}


def one_or_many(item: Shape, kind: str) -> Shape:
    """One value, or a list of at least one; always a tuple in the model."""
    return ByKind(kind, scalar=Converted(item, lambda one: (one,)), items=ListOf(item, kind, at_least=1))


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _word(name: Scalar) -> str:
    return name.value if isinstance(name.value, str) else literal_value(name.value)
