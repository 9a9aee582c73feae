"""What became of the rows of a sample on each version, as its engine counted them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from conformance.core.data import Json
from conformance.core.observation import DROPPED_ROWS, BatchSeen, Observation
from conformance.core.values import show_ms
from conformance.core.wording import counted
from conformance.own_job.analyzed_plan import JobPlan
from conformance.own_job.coverage import titles
from conformance.own_job.sample import Sample
from conformance.own_job.sample_arrivals import FAR_AHEAD, FAR_AHEAD_COMES
from conformance.own_job.verdict import JobVerdict
from reports.results.status import Statement

_YEAR = timedelta(days=365.2425)
_BY_TIME = re.compile(r"precisetimestampconversion|session_window|TimeWindow|\bJoin ", re.IGNORECASE)
_OF_GROUPS = {"stateStoreSave", "sessionWindowStateStoreSaveExec", "defaultName"}
"""Operators that count late groups, of which a row may have several and several rows one; the last is that of session windows up to 3.5."""
NOT_CLOSED = (
    "no row came that closes the last windows, and none that is late: name the event time with --event-time, or add rows that the query "
    "lets through"
)


@dataclass(frozen=True)
class SampleRows:
    """The rows of a sample on one version; the names are those of the JSON document."""

    rows_in: int
    """All rows or, if the query failed, those that it had read."""
    failed: bool
    without_event_time: str | None
    """The expression or column that gave null; None if it did for no row."""
    late: tuple[str, ...]
    """What each operator dropped."""
    in_state: int
    """Rows in state when the sample ends."""
    out: int
    """Rows that came out until then."""
    out_later: int
    """Rows that came out because of the row much later."""
    other_years: tuple[int, ...]
    """Years of event times before 1970 or after the next year."""
    closed: bool
    """Whether the row much later moved the watermark, if there is one."""
    ahead: str | None
    """The event time of a row so far ahead of all others that each row after it is late; None if there is none."""
    by_time: bool
    """Whether the query groups by windows of time or joins, where a row without an event time has no place or partner; deduplications and
    functions emit it."""

    @classmethod
    def of(cls, verdict: JobVerdict, seen: Observation, samples: Sequence[Sample]) -> SampleRows:
        ahead = {step.number for step in verdict.case.steps if step.name == FAR_AHEAD_COMES}
        own, last = (
            [batch for step in seen.steps if (step.number in ahead) is later for batch in step.batches]
            for later in (False, True)
        )
        times = [batch.event_time for batch in own if batch.event_time is not None]
        before, reached = (max((batch.next_watermark or 0 for batch in part), default=0) for part in (own, last))
        years = {1970 + timedelta(milliseconds=end) // _YEAR for time in times for end in (time.min, time.max) if end}
        return cls(
            rows_in=sum(len(sample.rows) for sample in samples)
            if seen.error is None
            else sum(source.rows for batch in own for source in batch.sources),
            failed=seen.error is not None,
            # Spark's statistics count a row without an event time as 1970-01-01 00:00.
            without_event_time=_null(verdict.plan) if any(time.min == 0 for time in times) else None,
            late=tuple(_late([*own, *last])),
            in_state=sum(own[-1].state) if own else 0,
            out=_emitted(own, digests=verdict.digests),
            out_later=_emitted(last, digests=verdict.digests),
            other_years=tuple(sorted(year for year in years if not 1970 <= year <= datetime.now(UTC).year + 1)),
            ahead=_ahead(own),
            by_time=_BY_TIME.search(verdict.plan) is not None,
            closed=not times or seen.error is not None or timedelta(milliseconds=reached - before) > FAR_AHEAD / 2,
        )

    @property
    def lost(self) -> bool:
        return bool(self.late or (self.without_event_time and self.by_time))

    def statements(self, on: str) -> Iterator[Statement]:
        if not self.closed:
            yield Statement("bug", "▲", f"{on}: {NOT_CLOSED}")
        null = (f"without an event time, since {self.without_event_time} is null",) if self.without_event_time else ()
        end = "when it failed" if self.failed else "at its end"
        text = f"{on}: {counted(self.rows_in, 'row')} of the sample in; {self.in_state} in state {end}; {self.out} out"
        later = f", {self.out_later} more after a row much later" if self.out_later else ""
        if self.lost:
            yield Statement("bug", "▲", f"{text}{later}; rows are lost", (*null, *self.late))
        else:
            untimed = "none" if not null else "some, which no operator drops,"
            yield Statement(
                "broken" if self.failed else "conforms",
                "–" if self.failed else "●",
                f"{text}{later}; none late, {untimed} without an event time",
                null,
            )
        if self.other_years:
            years = ", ".join(map(str, self.other_years))
            yield Statement("bug", "▲", f"{on}: event times in the year {years}: is their unit another, milliseconds?")


@dataclass(frozen=True)
class RowsOfVersions:
    versions: tuple[tuple[str, SampleRows], ...]
    """The title of each version that has an answer, with its rows."""

    @classmethod
    def of(cls, verdict: JobVerdict, samples: Sequence[Sample]) -> RowsOfVersions:
        seen = zip((verdict.before, verdict.after), (whole.observation for whole in verdict.wholes), strict=True)
        answers = ((target.title, answer) for target, answer in seen if answer and answer.own_code_error is None)
        ran = ((title, answer) for title, answer in answers if answer.error is None or answer.batches)
        return cls(tuple((title, SampleRows.of(verdict, answer, samples)) for title, answer in ran))

    @property
    def lost(self) -> bool:
        return any(rows.lost for _, rows in self.versions)

    @property
    def closed(self) -> bool:
        """Whether the rows much later moved the watermark on each version, if there is one."""
        return all(rows.closed for _, rows in self.versions)

    @property
    def advice(self) -> str:
        """What to do about rows that are lost."""
        rows = [rows for _, rows in self.versions]
        ahead = dict.fromkeys(each.ahead for each in rows if each.ahead and not each.other_years)
        filtered = (
            f"filter rows so far ahead as that of {', '.join(ahead)}: those after it are late, with a longer delay too"
        )
        each = {
            "read the event time in its unit": any(of_version.other_years for of_version in rows),
            "read the event time as it is written, or filter the rows without one": any(
                of_version.without_event_time for of_version in rows
            ),
            filtered: bool(ahead),
            "a longer delay of the watermark keeps late rows (conformance explain says which, and why)": any(
                of_version.late and not of_version.other_years and not of_version.ahead for of_version in rows
            ),
        }
        said = "; ".join([*(what for what, helps in each.items() if helps), "--accept-lost if they may be lost"])
        return said[0].upper() + said[1:]

    def statements(self) -> Iterator[Statement]:
        """Yield what became of the rows, once if both versions agree."""
        agree = len(self.versions) == 2 and len({rows for _, rows in self.versions}) == 1
        for title, rows in self.versions[: 1 if agree else None]:
            yield from rows.statements("both versions" if agree else title)

    def record(self) -> list[Json]:
        return [{"spark": title, **asdict(rows)} for title, rows in self.versions if rows.lost]


def _late(batches: Iterable[BatchSeen]) -> Iterator[str]:
    dropped: Counter[tuple[int, str, str]] = Counter()
    watermarks: dict[tuple[int, str, str], str] = {}
    for batch in batches:
        operators = batch.progress.get("stateOperators", [])
        for at, (title, operator) in enumerate(zip(titles(batch.progress), operators, strict=True)):
            if number := int(operator.get(DROPPED_ROWS, 0)):
                what = "late group" if operator.get("operatorName") in _OF_GROUPS else "late row"
                dropped[at, title, what] += number
                watermarks[at, title, what] = f", with watermarks up to {show_ms(batch.watermark)}"
    for (at, title, what), number in dropped.items():
        yield f"{title} dropped {counted(number, what)}{watermarks[at, title, what]}"


def _ahead(batches: Sequence[BatchSeen]) -> str | None:
    """Return the newest event time before rows go back behind the watermark, all of a micro-batch, if it leapt more than they went back:
    rows that are late themselves go back further than time has moved on."""
    timed = [(batch.watermark or 0, batch.event_time) for batch in batches if batch.event_time is not None]
    for at, (watermark, time) in enumerate(timed):
        if at and time.max < watermark:
            newest = max(before.max for _, before in timed[:at])
            others = (end for _, before in timed[:at] for end in (before.min, before.max) if end != newest)
            return show_ms(newest) if 2 * (newest - max(others, default=newest)) > newest - time.max else None
    return None


def _emitted(batches: Iterable[BatchSeen], *, digests: bool) -> int:
    rows = [row for batch in batches for row in batch.rows]
    return sum(int(str(row[0]).split()[0]) for row in rows) if digests else len(rows)


def _null(plan: str) -> str:
    """The expression of the column of the first watermark, by an extended plan; else its name."""
    return next((mark.expression for mark in JobPlan(plan).watermarks), "it")
