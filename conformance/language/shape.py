# ruff: noqa: ARG002 - not every shape needs the definitions of others
"""Shapes: each states once what a place in a file may hold.

The reader checks nodes with it, the JSON Schema is generated from it, and ``value`` turns what was written into what the
model holds. The shapes of single values come first, then those of lists and mappings.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

from conformance.core.data import Json
from conformance.core.patterns import NotAPattern, check
from conformance.core.values import INSTANT_PATTERN, NotAValue, instant_ms
from conformance.core.values import literal as literal_value
from conformance.core.wording import counted, nearest, unknown
from conformance.language.source import Entries, Items, Node, ProblemReport, Scalar

Definitions: TypeAlias = dict[str, Json]
"""Name → schema, filled while a schema is generated; what is already in it is only referenced."""


class Shape(ABC):
    """What a place in a file may hold."""

    kind: str

    @property
    def expected(self) -> str:
        """What may stand here, in words: "… is not <expected>"."""
        return self.kind

    @abstractmethod
    def validate(self, node: Node, report: ProblemReport) -> bool:
        """Report every problem in the node; True if there is none."""

    @abstractmethod
    def schema(self, definitions: Definitions) -> Json:
        """Return the shape as JSON Schema draft-07."""

    def value(self, written: Json) -> Any:
        """Return what the model holds for a valid value; the value itself unless the shape converts it."""
        return written

    def check(self, node: Node, report: ProblemReport) -> bool:
        """Report every problem in the node, and mark an invalid node as such in the report."""
        valid = self.validate(node, report)
        if not valid:
            report.mark_invalid(node)
        return valid

    def reject(self, node: Node, report: ProblemReport, message: str | None = None) -> bool:
        """Report that the node is not what is expected here, in other words if a message is given; always False."""
        report.add(node, message or f"{literal(node)} is not {self.expected}")
        return False


def literal(node: Node) -> str:
    """Return a scalar as YAML writes it, truncated if long; "a list" or "a mapping" for the others."""
    if isinstance(node, Scalar):
        return literal_value(node.value)
    return "a list" if isinstance(node, Items) else "a mapping"


@dataclass(frozen=True)
class Wrapped(Shape):
    """A shape that is another one but for what a subclass changes."""

    shape: Shape

    @property
    def expected(self) -> str:
        return self.shape.expected

    def validate(self, node: Node, report: ProblemReport) -> bool:
        return self.shape.validate(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return self.shape.schema(definitions)

    def value(self, written: Json) -> Any:
        return self.shape.value(written)


@dataclass(frozen=True)
class Converted(Wrapped):
    """A shape whose value in the model is computed by a function."""

    convert: Callable[[Any], Any]

    def value(self, written: Json) -> Any:
        return self.convert(super().value(written))


@dataclass(frozen=True)
class Text(Shape):
    """Text, optionally matching ``pattern`` (a regular expression that ECMA 262 accepts as well)."""

    kind: str = "text"
    pattern: str | None = None
    examine: Callable[[str], str | None] | None = None
    """Says what else is wrong with the text."""
    empty: bool = False
    """Whether it may be empty, which some cases use to test that Spark rejects it."""

    def validate(self, node: Node, report: ProblemReport) -> bool:
        text = node.value if isinstance(node, Scalar) else None
        if not isinstance(text, str):
            hint = ": quote it" if text is not None else ""
            return self.reject(node, report, f"{literal(node)} is not {self.kind}{hint}")
        if not text.strip() and not self.empty:
            return self.reject(node, report, f"must not be empty: expected {self.kind}")
        if self.pattern is not None and not re.search(self.pattern, text):
            return self.reject(node, report)
        wrong = self.examine(text) if self.examine else None
        return wrong is None or self.reject(node, report, wrong)

    def schema(self, definitions: Definitions) -> Json:
        if self.pattern is not None:
            return {"type": "string", "pattern": self.pattern}
        return {"type": "string"} if self.empty else {"type": "string", "minLength": 1}


def _wrong_pattern(text: str) -> str | None:
    try:
        check(text)
    except NotAPattern as error:
        return f"{literal_value(text)} is not a regular expression: {error}"
    return None


REGULAR_EXPRESSION = Text("a regular expression", examine=_wrong_pattern)
"""The syntax is that of Python, with which expectations are compared."""


@dataclass(frozen=True)
class Choice(Shape):
    name: str
    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.words)}"

    def validate(self, node: Node, report: ProblemReport) -> bool:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            message = f"{literal(node)} is not a valid {self.name}: expected {self.expected}"
            return self.reject(node, report, message)
        return node.value in self.words or self.reject(node, report, unknown(self.name, node.value, self.words))

    def schema(self, definitions: Definitions) -> Json:
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class ValueShape(Shape):
    kind: str
    accepts: Callable[[Json], bool]
    json_schema: Mapping[str, Json]

    def validate(self, node: Node, report: ProblemReport) -> bool:
        return (isinstance(node, Scalar) and self.accepts(node.value)) or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {**self.json_schema}


def count(*, nullable: bool = False) -> ValueShape:
    """Make the shape of a whole number from 0, or null if ``nullable``."""
    return ValueShape(
        "a count (0, 1, 2, …) or null" if nullable else "a count: 0, 1, 2, …",
        lambda value: (nullable and value is None) or (type(value) is int and value >= 0),
        {"type": ["integer", "null"] if nullable else "integer", "minimum": 0},
    )


def integer(minimum: int = -(2**63), maximum: int = 2**63 - 1, *, nullable: bool = False) -> ValueShape:
    """Make the shape of a 64-bit whole number from ``minimum`` to ``maximum``, or null if ``nullable``."""
    kind = "a 64-bit whole number" if minimum == -(2**63) else f"a whole number of at least {minimum}"
    kind = kind if maximum == 2**63 - 1 else f"a whole number from {minimum} to {maximum}"
    return ValueShape(
        f"{kind}, or null" if nullable else kind,
        lambda value: (nullable and value is None) or (type(value) is int and minimum <= value <= maximum),
        {"type": ["integer", "null"] if nullable else "integer", "maximum": maximum, "minimum": minimum},
    )


def constant(value: Json) -> ValueShape:
    """Make the shape of a single value: true, false or null."""
    return ValueShape(f"{literal_value(value)}, the only value allowed here", lambda it: it is value, {"const": value})


FRACTION = ValueShape(
    "a fraction: a number above 0 and at most 1",
    lambda value: type(value) in (int, float, Decimal) and 0 < Decimal(str(value)) <= 1,
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
)
BOOLEAN = ValueShape("true or false", lambda value: isinstance(value, bool), {"type": "boolean"})
CONF_VALUE = Converted(
    ValueShape(
        "a conf value: text, a number, true or false",
        lambda value: isinstance(value, str | int | float | Decimal),
        {"type": ["string", "number", "boolean"]},
    ),
    lambda written: str(written).lower() if isinstance(written, bool) else str(written),
)
"""The value of a Spark conf; Spark receives numbers and booleans as text."""


@dataclass(frozen=True)
class Instant(Shape):
    """A watermark or an event time in any of the three notations, or null if ``nullable``."""

    nullable: bool = False
    kind = "an instant"

    def validate(self, node: Node, report: ProblemReport) -> bool:
        value = node.plain()
        try:
            return (value is None and self.nullable) or instant_ms(value) is not None
        except NotAValue as wrong:
            return self.reject(node, report, str(wrong))

    def schema(self, definitions: Definitions) -> Json:
        notations: list[Json] = [{"type": "string", "pattern": INSTANT_PATTERN}, {"type": "number"}]
        return {"anyOf": [*notations, {"type": "null"}] if self.nullable else notations}


class AnyValue(Shape):
    kind = "a value"

    def validate(self, node: Node, report: ProblemReport) -> bool:
        return True

    def schema(self, definitions: Definitions) -> Json:
        return {}


@dataclass(frozen=True)
class Nullable(Wrapped):
    @property
    def expected(self) -> str:
        return f"{self.shape.expected}, or null"

    def validate(self, node: Node, report: ProblemReport) -> bool:
        return (isinstance(node, Scalar) and node.value is None) or self.shape.check(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {"anyOf": [self.shape.schema(definitions), {"type": "null"}]}

    def value(self, written: Json) -> Any:
        return None if written is None else super().value(written)


@dataclass(frozen=True)
class ListOf(Shape):
    item: Shape
    kind: str
    at_least: int = 0
    distinct: bool = False

    def validate(self, node: Node, report: ProblemReport) -> bool:
        if not isinstance(node, Items):
            hint = ": write it in [brackets]" if isinstance(node, Scalar) and node.value is not None else ""
            return self.reject(node, report, f"{literal(node)} is not {self.kind}{hint}")
        if len(node.items) < self.at_least:
            return self.reject(node, report, f"must not be empty: expected {self.kind}")
        valid = [self.item.check(item, report) for item in node.items]
        texts: set[str] = set()
        for item in node.items if self.distinct else ():
            text = json.dumps(item.plain(), sort_keys=True, default=str)
            if text in texts:
                report.add(item, f"duplicate {literal(item)}")
            texts.add(text)
        return all(valid)

    def schema(self, definitions: Definitions) -> Json:
        schema: Json = {"type": "array", "items": self.item.schema(definitions)}
        if self.distinct:
            schema["uniqueItems"] = True
        return {**schema, "minItems": self.at_least} if self.at_least else schema

    def value(self, written: Json) -> tuple[Any, ...]:
        return tuple(map(self.item.value, written))


@dataclass(frozen=True)
class TupleOf(Shape):
    """A list of fixed length, each item with its own shape: ``[event_time, 10 minutes]``."""

    items: tuple[Shape, ...]
    kind: str

    def validate(self, node: Node, report: ProblemReport) -> bool:
        if not isinstance(node, Items):
            return self.reject(node, report)
        if len(node.items) != len(self.items):
            return self.reject(node, report, f"found {counted(len(node.items), 'value')}, expected {self.kind}")
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

    def validate(self, node: Node, report: ProblemReport) -> bool:
        if not isinstance(node, Entries):
            return self.reject(node, report)
        if len(node.entries) < self.at_least:
            return self.reject(node, report, f"must not be empty: expected {self.kind}")
        names = [self.name.check(entry.key, report) for entry in node.entries]
        return all([self.item.check(entry.value, report) for entry in node.entries] + names)

    def schema(self, definitions: Definitions) -> Json:
        name = self.name.schema(definitions)
        schema: Json = {"type": "object", "additionalProperties": self.item.schema(definitions)}
        if "pattern" in name:
            schema["propertyNames"] = {"pattern": name["pattern"]}
        return {**schema, "minProperties": self.at_least} if self.at_least else schema

    def value(self, written: Json) -> dict[str, Any]:
        return {name: self.item.value(item) for name, item in written.items()}


@dataclass(frozen=True)
class Key:
    shape: Shape
    description: str
    """The editor's hover text, and part of the message if the key is missing."""
    required: bool = False
    field: str = ""
    """The field of the model that holds its value, if it has another name."""

    def schema(self, definitions: Definitions) -> Json:
        schema = self.shape.schema(definitions)
        described = {"description": self.description[:1].upper() + self.description[1:]}
        # Draft-07 ignores everything next to a $ref.
        return {"allOf": [schema], **described} if "$ref" in schema else {**schema, **described}


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

    def validate(self, node: Node, report: ProblemReport) -> bool:
        if not isinstance(node, Entries):
            return self.reject(node, report)
        valid = [self._entry(entry.key, entry.value, report) for entry in node.entries]
        absent = {name: key for name, key in self.keys.items() if key.required and node.get(name) is None}
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

    def _entry(self, name: Scalar, value: Node, report: ProblemReport) -> bool:
        key = self.keys.get(name.value) if isinstance(name.value, str) else None
        if key is None:
            return self.reject(name, report, unknown("key", _word(name), self.keys, where=f" in {self.kind}"))
        return key.shape.check(value, report)

    def schema(self, definitions: Definitions) -> Json:
        schema: Json = {"type": "object", "additionalProperties": False}
        if self.description:
            schema["description"] = self.description
        schema["properties"] = {name: key.schema(definitions) for name, key in self.keys.items()}
        if required := [name for name, key in self.keys.items() if key.required]:
            schema["required"] = required
        return {**schema, "minProperties": self.at_least} if self.at_least else schema

    def value(self, written: Json) -> dict[str, Any]:
        """Return the values by the field of the model, for the keys that are present."""
        return {self.keys[name].field or name: self.keys[name].shape.value(item) for name, item in written.items()}


