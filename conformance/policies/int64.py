"""Signed 64-bit integers, in which Java's engines keep times: the ends of their range, and what happens beyond."""

from __future__ import annotations

MIN = -(2**63)
"""``Long.MIN_VALUE``: to most engines, a watermark that has not been computed yet."""
MAX = 2**63 - 1
"""``Long.MAX_VALUE``: what an input that has ended sends."""


def wrapped(number: int) -> int:
    """What Java's ``+`` and ``-`` give: beyond one end of the range it goes on from the other."""
    return (number - MIN) % 2**64 + MIN


def clamped(number: int) -> int:
    """The nearest number in the range."""
    return max(MIN, min(MAX, number))
