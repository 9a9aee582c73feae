"""Did you mean …: the nearest of the names that exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

SHOWN = 30
"""How many allowed names a message lists before it stops."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The name nearest to the word, whatever its case; None where none is near."""
    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def unknown(what: str, word: str, known: Iterable[str], synonyms: Mapping[str, str] | None = None) -> str:
    """``unknown key 'titel': did you mean 'title'?``, or all that is known where nothing is near.

    Args:
        what: what the word should have been.
        word: what was found.
        known: the words that are allowed.
        synonyms: words that are not, each with the allowed one that it means.
    """
    names = list(known)
    others = synonyms or {}
    near = nearest(word, [*names, *others])
    near = others.get(near, near) if near is not None else None
    if near is not None:
        return f"unknown {what} {word!r}: did you mean {near!r}?"
    if not names:
        return f"unknown {what} {word!r}: there is none"
    more = f", … ({len(names)} in all)" if len(names) > SHOWN else ""
    return f"unknown {what} {word!r}: it must be one of {', '.join(names[:SHOWN])}{more}"
