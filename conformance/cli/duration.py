"""Lengths of time as people type them: ``90``, ``30s``, ``10m``, ``1h30m``."""

from __future__ import annotations

import re

import typer

_PART = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def seconds(text: str) -> float:
    """How many seconds a text means; a number alone is seconds.

    Raises:
        typer.BadParameter: it is not a length of time, or it is zero.
    """
    parts = [*_PART.finditer(text.strip())]
    if not parts or "".join(part[0] for part in parts) != text.strip():
        raise typer.BadParameter(f"{text!r} is not a length of time; write 90, 30s, 10m or 1h30m", param_hint="--time")
    total = sum(float(part[1]) * _SECONDS[part[2]] for part in parts)
    if not total:
        raise typer.BadParameter("the time must be more than zero", param_hint="--time")
    return total
