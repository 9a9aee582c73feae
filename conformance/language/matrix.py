"""``matrix``: the parameters of a file with several cases, and the combinations of their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TypeAlias

from conformance.language.node import Entries, Items, Node, Scalar, SourceLocation
from conformance.language.problem import Report
from conformance.language.shape import Definitions, Json, Shape, literal
from conformance.language.suggest import unknown

KEY = "matrix"
EXCEPT = "except"
PARAMETER = r"[A-Za-z_][A-Za-z0-9_]*"
NAME = r"[a-z0-9]+(-[a-z0-9]+)*"
MAX_CASES = 100
MAX_COMBINATIONS = 10_000
"""With those that ``except`` excludes."""


@dataclass(frozen=True, eq=False)
class Value:
    """One value of a parameter."""

    name: str
    """Its name in ids: ``left-outer``."""
    place: SourceLocation
    node: Node | None
    """What ``$(parameter)`` stands for; None if the value has keys, since it then stands for the name."""
    keys: Mapping[str, Node] = field(default_factory=dict)
    """What ``$(parameter.key)`` stands for."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """A parameter with its values, in the order of the file."""

    name: str
    place: SourceLocation
    values: tuple[Value, ...]

    @property
    def keys(self) -> Mapping[str, SourceLocation]:
        """Every key of any of its values, with its first position."""
        found: dict[str, SourceLocation] = {}
        for value in self.values:
            for key, node in value.keys.items():
                found.setdefault(key, node)
        return found


Combination: TypeAlias = Mapping[str, Value]
"""A value for each parameter."""


@dataclass(frozen=True)
class Matrix(Shape):
    """Parameters with their values, and excluded combinations; ``read`` reports the problems."""

    @property
    def expected(self) -> str:
        return "a mapping from parameter to its values (a list, or a mapping by name)"

    def validate(self, node: Node, report: Report) -> bool:
        return read(node, report) is not None

    def schema(self, definitions: Definitions) -> Json:  # noqa: ARG002
        values = {
            "anyOf": [
                {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1},
                {"type": "object", "propertyNames": {"pattern": f"^{NAME}$"}, "minProperties": 1},
            ]
        }
        excluded = {
            "description": "Excluded combinations.",
            "type": "array",
            "items": {"type": "object", "minProperties": 1},
            "minItems": 1,
        }
        return {
            "type": "object",
            "minProperties": 1,
            "properties": {EXCEPT: excluded},
            "propertyNames": {"pattern": f"^{PARAMETER}$"},
            "additionalProperties": values,
        }


@dataclass(frozen=True, eq=False)
class Read:
    """A valid ``matrix``."""

    parameters: tuple[Parameter, ...]
    combinations: tuple[Combination, ...]


def read(node: Node, report: Report) -> Read | None:
    """The parameters and their combinations; None after a problem, which is then in the report."""
    before = len(report.problems)
    if not isinstance(node, Entries):
        report.add(node, f"{literal(node)} is not {Matrix().expected}")
        return None
    parameters = tuple(
        _parameter(entry.key, entry.value, report) for entry in node.entries if entry.key.value != EXCEPT
    )
    if not parameters:
        report.add(node, "`matrix` needs at least one parameter")
    excluded = _excluded(node.get(EXCEPT), parameters, report)
    if len(report.problems) > before:
        return None
    # Counted before they are made: twelve parameters with ten values each would fill the memory.
    combinations = prod(len(parameter.values) for parameter in parameters)
    if combinations > MAX_COMBINATIONS:
        report.add(node, f"the matrix has {combinations:,} combinations, but at most {MAX_COMBINATIONS:,} are allowed")
        return None
    every = list(product(*(parameter.values for parameter in parameters)))
    named: list[Combination] = [
        {parameter.name: value for parameter, value in zip(parameters, values, strict=True)} for values in every
    ]
    kept = tuple(one for one in named if not any(_holds(entry, one) for entry in excluded))
    if not kept:
        report.add(node.key(EXCEPT), "`except` excludes every combination")
    if len(kept) > MAX_CASES:
        report.add(node, f"the matrix makes {len(kept)} cases, but at most {MAX_CASES} are allowed")
    return Read(parameters, kept) if len(report.problems) == before else None


def name_of(combination: Combination) -> str:
    """The suffix that a combination adds to the id of the file: ``left-outer.ntz``."""
    return ".".join(value.name for value in combination.values())


def _parameter(key: Scalar, node: Node, report: Report) -> Parameter:
    if not isinstance(key.value, str) or not re.fullmatch(PARAMETER, key.value):
        report.add(key, f"{literal(key)} is not a parameter name: use letters, digits and _, not starting with a digit")
    values: tuple[Value, ...] = ()
    if isinstance(node, Items):
        values = tuple(_listed(item, report) for item in node.items)
    elif isinstance(node, Entries):
        values = tuple(_named(entry.key, entry.value, report) for entry in node.entries)
    else:
        report.add(node, f"{literal(node)} is not a list of values, or a mapping from name to value")
    if isinstance(node, Items | Entries) and not values:
        report.add(node, "must not be empty: a parameter needs at least one value")
    seen: dict[str, Value] = {}
    for value in values:
        if value.name in seen and value.name:
            line = seen[value.name].place.line
            report.add(value.place, f"duplicate value name {value.name!r}, first used in line {line}")
        seen[value.name] = value
    return Parameter(str(key.value), key, values)


def _listed(item: Node, report: Report) -> Value:
    if not isinstance(item, Scalar) or item.value is None:
        report.add(item, f"{literal(item)} cannot be used in an id: write a mapping from name to value")
        return Value("", item, item)
    # leftOuter becomes left-outer, TIMESTAMP_NTZ timestamp-ntz.
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", str(item.value))
    name = re.sub(r"[^a-z0-9]+", "-", apart.lower()).strip("-")
    if not name:
        report.add(item, f"{literal(item)} has no letter or digit to use in an id: write a mapping from name to value")
    return Value(name, item, item)


def _named(key: Scalar, node: Node, report: Report) -> Value:
    name = str(key.value).lower() if not isinstance(key.value, str) else key.value
    if not re.fullmatch(NAME, name):
        report.add(key, f"{literal(key)} cannot be part of an id: use lower-case letters and digits, separated by -")
    if not isinstance(node, Entries):
        return Value(name, key, node)
    for entry in node.entries:
        if not re.fullmatch(PARAMETER, str(entry.key.value)):
            report.add(entry.key, f"{literal(entry.key)} is not a valid key: use letters, digits and _")
    return Value(name, key, None, {str(entry.key.value): entry.value for entry in node.entries})


def _excluded(node: Node | None, parameters: tuple[Parameter, ...], report: Report) -> list[dict[str, str]]:
    """For each entry of ``except``: parameter → name of the excluded value."""
    if node is None:
        return []
    if not isinstance(node, Items) or not node.items:
        report.add(node, "`except` must be a list of combinations, each a mapping from parameter to value name")
        return []
    return [dict(_excluded_by(item, parameters, report)) for item in node.items]


def _excluded_by(item: Node, parameters: tuple[Parameter, ...], report: Report) -> Iterator[tuple[str, str]]:
    known = {parameter.name: [value.name for value in parameter.values] for parameter in parameters}
    if not isinstance(item, Entries) or not item.entries:
        report.add(item, f"{literal(item)} is not a combination: a mapping from parameter to value name")
        return
    for entry in item.entries:
        parameter, name = str(entry.key.value), str(entry.value.plain())
        if parameter not in known:
            report.add(entry.key, unknown("parameter", parameter, known))
        elif name not in known[parameter]:
            report.add(entry.value, unknown("value", name, known[parameter], where=f" of {parameter}"))
        else:
            yield parameter, name


def _holds(entry: Mapping[str, str], combination: Combination) -> bool:
    return bool(entry) and all(combination[parameter].name == name for parameter, name in entry.items())
