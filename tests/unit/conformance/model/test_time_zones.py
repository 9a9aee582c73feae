"""Functions of time in the time zone of the session.

``SEEN`` is what Spark 3.5.9 answered (2,960 answers of 10 zones were the same, and of 150 the model says that it does not know them);
the others are in Spark's own tests, which each test names.
"""

import pytest

from conformance.core.versions import SparkVersion
from conformance.judging.verdict import judge
from conformance.language import case_from
from conformance.model.catalogue import rules_of
from conformance.model.errors import Unpredictable
from conformance.model.expressions import evaluate
from conformance.model.functions import BY_TIME_ZONE, FUNCTIONS
from conformance.model.parsing import parse
from conformance.oracle.prediction import predict
from tests.support.model_frames import SECOND, events, played

LOS_ANGELES, KOLKATA, LORD_HOWE = "America/Los_Angeles", "Asia/Kolkata", "Australia/Lord_Howe"


def value(text, zone, version="3.5.9"):
    return evaluate(parse(text, (), rules_of(SparkVersion.parse(version)), zone).expression, {})


def seconds(instant):
    return value(f"CAST('{instant}Z' AS TIMESTAMP)", "UTC")


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", "2018-12-02 10:11:12"),
        ("Africa/Dakar", "2018-12-02 10:11:12"),
        (LOS_ANGELES, "2018-12-02 02:11:12"),
        ("Asia/Urumqi", "2018-12-02 16:11:12"),
        ("Asia/Hong_Kong", "2018-12-02 18:11:12"),
        ("Europe/Brussels", "2018-12-02 11:11:12"),
    ],
)
def test_times_are_shown_and_read_in_the_zone(zone, shown):
    """`TimestampFormatterSuite`: "format timestamps using time zones", "parsing timestamps using time zones"."""
    instant = 1_543_745_472_001_234
    time = "CAST('2018-12-02 10:11:12.001234Z' AS TIMESTAMP)"
    assert value(time, zone) == instant
    assert value(f"date_format({time}, 'yyyy-MM-dd HH:mm:ss')", zone) == shown
    assert value(f"CAST({time} AS STRING)", zone) == f"{shown}.001234"
    for text in (
        f"CAST('{shown}' AS TIMESTAMP)",
        f"TIMESTAMP'{shown}'",
        f"to_timestamp('{shown}', 'yyyy-MM-dd HH:mm:ss')",
    ):
        assert value(text, zone) == instant - 1_234


@pytest.mark.parametrize("zone", ["UTC", LOS_ANGELES, KOLKATA, LORD_HOWE, "Asia/Kathmandu", "+05:30", "-03:30"])
@pytest.mark.parametrize(
    ("unit", "begin"),
    [("DAY", "00:00:00"), ("HOUR", "09:00:00"), ("MINUTE", "09:32:00"), ("SECOND", "09:32:05")],
)
def test_date_trunc_cuts_what_the_clock_of_the_zone_shows(unit, begin, zone):
    """`DateTimeUtilsSuite`: "truncTimestamp"."""
    cut = value(f"date_trunc('{unit}', TIMESTAMP'2015-03-05 09:32:05.359123')", zone)
    assert cut == value(f"TIMESTAMP'2015-03-05 {begin}'", zone)


SEEN = [
    # The clock skips from 02:00 to 03:00, and repeats the hour from 01:00.
    (LOS_ANGELES, "TIMESTAMP'2016-03-13 02:30:00'", "2016-03-13 10:30"),
    (LOS_ANGELES, "TIMESTAMP'2016-11-06 01:30:00'", "2016-11-06 08:30"),
    (LOS_ANGELES, "date_trunc('HOUR', CAST('2016-11-06 08:45Z' AS TIMESTAMP))", "2016-11-06 08:00"),
    (LOS_ANGELES, "date_trunc('HOUR', CAST('2016-11-06 09:15Z' AS TIMESTAMP))", "2016-11-06 09:00"),
    (LOS_ANGELES, "date_trunc('DAY', CAST('2016-11-06 20:00Z' AS TIMESTAMP))", "2016-11-06 07:00"),
    (LOS_ANGELES, "date_trunc('DAY', CAST('2016-03-13 10:30Z' AS TIMESTAMP))", "2016-03-13 08:00"),
    # Half an hour ahead of the full hour in winter, and of an hour whose second half is repeated.
    (KOLKATA, "date_trunc('HOUR', CAST('1970-01-01 00:00:05Z' AS TIMESTAMP))", "1969-12-31 23:30"),
    (LORD_HOWE, "date_trunc('HOUR', CAST('2024-04-06 14:45Z' AS TIMESTAMP))", "2024-04-06 14:00"),
    (LORD_HOWE, "date_trunc('HOUR', CAST('2024-04-06 15:10Z' AS TIMESTAMP))", "2024-04-06 14:00"),
    (LORD_HOWE, "date_trunc('HOUR', CAST('2024-04-06 15:40Z' AS TIMESTAMP))", "2024-04-06 15:30"),
    # Midnight is twice; the day of an instant in winter begins with the second.
    ("America/Havana", "date_trunc('DAY', CAST('2024-11-03 04:30Z' AS TIMESTAMP))", "2024-11-03 04:00"),
    ("America/Havana", "date_trunc('DAY', CAST('2024-11-03 17:00Z' AS TIMESTAMP))", "2024-11-03 05:00"),
    ("America/Havana", "CAST(CAST('2024-11-03 00:30:00' AS TIMESTAMP_NTZ) AS TIMESTAMP)", "2024-11-03 04:30"),
    (KOLKATA, "CAST('2024-11-03 00:30:00' AS TIMESTAMP_NTZ)", "2024-11-03 00:30"),
    (KOLKATA, "CAST(CAST('2024-11-03 00:30Z' AS TIMESTAMP) AS TIMESTAMP_NTZ)", "2024-11-03 06:00"),
    # The clocks skip midnight on this day.
    ("America/Sao_Paulo", "date_trunc('DAY', CAST('2018-11-04 15:00Z' AS TIMESTAMP))", "2018-11-04 03:00"),
    # 20:00 on 30 January is the 31st in Kolkata, and a month later the 29th of February.
    (KOLKATA, "CAST('2024-01-30 20:00Z' AS TIMESTAMP) + INTERVAL 1 MONTH", "2024-02-28 20:00"),
    (LOS_ANGELES, "CAST(7 AS TIMESTAMP)", "1970-01-01 00:00:07"),
]


