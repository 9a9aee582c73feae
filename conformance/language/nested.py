"""Shapes of lists and mappings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from conformance.core.values import literal as literal_value
from conformance.language.node import Entries, Items, Node, Scalar
from conformance.language.problem import Report
from conformance.language.shape import Definitions, Json, Shape, literal
from conformance.language.suggest import nearest, unknown


@dataclass(frozen=True)
class ListOf(Shape):
    """A list of values of one shape."""

    item: Shape
    kind: str
    at_least: int = 0
    distinct: bool = False

    @property
    def what(self) -> str:
        return self.kind

    def sound(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Items):
            hint = ": write it in [brackets]" if isinstance(node, Scalar) and node.value is not None else ""
            report.add(node, f"{literal(node)} is not {self.kind}{hint}")
            return False
        if len(node.items) < self.at_least:
            report.add(node, f"empty: it must be {self.kind}, at least one")
            return False
        sound = [self.item.check(item, report) for item in node.items]
        seen: list[Json] = []
        for item in node.items if self.distinct else ():
            if item.plain() in seen:
                report.add(item, f"{literal(item)} is there twice")
            seen.append(item.plain())
        return all(sound)

    def schema(self, definitions: Definitions) -> Json:
        found: Json = {"type": "array", "items": self.item.schema(definitions)}
        if self.distinct:
            found["uniqueItems"] = True
        return {**found, "minItems": self.at_least} if self.at_least else found


@dataclass(frozen=True)
class PairOf(Shape):
    """A list of exactly so many values, each of its own shape: ``[event_time, 10 minutes]``."""

    items: tuple[Shape, ...]
    kind: str

    @property
    def what(self) -> str:
        return self.kind

    def sound(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Items):
            return self.reject(node, report)
        if len(node.items) != len(self.items):
            report.add(node, f"{len(node.items)} value{'s' * (len(node.items) != 1)}: it must be {self.kind}")
            return False
        sound = [shape.check(item, report) for shape, item in zip(self.items, node.items, strict=True)]
        return all(sound)

    def schema(self, definitions: Definitions) -> Json:
        shapes = [shape.schema(definitions) for shape in self.items]
        return {"type": "array", "items": shapes, "minItems": len(shapes), "maxItems": len(shapes)}


@dataclass(frozen=True)
class MapOf(Shape):
    """A mapping whose keys are names that the author chooses."""

    name: Shape
    value: Shape
    kind: str
    at_least: int = 0

    @property
    def what(self) -> str:
        return self.kind

    def sound(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Entries):
            return self.reject(node, report)
        if len(node.entries) < self.at_least:
            report.add(node, f"empty: it must be {self.kind}")
            return False
        sound = [
            all([self.name.check(entry.key, report), self.value.check(entry.value, report)]) for entry in node.entries
        ]
        return all(sound)

    def schema(self, definitions: Definitions) -> Json:
        name = self.name.schema(definitions)
        found: Json = {"type": "object", "additionalProperties": self.value.schema(definitions)}
        if "pattern" in name:
            found["propertyNames"] = {"pattern": name["pattern"]}
        return {**found, "minProperties": self.at_least} if self.at_least else found


@dataclass(frozen=True)
class Key:
    """A key of a record."""

    shape: Shape
    meaning: str
    """For the author who hovers over it, and for the message where it is missing."""
    required: bool = False

    def schema(self, definitions: Definitions) -> Json:
        found = self.shape.schema(definitions)
        described = {"description": self.meaning[:1].upper() + self.meaning[1:]}
        # What stands beside a $ref is ignored in draft-07.
        return {"allOf": [found], **described} if "$ref" in found else {**found, **described}


@dataclass(frozen=True)
class Record(Shape):
    """A mapping with known keys."""

    kind: str
    keys: Mapping[str, Key]
    at_least: int = 0
    meaning: str = ""

    @property
    def what(self) -> str:
        return f"a mapping with the keys of {self.kind}: {', '.join(self.keys)}"

    def sound(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Entries):
            return self.reject(node, report)
        sound = [self._entry(entry.key, entry.value, report) for entry in node.entries]
        absent = {name: key for name, key in self.keys.items() if key.required and node.get(name) is None}
        # A key that is only misspelt is reported once. Looking for near ones takes its time, so only where one is missing.
        meant = {nearest(_word(entry.key), self.keys) for entry in node.entries} if absent else set()
        for name, key in absent.items():
            if name not in meant:
                report.add(node, f"`{name}` is missing in {self.kind}: {key.meaning}")
                sound.append(False)
        if len(node.entries) < self.at_least:
            report.add(node, f"{self.kind} is empty: it takes {', '.join(self.keys)}")
            sound.append(False)
        return all(sound)

    def _entry(self, name: Scalar, value: Node, report: Report) -> bool:
        key = self.keys.get(name.value) if isinstance(name.value, str) else None
        if key is None:
            report.add(name, unknown(f"key of {self.kind}", _word(name), self.keys))
            return False
        return key.shape.check(value, report)

    def schema(self, definitions: Definitions) -> Json:
        found: Json = {"type": "object", "additionalProperties": False}
        if self.meaning:
            found["description"] = self.meaning
        found["properties"] = {name: key.schema(definitions) for name, key in self.keys.items()}
        if required := [name for name, key in self.keys.items() if key.required]:
            found["required"] = required
        return {**found, "minProperties": self.at_least} if self.at_least else found


@dataclass(frozen=True)
class Variants(Shape):
    """A mapping that is one of several records, told apart by the one key that only that record has."""

    kind: str
    """``step``, of which each variant is one ``sort``."""
    sort: str
    """``action``."""
    records: Mapping[str, Record]
    common: Mapping[str, Key] = field(default_factory=dict)
    """Keys that every variant takes."""
    leading: bool = False
    """Whether the telling key must be the first."""
    synonyms: Mapping[str, str] = field(default_factory=dict)
    """What authors may write instead → the telling key they mean."""

    @property
    def what(self) -> str:
        return f"{_a(self.kind)}: a mapping with one of {', '.join(self.records)}"

    def sound(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Entries):
            return self.reject(node, report)
        telling = [entry.key for entry in node.entries if entry.key.value in self.records]
        if not telling:
            return self._untold(node, report)
        name = str(telling[0].value)
        for other in telling[1:]:
            if other.value not in self.records[name].keys:
                report.add(other, f"{other.value!r} beside {name!r}: one {self.sort} at a time, start another with '-'")
        if self.leading and node.entries[0].key.value != name and node.entries[0].key.value not in self.records:
            report.add(telling[0], f"{name!r} must be the first key of its {self.kind}")
        record = self.record(name)
        others = [key for key in telling[1:] if key.value not in record.keys]
        kept = Entries(node.line, node.column, tuple(entry for entry in node.entries if entry.key not in others))
        return record.check(kept, report) and not others

    def record(self, name: str) -> Record:
        variant = self.records[name]
        return Record(variant.kind, {**variant.keys, **self.common}, meaning=variant.meaning)

    def _untold(self, node: Entries, report: Report) -> bool:
        known = [*self.records, *self.common]
        strangers = [entry.key for entry in node.entries if entry.key.value not in known]
        for key in strangers[:1]:
            report.add(key, unknown(self.sort, _word(key), self.records, self.synonyms))
        if not node.entries:
            report.add(node, f"empty: it must be {self.what}")
        elif not strangers:
            report.add(node, f"{_a(self.kind)} without {_a(self.sort)}: one of {', '.join(self.records)}")
        for entry in node.entries:
            if entry.key.value in self.common:
                self.common[str(entry.key.value)].shape.check(entry.value, report)
        return False

    def schema(self, definitions: Definitions) -> Json:
        return {"oneOf": [self.record(name).schema(definitions) for name in self.records]}


@dataclass(frozen=True)
class ByKind(Shape):
    """Different shapes for a scalar, a list and a mapping; the kinds left out are not allowed."""

    kind: str
    scalar: Shape | None = None
    items: Shape | None = None
    entries: Shape | None = None

    @property
    def what(self) -> str:
        return self.kind

    def sound(self, node: Node, report: Report) -> bool:
        shape = self.scalar if isinstance(node, Scalar) else self.items if isinstance(node, Items) else self.entries
        return shape.check(node, report) if shape else self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        shapes = [shape for shape in (self.scalar, self.items, self.entries) if shape]
        return {"anyOf": [shape.schema(definitions) for shape in shapes]}


@dataclass(frozen=True)
class Named(Shape):
    """A shape that the schema defines once under a name; it may contain itself."""

    name: str
    shape: Callable[[], Shape]

    @property
    def what(self) -> str:
        return self.shape().what

    def sound(self, node: Node, report: Report) -> bool:
        return self.shape().sound(node, report)

    def schema(self, definitions: Definitions) -> Json:
        if self.name not in definitions:
            definitions[self.name] = {}
            definitions[self.name] = self.shape().schema(definitions)
        return {"$ref": f"#/definitions/{self.name}"}


def one_or_many(item: Shape, kind: str) -> Shape:
    """One value, or a list of one or more."""
    return ByKind(kind, scalar=item, items=ListOf(item, kind, at_least=1))


def nothing_in(action: str) -> Shape:
    """``{}``."""
    return _Empty(action)


@dataclass(frozen=True)
class _Empty(Shape):
    action: str

    @property
    def what(self) -> str:
        return f"{{}}: write `{self.action}: {{}}`"

    def sound(self, node: Node, report: Report) -> bool:
        return (isinstance(node, Entries) and not node.entries) or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:  # noqa: ARG002
        return {"type": "object", "maxProperties": 0}


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _word(name: Scalar) -> str:
    return name.value if isinstance(name.value, str) else literal_value(name.value)
