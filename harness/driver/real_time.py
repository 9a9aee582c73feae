"""Real-time queries run one micro-batch after the other, also while nothing arrives: which of them say something, and when to go on."""

from __future__ import annotations

from typing import Any, Callable


def told(entries: list[dict[str, Any]], before: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """The micro-batches that say something: those that read rows, the first one after each move of the watermark, and those that remove
    state, which incremental cleanup does one micro-batch later, by the watermark for late rows.

    The engine runs others for as long as nothing arrives. They cannot do anything: what the watermark lets go is gone.

    ``before``: the watermark of the micro-batch before the first of them, None if there is none. Returns that of the last one, too.
    """
    found = []
    for entry in entries:
        watermark = _watermark(entry)
        if is_data(entry) or (before is not None and watermark != before) or _removes_state(entry):
            found.append(entry)
        before = watermark
    return found, before


def at_rest(entries: list[dict[str, Any]], behind: Callable[[dict[str, Any]], bool]) -> bool:
    """Whether another micro-batch would do nothing: all rows are read, and then one ran without rows and left the watermark alone.

    ``entries``: of executed micro-batches; ``behind``: whether rows wait after that of an entry.
    """
    last = entries[-2:]
    return (
        len(last) == 2 and not behind(last[1]) and not is_data(last[1]) and _watermark(last[0]) == _watermark(last[1])
    )


def is_data(entry: dict[str, Any]) -> bool:
    return any(source.get("startOffset") != source.get("endOffset") for source in entry["sources"])


def _removes_state(entry: dict[str, Any]) -> bool:
    return any(operator.get("numRowsRemoved", 0) for operator in entry.get("stateOperators", []))


def _watermark(entry: dict[str, Any]) -> str:
    return str(entry.get("eventTime", {}).get("watermark", ""))
