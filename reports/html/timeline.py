"""The timeline of one behaviour: event time upwards, micro-batches to the right.

Each row is a dot where it arrived, the watermark a staircase, a window a bar from its first row to the micro-batch that
emits it. This module computes the layout; ``templates/timeline.html`` draws it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.values import show, show_in_full
from conformance.judging.divergence import Divergence
from conformance.judging.rows import OutputSchema
from reports.html.arrivals import FATES, ExecutedBatch, RowFate, executed, tumbling
from reports.html.emitted_windows import Span, WindowColumns
from reports.html.time_scale import TimeScale

WIDE, NARROW, ACROSS = 132.0, 64.0, 780.0
"""Greatest and least width of a column, and the width that all columns fill together if they can."""
PER_GAP, LEAST_HEIGHT, MOST_HEIGHT = 30.0, 130.0, 380.0
HEAD, LANE, LINE, PAD = 46.0, 22.0, 17.0, 10.0
MOST_WINDOWS = 60
MOST_COLUMNS = 80
TICK_ROOM = 13.0
COUNTS = ("read", "emitted", "dropped", "state")


@dataclass(frozen=True)
class TimelineColumn:
    """A micro-batch."""

    x: float
    width: float
    number: str
    no_data: bool
    counts: tuple[str, ...]
    """In the order of ``COUNTS``; a dash if the version has no such metric."""
    restarted: str | None
    differs: bool
    """Whether this is where another version first differs."""


@dataclass(frozen=True)
class StepBand:
    """The micro-batches of one step."""

    x: float
    width: float
    number: int


@dataclass(frozen=True)
class DrawnRow:
    x: float
    y: float
    fate: RowFate
    tooltip: str


@dataclass(frozen=True)
class EmissionFlag:
    """Where a window was emitted."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class DrawnWindow:
    x: float
    y: float
    width: float
    height: float
    open: bool
    """Whether it was not emitted by the end of the case."""
    tooltip: str
    flags: tuple[EmissionFlag, ...]


@dataclass(frozen=True)
class TimeTick:
    y: float
    label: str
    full: str
    """The label with its date, seconds and zone."""


@dataclass(frozen=True)
class Timeline:
    """Everything that is drawn, in pixels, and the same as text."""

    width: float
    height: float
    left: float
    top: float
    bottom: float
    columns: tuple[TimelineColumn, ...]
    bands: tuple[StepBand, ...]
    ticks: tuple[TimeTick, ...]
    breaks: tuple[float, ...]
    windows: tuple[DrawnWindow, ...]
    rows: tuple[DrawnRow, ...]
    watermark: str
    """The path of the staircase; empty if the query has no watermark."""
    ghost: str
    """The path of the behaviour compared with, if it is different."""
    null_lane: float | None
    described: str
    fates: tuple[RowFate, ...]
    """Those that occur."""
    left_out: int
    """Number of micro-batches that are not drawn because there are too many."""


def timeline(
    case: Case, observation: Observation, other: Observation | None = None, divergence: Divergence | None = None
) -> Timeline | None:
    """The layout of an observation; None if no micro-batch ran.

    Args:
        other: another behaviour, whose watermark is drawn in the background.
        divergence: where the two first differ.
    """
    everything = executed(case, observation)
    if not everything:
        return None
    return _Layout(case, observation, everything[:MOST_COLUMNS], other, divergence, len(everything)).timeline()


