"""In which order the cases of one engine run: the long ones first, so that none of them is left running alone at the end."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.core.case import Add, Backlog, Case, Restart, Step

_RESTART = 3
"""Micro-batches that stopping a query and starting it again take as long as."""


def longest_first(cases: Iterable[Case]) -> list[Case]:
    """The cases, those that take longest first."""
    return sorted(cases, key=length, reverse=True)


def length(case: Case) -> int:
    """About how many micro-batches' time a case takes."""
    return _RESTART + sum(_length(step) for step in case.steps)


def _length(step: Step) -> int:
    match step.action:
        case Add():
            return 2  # one for the rows, and one without where the watermark has moved
        case Backlog(entries=entries):
            return len(entries) + 1
        case Restart():
            return _RESTART
        case _:
            return 1
