"""The parameters of a policy or a throttle, as a case writes them: what the reader of cases and the JSON Schema are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["count", "positive", "whole", "share"]
"""0, 1, 2, … · 1, 2, 3, … · any whole number · above 0 and at most 1."""


@dataclass(frozen=True)
class Parameter:
    meaning: str
    """With its unit."""
    kind: Kind = "count"
    words: tuple[str, ...] = ()
    """Where it is one of some words instead of a number."""
    default: Any = None
    required: bool = True
