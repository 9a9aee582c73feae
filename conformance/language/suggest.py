"""Messages about unknown names, with the most similar known one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

SHOWN = 30
"""How many allowed names a message lists."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The most similar known name, ignoring case; None if none is similar."""
    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def similar(word: str, known: Iterable[str]) -> str | None:
    """The known name that a word is a slip of; None if it may be meant as it stands."""
    found = get_close_matches(word.lower(), list(known), n=1, cutoff=0.8)
    return found[0] if found else None


def unknown(
    what: str, word: str, known: Iterable[str], synonyms: Mapping[str, str] | None = None, *, where: str = ""
) -> str:
    """``unknown key 'titel': did you mean 'title'?``, or the allowed names if none is similar.

    Args:
        what: what the word should have been.
        word: what was found.
        known: the allowed words.
        synonyms: words that are not allowed, each with the allowed one that it means.
        where: follows the word: ``" in a step"``.
    """
    names = list(known)
    others = synonyms or {}
    near = nearest(word, [*names, *others])
    near = others.get(near, near) if near is not None else None
    found = f"unknown {what} {word!r}{where}"
    if near is not None:
        return f"{found}: did you mean {near!r}?"
    if not names:
        return f"{found}: none is defined"
    more = f", … ({len(names)} in total)" if len(names) > SHOWN else ""
    return f"{found}: expected one of {', '.join(names[:SHOWN])}{more}"
