"""What waits in the state of a query's checkpoint, as values, text and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from conformance.checkpoints.checkpoint import Checkpoint, read
from conformance.checkpoints.files import Files
from conformance.checkpoints.state import JOIN
from conformance.checkpoints.state_rows import OperatorRows, SparkReader, TimesInState, rows_in_state
from conformance.core.data import Json
from conformance.core.wording import counted
from conformance.query_progress.tracks import OperatorTrack, Query
from conformance.query_progress.wire import instant


@dataclass(frozen=True)
class WaitingState:
    checkpoint: Checkpoint
    operators: tuple[OperatorRows, ...]
    progress: tuple[OperatorTrack, ...] | None = None
    """The operators after the same micro-batch, by the progress of the query; None if it does not tell."""
    not_compared: str = ""
    """Why, if progress is given."""

    def lines(self) -> Iterator[str]:
        """Yield where the checkpoint stands, then what waits in each operator."""
        version, watermark = self.checkpoint.state_version, self.checkpoint.watermark_ms
        next_one = f"the next has the watermark {instant(watermark)}" if watermark else "the next has no watermark yet"
        after = f"after micro-batch {version - 1}; {next_one}" if version else "no micro-batch is committed"
        yield f"state in {self.checkpoint.where}: {after}"
        if not self.operators:
            yield "  no operator keeps state"
        for operator, progress in zip(self.operators, self.progress or (None,) * len(self.operators), strict=True):
            # Progress counts a list as a row, and no timers.
            others = progress is not None and progress.rows != operator.rows and not operator.keeps_variables
            differs = f"; progress counts {progress.rows:,}" if progress and others else ""
            name = operator.name or (progress.name if progress else None)
            title = " ".join(filter(None, (f"operator {operator.number}", name)))
            said = f"not read: {operator.unread}" if operator.unread else f"{_rows(operator)}{self._released(operator)}"
            yield f"  {title}: {said}{differs}"
        if self.not_compared:
            yield f"  {self.not_compared}: the rows that progress counts are not compared"

    def record(self) -> dict[str, Json]:
        """Return the same for programs."""
        operators: list[Json] = [{**asdict(operator), "rows": operator.rows} for operator in self.operators]
        at = {"micro_batch": self.checkpoint.state_version - 1, "next_watermark": self.checkpoint.watermark_ms or None}
        return {"checkpoint": self.checkpoint.where, "query_id": self.checkpoint.query_id, **at, "operators": operators}

    def _released(self, operator: OperatorRows) -> str:
        """Return which rows a watermark releases, after a semicolon."""
        if not operator.rows:
            return ""
        store, kinds = operator.stores[-1], {store.times for store in operator.stores}
        if operator.keeps_variables:
            fire = "" if store.released is None else f"; the next micro-batch fires {counted(store.released, 'timer')}"
            return f"; its code removes them{fire}"
        if kinds == {"not known"}:
            return "; no schema of the state is there, which Spark writes from 3.1 on: event times are not known"
        if kinds == {"none"}:
            return "; no column has an event time with a watermark: no watermark ever releases them"
        if operator.name == JOIN:
            condition = "the condition of the join, which is not in the checkpoint"
            return f"; {condition}, says which of them a watermark releases"
        if store.released is None:
            return "; the checkpoint does not say whether of event time or of the clock"
        parts, waiting = [], store.rows - store.untimed - store.overdue
        if waiting and self.checkpoint.watermark_ms:
            # Above a join, the watermark of an operator is lower by the bounds of the join.
            most = "at most " if store.overdue or any(other.name == JOIN for other in self.operators) else ""
            aggregates = not (operator.name or "").startswith("dedupe")
            complete = " (0 in complete mode)" if store.released and aggregates and not store.overdue else ""
            parts.append(f"the next micro-batch releases {most}{store.released:,}{complete}")
        if store.released < waiting and store.newest_ms is not None:
            parts.append(f"a watermark of {instant(store.newest_ms)} releases all")
        if store.overdue:
            why = "the output mode is complete, or the watermark of this operator is lower"
            parts.append(f"stay although the watermark has passed them: {store.overdue:,} ({why})")
        if store.untimed:
            parts.append(f"without an event time, never released: {store.untimed:,}")
        return "".join(f"; {part}" for part in parts)


def waiting_state(
    files: Files, queries: Iterable[Query] | None = None, spark: SparkReader | None = None
) -> WaitingState:
    """Read what waits in a checkpoint; ``queries``: of a progress that is given. Raises as `checkpoint.read` and ``spark`` do."""
    checkpoint = read(files)
    operators, version = tuple(rows_in_state(files, checkpoint, spark)), checkpoint.state_version
    if queries is None:
        return WaitingState(checkpoint, operators)
    runs = [run for query in queries if query.id == checkpoint.query_id for run in query.runs if run.batches]
    if not runs:
        why = f"this progress is not of its query, id {(checkpoint.query_id or 'not known')[:8]}"
        return WaitingState(checkpoint, operators, None, why)
    if runs[-1].last_batch != version - 1 or len(runs[-1].operators) != len(operators):
        return WaitingState(checkpoint, operators, None, f"progress ends with micro-batch {runs[-1].last_batch}")
    return WaitingState(checkpoint, operators, tuple(runs[-1].operators))


def _rows(operator: OperatorRows) -> str:
    if len(operator.stores) == 1:
        return _of_store(operator.stores[0])
    return f"{counted(operator.rows or 0, 'row')}: {', '.join(f'{store.name} {_of_store(store)}' for store in operator.stores)}"


def _of_store(store: TimesInState) -> str:
    rows = counted(store.rows, "row") + (f" of {counted(store.keys, 'key')}" if store.keys is not None else "")
    if store.oldest_ms is None or store.newest_ms is None:
        return rows
    span = " – ".join(dict.fromkeys(map(instant, (store.oldest_ms, store.newest_ms))))
    return f"{rows} in {counted(store.windows, 'window')}, {span}" if store.windows else f"{rows}, {store.times} {span}"
