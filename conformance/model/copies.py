"""Copies of a plan: a view that a query names twice is two relations, each with its own columns and operators."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from conformance.model.columns import Attribute, Ids
from conformance.model.expressions import Expression

_Part = TypeVar("_Part")


class _Copier:
    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._copied: dict[int, int] = {}

    def of(self, part: _Part) -> _Part:
        """A plan, or a part of one, with the id of each column replaced by its new one."""
        if isinstance(part, Attribute):
            return replace(part, id=self._new(part.id))
        if isinstance(part, Expression):
            value = self._new(part.value) if part.kind == "column" else part.value
            return replace(part, args=self.of(part.args), value=value)
        if isinstance(part, tuple):
            return type(part)(map(self.of, part))
        if is_dataclass(part) and type(part).__module__ in _OF_PLANS and not isinstance(part, type):
            return replace(part, **{one.name: self.of(getattr(part, one.name)) for one in fields(part)})
        return part

    def _new(self, id: int) -> int:
        return self._copied.setdefault(id, self._ids.next())


_OF_PLANS = ("conformance.model.plan", "conformance.model.expressions")
"""Where the parts of a plan are defined; other values, such as types and constants, are kept."""


def copied(plan: _Part, ids: Ids) -> _Part:
    """The same plan with columns of its own (`DeduplicateRelations`, before 3.2 `dedupRight`).

    Args:
        plan: of a view.
        ids: for its columns.
    """
    return _Copier(ids).of(plan)
