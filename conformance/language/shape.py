# ruff: noqa: ARG002 - not every shape needs the definitions of others
"""Shapes: each states once what a place in a file may hold.

The reader checks nodes with it, the JSON Schema is generated from it, and ``value`` turns what was written into what the
model holds. This module has the shapes of single values; ``compound_shapes`` those of lists and mappings.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from conformance.core.data import Json
from conformance.core.patterns import NotAPattern, check
from conformance.core.values import INSTANT_PATTERN, NotAValue, instant_ms
from conformance.core.values import literal as literal_value
from conformance.language.node import Items, Node, Scalar
from conformance.language.problem import Report, unknown

Definitions: TypeAlias = dict[str, Json]
"""Name → schema, filled while a schema is generated; what is already in it is only referenced."""


class Shape(ABC):
    """What one place in a file may hold."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """In words, for "… is not <expected>"."""

    @abstractmethod
    def validate(self, node: Node, report: Report) -> bool:
        """Report every problem in the node; True if there is none."""

    @abstractmethod
    def schema(self, definitions: Definitions) -> Json:
        """As JSON Schema draft-07."""

    def value(self, written: Json) -> Any:
        """What the model holds for a valid value; the value itself unless the shape converts it."""
        return written

    def check(self, node: Node, report: Report) -> bool:
        """``validate``, and mark an invalid node as such in the report."""
        valid = self.validate(node, report)
        if not valid:
            report.mark_invalid(node)
        return valid

    def reject(self, node: Node, report: Report) -> bool:
        report.add(node, f"{literal(node)} is not {self.expected}")
        return False


def literal(node: Node) -> str:
    """A scalar as YAML writes it, truncated if long; "a list" or "a mapping" for the others."""
    if isinstance(node, Scalar):
        return literal_value(node.value)
    return "a list" if isinstance(node, Items) else "a mapping"


@dataclass(frozen=True)
class Converted(Shape):
    """A shape whose value in the model is computed by a function."""

    shape: Shape
    convert: Callable[[Any], Any]

    @property
    def expected(self) -> str:
        return self.shape.expected

    def validate(self, node: Node, report: Report) -> bool:
        return self.shape.validate(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return self.shape.schema(definitions)

    def value(self, written: Json) -> Any:
        return self.convert(self.shape.value(written))


@dataclass(frozen=True)
class Text(Shape):
    """Text, optionally matching ``pattern`` (a regular expression that ECMA 262 accepts as well)."""

    kind: str = "text"
    pattern: str | None = None
    examine: Callable[[str], str | None] | None = None
    """Returns what else is wrong with the text."""
    empty: bool = False
    """Whether it may be empty, which some cases use to test that Spark rejects it."""

    @property
    def expected(self) -> str:
        return self.kind

    def validate(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Scalar):
            return self.reject(node, report)
        if not isinstance(node.value, str):
            hint = ": quote it" if node.value is not None else ""
            report.add(node, f"{literal(node)} is not {self.kind}{hint}")
            return False
        if not node.value.strip() and not self.empty:
            report.add(node, f"must not be empty: expected {self.kind}")
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
    """A regular expression in Python's syntax, with which expectations are compared."""

    def examine(text: str) -> str | None:
        try:
            check(text)
        except NotAPattern as error:
            return f"{literal_value(text)} is not a regular expression: {error}"
        return None

    return Text("a regular expression", examine=examine)


