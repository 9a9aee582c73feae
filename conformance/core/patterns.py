"""Regular expressions of cases: anyone writes them, so searching one ends within a time limit.

The syntax is that of Python's `re`. The package `regex` reads the same syntax and can give up; `re` neither gives up nor lets Ctrl-C
end it. What `regex` alone reads is refused: a pattern that calls itself takes all memory. So is a pattern that is long once its
repetitions are written out, as `regex` does before it searches: forty nested ``+`` take 2^40 steps.
"""

from __future__ import annotations

import re
from functools import lru_cache
from re import _parser  # type: ignore[attr-defined]  # the standard library's own account of what a pattern says
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import regex

LIMIT_S = 20.0
"""For one search. A pattern without nested repetition takes microseconds."""

LONGEST = 20_000
"""Characters of a pattern whose repetitions are written out as often as they must match, and once more."""


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


@lru_cache(maxsize=1024)
def check(pattern: str) -> None:
    """Check that this is a regular expression.

    Raises:
        NotAPattern: it is not; the message says why.
    """
    import regex  # where it is used: browsers, which run the model, have no build of it

    try:
        if _length(_parser.parse(pattern)) > LONGEST:
            raise NotAPattern(f"it is longer than {LONGEST:,} characters with its repetitions written out")
        _compiled(pattern)
    except (re.error, regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise NotAPattern(str(error) or "it is too large") from None


def occurs(pattern: str, text: str) -> bool:
    """Whether a pattern is found anywhere in a text.

    Raises:
        PatternTooSlow: the search took longer than ``LIMIT_S``.
    """
    return _found(_compiled(pattern), text)


def occurs_in_lines(pattern: str, text: str) -> bool:
    """As ``occurs``; ``^`` and ``$`` match at each line."""
    return _found(_compiled(pattern, re.MULTILINE), text)


def _found(pattern: regex.Pattern[str], text: str) -> bool:
    try:
        return pattern.search(text, timeout=LIMIT_S) is not None
    except TimeoutError:
        raise PatternTooSlow(pattern.pattern) from None


def _length(parsed: Any) -> int:
    """Of a pattern, or a part of one, as the standard library parses it: a list of operations with their arguments."""
    length = 0
    for operation, argument in parsed:
        if operation in _parser._REPEATCODES:
            least, _, repeated = argument
            length += (least + 1) * _length(repeated)
        else:
            length += 1 + sum(_length(part) for part in _parts(argument))
    return length


def _parts(argument: Any) -> list[Any]:
    """The patterns in the argument of an operation: a group has one, alternatives have several."""
    if isinstance(argument, _parser.SubPattern):
        return [argument]
    if isinstance(argument, (tuple, list)):
        return [part for one in argument for part in _parts(one)]
    return []


@lru_cache(maxsize=1024)
def _compiled(pattern: str, flags: int = 0) -> regex.Pattern[str]:
    import regex

    return regex.compile(_LITERAL_BRACE.sub(_escaped, pattern), flags | regex.VERSION0)


_LITERAL_BRACE = re.compile(r"\\N\{[^}]*\}|\\.|\{(?!\d*(?:,\d*)?\})", re.DOTALL)
"""What begins with a backslash; or a brace that begins no repetition: `re` takes it literally, `regex` for approximate matching."""


def _escaped(found: re.Match[str]) -> str:
    return rf"\{found[0]}" if found[0] == "{" else found[0]
