"""What a program asks Spark for on one version and not on another: other queries, or another mode, sink, trigger or option of a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

from harness.engine.protocol import ProgramSeen, QuerySeen, SourceSeen
from harness.targets.targets import Target

_HIDDEN = "option "
"""What the names of values begin with that are compared and not shown: an option may be a secret."""


def changes(
    seen: ProgramSeen, before: Target, after: Target, ask: Callable[[Target], ProgramSeen]
) -> tuple[tuple[str, ...], ...]:
    """What each query of a program, ``seen`` on the earlier version, asks for otherwise on the later version.

    What differs between two runs on one version, such as a folder with a random name, is left out. So is a program that fails on the
    later version, which its trial says.

    Args:
        ask: what the program does on a version.
    """
    other = ask(after)
    different = {} if other.error is not None else _differences(seen, other, before, after)
    if different:
        by_chance = {*_differences(seen, ask(before), before, before), *_differences(other, ask(after), after, after)}
        different = {what: text for what, text in different.items() if what not in by_chance}
    last = len(seen.queries) - 1
    return tuple(
        tuple(text for (number, _), text in different.items() if min(number, last) == at) for at in range(last + 1)
    )


def _differences(seen: ProgramSeen, other: ProgramSeen, before: Target, after: Target) -> dict[tuple[int, str], str]:
    """Index of a query and what of it differs → a line that says so."""
    lines: dict[tuple[int, str], str] = {}
    a, b = (target.name.removeprefix("spark-") for target in (before, after))
    for number, (one, two) in enumerate(zip_longest(seen.queries, other.queries)):
        if one is None or two is None:
            on, without = (a, b) if two is None else (b, a)
            at = f", at {only.at}" if (only := one or two) is not None and only.at else ""
            lines[number, "query"] = (
                f"{on} starts a query more, number {number + 1}{at}: it is compared with nothing on {without}"
            )
            continue
        asked, now = _asked_for(one, seen.sources), _asked_for(two, other.sources)
        for what in {**asked, **now}:
            if asked.get(what) != now.get(what):
                shown = f": {asked.get(what, 'none')} on {a}, {now.get(what, 'none')} on {b}"
                lines[number, what] = f"{what} differs" if what.startswith(_HIDDEN) else what + shown
    return lines


def _asked_for(query: QuerySeen, sources: Sequence[SourceSeen]) -> dict[str, str]:
    options = dict(query.options)
    asked = {
        "output mode": query.output_mode,
        "trigger": options.pop("trigger", query.trigger),
        "sink": query.sink,
        "function": options.pop("function", "none"),
        "name": query.name or "none",
        "sources": ", ".join(query.reads) or "none",
        **{_HIDDEN + key: value for key, value in options.items()},
    }
    for source in sources:
        if source.name in query.reads:
            asked |= {f"format of {source.name}": source.format, f"columns of {source.name}": source.ddl or "not known"}
            asked |= {f"{_HIDDEN}{key} of {source.name}": value for key, value in source.options.items()}
    return asked
