"""Jobs with one fault each, and sound ones: their code, their samples, the cause that must be named and what became of the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from conformance.core.spark_types import Schema, parse_schema
from conformance.own_job.explained_job import JobExplanation
from conformance.own_job.job_case import OwnQuery, own_function
from conformance.own_job.sample import Sample, silent
from conformance.query_progress.answer import explain_progress

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


def sessions_of_people(spark, a):
    gap = F.expr("CASE WHEN who = 'ada' THEN '20 minutes' ELSE '5 minutes' END")
    return a.withWatermark("t", "10 minutes").groupBy(F.session_window("t", gap), "who").count()


def filtered(spark, a):
    return tumbling(a.where("n > 2").withWatermark("t", "10 minutes").where("who <> 'cy'"))


def parsed(pattern):
    def job(spark, a):
        return tumbling(a.select(F.to_timestamp("text", pattern).alias("t"), "who").withWatermark("t", "10 minutes"))

    return job


hours_of_twelve = parsed("yyyy-MM-dd hh:mm:ss")
month_as_minute = parsed("yyyy-mm-dd HH:mm:ss")
year_of_the_week = parsed("YYYY-MM-dd HH:mm:ss")


def milliseconds_joined(spark, b, a):
    left = b.withWatermark("t2", "5 minutes")
    right = a.withColumn("e", F.col("ms").cast("timestamp")).withWatermark("e", "5 minutes")
    return left.join(right, F.expr("who = who2 AND e BETWEEN t2 AND t2 + INTERVAL 10 MINUTES"))


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
in_json = behind(lambda: F.from_json(_json(), "order STRUCT<text: TIMESTAMP>")["order"]["text"])
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


def within_renamed(spark, a):
    return within("10 minutes")(spark, a).selectExpr("who AS person")


within_ten_minutes, within_a_day = within("10 minutes"), within("1 day")
reversed_milliseconds = behind(lambda: (F.col("ms") / 1000000).cast("timestamp"))
not_parsed = behind(lambda: F.expr("CASE WHEN n % 6 <> 1 THEN CAST(text AS TIMESTAMP) END"))
from_text = behind(lambda: F.col("text").cast("timestamp"))


from_text_in_berlin = behind(lambda: F.to_utc_timestamp(F.col("text").cast("timestamp"), "Europe/Berlin"))


def other_time(spark, a):
    return tumbling(a.withColumn("e", F.col("text").cast("timestamp")).withWatermark("t", "10 minutes"), "e")


def unique_joined(spark, a, b):
    return inner(spark, a, b).select("t", "text").dropDuplicates(["text"])


def second_unbounded(spark, a, b, c):
    both = inner(spark, a, b).select("t", "who")
    return both.join(c.withWatermark("t3", "5 minutes"), F.expr("who = who3"))


def semi(spark, a, b):
    return joined(spark, a, b, " AND t2 BETWEEN t AND t + INTERVAL 10 MINUTES", "leftSemi")


def right(spark, a, b):
    return joined(spark, a, b, " AND t2 BETWEEN t AND t + INTERVAL 10 MINUTES", "rightOuter")


def by_window(spark, a, b):
    left = a.withWatermark("t", "5 minutes").select(F.window("t", "10 minutes").alias("w"), "who")
    right = b.withWatermark("t2", "5 minutes").select(F.window("t2", "10 minutes").alias("w"), "who2")
    return left.join(right, "w")


def united(spark, a, b):
    left, right = a.withWatermark("t", "5 minutes"), b.withWatermark("t2", "5 minutes")
    return tumbling(left.select("t", "who").union(right.select("t2", "who2")))


def united_three(spark, a, b, c):
    times = ((a, "t"), (b, "t2"), (c, "t3"))
    marked = (frame.withWatermark(time, "5 minutes").select(F.col(time).alias("at")) for frame, time in times)
    first, second, third = marked
    return tumbling(first.union(second).union(third), "at")


def chained(spark, a):
    hours = F.window(F.window_time("window"), "1 hour")
    return tumbling(a.withWatermark("t", "5 minutes")).groupBy(hours).count()


def joined_then_windows(spark, a, b):
    return inner(spark, a, b).groupBy(F.window("t", "1 day")).count()


def unique_then_window(spark, a):
    return tumbling(a.withWatermark("t", "30 minutes").dropDuplicates(["who", "t"]))


def twice(spark, a):
    return tumbling(a.withWatermark("t", "5 minutes")).groupBy("window").agg(F.count("*").alias("n"))


def offset(spark, a):
    return a.withWatermark("t", "10 minutes").groupBy(F.window("t", "10 minutes", "10 minutes", "3 minutes")).count()


def values(spark, a):
    return offset(spark, a).select(F.to_json(F.struct("*")).alias("value"))


def by_time(spark, a):
    return a.withWatermark("t", "10 minutes").groupBy("t").agg(F.max("n").alias("most"), F.sum("n").alias("sum"))


def approximate(spark, a):
    return a.withWatermark("t", "10 minutes").groupBy(F.window("t", "20 minutes")).agg(F.approx_count_distinct("who"))


def stateless(spark, a):
    return a.withWatermark("t", "10 minutes").where("n >= 0").select("t", F.upper("who").alias("who"))


def with_a_table(spark, a):
    people = spark.createDataFrame([("ada", 1), ("bob", 2), ("cy", 3)], "who STRING, floor INT")
    return tumbling(a.join(people, "who").withWatermark("t", "10 minutes"), "t", "floor")


def with_an_aggregated_table(spark, a):
    people = spark.createDataFrame([("ada", 1), ("bob", 2), ("cy", 3), ("cy", 2)], "who STRING, floor INT")
    floors = people.groupBy("who").agg(F.max("floor").alias("floor"))
    return tumbling(a.join(floors, "who").withWatermark("t", "10 minutes"), "t", "floor")


def inner_with_a_table(spark, a, b):
    people = spark.createDataFrame([("ada", 1), ("bob", 2), ("cy", 3)], "who STRING, floor INT")
    return inner(spark, a.join(people, "who"), b)


def distinct(spark, a):
    return a.withWatermark("t", "60 minutes").select("t", "who").distinct()


def _sql(a, columns):
    a.withWatermark("t", "10 minutes").createOrReplaceTempView("a")
    return f"SELECT DISTINCT {columns} FROM a"


def distinct_in_sql(spark, a):
    return spark.sql(_sql(a, "t, who"))


def distinct_names_in_sql(spark, a):
    return spark.sql(_sql(a, "who"))


def of_a_view(spark, a):
    a.withWatermark("t", "10 minutes").createOrReplaceTempView("a")
    seen = "SELECT upper(who) AS who, window(t, '20 minutes', '10 minutes') AS w FROM a WHERE n > 1"
    return spark.sql("SELECT who, w, count(*) AS n FROM (" + seen + ") GROUP BY who, w")


def by_computed_keys(spark, a):
    return tumbling(a.withWatermark("t", "10 minutes"), "t", F.upper("who").alias("who"), F.col("n") % 2)


def of_filtered_text(spark, a):
    time = F.from_json(_json(), "order STRUCT<text: TIMESTAMP>")["order"]["text"]
    return tumbling(a.where("who <> 'bob'").select(time.alias("e")).withWatermark("e", "10 minutes"), "e")


def some_rows(spark, a):
    return a.where("n % 5 > 1").select(F.upper("who").alias("who"))


def by_day(spark, a):
    return a.withWatermark("t", "10 minutes").groupBy(F.to_date("t").alias("day")).count()


def unique_windows(spark, a):
    marked = a.withWatermark("t", "60 minutes").select(F.window("t", "10 minutes").alias("w"), "who")
    return marked.dropDuplicates(["w", "who"])


def unique_windows_and_times(spark, a):
    marked = a.withWatermark("t", "60 minutes").withColumn("w", F.window("t", "10 minutes"))
    return marked.dropDuplicates(["w", "who"])


def of_states(conf, spends):
    def job(spark, a):
        import pandas

        def count(key, frames, state):
            seen = (state.get[0] if state.exists else 0) + sum(map(len, frames))
            if state.hasTimedOut:
                state.remove()
            else:
                state.update((seen,))
                if spends:
                    state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + 60_000)
            yield pandas.DataFrame({"key": [str(key[0])], "seen": [seen]})

        marked = a.withWatermark("t", "10 minutes").withColumn("key", F.concat("who", F.col("t").cast("string")))
        return marked.groupBy("key").applyInPandasWithState(
            count, "key STRING, seen BIGINT", "seen BIGINT", "update", conf
        )

    return job


no_timeout, with_timeout = of_states("NoTimeout", False), of_states("EventTimeTimeout", True)
timeout_not_set = of_states("EventTimeTimeout", False)


def of_a_topic(spark, a):
    return tumbling(a.withWatermark("timestamp", "10 minutes"), "timestamp")
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
_FUTURE_ROWS = _with(_ORDERED, at_6=700, at_7=705)
_FEW = [1, 2, 3, 4]
_PARTNERS = _sample(
    "b",
    _B,
    [
        (f"{_NOON + timedelta(minutes=at):%Y-%m-%d %H:%M:%S}", who)
        for at, who in ((0, "ada"), (5, "bob"), (12, "zed"), (30, "ada"), (55, "cy"), (80, "bob"))
    ],
)

_JOINING = ("unbounded", "outer", "inner", "inner_with_a_table", "semi", "right", "by_window", "united")


def _b(minutes: Sequence[int], people: Sequence[str] = ("ada", "bob", "cy")) -> Sample:
    rows = ((f"{_NOON + timedelta(minutes=at):%Y-%m-%d %H:%M:%S}", people[n % 3]) for n, at in enumerate(minutes))
    return _sample("b", _B, [*rows])


def _texts(*texts: str) -> Sample:
    """Rows of event times as text, some of which may say their zone."""
    return Sample("a", parse_schema("text STRING, who STRING"), [(text, "ada") for text in texts], None)


def _topic(partitions: Mapping[int, Sequence[int]], order: Sequence[int]) -> Sample:
    """Records of partitions, whose times are minutes after noon; ``order``: of which partition each is."""
    times = {partition: iter(minutes) for partition, minutes in partitions.items()}
    rows = [
        (f"{_NOON + timedelta(minutes=next(times[partition])):%Y-%m-%d %H:%M:%S}", partition, number)
        for number, partition in enumerate(order)
    ]
    return _sample("a", parse_schema("timestamp TIMESTAMP, partition INT, offset BIGINT"), rows)


_SAMPLES: Mapping[str, tuple[Sample, ...]] = {
    "idle-source": (_a(_ORDERED), _b([*range(-20, 30, 10)])),
    "source-without-data": (_a(_ORDERED), silent("b", "t2 TIMESTAMP, who2 STRING")),
    "session-zone": (
        _texts(
            *(f"2026-03-17T{12 + at // 60:02}:{at % 60:02}:00{'Z' if at % 15 else ''}" for at in range(0, 120, 5)),
        ),
    ),
    "session-zone-west": (
        _texts(
            *(
                f"2026-03-17T{12 + at // 60:02}:{at % 60:02}:00{'' if at in (30, 60) else 'Z'}"
                for at in range(0, 120, 5)
            ),
        ),
    ),
    "clock-set-back": (
        _texts(*(f"2026-10-25 0{hour}:{at:02}:00" for hour in (0, 1, 2, 2, 3, 4) for at in (5, 20, 35, 50))),
    ),
    "lagging-partition": (_topic({0: range(0, 120, 5), 1: range(-100, 0, 10)}, [0, 0, 0, 0, 1] * 4 + [0, 0, 0, 0]),),
    "sound-idle-partition": (_topic({0: range(0, 120, 5), 1: range(4)}, [0, 1, 1, 1] + [0] * 20),),
    "newest-first": (_a([at + 20 * block for block in range(5, -1, -1) for at in (0, 5, 10, 15)]),),
    "unbounded": (_a(_ORDERED), _b(_ORDERED)),
    "three": (
        _a(_TWO_LATE),
        _b(_ORDERED),
        replace(_b(_ORDERED), stream="c", schema=parse_schema("t3 TIMESTAMP, who3 STRING")),
    ),
    "three-in-order": (
        _a(_ORDERED),
        _b(_ORDERED),
        replace(_b(_ORDERED), stream="c", schema=parse_schema("t3 TIMESTAMP, who3 STRING")),
    ),
    "milliseconds-joined": (_b(_ORDERED), _a(_ORDERED)),
    "outer-waits": (_a([1, 2, 3, 4]), _b([1, 2, 3, 4], ("zed", "yan", "xu"))),
}


@dataclass(frozen=True)
class FaultyJob:
    function: str
    minutes: Sequence[int] = ()
    causes: tuple[str, ...] = ()
    treated: Mapping[str, int] = field(default_factory=dict)
    """How many rows there are of each treatment, as far as it is known."""
    mode: str = "append"
    trigger: str = "default"
    fails_on_4: bool = False
    """Whether ANSI mode, on by default from 4.0 on, ends the query."""
    progress: tuple[str, ...] | None = None
    """The causes by the progress of the same run, where progress shows others: fewer, or less of one."""
    first: str = "3.0.3"
    """The oldest version that has what the job uses."""
    last: str = "4.3.0"
    conf: Mapping[str, str] = field(default_factory=dict)
    sample: str = ""
    """Its key in `_SAMPLES`."""
    treated_since: str = ""
    """The version from which on the treatment of rows is known."""
    counted_since: str = ""
    """The version from which on progress counts the late rows."""

    @property
    def samples(self) -> tuple[Sample, ...]:
        if self.sample:
            return _SAMPLES[self.sample]
        return (_a(self.minutes), *((_PARTNERS,) if self.function in _JOINING else ()))

    @property
    def versions(self) -> tuple[str, ...]:
        return self.first, self.last

    @property
    def query(self) -> OwnQuery:
        return replace(own_function(f"faulty_jobs:{self.function}"), output_mode=self.mode, trigger=self.trigger)

    def expected(self, version: str) -> Named:
        by_progress = self.causes if self.progress is None else self.progress
        if version < self.counted_since:
            by_progress = ()
        if self.fails_on_4 and version >= "4":
            return [*self.causes], ["other-event-time"], {}
        return [*self.causes], [*by_progress], {**self.treated} if version >= self.treated_since else {}


Named: TypeAlias = tuple[list[str], list[str], dict[str, int]]
"""The causes by the sample, those by the progress of the same run, and how many rows have each treatment, as far as all are known."""


def named(answer: JobExplanation) -> Named:
    """Return what an answer says; an answer by progress alone is made of the progress of the same run."""
    treated = Counter(row.treatment for row in answer.job.treated.rows)
    queries = explain_progress(batch.progress for batch in answer.job.seen.batches).queries
    by_progress = [cause.id for query in queries for cause in query.causes]
    return [cause.id for cause in answer.causes], by_progress, {} if "not known" in treated else {**treated}


JOBS: Mapping[str, FaultyJob] = {
    "sound": FaultyJob("sound", _ORDERED, treated={"out": 20, "in state": 4}),
    "sound-sliding": FaultyJob("sliding", _ORDERED, treated={"out": 21, "in state": 3}),
    "sound-inner-join": FaultyJob("inner", _ORDERED, treated={"joined": 10, "without partner": 14, "in state": 6}),
    "sound-outer-join": FaultyJob("outer", _ORDERED, treated={"joined": 19, "without partner": 2, "in state": 9}),
    "sound-deduplication": FaultyJob("unique", _TWO_LATE, treated={"out": 23, "duplicate": 1}),
    "sound-filtered": FaultyJob("filtered", _ORDERED, treated={"out": 12, "in state": 2, "filtered": 10}),
    "short-delay": FaultyJob("sound", _TWO_LATE, ("short-delay",), {"late": 2, "out": 18, "in state": 4}),
    **{
        f"short-delay-{function.replace('_', '-')}": FaultyJob(
            function,
            _TWO_LATE,
            ("short-delay",),
            {"late": 2, "out": 18, "in state": 4},
            first="3.1.3" if function == "microseconds" else "3.0.3",
        )
        for function in ("seconds", "microseconds", "in_json", "in_a_path", "in_a_udf")
    },
    "short-delay-of-sessions": FaultyJob(
        "sessions",
        _TWO_LATE,
        ("short-delay",),
        {"late": 2, "out": 19, "in state": 3},
        first="3.2.4",
        counted_since="3.3",  # SPARK-38593: of session windows 3.2 always counts 0
    ),
    "short-delay-of-other-gaps": FaultyJob(
        "sessions_of_people", _TWO_LATE, ("short-delay",), {"late": 2, "out": 12, "in state": 10}, first="3.3.4"
    ),
    "future-row": FaultyJob("sound", _A_FUTURE_ROW, ("future-row",), {"late": 16, "out": 7, "in state": 1}),
    "future-rows": FaultyJob("sound", _FUTURE_ROWS, ("future-row",), {"late": 16, "out": 6, "in state": 2}),
    "future-row-above-a-filter": FaultyJob(
        "filtered", _A_FUTURE_ROW, ("future-row",), {"late": 10, "out": 3, "in state": 1, "filtered": 10}
    ),
    "milliseconds-joined": FaultyJob(
        "milliseconds_joined",
        (),
        ("milliseconds-as-seconds",),
        {"in state": 28, "without partner": 20},
        progress=(),
        sample="milliseconds-joined",
    ),
    "null-and-late": FaultyJob(
        "not_parsed",
        _TWO_LATE,
        ("null-event-time", "short-delay"),
        {"no event time": 4, "late": 1, "out": 15, "in state": 4},
        progress=("null-event-time",),
    ),
    "windows-of-windows-wait": FaultyJob(
        "chained",
        [*range(0, 48, 2)],
        ("append-before-any-later-row",),
        {"in state": 24},
        progress=(),
        first="3.5.9",
    ),
    "windows-of-joined-rows-wait": FaultyJob(
        "joined_then_windows",
        (),
        ("append-before-any-later-row",),
        {"in state": 48},
        progress=(),
        sample="unbounded",
        first="3.5.9",
    ),
    "join-waits": FaultyJob("inner", (), ("join-waits",), {"in state": 8}, progress=(), sample="outer-waits"),
    "second-join-unbounded": FaultyJob(
        "second_unbounded", (), ("join-without-bound",), sample="three-in-order", progress=()
    ),
    "within-renamed": FaultyJob(
        "within_renamed",
        _ORDERED,
        ("duplicates-after-the-delay",),
        {"out": 9, "duplicate": 15},
        progress=(),
        first="3.5.9",
    ),
    "sound-with-an-aggregated-table": FaultyJob(
        "with_an_aggregated_table", _ORDERED, treated={"out": 20, "in state": 4}
    ),
    "sound-join-with-a-table": FaultyJob(
        "inner_with_a_table", _ORDERED, treated={"joined": 10, "without partner": 14, "in state": 6}
    ),
    "hours-of-twelve": FaultyJob(
        "hours_of_twelve",
        _ORDERED,
        ("event-time-not-parsed",),
        {"no event time": 8, "late": 12, "in state": 4},
        fails_on_4=True,
        progress=("null-event-time",),
    ),
    "month-as-minute": FaultyJob("month_as_minute", _ORDERED, ("event-time-not-parsed",), progress=()),
    "year-of-the-week": FaultyJob("year_of_the_week", _ORDERED, ("event-time-not-parsed",), progress=()),
    "milliseconds": FaultyJob("milliseconds", _ORDERED, ("milliseconds-as-seconds",), {"out": 23, "in state": 1}),
    "append-waits": FaultyJob("sound", _FEW, ("append-before-any-later-row",), {"in state": 4}, progress=()),
    "other-column": FaultyJob(
        "other_column", _ORDERED, ("watermark-on-other-column",), {"out": 24}, "update", progress=()
    ),
    "other-column-refused": FaultyJob("other_column", _ORDERED, ("watermark-on-other-column",), progress=()),
    "after": FaultyJob(
        "after",
        _ORDERED,
        ("watermark-after-operator",),
        {"out": 24},
        "update",
        progress=(),
        treated_since="3.5",  # 3.0 runs micro-batches without data for the watermark above the aggregation
    ),
    "without": FaultyJob("without", _ORDERED, ("no-watermark",), {"out": 24}, "update"),
    # 4.3 sees two columns of event time.
    "windows-refused": FaultyJob(
        "unique_windows_and_times", _ORDERED, ("two-event-times",), progress=(), first="4.3.0"
    ),
    "without-refused": FaultyJob("without", _ORDERED, ("no-watermark",), progress=()),
    "unbounded": FaultyJob("unbounded", (), ("join-without-bound",), {"joined": 48}, sample="unbounded", progress=()),
    "unique-names": FaultyJob(
        "unique_names", _ORDERED, ("deduplication-without-event-time",), {"out": 3, "duplicate": 21}, progress=()
    ),
    "within-ten-minutes": FaultyJob(
        "within_ten_minutes",
        _ORDERED,
        ("duplicates-after-the-delay",),
        {"out": 9, "duplicate": 15},
        progress=(),
        first="3.5.9",
    ),
    "sound-within-a-day": FaultyJob("within_a_day", _ORDERED, treated={"out": 3, "duplicate": 21}, first="3.5.9"),
    "once": FaultyJob(
        "sound", _ORDERED, ("last-windows-left-by-once",), {"out": 16, "in state": 8}, trigger="once", progress=()
    ),
    "available-now": FaultyJob(
        "sound",
        _ORDERED,
        ("last-windows-left",),
        {"out": 20, "in state": 4},
        trigger="availableNow",
        progress=(),
        first="3.3.4",
    ),
    "no-data-off": FaultyJob(
        "sound",
        _ORDERED,
        ("no-data-batches-off",),
        progress=(),
        conf={"spark.sql.streaming.noDataMicroBatches.enabled": "false"},
        treated={"out": 16, "in state": 8},
    ),
    "idle-source": FaultyJob(
        "inner",
        (),
        ("idle-source",),
        sample="idle-source",
        treated={"joined": 10, "without partner": 2, "in state": 17},
    ),
    "source-without-data": FaultyJob(
        "outer", (), ("source-without-data",), sample="source-without-data", treated={"in state": 24}
    ),
    "seconds-as-milliseconds": FaultyJob(
        "reversed_milliseconds", _ORDERED, ("seconds-as-milliseconds",), treated={"in state": 24}
    ),
    "null-after-parsing": FaultyJob(
        "not_parsed", _ORDERED, ("null-event-time",), {"out": 16, "no event time": 4, "in state": 4}
    ),
    "other-time": FaultyJob(
        "other_time",
        _ORDERED,
        ("watermark-on-other-column",),
        {"out": 24},
        "update",
        progress=(),
    ),
    "session-zone": FaultyJob(
        "from_text",
        (),
        ("session-zone",),
        progress=("short-delay",),
        conf={"spark.sql.session.timeZone": "Europe/Berlin"},
        sample="session-zone",
        treated={"out": 15, "late": 6, "in state": 3},
    ),
    "session-zone-west": FaultyJob(
        "from_text",
        (),
        ("session-zone",),
        progress=("short-delay",),
        conf={"spark.sql.session.timeZone": "America/New_York"},
        sample="session-zone-west",
        treated={"out": 8, "late": 15, "in state": 1},
    ),
    "clock-set-back": FaultyJob(
        "from_text",
        (),
        ("daylight-saving",),
        progress=("short-delay",),
        conf={"spark.sql.session.timeZone": "Europe/Berlin"},
        sample="clock-set-back",
        treated={"out": 20, "late": 3, "in state": 1},
    ),
    "clock-of-the-zone-named-set-back": FaultyJob(
        "from_text_in_berlin",
        (),
        ("daylight-saving",),
        progress=("short-delay",),
        sample="clock-set-back",
        treated={"out": 20, "late": 3, "in state": 1},
    ),
    "lagging-partition": FaultyJob(
        "of_a_topic",
        (),
        ("lagging-partition",),
        progress=("short-delay",),
        sample="lagging-partition",
        treated={"out": 16, "late": 4, "in state": 4},
    ),
    "sound-idle-partition": FaultyJob(
        "of_a_topic", (), sample="sound-idle-partition", treated={"out": 21, "in state": 3}
    ),
    "newest-first": FaultyJob(
        "sound", (), ("newest-files-first",), sample="newest-first", treated={"in state": 4, "late": 20}
    ),
    "outer-waits": FaultyJob(
        "outer", (), ("outer-join-waits",), progress=(), sample="outer-waits", treated={"in state": 8}
    ),
    "no-timeout": FaultyJob("no_timeout", _ORDERED, ("state-without-timeout",), mode="update", first="3.4.4"),
    "timeout-not-set": FaultyJob(
        "timeout_not_set", _ORDERED, ("state-without-timeout",), mode="update", first="3.4.4", progress=()
    ),
    "unique-joined": FaultyJob(
        "unique_joined",
        (),
        ("deduplication-without-event-time",),
        treated={"joined": 48},
        sample="unbounded",
        first="3.5.9",
    ),
    "short-delay-of-a-union": FaultyJob(
        "united_three", (), ("short-delay",), {"late": 2, "out": 64, "in state": 6}, sample="three"
    ),
    "several-aggregations": FaultyJob("twice", _ORDERED, ("several-operators-below-3.5",), progress=(), last="3.3.4"),
    "sound-with-timeout": FaultyJob("with_timeout", _ORDERED, mode="update", first="3.4.4"),
    "sound-semi-join": FaultyJob(
        "semi", _ORDERED, first="3.1.3", treated={"without partner": 18, "joined": 5, "in state": 7}
    ),
    "sound-right-join": FaultyJob("right", _ORDERED, treated={"without partner": 14, "joined": 10, "in state": 6}),
    "sound-join-by-window": FaultyJob(
        "by_window", _ORDERED, treated={"joined": 16, "without partner": 10, "in state": 4}
    ),
    "sound-union": FaultyJob("united", _ORDERED, treated={"out": 23, "in state": 7}),
    "sound-chained": FaultyJob("chained", _ORDERED, first="3.5.9", treated={"out": 22, "in state": 2}),
    "sound-unique-then-window": FaultyJob("unique_then_window", _ORDERED, treated={"out": 24}),
    "sound-update": FaultyJob("sound", _ORDERED, mode="update", treated={"out": 24}),
    "sound-complete": FaultyJob("sound", _ORDERED, mode="complete", treated={"out": 24}),
    "sound-sessions": FaultyJob("sessions", _ORDERED, first="3.2.4", treated={"out": 21, "in state": 3}),
    "sound-offset": FaultyJob("offset", _ORDERED, treated={"out": 21, "in state": 3}),
    "sound-values": FaultyJob("values", _ORDERED, mode="update", treated={"out": 24}),
    "sound-by-time": FaultyJob("by_time", _ORDERED, treated={"out": 22, "in state": 2}),
    "sound-approximate": FaultyJob("approximate", _ORDERED, treated={"out": 20, "in state": 4}),
    "sound-stateless": FaultyJob("stateless", _ORDERED, treated={"out": 24}),
    "sound-with-a-table": FaultyJob("with_a_table", _ORDERED, treated={"out": 20, "in state": 4}),
    "sound-unique-windows": FaultyJob("unique_windows", _ORDERED, treated={"out": 24}),
    "sound-distinct": FaultyJob("distinct", _ORDERED, treated={"out": 24}),
    "sound-distinct-in-sql": FaultyJob("distinct_in_sql", _ORDERED, treated={"out": 22, "in state": 2}),
    "distinct-names-in-sql": FaultyJob(
        "distinct_names_in_sql", _ORDERED, ("deduplication-without-event-time",), progress=()
    ),
    "by-day": FaultyJob("by_day", _ORDERED, ("watermark-on-other-column",), {"out": 24}, mode="update", progress=()),
    "by-day-refused": FaultyJob("by_day", _ORDERED, ("watermark-on-other-column",), progress=()),
    "outer-no-data-off": FaultyJob(
        "outer",
        _ORDERED,
        ("no-data-batches-off",),
        progress=(),
        conf={"spark.sql.streaming.noDataMicroBatches.enabled": "false"},
        treated={"joined": 19, "in state": 10, "without partner": 1},
    ),
    "sound-windows-of-a-view": FaultyJob("of_a_view", _ORDERED, treated={"filtered": 2, "out": 18, "in state": 4}),
    "sound-computed-keys": FaultyJob("by_computed_keys", _ORDERED, treated={"out": 20, "in state": 4}),
    "short-delay-of-filtered-text": FaultyJob(
        "of_filtered_text", _TWO_LATE, ("short-delay",), {"filtered": 8, "late": 1, "out": 12, "in state": 3}
    ),
    "sound-some-rows": FaultyJob("some_rows", _ORDERED, treated={"filtered": 10, "out": 14}),
    "sound-from-text": FaultyJob("from_text", _ORDERED, treated={"out": 20, "in state": 4}),
}
"""Each job with the causes that `explain` names and with those that its progress alone shows."""
