"""Did you mean …: the nearest of the names that exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SHOWN = 30
"""How many allowed names a message lists before it stops."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The name nearest to the word, whatever its case; None where none is near."""
    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """``unknown key 'titel': did you mean 'title'? Known: …``, the tail only where nothing is near."""
    names = list(known)
    near = nearest(word, names)
    if near is not None:
        return f"unknown {what} {word!r}: did you mean {near!r}?"
    if not names:
        return f"unknown {what} {word!r}: there is none"
    more = f", … ({len(names)} in all)" if len(names) > SHOWN else ""
    return f"unknown {what} {word!r}: it must be one of {', '.join(names[:SHOWN])}{more}"
