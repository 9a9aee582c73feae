"""A case from values instead of a file: what programs build, checked as what people write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.core.case import Case
from conformance.language.case_file import case_of
from conformance.language.node import Entries, Entry, Items, Node, Scalar
from conformance.language.problem import Report
from conformance.language.shape import Json


def case_from(written: Mapping[str, Json], id: str) -> Case:
    """The case that a mapping in the shape of the YAML describes; its lines are all 0.

    Args:
        written: the case.
        id: what it is called.

    Raises:
        InvalidCase: with every problem there is.
    """
    return case_of(_node(written), Report(Path(f"{id}.yaml")), id, None)


def _node(value: Json) -> Node:
    if isinstance(value, Mapping):
        return Entries(0, 0, tuple(Entry(Scalar(0, 0, key), _node(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return Items(0, 0, tuple(map(_node, value)))
    return Scalar(0, 0, value)
