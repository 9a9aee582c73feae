"""Jobs with one fault each, and sound ones: their code, their samples, the cause that must be named and what became of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from conformance.core.spark_types import Schema, parse_schema
from conformance.own_job.sample import Sample

CODE = """
from pyspark.sql import functions as F


def tumbling(frame, column="t", *keys):
    return frame.groupBy(F.window(column, "10 minutes"), *keys).count()


def sound(spark, a):
    return tumbling(a.withWatermark("t", "10 minutes"), "t", "who")


def sliding(spark, a):
    return a.withWatermark("t", "10 minutes").groupBy(F.window("t", "10 minutes", "5 minutes")).count()


def sessions(spark, a):
    return a.withWatermark("t", "10 minutes").groupBy(F.session_window("t", "5 minutes"), "who").count()


def filtered(spark, a):
    return tumbling(a.where("n > 2").withWatermark("t", "10 minutes").where("who <> 'cy'"))


def parsed(pattern):
    def job(spark, a):
        return tumbling(a.select(F.to_timestamp("text", pattern).alias("t"), "who").withWatermark("t", "10 minutes"))

    return job


hours_of_twelve = parsed("yyyy-MM-dd hh:mm:ss")
month_as_minute = parsed("yyyy-mm-dd HH:mm:ss")
year_of_the_week = parsed("YYYY-MM-dd HH:mm:ss")


def milliseconds(spark, a):
    return tumbling(a.withColumn("e", F.col("ms").cast("timestamp")).withWatermark("e", "10 minutes"), "e")


def behind(event_time):
    def job(spark, a):
        return tumbling(a.withColumn("e", event_time()).withWatermark("e", "10 minutes"), "e", "who")

    return job


def _json():
    return F.to_json(F.struct(F.struct("text").alias("order")))


seconds = behind(lambda: (F.col("ms") / 1000).cast("timestamp"))
microseconds = behind(lambda: F.expr("timestamp_micros(ms * 1000)"))
in_json = behind(lambda: F.from_json(_json(), "order STRUCT<text TIMESTAMP>")["order"]["text"])
in_a_path = behind(lambda: F.get_json_object(_json(), "$.order.text").cast("timestamp"))
in_a_udf = behind(lambda: F.udf(lambda text: text.replace(" ", "T"))("text").cast("timestamp"))


def other_column(spark, a):
    return a.withWatermark("t", "10 minutes").groupBy("who").count()


def after(spark, a):
    return tumbling(a).withColumn("e", F.col("window.end")).withWatermark("e", "10 minutes")


def without(spark, a):
    return tumbling(a)


def joined(spark, a, b, more, how="inner"):
    left, right = a.withWatermark("t", "5 minutes"), b.withWatermark("t2", "5 minutes")
    return left.join(right, F.expr("who = who2" + more), how)


def unbounded(spark, a, b):
    return joined(spark, a, b, "")


def outer(spark, a, b):
    return joined(spark, a, b, " AND t2 BETWEEN t AND t + INTERVAL 1 HOUR", "leftOuter")


def inner(spark, a, b):
    return joined(spark, a, b, " AND t2 BETWEEN t AND t + INTERVAL 10 MINUTES")


def unique_names(spark, a):
    return a.withWatermark("t", "10 minutes").dropDuplicates(["who"])


def unique(spark, a):
    return a.withWatermark("t", "60 minutes").dropDuplicates(["who", "t"])


def within(delay):
    return lambda spark, a: a.withWatermark("t", delay).dropDuplicatesWithinWatermark(["who"])


