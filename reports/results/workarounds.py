"""What one can do about a known bug: the catalogue ``workarounds.yaml``, by ticket.

It is apart from the cases because a workaround changes no expectation: a case with a better one is still the same case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from conformance.core.data import read_data

_TICKET = re.compile(r"SPARK-[0-9]+")
_SOURCE = re.compile(r"SPARK-[0-9]+|https://\S+|case:\S+")
_SETTING = re.compile(r"spark\.[\w.]+=\S+")
_KEYS = {"ticket", "introduced_by", "workaround", "setting", "source"}


class WrongWorkaround(ValueError):
    """An entry of the catalogue is not as it must be."""

    def __init__(self, entry: object, problem: str) -> None:
        super().__init__(f"{entry}: {problem}")
        self.entry = entry


@dataclass(frozen=True)
class Workaround:
    """What to do, and who says so."""

    text: str
    """A sentence."""
    setting: str | None
    """``spark.x=y``, if it is a setting."""
    source: str
    """A ticket or a page; empty if a case shows it."""
    case: str | None
    """The case that shows it."""

    def __str__(self) -> str:
        return f"{self.text} {self.setting}" if self.setting else self.text


def workaround(link: str | None, introduced_by: str | None) -> Workaround | None:
    """That of the bug with this ticket, or without one introduced by this one; None if none is known."""
    return _catalogue().get((link, introduced_by)) if link or introduced_by else None


@cache
def _catalogue() -> Mapping[tuple[str | None, str | None], Workaround]:
    return read_workarounds(read_data("reports.results", "workarounds.yaml"))


def read_workarounds(listed: Any) -> dict[tuple[str | None, str | None], Workaround]:
    """The entries, by ticket and the ticket that introduced the bug, of which each has one.

    Raises:
        WrongWorkaround: an entry lacks something, has something else, or is there twice.
    """
    found: dict[tuple[str | None, str | None], Workaround] = {}
    for entry in listed:
        if not isinstance(entry, Mapping) or not all(isinstance(value, str) for value in entry.values()):
            raise WrongWorkaround(entry, "must be a mapping of texts")
        if unknown := set(entry) - _KEYS:
            raise WrongWorkaround(entry, f"unknown key {', '.join(sorted(unknown))}")
        key = entry.get("ticket"), entry.get("introduced_by")
        if sum(one is not None and _TICKET.fullmatch(one) is not None for one in key) != 1 or all(key):
            raise WrongWorkaround(entry, "needs either `ticket` or `introduced_by`: SPARK-1")
        if key in found:
            raise WrongWorkaround(entry, "is there twice")
        if not str(entry.get("workaround", "")).endswith("."):
            raise WrongWorkaround(entry, "`workaround` must be a sentence")
        source, setting = str(entry.get("source", "")), entry.get("setting")
        if not _SOURCE.fullmatch(source):
            raise WrongWorkaround(entry, "`source` must be a ticket, an https address or case:ID")
        if setting is not None and not _SETTING.fullmatch(setting):
            raise WrongWorkaround(entry, "`setting` must be spark.KEY=VALUE")
        case = source.removeprefix("case:") if source.startswith("case:") else None
        found[key] = Workaround(entry["workaround"], setting, "" if case else source, case)
    return found
