"""Words in messages that depend on a number."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 case``, ``2 cases``: a number with its noun, for nouns whose plural ends in *s*."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
