"""The timeline of one behaviour: event time upwards, micro-batches to the right.

Each row is a dot where it arrived, the watermark a staircase, a window a bar from its first row to the micro-batch that
removes its state, with a mark at each micro-batch that emits it. This module computes the layout; ``templates/timeline.html`` draws it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from statistics import median
from typing import Literal, Self, TypeAlias

from conformance.account.account import BatchAccount, RowAccount, Span
from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.operations import OutputMode
from conformance.core.values import show_in_full
from conformance.core.wording import shortened
from conformance.judging.comparison import Divergence
from reports.html.texts import TimeNotation

LEAST, MOST = 0.5, 2.5
"""The smallest and the largest gap that is drawn, relative to the median gap."""


@dataclass(frozen=True)
class TimeScale:
    """Instants, in microseconds, and their heights above the lowest, in units of the median gap."""

    instants: tuple[int, ...]
    heights: tuple[float, ...]
    breaks: tuple[tuple[int, int], ...]
    """The two instants around each gap that is shortened."""

    @classmethod
    def of(cls, instants: Iterable[int]) -> Self:
        known = sorted(set(instants))
        gaps = [b - a for a, b in pairwise(known)]
        if not gaps:
            return cls(tuple(known), tuple(0.0 for _ in known), ())
        middle = median(gaps)
        heights, breaks = [0.0], []
        for at, gap in enumerate(gaps):
            heights.append(heights[-1] + min(max(gap / middle, LEAST), MOST))
            if gap / middle > MOST:
                breaks.append((known[at], known[at + 1]))
        return cls(tuple(known), tuple(heights), tuple(breaks))

    @property
    def height(self) -> float:
        return self.heights[-1] if self.heights else 0.0

    def at(self, instant: int) -> float:
        """Return the height of an instant, interpolated between known instants and clamped outside them."""
        if not self.instants or instant <= self.instants[0]:
            return 0.0
        if instant >= self.instants[-1]:
            return self.height
        above = bisect_left(self.instants, instant)
        low, high = self.instants[above - 1], self.instants[above]
        share = (instant - low) / (high - low)
        return self.heights[above - 1] + share * (self.heights[above] - self.heights[above - 1])


WindowEnd: TypeAlias = Literal["emitted", "evicted", "merged", "open", "unknown"]

MOST_WINDOWS = 60
_LONGEST = 14

_ENDS: Mapping[WindowEnd, str] = {
    "emitted": "emitted and removed",
    "evicted": "its state is removed",
    "merged": "becomes part of another window",
    "open": "its state stays to the end of the case",
    "unknown": "when its state is removed is not known",
}


@dataclass(frozen=True)
class WindowBar:
    """A life of a window; a window that gets rows after its state was removed has several."""

    span: Span
    first: int
    """The column, a micro-batch, in which it begins."""
    last: int
    end: WindowEnd
    by_model: bool
    emitted: Mapping[int, tuple[str, ...]]
    """Maps each column to what was emitted there, without the window."""


def window_bars(mode: OutputMode, shown: Sequence[BatchAccount]) -> tuple[WindowBar, ...]:
    emitted: dict[Span, dict[int, tuple[str, ...]]] = {}
    first: dict[Span, int] = {}
    in_state: set[Span] = set()
    for at, batch in enumerate(shown):
        for window in batch.emitted:
            texts = emitted.setdefault(window.span, {})
            texts[at] = (*texts.get(at, ()), shortened(window.rest, _LONGEST))
            first.setdefault(window.span, _first(shown, window.span, at))
        known = (batch.kept or frozenset()) | (batch.evicted or frozenset())
        in_state |= known
        first = dict.fromkeys(known, at) | first
    bars: list[WindowBar] = []
    for span in sorted(first, key=lambda window: (first[window], window))[:MOST_WINDOWS]:
        if span in in_state:
            bars += _lives(mode, shown, span, emitted.get(span, {}))
        else:
            # The window is known only from the rows with it.
            last = max(emitted[span]) if mode == "append" else len(shown) - 1
            ends: dict[OutputMode, WindowEnd] = {"append": "emitted", "update": "unknown", "complete": "open"}
            bars.append(WindowBar(span, first[span], last, ends[mode], by_model=False, emitted=emitted[span]))
    return tuple(sorted(bars, key=lambda bar: (bar.span, bar.first)))


def _first(shown: Sequence[BatchAccount], span: Span, before: int) -> int:
    for at, batch in enumerate(shown[:before]):
        if any(row.treatment != "late" and span.holds(row.time_us) for row in batch.rows):
            return at
    return before


def _lives(
    mode: OutputMode, shown: Sequence[BatchAccount], span: Span, emitted: Mapping[int, tuple[str, ...]]
) -> Iterator[WindowBar]:
    append = mode == "append"
    begin: int | None = None
    lives: list[tuple[int, int, WindowEnd]] = []
    known = [batch for batch in shown if batch.kept is not None]
    for at, batch in enumerate(known):
        kept, evicted = span in (batch.kept or ()), span in (batch.evicted or ())
        if not kept and not evicted and at not in emitted:
            if begin is not None:
                lives.append((begin, at - 1, "merged"))
            begin = None
            continue
        begin = at if begin is None else begin
        if not kept:
            lives.append((begin, at, "evicted" if evicted else "merged"))
            begin = None
    rest = [at for at in emitted if at >= len(known)]
    begin = rest[0] if begin is None and rest else begin
    if begin is not None and append and rest:
        lives.append((begin, max(rest), "emitted"))
    elif begin is not None:
        is_known = len(known) == len(shown) or mode == "complete"
        lives.append((begin, len(shown) - 1, "open" if is_known else "unknown"))
    for first, last, end in lives:
        by_model = end in ("evicted", "merged") and not (append and last in emitted)
        within = {at: texts for at, texts in emitted.items() if first <= at <= last}
        yield WindowBar(span, first, last, end, by_model, within)


CHARACTER, LINE = 7.0, 17.0
"""The room of a character and of a line, in pixels; text of 12 pixels is smaller."""


@dataclass(frozen=True)
class ValueLabel:
    """A text that ends at ``x``, on the baseline ``y + 4``."""

    x: float
    y: float
    text: str

    @property
    def left(self) -> float:
        return self.x - width_of(self.text)


def width_of(text: str) -> float:
    return CHARACTER * len(text)


def placed(
    wanted: Iterable[tuple[ValueLabel, float, float]], marks: Sequence[tuple[float, float]], top: float, bottom: float
) -> tuple[ValueLabel, ...]:
    """Move labels up or down where one would cover another, and where possible off the marks, but not above ``top`` or below ``bottom``.

    ``wanted``: labels where they would stand best, each with the upper and lower end of what it labels.
    """
    labels: list[ValueLabel] = []
    for label, above, below in wanted:
        free = [y for y in _heights(label.y, top, bottom) if not any(_covers(label, y, other) for other in labels)]
        visible = [
            y for y in free if not any(abs(y - b) < LINE / 2 + 4 and label.left - 5 < a < label.x + 5 for a, b in marks)
        ]
        own = [y for y in visible if above <= y <= below]
        y = next(iter(own or visible or free), label.y)
        labels.append(replace(label, y=y))
    return tuple(labels)


def _heights(best: float, top: float, bottom: float) -> list[float]:
    steps = int((bottom - top) / LINE * 2) + 2
    around = (best + sign * LINE * at / 2 for at in range(steps) for sign in ((1, -1) if at else (1,)))
    return [y for y in around if top <= y <= bottom]


def _covers(label: ValueLabel, y: float, other: ValueLabel) -> bool:
    return abs(y - other.y) < LINE and label.left < other.x and other.left < label.x


WIDE, NARROW, ACROSS = 132.0, 64.0, 780.0
"""The greatest and the least width of a column, and the width that all columns fill together if they can."""
PER_GAP, LEAST_HEIGHT, MOST_HEIGHT = 30.0, 130.0, 380.0
HEAD, LANE, PAD = 46.0, 22.0, 10.0
MOST_COLUMNS = 80
TICK_ROOM = 13.0
INSET = 3.0
"""The gap between a bar and the edge of its micro-batch."""
COUNTS = ("read", "emitted", "dropped", "state")

TREATMENTS: Mapping[str, str] = {
    "taken": "processed",
    "late": "dropped as late",
    "model-taken": "processed, by the reference model",
    "model-late": "dropped as late, by the reference model",
    "behind": "behind the watermark; unknown whether dropped",
    "null": "no event time",
    "timeless": "no event-time column",
}
"""Maps the mark of a row to what became of it."""


def mark_of(row: RowAccount) -> str:
    return f"model-{row.treatment}" if row.by == "model" else row.treatment


@dataclass(frozen=True)
class TimelineColumn:
    x: float
    width: float
    number: str
    no_data: bool
    counts: tuple[str, ...]
    """The counts in the order of ``COUNTS``; a dash if the version has no such metric."""
    restarted: str | None
    differs: bool

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass(frozen=True)
class DrawnRow:
    x: float
    y: float
    treatment: str
    tooltip: str


@dataclass(frozen=True)
class DrawnWindow:
    x: float
    y: float
    width: float
    height: float
    end: WindowEnd
    by_model: bool
    tooltip: str
    emissions: tuple[float, ...]

    @property
    def open(self) -> bool:
        """Whether its state is still there at the end of the case, or not known to be removed."""
        return self.end in ("open", "unknown")


@dataclass(frozen=True)
class TimeTick:
    y: float
    label: str
    full: str


@dataclass(frozen=True)
class Timeline:
    """Everything that is drawn, in pixels, and the same as text."""

    width: float
    height: float
    left: float
    top: float
    bottom: float
    columns: tuple[TimelineColumn, ...]
    bands: tuple[tuple[float, int], ...]
    """Where each step begins, and its number."""
    ticks: tuple[TimeTick, ...]
    breaks: tuple[float, ...]
    windows: tuple[DrawnWindow, ...]
    values: tuple[ValueLabel, ...]
    rows: tuple[DrawnRow, ...]
    watermark: str
    """The path of the staircase; empty if the query has no watermark."""
    late: str
    """The path of the watermark by which rows are late, if it is another one and a row is behind one of the two."""
    ghost: str
    """The path of the behaviour compared with, if it is different."""
    null_lane: float | None
    described: str
    treatments: tuple[str, ...]
    left_out: int
    """The number of micro-batches that are not drawn because there are too many."""


def timeline(
    case: Case,
    batches: Sequence[BatchAccount],
    other: Observation | None = None,
    divergence: Divergence | None = None,
    across: float = ACROSS,
) -> Timeline | None:
    """Lay out the micro-batches of a case, within ``across`` pixels if they can; None if none ran.

    ``other``: another behaviour, whose watermark is drawn in the background; ``divergence``: where the two first differ.
    """
    return _Layout(case, batches, other, divergence, across).timeline() if batches else None


class _Layout:
    def __init__(
        self,
        case: Case,
        batches: Sequence[BatchAccount],
        other: Observation | None,
        divergence: Divergence | None,
        across: float,
    ) -> None:
        shown = batches[:MOST_COLUMNS]
        self._shown = shown
        self._show = TimeNotation.of(case).show
        self._left_out = len(batches) - len(shown)
        self._divergence = divergence
        self._others = [batch.watermark for step in other.steps for batch in step.batches] if other else []
        self._bars = window_bars(case.output_mode, shown)
        self._scale = TimeScale.of(self._instants())
        self._overlap = any(_overlap(a, b) for a, b in combinations(self._bars, 2))
        texts = [(at, self._label_text(bar, at)) for bar in self._bars for at in bar.emitted]
        crowd = max((sum(at == column for at, _ in texts) for column in range(len(shown))), default=0)
        height = min(max(self._scale.height * PER_GAP, LEAST_HEIGHT), MOST_HEIGHT)
        self._plot = max(height, 1.5 * LINE * crowd + 2 * PAD)
        widest = max((width_of(text) for _, text in texts), default=0.0)
        self._column = max(min(max(across / len(shown), NARROW), WIDE), widest + 3 * INSET + PAD)
        self._null = any(row.treatment in ("null", "timeless") for batch in shown for row in batch.rows)
        labels = [self._show(instant) for instant in self._scale.instants]
        self._left = max(64.0, 7.2 * max(map(len, labels), default=0) + 18)

    def timeline(self) -> Timeline:
        rows = tuple(self._rows())
        marks = {row.treatment for row in rows}
        watermarks = [batch.seen.watermark for batch in self._shown]
        late = [batch.late_ms for batch in self._shown]
        rows_behind = any(row.behind or row.treatment == "late" for batch in self._shown for row in batch.rows)
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
            breaks=tuple((self._y(below) + self._y(above)) / 2 for below, above in self._scale.breaks),
            windows=tuple(self._drawn(bar) for bar in self._bars),
            values=placed(self._labels(), [(row.x, row.y) for row in rows], HEAD + PAD, HEAD + self._plot - PAD),
            rows=rows,
            watermark=self._staircase(watermarks, self._shown[-1].seen.next_watermark),
            late=self._staircase(late, None) if late != watermarks and rows_behind else "",
            ghost=self._staircase(self._others, None) if self._others[: len(watermarks)] != watermarks else "",
            null_lane=HEAD + self._plot + LANE / 2 if self._null else None,
            described=" ".join(self._sentences()),
            treatments=tuple(treatment for treatment in TREATMENTS if treatment in marks),
            left_out=self._left_out,
        )

    def _x(self, column: int) -> float:
        return self._left + column * self._column

    def _y(self, instant: int) -> float:
        whole = self._scale.height
        share = self._scale.at(instant) / whole if whole else 0.5
        return round(HEAD + PAD + (1 - share) * (self._plot - 2 * PAD), 1)

    def _instants(self) -> Iterator[int]:
        for batch in self._shown:
            yield from (row.time_us for row in batch.rows if row.time_us is not None)
            yield from (ms * 1000 for ms in (batch.seen.watermark, batch.seen.next_watermark) if ms is not None)
        for bar in self._bars:
            yield from (bar.span.start, bar.span.end)

    def _columns(self) -> Iterator[TimelineColumn]:
        for at, account in enumerate(self._shown):
            batch = account.seen
            read = sum(source.rows for source in batch.sources)
            dropped = "–" if batch.dropped is None else str(batch.dropped)
            yield TimelineColumn(
                x=self._x(at),
                width=self._column,
                number=str(batch.id),
                no_data=batch.kind == "no-data",
                counts=(str(read), str(len(batch.rows)), dropped, ", ".join(map(str, batch.state)) or "–"),
                restarted=account.restarted,
                differs=self._differs(at, account),
            )

    def _differs(self, at: int, account: BatchAccount) -> bool:
        where = self._divergence
        if where is None or where.step != account.step:
            return False
        if where.batch is not None:
            return where.batch == account.seen.id
        return at + 1 == len(self._shown) or self._shown[at + 1].step != account.step

    def _bands(self) -> Iterator[tuple[float, int]]:
        for at, account in enumerate(self._shown):
            if at == 0 or self._shown[at - 1].step != account.step:
                yield self._x(at), account.step

    def _ticks(self) -> Iterator[TimeTick]:
        watermarks = {
            ms * 1000 for batch in self._shown for ms in (batch.seen.watermark, batch.seen.next_watermark) if ms
        }
        taken: list[float] = []
        for instant in sorted(self._scale.instants, key=lambda known: (known not in watermarks, known)):
            y = self._y(instant)
            if all(abs(y - other) >= TICK_ROOM for other in taken):
                taken.append(y)
                yield TimeTick(y, self._show(instant), show_in_full(instant))

    def _rows(self) -> Iterator[DrawnRow]:
        lane = HEAD + self._plot + LANE / 2
        for at, account in enumerate(self._shown):
            for place, row in enumerate(account.rows, 1):
                x = self._x(at) + self._column * place / (len(account.rows) + 1)
                y = lane if row.time_us is None else self._y(row.time_us)
                behind = " although behind the watermark" if mark_of(row) == "taken" and row.behind else ""
                tooltip = f"{row.stream}: {row.text} – {TREATMENTS[mark_of(row)]}{behind}"
                yield DrawnRow(round(x, 1), y, mark_of(row), tooltip)

    def _drawn(self, bar: WindowBar) -> DrawnWindow:
        begin, top, bottom = self._x(bar.first) + INSET, self._y(bar.span.end), self._y(bar.span.start)
        width = self._x(bar.last) + self._column - INSET - begin
        model = ", by the reference model" if bar.by_model else ""
        return DrawnWindow(
            x=begin,
            y=top,
            width=width,
            height=max(bottom - top, 2.0),
            end=bar.end,
            by_model=bar.by_model,
            tooltip=f"window {self._span(bar)}: {_ENDS[bar.end]}{model}",
            emissions=tuple(self._emission(at) for at in sorted(bar.emitted)),
        )

    def _span(self, bar: WindowBar) -> str:
        return f"{self._show(bar.span.start)} – {self._show(bar.span.end)}"

    def _emission(self, column: int) -> float:
        """Return a place shortly before the end of the micro-batch, where a bar may end."""
        return self._x(column) + self._column - 2 * INSET

    def _labels(self) -> Iterator[tuple[ValueLabel, float, float]]:
        for bar in self._bars:
            top, bottom = self._y(bar.span.end), self._y(bar.span.start)
            for at in bar.emitted:
                if text := self._label_text(bar, at):
                    yield ValueLabel(self._emission(at) - INSET, (top + bottom) / 2, text), top, bottom

    def _label_text(self, bar: WindowBar, column: int) -> str:
        texts = bar.emitted[column]
        text = texts[0] if len(texts) == 1 else f"{len(texts)} rows"
        return f"{self._show(bar.span.start)}: {text}" if self._overlap else text

    def _staircase(self, watermarks: Sequence[int | None], after: int | None) -> str:
        path = ""
        for at, ms in enumerate(watermarks[: len(self._shown)]):
            if ms is not None:
                # Once there is a watermark, each micro-batch has one.
                place = f"V{self._y(ms * 1000):g}" if path else f"M{self._x(at):g} {self._y(ms * 1000):g}"
                path += f"{place}H{self._x(at) + self._column:g}"
        return f"{path}V{self._y(after * 1000):g}h{PAD:g}" if path and after is not None else path

    def _sentences(self) -> Iterator[str]:
        for at, account in enumerate(self._shown):
            batch = account.seen
            again = f"After a restart ({account.restarted}): " if account.restarted else ""
            late = [row.text for row in account.rows if row.treatment == "late"]
            ran = "" if batch.watermark is None else f", runs with the watermark {self._show(batch.watermark * 1000)}"
            dropped = "" if not batch.dropped else f", drops {batch.dropped} as late"
            named = f" ({'; '.join(late)})" if late else ""
            ended = [bar for bar in self._bars if bar.last == at and bar.end == "evicted"]
            removed = "; ".join(map(self._span, ended))
            model = ", by the reference model" if any(bar.by_model for bar in ended) else ""
            evicted = f", removes the windows {removed}{model}" if ended else ""
            left = "" if batch.next_watermark is None else f", leaves {self._show(batch.next_watermark * 1000)}"
            yield (
                f"{again}Micro-batch {batch.id} of step {account.step}, {batch.kind}: reads {len(account.rows)}, "
                f"emits {len(batch.rows)}{dropped}{named}{evicted}{ran}{left}."
            )


def _overlap(a: WindowBar, b: WindowBar) -> bool:
    return a.span.start < b.span.end and b.span.start < a.span.end and a.first <= b.last and b.first <= a.last