@dataclass(frozen=True)
class Choice(Shape):
    """One of several words."""

    name: str
    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.words)}"

    def validate(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            report.add(node, f"{literal(node)} is not a valid {self.name}: expected {self.expected}")
            return False
        if node.value not in self.words:
            report.add(node, unknown(self.name, node.value, self.words))
            return False
        return True

    def schema(self, definitions: Definitions) -> Json:
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class Count(Shape):
    """A whole number from 0, or null if ``nullable``."""

    nullable: bool = False

    @property
    def expected(self) -> str:
        return "a count (0, 1, 2, …) or null" if self.nullable else "a count: 0, 1, 2, …"

    def validate(self, node: Node, report: Report) -> bool:
        value = node.value if isinstance(node, Scalar) else ""
        if value is None and self.nullable:
            return True
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            return self.reject(node, report)
        return True

    def schema(self, definitions: Definitions) -> Json:
        return {"type": ["integer", "null"] if self.nullable else "integer", "minimum": 0}


@dataclass(frozen=True)
class Integer(Shape):
    """A 64-bit whole number from ``minimum``, or null if ``nullable``."""

    minimum: int = -(2**63)
    nullable: bool = False

    @property
    def expected(self) -> str:
        kind = "a 64-bit whole number" if self.minimum < 0 else f"a whole number of at least {self.minimum}"
        return f"{kind}, or null" if self.nullable else kind

    def validate(self, node: Node, report: Report) -> bool:
        value = node.value if isinstance(node, Scalar) else ""
        if value is None and self.nullable:
            return True
        whole = isinstance(value, int) and not isinstance(value, bool) and self.minimum <= value < 2**63
        return whole or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        found: Json = {"type": ["integer", "null"] if self.nullable else "integer", "maximum": 2**63 - 1}
        return {**found, "minimum": self.minimum}


@dataclass(frozen=True)
class Fraction(Shape):
    """A number above 0 and at most 1."""

    @property
    def expected(self) -> str:
        return "a fraction: a number above 0 and at most 1"

    def validate(self, node: Node, report: Report) -> bool:
        value = node.value if isinstance(node, Scalar) else None
        number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        return (number and 0 < Decimal(str(value)) <= 1) or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {"type": "number", "exclusiveMinimum": 0, "maximum": 1}


@dataclass(frozen=True)
class Boolean(Shape):
    @property
    def expected(self) -> str:
        return "true or false"

    def validate(self, node: Node, report: Report) -> bool:
        return (isinstance(node, Scalar) and isinstance(node.value, bool)) or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Constant(Shape):
    """Exactly one value."""

    constant: Json

    @property
    def expected(self) -> str:
        return f"{literal_value(self.constant)}, the only value allowed here"

    def validate(self, node: Node, report: Report) -> bool:
        return (isinstance(node, Scalar) and node.value is self.constant) or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {"const": self.constant}


@dataclass(frozen=True)
class Instant(Shape):
    """A watermark or an event time in any of the three notations, or null if ``nullable``."""

    nullable: bool = False

    @property
    def expected(self) -> str:
        return "an instant"

    def validate(self, node: Node, report: Report) -> bool:
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
class ConfValue(Shape):
    """The value of a Spark conf: text, or a number or boolean, which Spark receives as text."""

    @property
    def expected(self) -> str:
        return "a conf value: text, a number, true or false"

    def validate(self, node: Node, report: Report) -> bool:
        scalar = isinstance(node, Scalar) and isinstance(node.value, str | int | float | Decimal | bool)
        return scalar or self.reject(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {"type": ["string", "number", "boolean"]}

    def value(self, written: Json) -> str:
        return str(written).lower() if isinstance(written, bool) else str(written)


@dataclass(frozen=True)
class AnyValue(Shape):
    """Any JSON value."""

    @property
    def expected(self) -> str:
        return "a value"

    def validate(self, node: Node, report: Report) -> bool:
        return True

    def schema(self, definitions: Definitions) -> Json:
        return {}


@dataclass(frozen=True)
class Nullable(Shape):
    """A shape, or null."""

    shape: Shape

    @property
    def expected(self) -> str:
        return f"{self.shape.expected}, or null"

    def validate(self, node: Node, report: Report) -> bool:
        return (isinstance(node, Scalar) and node.value is None) or self.shape.check(node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {"anyOf": [self.shape.schema(definitions), {"type": "null"}]}

    def value(self, written: Json) -> Any:
        return None if written is None else self.shape.value(written)
