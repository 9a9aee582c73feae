"""What waits in the state of a query's checkpoint, as values, text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from conformance.checkpoints.checkpoint import Checkpoint, read
from conformance.checkpoints.files import Files
from conformance.checkpoints.state import JOIN
from conformance.checkpoints.state_rows import OperatorRows, Times, TimesInState, rows_in_state
from conformance.core.data import Json
from conformance.core.wording import counted
from conformance.query_progress.over_time import OverTime
from conformance.query_progress.query_page import QueryPage
from conformance.query_progress.tracks import Query
from conformance.query_progress.wire import instant

_SPAN: Final[dict[Times, str]] = {
    "event time": "event times",
    "window": "windows",
    "expires": "expiry",
    "timeout": "timeouts",
}


@dataclass(frozen=True)
class WaitingState:
    checkpoint: Checkpoint
    operators: tuple[OperatorRows, ...]
    query: Query | None = None
    """The query of the checkpoint, if its progress is given."""
    progress_given: bool = False

    def lines(self) -> Iterator[str]:
        """Yield where the checkpoint stands, then what waits in each operator."""
        version, watermark = self.checkpoint.state_version, self.checkpoint.watermark_ms
        next_one = f"the next has the watermark {instant(watermark)}" if watermark else "the next has no watermark yet"
        after = f"after micro-batch {version - 1}; {next_one}" if version else "no micro-batch is committed"
        yield f"state in {self.checkpoint.where}: {after}"
        if not self.operators:
            yield "  no operator keeps state"
        yield from (f"  {self._line(operator)}" for operator in self.operators)
        if self.progress_given and self.query is None:
            yield f"  its query, id {(self.checkpoint.query_id or 'not known')[:8]}, is not in this progress"
        elif self._last_batch not in (None, version - 1):
            yield f"  progress ends with micro-batch {self._last_batch}: its rows in state are not compared"

    @property
    def page(self) -> QueryPage:
        """Return the same for a page."""
        title, *notes = self.lines()
        return QueryPage(title, (), "", tuple(line.strip() for line in notes), OverTime())

    def record(self) -> dict[str, Json]:
        """Return the same for programs."""
        operators: list[Json] = [
            {**asdict(operator), "rows": operator.rows, "rows_in_progress": self._in_progress(operator)}
            for operator in self.operators
        ]
        checkpoint = self.checkpoint
        about = {
            "checkpoint": checkpoint.where,
            "query_id": checkpoint.query_id,
            "micro_batch": checkpoint.state_version - 1,
        }
        return {**about, "next_watermark": checkpoint.watermark_ms or None, "operators": operators}

    @property
    def _last_batch(self) -> int | None:
        return next((run.last_batch for run in reversed(self.query.runs) if run.batches), None) if self.query else None

    def _in_progress(self, operator: OperatorRows) -> int | None:
        """Return how many rows the progress of the same micro-batch counts; None if it is not given."""
        if self.query is None or self._last_batch != self.checkpoint.state_version - 1:
            return None
        tracks = next(run.operators for run in reversed(self.query.runs) if run.batches)
        same = len(tracks) == len(self.operators) and tracks[operator.number].name in (
            None,
            operator.name or tracks[operator.number].name,
        )
        return tracks[operator.number].rows if same else None

    def _line(self, operator: OperatorRows) -> str:
        title = f"operator {operator.number}" + (f" {operator.name}" if operator.name else "")
        counted_there = self._in_progress(operator)
        if operator.unread:
            return f"{title}: not read: {operator.unread}"
        differs = counted_there is not None and counted_there != operator.rows
        progress = f"; progress counts {counted_there:,} after the same micro-batch" if differs else ""
        if operator.rows and not operator.has_schema:
            why = "the checkpoint has no schema of it, which 3.1 and newer write: event times are not known"
            return f"{title}: {counted(operator.rows, 'row')}; {why}{progress}"
        stores = operator.stores
        many = f"{counted(operator.rows or 0, 'row')}: " if len(stores) > 1 else ""
        rows = ", ".join((f"{store.name} " if many else "") + _rows(store) for store in stores)
        return f"{title}: {many}{rows}{self._released(operator)}{progress}"

    def _released(self, operator: OperatorRows) -> str:
        if not operator.rows:
            return ""
        if all(store.times is None for store in operator.stores):
            them = "it" if operator.rows == 1 else "them"
            return f"; no column has an event time with a watermark: no watermark ever releases {them}"
        (store, *others) = operator.stores
        if operator.name == JOIN:
            return "; which of them a watermark releases says the condition of the join, which is not in the checkpoint"
        if others or store.times == "timeout":
            return "; whether of event time or of the clock the checkpoint does not say"
        parts = []
        waiting = store.rows - store.untimed - store.overdue
        if waiting:
            # Above a join, the watermark of an operator is lower by the bounds of the join.
            most = "at most " if any(other.name == JOIN for other in self.operators) else ""
            now = f"the next micro-batch releases {most}{store.released:,}" if self.checkpoint.watermark_ms else ""
            every = "" if store.released == waiting else f"a watermark of {instant(store.newest_ms or 0)} releases all"
            parts.append(", ".join(filter(None, (now, every))))
        if store.overdue:
            why = "the output mode is complete, or the watermark of this operator is lower"
            stay = (
                "stays although the watermark has passed it"
                if store.overdue == 1
                else "stay although the watermark has passed them"
            )
            parts.append(f"{store.overdue:,} {stay}: {why}")
        if store.untimed:
            parts.append(
                f"{store.untimed:,} without an event time {'is' if store.untimed == 1 else 'are'} never released"
            )
        return "".join(f"; {part}" for part in parts)


def waiting_state(files: Files, queries: tuple[Query, ...] | None = None) -> WaitingState:
    """Read what waits in a checkpoint; ``queries``: of a progress that is given. Raises as `checkpoint.read` does."""
    checkpoint = read(files)
    query = next((one for one in queries or () if one.id == checkpoint.query_id), None)
    return WaitingState(checkpoint, tuple(rows_in_state(files, checkpoint)), query, queries is not None)


def _rows(store: TimesInState) -> str:
    rows = counted(store.rows, "row")
    if store.times is None or store.oldest_ms is None or store.newest_ms is None:
        return rows
    span = " – ".join(dict.fromkeys(map(instant, (store.oldest_ms, store.newest_ms))))
    if store.windows is not None:
        return f"{rows} in {counted(store.windows, 'window')}, {span}"
    return f"{rows}, {_SPAN[store.times]} {span}"
