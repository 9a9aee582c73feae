"""Wording of messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 case``, ``2 cases``: for nouns whose plural adds an *s*."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