class _Layout:
    def __init__(
        self,
        case: Case,
        observation: Observation,
        shown: Sequence[ExecutedBatch],
        other: Observation | None,
        divergence: Divergence | None,
        of: int,
    ) -> None:
        self._case = case
        self._shown = shown
        self._of = of
        self._divergence = divergence
        self._windows_of = {
            step.number: WindowColumns.of(OutputSchema.of(observation.columns_of(step))) for step in observation.steps
        }
        self._others = [batch.watermark for step in other.steps for batch in step.batches] if other else []
        self._spans = self._found_spans()
        self._scale = TimeScale.of(self._instants())
        self._plot = min(max(self._scale.height * PER_GAP, LEAST_HEIGHT), MOST_HEIGHT)
        self._column = min(max(ACROSS / len(shown), NARROW), WIDE)
        self._null = any(row.fate in ("null", "timeless") for one in shown for row in one.rows)
        labels = [show(instant) for instant in self._scale.instants]
        self._left = max(64.0, 7.2 * max((len(label) for label in labels), default=0) + 18)

    def timeline(self) -> Timeline:
        bottom = HEAD + self._plot + (LANE if self._null else 0)
        return Timeline(
            width=self._left + self._column * len(self._shown) + PAD,
            height=bottom + LINE * len(COUNTS) + 2 * PAD,
            left=self._left,
            top=HEAD,
            bottom=bottom,
            columns=tuple(self._columns()),
            bands=tuple(self._bands()),
            ticks=tuple(self._ticks()),
            breaks=tuple((self._y(one.below) + self._y(one.above)) / 2 for one in self._scale.breaks),
            windows=tuple(self._windows()),
            rows=tuple(self._rows()),
            watermark=self._staircase(
                [one.batch.watermark for one in self._shown], self._shown[-1].batch.next_watermark
            ),
            ghost=self._ghost(),
            null_lane=HEAD + self._plot + LANE / 2 if self._null else None,
            described=" ".join(self._sentences()),
            fates=tuple(fate for fate in FATES if any(row.fate == fate for one in self._shown for row in one.rows)),
            left_out=self._of - len(self._shown),
        )

    def _x(self, column: int) -> float:
        return self._left + column * self._column

    def _y(self, instant: int) -> float:
        """Heights grow upwards, pixels downwards; with padding above and below."""
        whole = self._scale.height
        share = self._scale.at(instant) / whole if whole else 0.5
        return round(HEAD + PAD + (1 - share) * (self._plot - 2 * PAD), 1)

    def _instants(self) -> Iterator[int]:
        for one in self._shown:
            yield from (row.time_us for row in one.rows if row.time_us is not None)
            yield from (ms * 1000 for ms in (one.batch.watermark, one.batch.next_watermark) if ms is not None)
        for span in self._spans:
            yield from (span.start, span.end)

    def _found_spans(self) -> dict[Span, tuple[int, list[tuple[int, str]]]]:
        """Window → the column of its first row, and the columns in which it was emitted, with what."""
        found: dict[Span, tuple[int, list[tuple[int, str]]]] = {}
        windows = tumbling(self._case)
        for at, one in enumerate(self._shown):
            for row in one.rows if windows else ():
                if windows and row.time_us is not None and row.fate == "taken":
                    found.setdefault(Span(*windows.of(row.time_us)), (at, []))
            for emitted in one.batch.rows:
                columns = self._windows_of[one.step]
                span = columns.span(emitted) if columns else None
                if span is not None and columns is not None:
                    _, flags = found.setdefault(span, (self._first(span, at), []))
                    flags.append((at, columns.rest(emitted)))
        return dict(list(found.items())[:MOST_WINDOWS])

    def _first(self, span: Span, before: int) -> int:
        """The column of the first row in the window, else of the micro-batch that emitted it."""
        for at, one in enumerate(self._shown[: before + 1]):
            if any(row.time_us is not None and span.start <= row.time_us < span.end for row in one.rows):
                return at
        return before

    def _columns(self) -> Iterator[TimelineColumn]:
        for at, one in enumerate(self._shown):
            batch = one.batch
            read = sum(source.rows for source in batch.sources)
            dropped = "–" if batch.dropped is None else str(batch.dropped)
            yield TimelineColumn(
                x=self._x(at),
                width=self._column,
                number=str(batch.id),
                no_data=batch.kind == "no-data",
                counts=(str(read), str(len(batch.rows)), dropped, ", ".join(map(str, batch.state)) or "–"),
                restarted=one.restarted,
                differs=self._differs(at, one),
            )

    def _differs(self, at: int, one: ExecutedBatch) -> bool:
        where = self._divergence
        if where is None or where.step != one.step:
            return False
        if where.batch is not None:
            return where.batch == one.batch.id
        return at + 1 == len(self._shown) or self._shown[at + 1].step != one.step

    def _bands(self) -> Iterator[StepBand]:
        for at, one in enumerate(self._shown):
            if at == 0 or self._shown[at - 1].step != one.step:
                width = sum(self._column for other in self._shown if other.step == one.step)
                yield StepBand(self._x(at), width, one.step)

    def _ticks(self) -> Iterator[TimeTick]:
        """Labels for as many instants as fit; watermarks first."""
        watermarks = {ms * 1000 for one in self._shown for ms in (one.batch.watermark, one.batch.next_watermark) if ms}
        taken: list[float] = []
        for instant in sorted(self._scale.instants, key=lambda known: (known not in watermarks, known)):
            y = self._y(instant)
            if all(abs(y - other) >= TICK_ROOM for other in taken):
                taken.append(y)
                yield TimeTick(y, show(instant), show_in_full(instant))

    def _rows(self) -> Iterator[DrawnRow]:
        lane = HEAD + self._plot + LANE / 2
        for at, one in enumerate(self._shown):
            for place, row in enumerate(one.rows, 1):
                x = self._x(at) + self._column * place / (len(one.rows) + 1)
                y = lane if row.time_us is None else self._y(row.time_us)
                behind = " although behind the watermark" if row.fate == "taken" and row.behind else ""
                yield DrawnRow(round(x, 1), y, row.fate, f"{row.stream}: {row.text} – {FATES[row.fate]}{behind}")

    def _windows(self) -> Iterator[DrawnWindow]:
        inset = 3.0
        for span, (first, emitted) in sorted(self._spans.items()):
            begin = self._x(first) + inset
            last = max((at for at, _ in emitted), default=len(self._shown) - 1)
            top, bottom = self._y(span.end), self._y(span.start)
            by_column: dict[int, list[str]] = {}
            for at, text in emitted:
                by_column.setdefault(at, []).append(text)
            flags = tuple(
                EmissionFlag(self._x(at) + self._column - inset, (top + bottom) / 2, _flag_text(texts))
                for at, texts in by_column.items()
            )
            told = f"window {show(span.start)} – {show(span.end)}"
            told += ", not emitted by the end of the case" if not emitted else ""
            width = self._x(last) + self._column - inset - begin
            yield DrawnWindow(begin, top, width, max(bottom - top, 2.0), not emitted, told, flags)

    def _staircase(self, watermarks: Sequence[int | None], after: int | None) -> str:
        path: list[str] = []
        for at, ms in enumerate(watermarks):
            if ms is None or at >= len(self._shown):
                continue
            y = self._y(ms * 1000)
            path.append(f"{'L' if path else 'M'}{self._x(at):g} {y:g}")
            path.append(f"L{self._x(at) + self._column:g} {y:g}")
        if path and after is not None:
            path.append(f"V{self._y(after * 1000):g}")
            path.append(f"h{PAD:g}")
        return "".join(path)

    def _ghost(self) -> str:
        own = [one.batch.watermark for one in self._shown]
        return self._staircase(self._others, None) if self._others and self._others[: len(own)] != own else ""

    def _sentences(self) -> Iterator[str]:
        """The timeline as text."""
        for one in self._shown:
            batch = one.batch
            again = f"After a restart ({one.restarted}): " if one.restarted else ""
            late = [row.text for row in one.rows if row.fate == "late"]
            ran = "" if batch.watermark is None else f", runs with the watermark {show(batch.watermark * 1000)}"
            dropped = "" if not batch.dropped else f", drops {batch.dropped} as late"
            named = f" ({'; '.join(late)})" if late else ""
            left = "" if batch.next_watermark is None else f", leaves {show(batch.next_watermark * 1000)}"
            yield (
                f"{again}Micro-batch {batch.id} of step {one.step}, {batch.kind}: reads {len(one.rows)}, "
                f"emits {len(batch.rows)}{dropped}{named}{ran}{left}."
            )


def _flag_text(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{len(texts)} rows"
