"""Regular expressions of cases: anyone writes them, so searching one ends within a time limit.

The syntax is that of Python's `re`. The package `regex` reads the same syntax and can give up; `re` neither gives up nor lets Ctrl-C
end it.
"""

from __future__ import annotations

from functools import lru_cache

import regex

LIMIT_S = 20.0
"""For one search. A pattern without nested repetition takes microseconds."""


class NotAPattern(ValueError):
    """The text is not a regular expression."""


class PatternTooSlow(RuntimeError):
    """A pattern was not searched to the end.

    Attributes:
        pattern: the regular expression.
    """

    def __init__(self, pattern: str) -> None:
        super().__init__(
            f"the regular expression {pattern[:200]!r} takes longer than {LIMIT_S:g} s on what Spark showed; "
            "a repetition in a repetition, such as (a+)+, is the usual cause"
        )
        self.pattern = pattern


def check(pattern: str) -> None:
    """Check that this is a regular expression.

    Raises:
        NotAPattern: it is not; the message says why.
    """
    try:
        _compiled(pattern)
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise NotAPattern(str(error) or "it is too large") from None


def occurs(pattern: str, text: str) -> bool:
    """Whether a pattern is found anywhere in a text.

    Raises:
        PatternTooSlow: the search took longer than ``LIMIT_S``.
    """
    return _found(_compiled(pattern), text)


def occurs_in_lines(pattern: str, text: str) -> bool:
    """As ``occurs``; ``^`` and ``$`` match at each line."""
    return _found(_compiled(pattern, regex.MULTILINE), text)


def _found(pattern: regex.Pattern[str], text: str) -> bool:
    try:
        return pattern.search(text, timeout=LIMIT_S) is not None
    except TimeoutError:
        raise PatternTooSlow(pattern.pattern) from None


@lru_cache(maxsize=1024)
def _compiled(pattern: str, flags: int = 0) -> regex.Pattern[str]:
    return regex.compile(pattern, flags | regex.VERSION0)
