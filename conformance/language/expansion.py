"""A file with a ``matrix`` becomes several documents: each combination in the place of the placeholders.

``$(how)`` stands for the value of a parameter, ``$(join.kept)`` for what a value says under a key; ``$$(`` is a plain
``$(``. A text that is nothing but a placeholder becomes the value, of whatever kind; inside a longer text it is put in as
text. A key, or item of a list, that is nothing but a placeholder goes away where the value has no such key.
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
    """The documents that a document with a ``matrix`` stands for; none where something is wrong with it."""
    matrix = node.get(KEY)
    assert matrix is not None
    body = Entries(node.line, node.column, tuple(entry for entry in node.entries if entry.key.value != KEY))
    found = read(matrix, report)
    _check_values(matrix, report)
    if found is None or report.problems:
        return ()
    _check_use(body, found.parameters, report)
    if report.problems:
        return ()
    made = tuple(
        Expansion(name_of(combination), _Filling(combination, report).filled(body))
        for combination in found.combinations
    )
    return () if report.problems else made


def _check_values(matrix: Node, report: Report) -> None:
    """Values are put in as they are: what looks like a placeholder in them would stay."""
    for scalar in _scalars(matrix):
        for at in _placeholders(scalar):
            report.add(scalar.at(at.start()), f"{at[0]}…: a value of the matrix has no placeholder in it")


def _check_use(body: Node, parameters: tuple[Parameter, ...], report: Report) -> None:
    """Every placeholder names a parameter, and everything a parameter says is used somewhere."""
    known = {parameter.name: parameter for parameter in parameters}
    used: set[str] = set()
    for scalar in _scalars(body):
        for found in _placeholders(scalar):
            place = scalar.at(found.start())
            parameter = known.get(found["parameter"] or "")
            if found["parameter"] is None:
                report.add(place, "`$(` begins a placeholder: $(parameter) or $(parameter.key); write `$$(` for itself")
            elif parameter is None:
                report.add(place, unknown("placeholder", found["parameter"], known))
            elif found["key"] is not None and found["key"] not in parameter.keys:
                report.add(place, unknown(f"key of {parameter.name}", found["key"], parameter.keys))
            else:
                used.add(found[0][2:-1])
    for parameter in parameters:
        keys = parameter.keys
        if not keys and parameter.name not in used:
            report.add(
                parameter.place, f"$({parameter.name}) is nowhere in the case: all of its values are the same case"
            )
        for key, place in keys.items():
            if f"{parameter.name}.{key}" not in used:
                report.add(place, f"$({parameter.name}.{key}) is nowhere in the case: use it, or take it out")


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
class _Filling:
    combination: Combination
    report: Report

    def filled(self, node: Entries) -> Node:
        return self._filled(node) or node

    def _filled(self, node: Node) -> Node | None:
        """The node with values in the place of placeholders; None where it goes away."""
        if isinstance(node, Items):
            items = (self._filled(item) for item in node.items)
            return Items(node.line, node.column, tuple(item for item in items if item is not None))
        if isinstance(node, Scalar):
            return self._scalar(node)
        entries: dict[object, Entry] = {}
        for entry in node.entries:
            key, value = self._scalar(entry.key), self._filled(entry.value)
            if key is None or value is None:
                continue
            if not isinstance(key, Scalar):
                self.report.add(entry.key, f"{literal(key)} cannot be a key")
            elif key.value in entries:
                line = entries[key.value].key.line
                self.report.add(
                    entry.key,
                    f"the key {key.value!r} is there twice in {name_of(self.combination)}: first in line {line}",
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
            return _NAMES.get(value.value, str(value.value)) if not isinstance(value.value, str) else value.value
        what = "it is not there" if value is None else f"{literal(value)} cannot stand inside a text"
        self.report.add(node.at(found.start()), f"{found[0]} in {name_of(self.combination)}: {what}")
        return ""


_NAMES: dict[object, str] = {None: "null", True: "true", False: "false"}
