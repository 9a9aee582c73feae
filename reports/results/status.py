"""The statuses of a cell: their order, how they look, and which of them count as success.

Each has a glyph, a word and a colour; without colour, the first two identify it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from conformance.judging.verdict import AS_THE_CASE_SAYS, Status


@dataclass(frozen=True)
class Mark:
    glyph: str
    word: str
    style: str
    """The colour, in the syntax of rich."""


@dataclass(frozen=True)
class Statement:
    """A line of an answer about one's own job or checkpoint, with the colour of a status."""

    kind: Status
    glyph: str
    text: str
    details: tuple[str, ...] = ()


MARKS: Mapping[Status, Mark] = {
    "conforms": Mark("●", "conforms", "green"),
    "differs": Mark("◆", "differs as documented", "cyan"),
    "bug": Mark("▲", "known bug of these versions", "red"),
    "unsupported": Mark("–", "unsupported as documented", "blue"),
    "violates": Mark("✗", "violates", "bold red"),
    "flaky": Mark("≈", "flaky", "magenta"),
    "broken": Mark("!", "broken: the harness or your code failed", "bold yellow"),
    "not-applicable": Mark("·", "not applicable", "dim"),
    "not-run": Mark("?", "not run", "yellow"),
}
"""Every status, in display order."""

GREEN: frozenset[Status] = AS_THE_CASE_SAYS | {"not-applicable"}
"""As the cases say, or not counted."""

DOES_NOT_CONFORM: frozenset[Status] = frozenset({"violates", "flaky"})
NO_RESULT: frozenset[Status] = frozenset({"broken", "not-run"})


def exit_code_of(statuses: Iterable[Status]) -> int:
    """Return the exit code of cells: 0 if all are as the cases say, 1 if one is not, 3 if results are missing or there are none.

    1 takes precedence over 3: a violation is certain even if something is missing.
    """
    counted = {*statuses} - {"not-applicable"}
    if counted & DOES_NOT_CONFORM:
        return 1
    return 3 if counted & NO_RESULT or not counted else 0


def final_style(code: int) -> str:
    """Return the colour of the line that ends a command's answer."""
    return {0: "bold green", 1: "bold red"}.get(code, "bold yellow")