@pytest.mark.parametrize(("zone", "expression", "found"), SEEN)
def test_where_the_clocks_change(zone, expression, found):
    assert value(expression, zone) == seconds(found)


@pytest.mark.parametrize(
    ("zone", "expression", "reason"),
    [
        (LOS_ANGELES, "CAST('2016-03-13 08:30Z' AS TIMESTAMP) + INTERVAL 1 DAY", "the clocks change in"),
        (LOS_ANGELES, "CAST('2016-03-13 20:30Z' AS TIMESTAMP) - INTERVAL 24 HOURS", "the clocks change in"),
        (LOS_ANGELES, "CAST('2016-02-28 20:30Z' AS TIMESTAMP) + INTERVAL 1 MONTH", "the clocks change in"),
        (LOS_ANGELES, "TIMESTAMP'2016-03-14 00:00:00' - TIMESTAMP'2016-03-13 00:00:00'", "the clocks change in"),
        ("Africa/Monrovia", "CAST(TIMESTAMP'1970-01-01 00:00:00Z' AS STRING)", "an offset of seconds"),
        ("PST", "CAST(TIMESTAMP'1970-01-01 00:00:00Z' AS STRING)", "the time zone PST"),
        ("Europe/Atlantis", "CAST(TIMESTAMP'1970-01-01 00:00:00Z' AS STRING)", "the time zone Europe/Atlantis"),
        ("../Europe/Paris", "CAST(TIMESTAMP'1970-01-01 00:00:00Z' AS STRING)", "the time zone"),
        (KOLKATA, "CAST(TIMESTAMP'9999-12-31 23:00:00Z' AS STRING)", "outside the years"),
        (KOLKATA, "date_trunc('HOUR', '1970-01-01 00:00:00')", "date_trunc of string"),
    ],
)
def test_what_is_left_open(zone, expression, reason):
    with pytest.raises(Unpredictable, match=reason):
        value(expression, zone)


def test_below_3_0_zones_are_those_of_another_library():
    """SPARK-26651: before it, `date_trunc` of a day on which the clocks change was an hour off."""
    time = "date_trunc('DAY', CAST('2016-11-06 20:00Z' AS TIMESTAMP))"
    with pytest.raises(Unpredictable, match=r"time zones of java\.time where it does not exist"):
        value(time, LOS_ANGELES, "2.4.8")
    assert value(time, "UTC", "2.4.8") == seconds("2016-11-06 00:00")


def test_each_function_of_the_zone_exists():
    assert FUNCTIONS.keys() >= BY_TIME_ZONE


def test_a_case_shows_times_in_the_zone_of_its_conf_and_after_a_restart_in_another():
    zone = "spark.sql.session.timeZone"
    query = ["date_trunc('HOUR', event_time) AS hour", "date_format(event_time, 'HH:mm') AS shown"]
    case = case_from(
        {
            "title": "x",
            "behaviour": ["wm-formula"],
            "streams": {"events": "event_time TIMESTAMP"},
            "query": [{"from": "events"}, {"select": query}],
            "conf": {zone: KOLKATA},
            "steps": [
                {"add": {"events": [["12:05"]]}, "expect": {"rows": [["11:30", "17:35"]]}},
                {"restart": {"how": "graceful", "change": {"conf": {zone: "America/St_Johns"}}}},
                {"add": {"events": [["12:05"]]}, "expect": {"rows": [["11:30", "08:35"]]}},
            ],
        },
        "x",
    )
    version = SparkVersion.parse("4.3.0")
    assert judge(case, version, predict(case, version).observation).findings == ()


@pytest.mark.parametrize("time_zone", ["UTC", KOLKATA, LOS_ANGELES])
def test_a_session_whose_gap_is_a_day_during_which_the_clocks_change_is_left_open(time_zone):
    """`SessionWindowing` adds the gap to the time, as a day of the zone."""
    frame = events(time_zone=time_zone).with_watermark("t", "0 seconds")
    frame = frame.group_by(["session_window(t, '1 day')", "s"], ["count(*) AS c"])
    before_the_change = seconds("2016-03-13 08:30") // SECOND
    batches = [(before_the_change, 1, "a")], [(before_the_change + 90_000, 1, "b")]
    if time_zone == LOS_ANGELES:
        with pytest.raises(Unpredictable, match="the clocks change in"):
            played(frame, *batches)
    else:
        assert [len(rows) for rows in played(frame, *batches)[0]] == [0, 1]
