"""Wording of messages, and untrusted text made safe to print."""

from __future__ import annotations

import re
from unicodedata import category


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


_ESCAPED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that act on a terminal instead of being seen: controls, marks of direction, halves of pairs, line ends."""
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def printable(text: str, keep: str = "") -> str:
    r"""The text with each character that acts on a terminal written as its number: ``\x1b``, ``\u202e``, and ``\n`` for a line end.

    Args:
        text: any.
        keep: characters that stay.
    """
    if text.isprintable():
        return text
    return "".join(_escape(char) if category(char) in _ESCAPED and char not in keep else char for char in text)


def printable_json(document: str) -> str:
    r"""A JSON document with the same characters as JSON escapes, which mean the same: ``\u202e``."""
    return "".join(
        char if char == "\n" or char.isprintable() or category(char) not in _ESCAPED else _json_escape(char)
        for char in document
    )


_COMMAND = re.compile(r"(?:(?<=[\r\n])|\A)(?=[^\S\r\n]*::)")
_OLD_COMMAND = "##["


def without_commands(text: str) -> str:
    r"""Lines that GitHub would take for workflow commands, marked by a ``\`` so that they are none.

    The runner reads every line of a log: one that begins with ``::``, or has ``##[`` anywhere, can set an error, mask text or stop
    commands (https://docs.github.com/actions/reference/workflow-commands-for-github-actions).
    """
    return _COMMAND.sub(r"\\", text).replace(_OLD_COMMAND, r"#\#[")


def _escape(char: str) -> str:
    number = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