within_ten_minutes, within_a_day = within("10 minutes"), within("1 day")
"""
_A = parse_schema("t TIMESTAMP, text STRING, ms BIGINT, who STRING, n BIGINT")
_B = parse_schema("t2 TIMESTAMP, who2 STRING")
_NOON = datetime(2026, 3, 17, 12, tzinfo=UTC)


def _sample(name: str, schema: Schema, rows: Sequence[tuple[object, ...]]) -> Sample:
    return Sample(name, schema, tuple(rows), 0)


def _a(minutes: Sequence[int]) -> Sample:
    """Rows at these minutes after noon, of three people in turn."""
    rows = []
    for number, minute in enumerate(minutes):
        moment = _NOON + timedelta(minutes=minute)
        text = f"{moment:%Y-%m-%d %H:%M:%S}"
        rows.append((text, text, int(moment.timestamp() * 1000), ("ada", "bob", "cy")[number % 3], number))
    return _sample("a", _A, rows)


def _with(minutes: Sequence[int], **others: int) -> list[int]:
    return [others.get(f"at_{at}", minute) for at, minute in enumerate(minutes)]


_ORDERED = [*range(-20, 100, 5)]
_TWO_LATE = _with(_ORDERED, at_14=-10, at_19=33)
_A_FUTURE_ROW = _with(_ORDERED, at_6=710)
_FEW = [1, 2, 3, 4]
_PARTNERS = _sample(
    "b",
    _B,
    [
        (f"{_NOON + timedelta(minutes=at):%Y-%m-%d %H:%M:%S}", who)
        for at, who in ((0, "ada"), (5, "bob"), (12, "zed"), (30, "ada"), (55, "cy"), (80, "bob"))
    ],
)


@dataclass(frozen=True)
class FaultyJob:
    function: str
    minutes: Sequence[int]
    causes: tuple[str, ...] = ()
    fates: Mapping[str, int] = field(default_factory=dict)
    """How many rows there are of each fate, as far as it is known."""
    mode: str = "append"
    trigger: str = "default"
    fails_on_4: bool = False
    """Whether ANSI mode, on by default from 4.0 on, ends the query."""

    @property
    def samples(self) -> tuple[Sample, ...]:
        return (_a(self.minutes), *((_PARTNERS,) if self.function in ("unbounded", "outer", "inner") else ()))


JOBS: Mapping[str, FaultyJob] = {
    "sound": FaultyJob("sound", _ORDERED, fates={"out": 20, "in state": 4}),
    "sound-sliding": FaultyJob("sliding", _ORDERED, fates={"out": 21, "in state": 3}),
    "sound-inner-join": FaultyJob("inner", _ORDERED, fates={"joined": 10, "without partner": 14, "in state": 6}),
    "sound-outer-join": FaultyJob("outer", _ORDERED, fates={"joined": 19, "without partner": 2, "in state": 9}),
    "sound-deduplication": FaultyJob("unique", _TWO_LATE, fates={"out": 23, "duplicate": 1}),
    "sound-filtered": FaultyJob("filtered", _ORDERED, fates={"out": 12, "in state": 2, "filtered": 10}),
    "short-delay": FaultyJob("sound", _TWO_LATE, ("short-delay",), {"late": 2, "out": 18, "in state": 4}),
    **{
        f"short-delay-{function.replace('_', '-')}": FaultyJob(
            function, _TWO_LATE, ("short-delay",), {"late": 2, "out": 18, "in state": 4}
        )
        for function in ("seconds", "microseconds", "in_json", "in_a_path", "in_a_udf")
    },
    "short-delay-of-sessions": FaultyJob(
        "sessions", _TWO_LATE, ("short-delay",), {"late": 2, "out": 19, "in state": 3}
    ),
    "future-row": FaultyJob("sound", _A_FUTURE_ROW, ("future-row",), {"late": 16, "out": 7, "in state": 1}),
    "hours-of-twelve": FaultyJob(
        "hours_of_twelve",
        _ORDERED,
        ("event-time-not-parsed",),
        {"no event time": 8, "late": 12, "in state": 4},
        fails_on_4=True,
    ),
    "month-as-minute": FaultyJob("month_as_minute", _ORDERED, ("event-time-not-parsed",)),
    "year-of-the-week": FaultyJob("year_of_the_week", _ORDERED, ("event-time-not-parsed",)),
    "milliseconds": FaultyJob("milliseconds", _ORDERED, ("milliseconds-as-seconds",)),
    "append-waits": FaultyJob("sound", _FEW, ("append-before-any-later-row",), {"in state": 4}),
    "other-column": FaultyJob("other_column", _ORDERED, ("watermark-on-other-column",), {"out": 24}, "update"),
    "other-column-refused": FaultyJob("other_column", _ORDERED, ("watermark-on-other-column",)),
    "after": FaultyJob("after", _ORDERED, ("watermark-after-operator",), {}, "update"),
    "without": FaultyJob("without", _ORDERED, ("no-watermark",), {"out": 24}, "update"),
    "without-refused": FaultyJob("without", _ORDERED, ("no-watermark",)),
    "unbounded": FaultyJob("unbounded", _FEW, ("join-without-bound",), {"joined": 9, "in state": 1}),
    "outer-waits": FaultyJob("outer", _FEW, ("outer-join-waits",), {"joined": 7, "in state": 3}),
    "unique-names": FaultyJob(
        "unique_names", _ORDERED, ("deduplication-without-event-time",), {"out": 3, "duplicate": 21}
    ),
    "within-ten-minutes": FaultyJob(
        "within_ten_minutes", _ORDERED, ("duplicates-after-the-delay",), {"out": 9, "duplicate": 15}
    ),
    "sound-within-a-day": FaultyJob("within_a_day", _ORDERED, fates={"out": 3, "duplicate": 21}),
    "once": FaultyJob("sound", _ORDERED, ("last-windows-left-by-once",), {"out": 16, "in state": 8}, trigger="once"),
    "available-now": FaultyJob(
        "sound", _ORDERED, ("last-windows-left",), {"out": 20, "in state": 4}, trigger="availableNow"
    ),
}
