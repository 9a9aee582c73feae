# ruff: noqa: ARG002 - not every shape needs the definitions of others
"""Shapes: each says once what may stand in a place, for the reader and for the JSON Schema alike.

``check`` reports what is not in shape, in all of a node at once; ``schema`` is the same rule as JSON Schema draft-07.
This module holds the shapes of single values; ``nested`` those of lists and mappings.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from conformance.core.values import INSTANT_PATTERN, NotAValue, instant_ms
from conformance.core.values import literal as literal_value
from conformance.language.node import Items, Node, Scalar
from conformance.language.problem import Report
from conformance.language.suggest import unknown

Json: TypeAlias = Any
Definitions: TypeAlias = dict[str, Json]
"""Name → schema, filled while a schema is drawn up; what is there already is only referred to."""


class Shape(ABC):
    """What may stand in one place."""

    @property
    @abstractmethod
    def what(self) -> str:
        """In words, for "… is not <what>"."""

    @abstractmethod
    def sound(self, node: Node, report: Report) -> bool:
        """Report all that is not in shape; True where nothing is."""

    @abstractmethod
    def schema(self, definitions: Definitions) -> Json:
        """As JSON Schema."""

    def check(self, node: Node, report: Report) -> bool:
        """As ``sound``; the report remembers the nodes that are not."""
        found = self.sound(node, report)
        if not found:
            report.spoil(node)
        return found

    def reject(self, node: Node, report: Report) -> bool:
        report.add(node, f"{literal(node)} is not {self.what}")
        return False


def literal(node: Node) -> str:
    """A value as it may stand in the YAML, cut where it is long; lists and mappings by kind."""
    if isinstance(node, Scalar):
        return literal_value(node.value)
    return "a list" if isinstance(node, Items) else "a mapping"


@dataclass(frozen=True)
class Text(Shape):
    """Text; where ``pattern`` is given, of that form (a regular expression that ECMA 262 reads as well)."""

    kind: str = "text"
    pattern: str | None = None
    examine: Callable[[str], str | None] | None = None
    """Says what else is wrong with the text."""
    empty: bool = False
    """Whether it may be empty: where it is for Spark to refuse."""

    @property
    def what(self) -> str:
        return self.kind

    def sound(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Scalar):
            return self.reject(node, report)
        if not isinstance(node.value, str):
            hint = ": quote it" if node.value is not None else ""
            report.add(node, f"{literal(node)} is not {self.kind}{hint}")
            return False
        if not node.value.strip() and not self.empty:
            report.add(node, f"empty: it must be {self.kind}")
            return False
        if self.pattern is not None and not re.search(self.pattern, node.value):
            return self.reject(node, report)
        wrong = self.examine(node.value) if self.examine else None
        if wrong is not None:
            report.add(node, wrong)
        return wrong is None

    def schema(self, definitions: Definitions) -> Json:
        if self.pattern is not None:
            return {"type": "string", "pattern": self.pattern}
        return {"type": "string"} if self.empty else {"type": "string", "minLength": 1}


def regular_expression() -> Text:
    """A regular expression as Python reads it, which is where expectations are compared."""

    def examine(text: str) -> str | None:
        try:
            re.compile(text)
        except re.error as error:
            return f"{literal_value(text)} is not a regular expression: {error}"
        return None

    return Text("a regular expression", examine=examine)


@dataclass(frozen=True)
class Choice(Shape):
    """One of some words."""

    name: str
    words: tuple[str, ...]

    @property
    def what(self) -> str:
        return f"one of {', '.join(self.words)}"

    def sound(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            report.add(node, f"{literal(node)} is no {self.name}: it must be {self.what}")
            return False
        if node.value not in self.words:
            report.add(node, unknown(self.name, node.value, self.words))
            return False
        return True

    def schema(self, definitions: Definitions) -> Json:
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class Count(Shape):
    """A whole number from 0 up; where ``nullable``, or null."""

    nullable: bool = False

    @property
    def what(self) -> str:
        return "a count (0, 1, 2, …) or null" if self.nullable else "a count: 0, 1, 2, …"

    def sound(self, node: Node, report: Report) -> bool:
        value = node.value if isinstance(node, Scalar) else ""
        if value is None and self.nullable:
            return True
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            return self.reject(node, report)
        return True

    def schema(self, definitions: Definitions) -> Json:
        return {"type": ["integer", "null"] if self.nullable else "integer", "minimum": 0}


@dataclass(frozen=True)
class Whole(Shape):
    """A whole number of 64 bits, from ``least`` up; where ``nullable``, or null."""

    least: int = -(2**63)
    nullable: bool = False

    @property
    def what(self) -> str:
        kind = "a whole number of 64 bits" if self.least < 0 else f"a whole number from {self.least} up"
        return f"{kind}, or null" if self.nullable else kind

    def sound(self, node: Node, report: Report) -> bool:
        value = node.value if isinstance(node, Scalar) else ""
        if value is None and self.nullable:
            return True
        whole = isinstance(value, int) and not isinstance(value, bool) and self.least <= value < 2**63
        return whole or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        found: Json = {"type": ["integer", "null"] if self.nullable else "integer", "maximum": 2**63 - 1}
        return {**found, "minimum": self.least}


@dataclass(frozen=True)
class Share(Shape):
    """A number above 0 and at most 1."""

    @property
    def what(self) -> str:
        return "a share: a number above 0 and at most 1"

    def sound(self, node: Node, report: Report) -> bool:
        value = node.value if isinstance(node, Scalar) else None
        number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        return (number and 0 < Decimal(str(value)) <= 1) or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {"type": "number", "exclusiveMinimum": 0, "maximum": 1}


@dataclass(frozen=True)
class Flag(Shape):
    """true or false."""

    @property
    def what(self) -> str:
        return "true or false"

    def sound(self, node: Node, report: Report) -> bool:
        return (isinstance(node, Scalar) and isinstance(node.value, bool)) or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Only(Shape):
    """One value and no other."""

    value: Json

    @property
    def what(self) -> str:
        return f"{literal_value(self.value)}, the only value it takes"

    def sound(self, node: Node, report: Report) -> bool:
        return (isinstance(node, Scalar) and node.value is self.value) or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {"const": self.value}


@dataclass(frozen=True)
class Instant(Shape):
    """A watermark or an event time, in any of the three notations; where ``nullable``, or null."""

    nullable: bool = False

    @property
    def what(self) -> str:
        return "an instant"

    def sound(self, node: Node, report: Report) -> bool:
        value = node.value if isinstance(node, Scalar) else node.plain()
        if value is None and self.nullable:
            return True
        try:
            instant_ms(value)
        except NotAValue as wrong:
            report.add(node, str(wrong))
            return False
        return True

    def schema(self, definitions: Definitions) -> Json:
        notations: list[Json] = [{"type": "string", "pattern": INSTANT_PATTERN}, {"type": "number"}]
        return {"anyOf": [*notations, {"type": "null"}] if self.nullable else notations}


@dataclass(frozen=True)
class Setting(Shape):
    """The value of a conf: text, or a number or boolean that reaches Spark as text."""

    @property
    def what(self) -> str:
        return "the value of a conf: text, a number, true or false"

    def sound(self, node: Node, report: Report) -> bool:
        scalar = isinstance(node, Scalar) and isinstance(node.value, str | int | float | Decimal | bool)
        return scalar or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {"type": ["string", "number", "boolean"]}


@dataclass(frozen=True)
class Anything(Shape):
    """Whatever JSON can say."""

    @property
    def what(self) -> str:
        return "a value"

    def sound(self, node: Node, report: Report) -> bool:
        return True

    def schema(self, definitions: Definitions) -> Json:
        return {}


@dataclass(frozen=True)
class Nullable(Shape):
    """A shape, or null."""

    shape: Shape

    @property
    def what(self) -> str:
        return f"{self.shape.what}, or null"

    def sound(self, node: Node, report: Report) -> bool:
        return (isinstance(node, Scalar) and node.value is None) or self.shape.check(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {"anyOf": [self.shape.schema(definitions), {"type": "null"}]}