@dataclass(frozen=True)
class Alternatives(Shape):
    """A mapping that is one of several records, identified by the one key that only that record has."""

    kind: str
    """``step``, where every alternative is an ``action``."""
    alternative: str
    """What a record is to the author: ``action``."""
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

    def validate(self, node: Node, report: ProblemReport) -> bool:
        if not isinstance(node, Entries):
            return self.reject(node, report)
        identifying = [entry.key for entry in node.entries if entry.key.value in self.records]
        if not identifying:
            return self._unidentified(node, report)
        name = str(identifying[0].value)
        others = [key for key in identifying[1:] if key.value not in self.records[name].keys]
        for other in others:
            hint = "; start another list item with '-'" if self.listed else ""
            report.add(other, f"{other.value!r} after {name!r}: only one {self.alternative} is allowed here{hint}")
        if self.identified_by_first_key and node.entries[0].key.value not in self.records:
            report.add(identifying[0], f"{name!r} must be the first key of its {self.kind}")
        kept = Entries(node.line, node.column, tuple(entry for entry in node.entries if entry.key not in others))
        return self.whole[name].check(kept, report) and not others

    @cached_property
    def whole(self) -> Mapping[str, Record]:
        """The records with the common keys."""
        return {name: replace(record, keys={**record.keys, **self.common}) for name, record in self.records.items()}

    def _unidentified(self, node: Entries, report: ProblemReport) -> bool:
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
        return {"oneOf": [record.schema(definitions) for record in self.whole.values()]}

    def value(self, written: Json) -> dict[str, Any]:
        return self.whole[next(name for name in written if name in self.records)].value(written)


