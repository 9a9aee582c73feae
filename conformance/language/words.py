"""The words of a ``Literal``: what the model of a case allows is what its reader and its JSON Schema allow."""

from __future__ import annotations

from typing import Any, get_args


def words(literal: Any) -> tuple[str, ...]:
    """``Literal["a", "b"]`` → ``("a", "b")``."""
    return get_args(literal)
