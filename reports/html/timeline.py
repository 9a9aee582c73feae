"""The timeline of one behaviour: event time upwards, micro-batches to the right.

Each row is a dot where it arrived, the watermark a staircase, a window a bar from its first row to the micro-batch that
removes its state, with a mark at each micro-batch that emits it. This module computes the layout; ``templates/timeline.html`` draws it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from conformance.account.account import BatchAccount, RowAccount
from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.values import show_in_full
from conformance.judging.divergence import Divergence
from reports.html.time_notation import TimeNotation
from reports.html.time_scale import TimeScale
from reports.html.value_labels import LINE as LABEL_LINE
from reports.html.value_labels import ValueLabel, placed, width_of
from reports.html.window_bars import WindowBar, WindowEnd, window_bars

WIDE, NARROW, ACROSS = 132.0, 64.0, 780.0
"""Greatest and least width of a column, and the width that all columns fill together if they can."""
PER_GAP, LEAST_HEIGHT, MOST_HEIGHT = 30.0, 130.0, 380.0
HEAD, LANE, LINE, PAD = 46.0, 22.0, 17.0, 10.0
MOST_COLUMNS = 80
TICK_ROOM = 13.0
INSET = 3.0
"""Between a bar and the edge of its micro-batch."""
COUNTS = ("read", "emitted", "dropped", "state")

FATES: Mapping[str, str] = {
    "taken": "processed",
    "late": "dropped as late",
    "model-taken": "processed, by the reference model",
    "model-late": "dropped as late, by the reference model",
    "behind": "behind the watermark; unknown whether dropped",
    "null": "no event time",
    "timeless": "no event-time column",
}
"""Mark of a row → what became of it."""


def mark_of(row: RowAccount) -> str:
    """The key of ``FATES`` for a row."""
    return f"model-{row.fate}" if row.by == "model" else row.fate


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
    fate: str
    """A key of ``FATES``."""
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
    """Where it is emitted."""

    @property
    def open(self) -> bool:
        """Whether its state is still there at the end of the case, or not known to be removed."""
        return self.end in ("open", "unknown")


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
    values: tuple[ValueLabel, ...]
    """What the windows emit; drawn above everything else."""
    rows: tuple[DrawnRow, ...]
    watermark: str
    """The path of the staircase; empty if the query has no watermark."""
    ghost: str
    """The path of the behaviour compared with, if it is different."""
    null_lane: float | None
    described: str
    fates: tuple[str, ...]
    """Those that occur."""
    left_out: int
    """Number of micro-batches that are not drawn because there are too many."""


def timeline(
    case: Case,
    batches: Sequence[BatchAccount],
    other: Observation | None = None,
    divergence: Divergence | None = None,
    across: float = ACROSS,
) -> Timeline | None:
    """The layout of the micro-batches of a case; None if none ran.

    Args:
        case: the case.
        batches: the account of each micro-batch.
        other: another behaviour, whose watermark is drawn in the background.
        divergence: where the two first differ.
        across: the width that all columns fill together if they can, in pixels.
    """
    if not batches:
        return None
    return _Layout(case, batches[:MOST_COLUMNS], other, divergence, len(batches), across).timeline()


class _Layout:
    def __init__(
        self,
        case: Case,
        shown: Sequence[BatchAccount],
        other: Observation | None,
        divergence: Divergence | None,
        of: int,
        across: float,
    ) -> None:
        self._shown = shown
        self._show = TimeNotation.of(case).show
        self._of = of
        self._divergence = divergence
        self._others = [batch.watermark for step in other.steps for batch in step.batches] if other else []
        self._bars = window_bars(case.output_mode, shown)
        self._scale = TimeScale.of(self._instants())
        self._overlap = any(_overlap(a, b) for a, b in combinations(self._bars, 2))
        texts = [(at, self._label_text(bar, at)) for bar in self._bars for at in bar.emitted]
        crowd = max((sum(at == column for at, _ in texts) for column in range(len(shown))), default=0)
        self._plot = max(
            min(max(self._scale.height * PER_GAP, LEAST_HEIGHT), MOST_HEIGHT), 1.5 * LABEL_LINE * crowd + 2 * PAD
        )
        widest = max((width_of(text) for _, text in texts), default=0.0)
        self._column = max(min(max(across / len(shown), NARROW), WIDE), widest + 3 * INSET + PAD)
        self._null = any(row.fate in ("null", "timeless") for one in shown for row in one.rows)
        labels = [self._show(instant) for instant in self._scale.instants]
        self._left = max(64.0, 7.2 * max((len(label) for label in labels), default=0) + 18)

    def timeline(self) -> Timeline:
        rows = tuple(self._rows())
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
            windows=tuple(self._drawn(bar) for bar in self._bars),
            values=placed(self._labels(), [(row.x, row.y) for row in rows], HEAD + PAD, HEAD + self._plot - PAD),
            rows=rows,
            watermark=self._staircase([one.seen.watermark for one in self._shown], self._shown[-1].seen.next_watermark),
            ghost=self._ghost(),
            null_lane=HEAD + self._plot + LANE / 2 if self._null else None,
            described=" ".join(self._sentences()),
            fates=tuple(fate for fate in FATES if any(mark_of(row) == fate for one in self._shown for row in one.rows)),
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
            yield from (ms * 1000 for ms in (one.seen.watermark, one.seen.next_watermark) if ms is not None)
        for bar in self._bars:
            yield from (bar.span.start, bar.span.end)

    def _columns(self) -> Iterator[TimelineColumn]:
        for at, one in enumerate(self._shown):
            batch = one.seen
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

    def _differs(self, at: int, one: BatchAccount) -> bool:
        where = self._divergence
        if where is None or where.step != one.step:
            return False
        if where.batch is not None:
            return where.batch == one.seen.id
        return at + 1 == len(self._shown) or self._shown[at + 1].step != one.step

    def _bands(self) -> Iterator[StepBand]:
        for at, one in enumerate(self._shown):
            if at == 0 or self._shown[at - 1].step != one.step:
                width = sum(self._column for other in self._shown if other.step == one.step)
                yield StepBand(self._x(at), width, one.step)

    def _ticks(self) -> Iterator[TimeTick]:
        """Labels for as many instants as fit; watermarks first."""
        watermarks = {ms * 1000 for one in self._shown for ms in (one.seen.watermark, one.seen.next_watermark) if ms}
        taken: list[float] = []
        for instant in sorted(self._scale.instants, key=lambda known: (known not in watermarks, known)):
            y = self._y(instant)
            if all(abs(y - other) >= TICK_ROOM for other in taken):
                taken.append(y)
                yield TimeTick(y, self._show(instant), show_in_full(instant))

    def _rows(self) -> Iterator[DrawnRow]:
        lane = HEAD + self._plot + LANE / 2
        for at, one in enumerate(self._shown):
            for place, row in enumerate(one.rows, 1):
                x = self._x(at) + self._column * place / (len(one.rows) + 1)
                y = lane if row.time_us is None else self._y(row.time_us)
                behind = " although behind the watermark" if mark_of(row) == "taken" and row.behind else ""
                yield DrawnRow(
                    round(x, 1), y, mark_of(row), f"{row.stream}: {row.text} – {FATES[mark_of(row)]}{behind}"
                )

    def _drawn(self, bar: WindowBar) -> DrawnWindow:
        begin, top, bottom = self._x(bar.first) + INSET, self._y(bar.span.end), self._y(bar.span.start)
        width = self._x(bar.last) + self._column - INSET - begin
        emissions = tuple(self._emission(at) for at in sorted(bar.emitted))
        return DrawnWindow(
            begin, top, width, max(bottom - top, 2.0), bar.end, bar.by_model, bar.described(self._show), emissions
        )

    def _emission(self, column: int) -> float:
        """Shortly before the end of the micro-batch, where a bar may end."""
        return self._x(column) + self._column - 2 * INSET

    def _labels(self) -> Iterator[tuple[ValueLabel, float, float]]:
        for bar in self._bars:
            top, bottom = self._y(bar.span.end), self._y(bar.span.start)
            for at in bar.emitted:
                if text := self._label_text(bar, at):
                    yield ValueLabel(self._emission(at) - INSET, (top + bottom) / 2, text), top, bottom

    def _label_text(self, bar: WindowBar, column: int) -> str:
        """What a window emits; windows that lie on each other are named by their start."""
        texts = bar.emitted[column]
        text = texts[0] if len(texts) == 1 else f"{len(texts)} rows"
        return f"{self._show(bar.span.start)}: {text}" if self._overlap else text

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
        own = [one.seen.watermark for one in self._shown]
        return self._staircase(self._others, None) if self._others and self._others[: len(own)] != own else ""

    def _sentences(self) -> Iterator[str]:
        """The timeline as text."""
        for at, one in enumerate(self._shown):
            batch = one.seen
            again = f"After a restart ({one.restarted}): " if one.restarted else ""
            late = [row.text for row in one.rows if row.fate == "late"]
            ran = "" if batch.watermark is None else f", runs with the watermark {self._show(batch.watermark * 1000)}"
            dropped = "" if not batch.dropped else f", drops {batch.dropped} as late"
            named = f" ({'; '.join(late)})" if late else ""
            ended = [bar for bar in self._bars if bar.last == at and bar.end == "evicted"]
            removed = "; ".join(f"{self._show(bar.span.start)} – {self._show(bar.span.end)}" for bar in ended)
            model = ", by the reference model" if any(bar.by_model for bar in ended) else ""
            evicted = f", removes the windows {removed}{model}" if ended else ""
            left = "" if batch.next_watermark is None else f", leaves {self._show(batch.next_watermark * 1000)}"
            yield (
                f"{again}Micro-batch {batch.id} of step {one.step}, {batch.kind}: reads {len(one.rows)}, "
                f"emits {len(batch.rows)}{dropped}{named}{evicted}{ran}{left}."
            )


def _overlap(a: WindowBar, b: WindowBar) -> bool:
    """Whether two bars lie on each other."""
    return a.span.start < b.span.end and b.span.start < a.span.end and a.first <= b.last and b.first <= a.last
