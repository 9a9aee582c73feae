"""What an error says: of the messages of an error and its causes, the one that tells the reason, without what surrounds it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise

CAUSED_BY = "Caused by: "
"""What the driver, and Java, write before the message of a cause."""
_TEXTS = re.compile(
    rf"^{CAUSED_BY}|Traceback \(most recent call last\):(?:\n[ \t].*)*"
    # The state of a query, with the tree of its plan: Spark puts it between the message and that of the cause.
    r"|^=== Streaming Query ===\n(?:.*\n)*?Thread State:.*(?:\n\s*Logical Plan:\n.*(?:\n[ :+|-].*)*)?|^=== Streaming Query ===[\s\S]*",
    re.MULTILINE,
)
_TREE = re.compile(r"[\s:|]*[+:]- ")
"""How a line of the tree of a plan begins, below its root."""
_NOISE = re.compile(r"\s+(?:at\b|\.\.\. \d+ more)|Driver stacktrace:")
_PASSED_ON = re.compile(
    r"(?:\[[A-Z_]+\] )?(?:(?:Writing job|Job) aborted\W*$|The Spark SQL phase \w+ failed|Execution of the stream \S+ failed\.)"
)
"""A line that says nothing of the reason where another follows it."""
_CLASS = r"(?:[\w$]+\.)+[A-Z]\w*"
_QUOTED = re.compile(
    rf"(?:^|: )(?:\[(?P<condition>[A-Z][A-Z0-9_.]*)\]|(?P<name>{_CLASS}|[A-Z]\w*(?:Error|Exception))(?=: )|{_CLASS}$)"
)
"""Where a message begins that another one quotes: with a condition of Spark, or with a class."""
_WRAPPING = re.compile(r"(?:\[[A-Z_]+\] )?Query .*\bterminated with exception: ")
_SQLSTATE = re.compile(r"(?:\s+SQLSTATE: \w{5})+")


def reason(message: str, wrappers: Collection[str]) -> tuple[str, ...]:
    """Return the lines of the innermost message that names a condition of Spark; without a condition, of the innermost with words.

    In the second case, messages below it without words, such as a path, follow. Empty if there is no message.

    Args:
        message: the messages of an error and its causes, as the driver sends them.
        wrappers: conditions that say nothing of the reason.
    """
    texts = [lines for text in _TEXTS.split(message) if (lines := [*_lines(text, wrappers)])]
    named = [
        at for at, lines in enumerate(texts) if re.match(r"\[[A-Z]", lines[0]) and ".UNCATEGORIZED]" not in lines[0]
    ]
    worded = [at for at, lines in enumerate(texts) if re.search(r"[A-Za-z]{2}[\w,:.]* \w", " ".join(lines))]
    at = (named or worded or [0])[-1]
    below = [line for lines in texts[at + 1 :] for line in lines] if not named else []
    return tuple(dict.fromkeys([*texts[at], *below])) if texts else ()


def _lines(text: str, wrappers: Collection[str]) -> Iterator[str]:
    """Yield the lines of one message, from the message that it quotes on."""
    raw = [line for line in text.splitlines() if line.strip() and not _NOISE.match(line)]
    lines = [line for line, below in pairwise([*raw, ""]) if not _TREE.match(line) and not _TREE.match(below)]
    lines[:1] = [_quoted(_SQLSTATE.sub("", line), wrappers) for line in lines[:1]]
    lines = [line for line in (_SQLSTATE.sub("", line).strip(" \t;") for line in lines) if line not in ("", "null")]
    yield from [line for line in lines if not _PASSED_ON.match(line)] or lines


def _quoted(line: str, wrappers: Collection[str]) -> str:
    """Return what the first line of a message quotes last, without the name of a class before it."""
    line = _WRAPPING.sub("", line.strip())
    quotes = [*_QUOTED.finditer(line)]
    if not quotes or quotes[-1].group() == line != f"[{quotes[-1]['condition']}]":
        return line
    last = quotes[-1]
    text = line[last.end() :].removeprefix(": ").strip()
    if last["condition"] is None:
        return text or last.group().rpartition(".")[2]
    return text if last["condition"] in wrappers else line[last.start() :].removeprefix(": ")
