"""Durations as pages write them."""

from __future__ import annotations


def duration(milliseconds: int) -> str:
    """``4.3 s``, ``3 min 4 s`` or ``2 h 5 min``."""
    tenths = max(milliseconds + 50, 0) // 100
    if tenths < 600:
        return f"{tenths // 10}.{tenths % 10} s" if tenths % 10 else f"{tenths // 10} s"
    minutes, seconds = divmod(tenths // 10, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
