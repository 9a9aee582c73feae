"""How long each window of a case lives: from its first row to the micro-batch that removes its state.

In append mode a window is emitted when its state is removed, so the engine tells both. In update mode it is emitted at each
change and removed later, which only the reference model tells; in complete mode it stays. Windows that no account knows are not drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.account.account import BatchAccount, Span
from conformance.core.case import OutputMode

WindowEnd: TypeAlias = Literal["emitted", "evicted", "merged", "open", "unknown"]

MOST_WINDOWS = 60
_LONGEST = 14
"""Characters of what a window emits."""

_ENDS: Mapping[WindowEnd, str] = {
    "emitted": "emitted and removed",
    "evicted": "its state is removed",
    "merged": "becomes part of another window",
    "open": "its state stays to the end of the case",
    "unknown": "when its state is removed is not known",
}


@dataclass(frozen=True)
class WindowBar:
    """One life of a window; a window that gets rows after its state was removed has several."""

    span: Span
    first: int
    """The column, a micro-batch, in which it begins."""
    last: int
    end: WindowEnd
    by_model: bool
    """Whether its end is known only from the reference model."""
    emitted: Mapping[int, tuple[str, ...]]
    """Column → what was emitted there, without the window."""

    def described(self, shown: Callable[[int], str]) -> str:
        """The window and what becomes of it; ``shown`` writes an instant (µs since the epoch)."""
        model = ", by the reference model" if self.by_model else ""
        return f"window {shown(self.span.start)} – {shown(self.span.end)}: {_ENDS[self.end]}{model}"


def window_bars(mode: OutputMode, shown: Sequence[BatchAccount]) -> tuple[WindowBar, ...]:
    """The windows of the micro-batches shown that are in state or emitted, by event time."""
    emitted: dict[Span, dict[int, tuple[str, ...]]] = {}
    first: dict[Span, int] = {}
    in_state: set[Span] = set()
    for at, one in enumerate(shown):
        for window in one.emitted:
            texts = emitted.setdefault(window.span, {})
            texts[at] = (*texts.get(at, ()), _shortened(window.rest))
            first.setdefault(window.span, _first(shown, window.span, at))
        known = (one.kept or frozenset()) | (one.evicted or frozenset())
        in_state |= known
        for span in known:
            first.setdefault(span, at)
    bars = (
        bar
        for span in sorted(first, key=lambda one: (first[one], one))[:MOST_WINDOWS]
        for bar in (_lives if span in in_state else _emissions)(mode, shown, span, first[span], emitted.get(span, {}))
    )
    return tuple(sorted(bars, key=lambda bar: (bar.span, bar.first)))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _first(shown: Sequence[BatchAccount], span: Span, before: int) -> int:
    """The column of the first row in the window, else of the micro-batch that emitted it."""
    for at, one in enumerate(shown[: before + 1]):
        if any(row.fate != "late" and span.holds(row.time_us) for row in one.rows):
            return at
    return before


def _emissions(
    mode: OutputMode, shown: Sequence[BatchAccount], span: Span, first: int, emitted: Mapping[int, tuple[str, ...]]
) -> Iterator[WindowBar]:
    """The life of a window that is known only from the rows with it."""
    last = max(emitted) if mode == "append" else len(shown) - 1
    end: WindowEnd = "unknown" if mode == "update" else "emitted" if mode == "append" else "open"
    yield WindowBar(span, first, last, end, by_model=False, emitted=emitted)


def _lives(
    mode: OutputMode, shown: Sequence[BatchAccount], span: Span, _: int, emitted: Mapping[int, tuple[str, ...]]
) -> Iterator[WindowBar]:
    """The lives of a window in state, as long as it is known what is in state."""
    append = mode == "append"
    begin: int | None = None
    known = [one for one in shown if one.kept is not None]
    for at, one in enumerate(known):
        kept, evicted = span in (one.kept or ()), span in (one.evicted or ())
        if not kept and not evicted and at not in emitted:
            if begin is not None:
                yield _bar(span, begin, at - 1, "merged", emitted, append=append)
            begin = None
            continue
        begin = at if begin is None else begin
        if not kept:
            yield _bar(span, begin, at, "evicted" if evicted else "merged", emitted, append=append)
            begin = None
    rest = [at for at in emitted if at >= len(known)]
    if begin is None and rest:
        begin = rest[0]
    if begin is not None:
        told = len(known) == len(shown) or mode == "complete"
        last = max(rest) if append and rest else len(shown) - 1
        yield _bar(
            span, begin, last, "emitted" if append and rest else "open" if told else "unknown", emitted, append=append
        )


def _bar(
    span: Span, first: int, last: int, end: WindowEnd, emitted: Mapping[int, tuple[str, ...]], *, append: bool
) -> WindowBar:
    told = end in ("open", "unknown", "emitted") or (append and last in emitted)
    within = {at: texts for at, texts in emitted.items() if first <= at <= last}
    return WindowBar(span, first, last, end, not told, within)
