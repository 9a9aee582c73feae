"""How long each window of a case lives: from its first row to the micro-batch that removes its state.

In append mode a window is emitted when its state is removed, so the engine tells both. In update mode it is emitted at each
change and removed later, which only the reference model tells; in complete mode it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.core.case import Case
from reports.analysis.model_fates import BatchFates, Span
from reports.html.arrivals import ExecutedBatch, tumbling
from reports.html.emitted_windows import WindowColumns

WindowEnd: TypeAlias = Literal["emitted", "evicted", "merged", "open", "unknown"]

MOST_WINDOWS = 60

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


def window_bars(
    case: Case,
    shown: Sequence[ExecutedBatch],
    columns: Mapping[int, WindowColumns | None],
    fates: Sequence[BatchFates] = (),
) -> tuple[WindowBar, ...]:
    """The windows of the micro-batches shown, by event time.

    Args:
        columns: number of a step → where its rows have the window.
        fates: by the model, of the first micro-batches.
    """
    begun, emitted = _found(case, shown, columns)
    in_state = frozenset(span for one in fates for span in one.kept | one.evicted)
    bars = (
        bar
        for span in [*begun][:MOST_WINDOWS]
        for bar in _lives(case, len(shown), span, begun[span], emitted.get(span, {}), fates if span in in_state else ())
    )
    return tuple(sorted(bars, key=lambda bar: (bar.span, bar.first)))


def _found(
    case: Case, shown: Sequence[ExecutedBatch], columns: Mapping[int, WindowColumns | None]
) -> tuple[dict[Span, int], dict[Span, dict[int, tuple[str, ...]]]]:
    """Window → the column of its first row, and the columns in which it is emitted."""
    begun: dict[Span, int] = {}
    emitted: dict[Span, dict[int, tuple[str, ...]]] = {}
    windows = tumbling(case)
    for at, one in enumerate(shown):
        for row in one.rows if windows else ():
            if windows and row.time_us is not None and row.fate in ("taken", "model-taken"):
                begun.setdefault(Span(*windows.of(row.time_us)), at)
        places = columns[one.step]
        for line in one.batch.rows if places is not None else ():
            span = places.span(line) if places is not None else None
            if span is not None and places is not None:
                begun.setdefault(span, _first(shown, span, at))
                texts = emitted.setdefault(span, {})
                texts[at] = (*texts.get(at, ()), places.rest(line))
    return begun, emitted


def _first(shown: Sequence[ExecutedBatch], span: Span, before: int) -> int:
    """The column of the first row in the window, else of the micro-batch that emitted it."""
    for at, one in enumerate(shown[: before + 1]):
        if any(row.time_us is not None and span.start <= row.time_us < span.end for row in one.rows):
            return at
    return before


def _lives(
    case: Case,
    count: int,
    span: Span,
    first: int,
    emitted: Mapping[int, tuple[str, ...]],
    fates: Sequence[BatchFates],
) -> Iterator[WindowBar]:
    append = case.output_mode == "append"
    if not fates:
        last = max(emitted, default=count - 1) if append else count - 1
        end: WindowEnd = "unknown" if case.output_mode == "update" else "emitted" if append and emitted else "open"
        yield WindowBar(span, first, last, end, by_model=False, emitted=emitted)
        return
    begin: int | None = None
    for at, one in enumerate(fates[:count]):
        if span not in one.kept | one.evicted and at not in emitted:
            if begin is not None:
                yield _bar(span, begin, at - 1, "merged", emitted, append=append)
            begin = None
            continue
        begin = at if begin is None else begin
        if span not in one.kept:
            yield _bar(span, begin, at, "evicted" if span in one.evicted else "merged", emitted, append=append)
            begin = None
    rest = [at for at in emitted if at >= len(fates)]
    if begin is None and rest:
        begin = rest[0]
    if begin is not None:
        told = len(fates) >= count or case.output_mode == "complete"
        last = max(rest) if append and rest else count - 1
        yield _bar(
            span, begin, last, "emitted" if append and rest else "open" if told else "unknown", emitted, append=append
        )


def _bar(
    span: Span, first: int, last: int, end: WindowEnd, emitted: Mapping[int, tuple[str, ...]], *, append: bool
) -> WindowBar:
    told = end in ("open", "unknown", "emitted") or (append and last in emitted)
    within = {at: texts for at, texts in emitted.items() if first <= at <= last}
    return WindowBar(span, first, last, end, not told, within)
