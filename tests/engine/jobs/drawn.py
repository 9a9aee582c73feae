"""Jobs drawn from few parameters: an operator with a reason for which rows get lost, and with what mends it, so that none does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby

from tests.engine.jobs.catalogue import ROCKSDB, Job

ROWS = 20
"""Those that may get lost; one more closes their windows."""
_FIRST = datetime(2024, 3, 5, 11, 30, tzinfo=UTC)
_ALONE = 7
"""The row that is wrong where one is; all after it are later micro-batches' or come with it."""
_MOST_QUERIES = 5
_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
_PATTERN = "'yyyy-MM-dd {}:mm:ss'"


@dataclass(frozen=True)
class Reason:
    """A mistake that costs rows: of the producers, which shows in the sample, or of the code."""

    name: str
    operators: tuple[str, str]
    """The functions of ``shop.drawn`` that make it; the second keeps its state in RocksDB."""
    written: Callable[[int, datetime], str | int | None]
    """The event time of a row, by its number and when it happened."""
    wrong: Mapping[str, str]
    """Arguments of the function, with which rows get lost."""
    mended: Mapping[str, str]
    type: str = "TIMESTAMP"
    event_time: str = ""
    """How it is written, where ``check`` cannot know: ``dd/MM/yyyy HH:mm``."""
    conf: Mapping[str, str] = field(default_factory=dict)
    mended_conf: Mapping[str, str] = field(default_factory=dict)
    others_only: bool = False
    """Whether the rows of the first stream are right."""


