"""Wording of messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 case``, ``2 cases``: for nouns whose plural adds an *s*."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def ticket(link: str | None, introduced_by: str | None, *, bug: bool) -> str:
    """Where something is documented, in parentheses after a blank: ``" (SPARK-1)"``; empty if nowhere.

    Args:
        link: the ticket or page.
        introduced_by: the ticket that introduced a bug without a ticket.
        bug: whether it is a bug.
    """
    if link:
        return f" ({link})"
    if not bug:
        return ""
    return f" (no ticket, introduced by {introduced_by})" if introduced_by else " (no ticket)"