@dataclass(frozen=True)
class ByKind(Shape):
    """Different shapes for a scalar, a list and a mapping; a kind without a shape is not allowed."""

    kind: str
    scalar: Shape | None = None
    items: Shape | None = None
    entries: Shape | None = None

    def validate(self, node: Node, report: ProblemReport) -> bool:
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
class Definition(Wrapped):
    """A shape that the JSON Schema defines once under a name; it may contain itself."""

    name: str

    def schema(self, definitions: Definitions) -> Json:
        if self.name not in definitions:
            definitions[self.name] = {}
            definitions[self.name] = super().schema(definitions)
        return {"$ref": f"#/definitions/{self.name}"}


@dataclass(frozen=True)
class EmptyMapping(Shape):
    """``{}``, the value of a key that takes no arguments."""

    key: str

    @property
    def expected(self) -> str:
        return f"{{}}: write `{self.key}: {{}}`"

    def validate(self, node: Node, report: ProblemReport) -> bool:
        return (isinstance(node, Entries) and not node.entries) or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {"type": "object", "maxProperties": 0}


def one_or_many(item: Shape, kind: str) -> Shape:
    """Make the shape of a value, or a list of at least one; always a tuple in the model."""
    return ByKind(kind, scalar=Converted(item, lambda value: (value,)), items=ListOf(item, kind, at_least=1))


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _word(name: Scalar) -> str:
    return name.value if isinstance(name.value, str) else literal_value(name.value)
