"""Expands a file with a ``matrix`` into several documents, one per combination, by replacing placeholders.

``$(how)`` stands for the value of a parameter, ``$(join.kept)`` for a key of the value; ``$$(`` is a literal ``$(``. Text
that consists of a placeholder becomes the value, of any type; within longer text the value is inserted as text. A mapping
entry or list item that consists of a placeholder is removed if the value lacks the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from conformance.language.matrix import KEY, PARAMETER, Combination, Parameter, name_of, read
from conformance.language.node import Entries, Entry, Items, Node, Scalar, child
from conformance.language.problem import Report
from conformance.language.shape import literal
from conformance.language.suggest import unknown

_PLACEHOLDER = re.compile(rf"\$(?P<literal>\$\()|\$\((?P<parameter>{PARAMETER})(?:\.(?P<key>{PARAMETER}))?\)|\$\(")


@dataclass(frozen=True, eq=False)
class Expansion:
    """One of the cases of a file."""

    name: str
    """``left-outer.ntz``"""
    document: Node


def has_matrix(node: Node) -> bool:
    return child(node, KEY) is not None


def expansions(node: Entries, report: Report) -> tuple[Expansion, ...]:
    """The documents of a document with a ``matrix``; none after a problem."""
    matrix = node.get(KEY)
    assert matrix is not None
    body = Entries(node.line, node.column, tuple(entry for entry in node.entries if entry.key.value != KEY))
    parts = read(matrix, report)
    _check_values(matrix, report)
    if parts is None or report.problems:
        return ()
    _check_use(body, parts.parameters, report)
    if report.problems:
        return ()
    found = tuple(
        Expansion(name_of(combination), _Replacement(combination, report).document(body))
        for combination in parts.combinations
    )
    return () if report.problems else found


def _check_values(matrix: Node, report: Report) -> None:
    """Values are inserted unchanged, so a placeholder in one would not be replaced."""
    for scalar in _scalars(matrix):
        for at in _placeholders(scalar):
            report.add(scalar.at(at.start()), f"{at[0]}… in a value of the matrix: values cannot contain placeholders")


def _check_use(body: Node, parameters: tuple[Parameter, ...], report: Report) -> None:
    """Every placeholder must name a parameter, and every parameter and key must be used."""
    known = {parameter.name: parameter for parameter in parameters}
    used: set[str] = set()
    for scalar in _scalars(body):
        for found in _placeholders(scalar):
            place = scalar.at(found.start())
            parameter = known.get(found["parameter"] or "")
            if found["parameter"] is None:
                report.add(
                    place, "`$(` must be part of $(parameter) or $(parameter.key); write `$$(` for a literal `$(`"
                )
            elif parameter is None:
                report.add(place, unknown("placeholder", found["parameter"], known))
            elif found["key"] is not None and found["key"] not in parameter.keys:
                report.add(place, unknown("key", found["key"], parameter.keys, where=f" of {parameter.name}"))
            else:
                used.add(found[0][2:-1])
    for parameter in parameters:
        keys = parameter.keys
        if not keys and parameter.name not in used:
            report.add(parameter.place, f"unused parameter: the case does not contain $({parameter.name})")
        for key, place in keys.items():
            if f"{parameter.name}.{key}" not in used:
                report.add(place, f"unused key: the case does not contain $({parameter.name}.{key})")


def _scalars(node: Node) -> Iterator[Scalar]:
    """Every text, number and key."""
    if isinstance(node, Entries):
        for entry in node.entries:
            yield entry.key
            yield from _scalars(entry.value)
    elif isinstance(node, Items):
        for item in node.items:
            yield from _scalars(item)
    else:
        yield node


def _placeholders(scalar: Scalar) -> Iterator[re.Match[str]]:
    if isinstance(scalar.value, str):
        yield from (found for found in _PLACEHOLDER.finditer(scalar.value) if found["literal"] is None)


@dataclass(frozen=True)
class _Replacement:
    combination: Combination
    report: Report

    def document(self, node: Entries) -> Node:
        return self._replaced(node) or node

    def _replaced(self, node: Node) -> Node | None:
        """The node with placeholders replaced; None if it is removed."""
        if isinstance(node, Items):
            items = (self._replaced(item) for item in node.items)
            return Items(node.line, node.column, tuple(item for item in items if item is not None))
        if isinstance(node, Scalar):
            return self._scalar(node)
        entries: dict[object, Entry] = {}
        for entry in node.entries:
            key, value = self._scalar(entry.key), self._replaced(entry.value)
            if key is None or value is None:
                continue
            if not isinstance(key, Scalar):
                self.report.add(entry.key, f"{literal(key)} cannot be a key")
            elif key.value in entries:
                line = entries[key.value].key.line
                self.report.add(
                    entry.key,
                    f"duplicate key {key.value!r} in {name_of(self.combination)}, first used in line {line}",
                )
            else:
                entries[key.value] = Entry(key, value)
        return Entries(node.line, node.column, tuple(entries.values()))

    def _scalar(self, node: Scalar) -> Node | None:
        if not isinstance(node.value, str) or "$(" not in node.value:
            return node
        whole = _PLACEHOLDER.fullmatch(node.value)
        if whole is not None and whole["parameter"] is not None:
            return self._value(whole)
        return Scalar(node.line, node.column, _PLACEHOLDER.sub(lambda found: self._text(found, node), node.value), None)

    def _value(self, found: re.Match[str]) -> Node | None:
        value = self.combination[found["parameter"]]
        if found["key"] is not None:
            return value.keys.get(found["key"])
        return value.node or Scalar(value.place.line, value.place.column, value.name)

    def _text(self, found: re.Match[str], node: Scalar) -> str:
        if found["literal"] is not None:
            return found["literal"]
        value = self._value(found)
        if isinstance(value, Scalar):
            return _written(value.value)
        what = "the value has no such key" if value is None else f"{literal(value)} cannot be inserted into text"
        self.report.add(node.at(found.start()), f"{found[0]} in {name_of(self.combination)}: {what}")
        return ""


def _written(value: object) -> str:
    """As YAML writes it; 1 is not true, although Python says that they are equal."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
