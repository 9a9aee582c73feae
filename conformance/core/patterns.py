"""Regular expressions of cases: anyone writes them, so searching one ends within a time limit.

The syntax is that of Python's `re`. The package `regex` reads the same syntax and can give up; `re` neither gives up nor lets Ctrl-C
end it. What `regex` alone reads is refused: a pattern that calls itself takes all memory. So is a pattern that is long once its
repetitions are written out, as `regex` does before it searches: forty nested ``+`` take 2^40 steps.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

LIMIT_S = 20.0
"""The longest that a search may take. A pattern without nested repetition takes microseconds."""

LONGEST = 20_000
"""Characters of a pattern whose repetitions are written out as often as they must match, and once more."""


class NotAPattern(ValueError):
    pass


class PatternTooSlow(RuntimeError):
    def __init__(self, pattern: str) -> None:
        super().__init__(
            f"the regular expression {pattern[:200]!r} takes longer than {LIMIT_S:g} s on what Spark showed; "
            "a repetition in a repetition, such as (a+)+, is the usual cause"
        )


@lru_cache(maxsize=1024)
def check(pattern: str) -> None:
    """Raise `NotAPattern`, with the reason, if this is not a regular expression."""
    import regex  # where it is used: browsers, which run the model, have no build of it

    try:
        re.compile(pattern)
        if _length(pattern) > LONGEST:
            raise NotAPattern(f"it is longer than {LONGEST:,} characters with its repetitions written out")
        _compiled(pattern)
    except (re.error, regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise NotAPattern(str(error) or "it is too large") from None


def occurs(pattern: str, text: str, *, in_lines: bool = False) -> bool:
    """Return whether a pattern matches in a text, with ``in_lines`` ``^`` and ``$`` at each line; raise `PatternTooSlow`."""
    compiled = _compiled(pattern, re.MULTILINE if in_lines else 0)
    try:
        return compiled.search(text, timeout=LIMIT_S) is not None
    except TimeoutError:
        raise PatternTooSlow(compiled.pattern) from None


def _length(pattern: str) -> int:
    """Return the length of a valid pattern with its repetitions written out: each as often as it must match, and once more."""
    groups, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        if token["open"]:
            groups.append(0)
            continue
        if token["repeats"]:
            length = int(token["least"] or token["repeats"].startswith("+")) * last
        else:
            last = length = 1 + (groups.pop() if token["close"] else 0)
        groups[-1] += length
        if token["repeats"]:
            last += length
    return groups[0]


_TOKEN = re.compile(
    r"(?P<open>\((?:\?P?[<=!:>]?)?)|(?P<close>\))|(?P<repeats>\{(?P<least>\d*)(?:,\d*)?\}|[*+?])[?+]?"
    r"|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.",
    re.DOTALL,
)
"""What a pattern consists of: a group begins or ends, the part before is repeated, or a character or class is matched."""


@lru_cache(maxsize=1024)
def _compiled(pattern: str, flags: int = 0) -> regex.Pattern[str]:
    import regex

    literal = _LITERAL_BRACE.sub(lambda match: rf"\{match[0]}" if match[0] == "{" else match[0], pattern)
    return regex.compile(literal, flags | regex.VERSION0)


_LITERAL_BRACE = re.compile(r"\\N\{[^}]*\}|\\.|\{(?!\d*(?:,\d*)?\})", re.DOTALL)
"""What begins with a backslash; or a brace that begins no repetition: `re` takes it literally, `regex` for approximate matching."""