def _instant(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _some_earlier(minutes: int) -> Callable[[int, datetime], str]:
    """Every fourth row, none of them the first of a micro-batch."""
    return lambda row, moment: _instant(moment - timedelta(minutes=minutes) * (row % 4 == 2))


def _one(
    wrong: Callable[[datetime], str | int], right: Callable[[datetime], str | int]
) -> Callable[[int, datetime], str | int]:
    return lambda row, moment: (wrong if row == _ALONE else right)(moment)


_DAYS_LATER = _one(lambda moment: _instant(moment + timedelta(days=2)), _instant)

REASONS = (
    Reason("late rows", ("windows", "left_outer"), _some_earlier(60), {}, {"delay": "2 hours"}),
    Reason("no delay", ("sessions", "once"), _some_earlier(20), {"delay": "0 seconds"}, {"delay": "30 minutes"}),
    Reason(
        "no time",
        ("sql", "inner"),
        lambda row, moment: None if row % 4 == 2 else _instant(moment),
        {},
        {"where": "at IS NOT NULL"},
    ),
    Reason(
        "unparsable",
        ("windows_of_windows", "full_outer"),
        lambda row, moment: "n/a" if row % 4 == 2 else _text(moment),
        {"time": "try_to_timestamp(at)"},
        {"time": "try_to_timestamp(at)", "where": "at <> 'n/a'"},
        type="STRING",
    ),
    Reason(
        "hours to twelve",
        ("sessions", "both"),
        lambda _, moment: _text(moment),
        {"time": f"try_to_timestamp(at, {_PATTERN.format('hh')})"},
        {"time": f"try_to_timestamp(at, {_PATTERN.format('HH')})"},
        type="STRING",
    ),
    Reason("the future", ("once_within", "running"), _DAYS_LATER, {}, {"where": "at < '2024-03-06'"}),
    Reason(
        "milliseconds",
        ("windows", "left_semi"),
        _one(lambda moment: int(moment.timestamp() * 1000), lambda moment: int(moment.timestamp())),
        {"time": "timestamp_seconds(at)"},
        {"time": "timestamp_seconds(IF(at > 100000000000, at DIV 1000, at))"},
        type="BIGINT",
    ),
    Reason(
        "a zone",
        ("sql", "once_in_windows"),
        _one(lambda moment: f"{_text(moment + timedelta(hours=5))}+05:00", lambda moment: f"{_text(moment)}+00:00"),
        {"time": "to_timestamp(substring(at, 1, 19))"},
        {"time": "to_timestamp(at)"},
        type="STRING",
    ),
    Reason(
        "day and month",
        ("windows", "once"),
        _one(lambda moment: moment.strftime("%m/%d/%Y %H:%M"), lambda moment: moment.strftime("%d/%m/%Y %H:%M")),
        {"time": "to_timestamp(at, 'dd/MM/yyyy HH:mm')"},
        {"time": f"to_timestamp(at, IF(n = {_ALONE}, 'MM/dd/yyyy HH:mm', 'dd/MM/yyyy HH:mm'))"},
        type="STRING",
        event_time="dd/MM/yyyy HH:mm",
    ),
    Reason(
        "the fastest stream",
        ("both", "inner"),
        _DAYS_LATER,
        {},
        {},
        conf={_POLICY: "max"},
        mended_conf={_POLICY: "min"},
        others_only=True,
    ),
)
_OF_TWO_STREAMS = {"both", "inner", "left_outer", "full_outer", "left_semi"}


@dataclass(frozen=True)
class Drawn(Job):
    """A query of the program ``shop.drawn``."""

    reason: Reason = REASONS[0]
    mended: bool = False

    @property
    def schemas(self) -> dict[str, str]:
        return dict.fromkeys(self.streams, f"at {self.reason.type}, k STRING, n INT")

    @property
    def cuts(self) -> tuple[int, ...]:
        return (2,)

    @property
    def event_times(self) -> dict[str, str]:
        return {stream: f"at as {self.reason.event_time}" for stream in self.streams if self.reason.event_time}

    @property
    def arguments(self) -> dict[str, str]:
        changed = self.reason.mended if self.mended else self.reason.wrong
        return {"time": "at", "delay": "10 minutes", "where": "true", **changed}

    @property
    def described(self) -> str:
        """The argument of the program."""
        operator = self.function.partition(":")[2]
        return json.dumps({"operator": operator, "streams": self.schemas, "how": self.arguments})

    def time(self, line: str) -> str:
        """What is no time comes with the time before it; the milliseconds of an hour are far ahead of its seconds."""
        written = super().time(line)
        return written.zfill(20) if written[0].isdigit() else ""

    def lines(self, stream: str) -> list[str]:
        right = self.reason.others_only and stream == self.streams[0]
        written = (lambda _, moment: _instant(moment)) if right else self.reason.written
        moments = [*(_FIRST + row * timedelta(minutes=3) for row in range(ROWS)), _FIRST + timedelta(days=90)]
        rows = ({"at": written(row, moment), "k": "abc"[row % 3], "n": row} for row, moment in enumerate(moments))
        return [*map(json.dumps, rows)]


def _drawn(reason: Reason, operator: str, *, mended: bool) -> Drawn:
    stream = "_".join([*reason.name.split(), operator, "mended" if mended else "lost"])
    return Drawn(
        f"drawn:{operator}",
        (stream, f"{stream}_others") if operator in _OF_TWO_STREAMS else (stream,),
        {**(reason.mended_conf if mended else reason.conf), **(ROCKSDB if operator == reason.operators[1] else {})},
        variant=f"{reason.name}{' mended' if mended else ''}",
        reason=reason,
        mended=mended,
    )


DRAWN = tuple(
    _drawn(reason, operator, mended=mended)
    for mended in (False, True)
    for reason in REASONS
    for operator in reason.operators
)


def programs() -> Iterator[tuple[Drawn, ...]]:
    """The jobs that run as the queries of one program: with the same settings, and all mended or none."""

    def together(job: Drawn) -> tuple[bool, list[tuple[str, str]]]:
        return job.mended, sorted(job.conf.items())

    for _, same in groupby(sorted(DRAWN, key=together), together):
        jobs = [*same]
        yield from (tuple(jobs[at : at + _MOST_QUERIES]) for at in range(0, len(jobs), _MOST_QUERIES))
