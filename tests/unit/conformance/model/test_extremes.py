"""Numbers in a case decide how much the model builds: whatever they are, it takes little memory and comes to an end."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conformance.core.versions import SparkVersion
from conformance.language import case_from
from conformance.model import operators, sql
from conformance.model.errors import ModelDefect, Unpredictable
from conformance.oracle.prediction import predict
from tests.support.effort import number
from tests.support.limits import LIMITED, what_was_exceeded

FEWER_ROWS = 20_000
"""Instead of the million up to which the model predicts, for tests that end in seconds."""
MEMORY, SECONDS = 600_000_000, 60
"""What a prediction may take beyond the modules that are loaded, in bytes; and of the processor."""

NUMBERS = st.sampled_from([0, 1, 2, 7, 40, 1_000, 10**5, 10**6, 10**9, 2**31, 2**63, 10**18, 10**30])
UNITS = st.sampled_from(["microsecond", "millisecond", "second", "hour", "day", "week", "month", "year"])
LENGTHS = st.builds("{} {}".format, NUMBERS, UNITS)
TIMES = ["12:00", "00:00", "1969-12-31 23:59:59.999999", "2024-02-29 00:00", "9999-12-31 00:00", "0001-01-01 00:00"]
NOON = TIMES[:1]
EVENTS = "event_time TIMESTAMP, id INT, s STRING"


def counted(*keys):
    return {"groupBy": list(keys), "agg": ["count(*) AS n"]}


def many(times, operation):
    return [operation] * times


def over(statement):
    return [{"sql": statement, "as": "v"}]


def equal_columns(streams, columns):
    """Joins on several columns, each of which has a filter: what one column meets, the other columns meet, too."""
    schemas = {
        f"e{at}": f"t{at} TIMESTAMP, " + ", ".join(f"c{at}_{of} INT" for of in range(columns)) for at in range(streams)
    }
    query = [{"from": "e0"}, *({"where": f"c0_{of} > {of}"} for of in range(columns))]
    for at in range(1, streams):
        on = " AND ".join(f"c{at}_{of} = c{at - 1}_{of} AND c{at}_{of} = c0_0" for of in range(columns))
        query.append({"join": [{"from": f"e{at}"}], "on": on})
    return schemas, query, dict.fromkeys(schemas, 1)


OPERATIONS = st.one_of(
    st.builds("window(event_time, '{}')".format, LENGTHS).map(lambda window: [counted(window)]),
    st.builds("window(event_time, '{}', '{}')".format, LENGTHS, LENGTHS).map(lambda window: [counted(window)]),
    st.builds("window(event_time, '{}', '{}', '{}')".format, LENGTHS, LENGTHS, LENGTHS).map(
        lambda w: [counted(w, "id")]
    ),
    st.builds("session_window(event_time, CASE WHEN id = 0 THEN '{}' ELSE '{}' END)".format, LENGTHS, LENGTHS).map(
        lambda session: [counted(session, "s")]
    ),
    st.builds("SELECT r.id FROM v JOIN range({}, {}) AS r ON v.id = r.id".format, NUMBERS, NUMBERS).map(over),
    st.builds("SELECT r.id FROM v JOIN range(0, {}) AS r ON v.id + r.id < 0".format, NUMBERS).map(over),
    st.builds("SELECT * FROM v LIMIT {}".format, NUMBERS).map(over),
    st.builds("SELECT {} FROM v".format, st.integers(1, 400).map(lambda times: ", ".join(["*"] * times))).map(over),
    NUMBERS.map(lambda rows: [{"limit": rows}]),
    LENGTHS.map(lambda delay: [{"withWatermark": ["event_time", delay]}]),
    st.sampled_from(["sequence(1, {})", "explode(sequence(1, {}))", "repeat(s, {})", "space({})", "lpad(s, {}, 'x')"])
    .flatmap(lambda call: NUMBERS.map(call.format))
    .map(lambda call: [{"select": ["event_time", f"{call} AS x"]}]),
    st.builds("id * {} > 0 AND round(id / 3, {}) > 0".format, NUMBERS, NUMBERS).map(lambda where: [{"where": where}]),
    LENGTHS.map(lambda length: [{"where": f"event_time + INTERVAL '{length}' > event_time"}]),
    st.integers(1, 60).map(lambda times: many(times, {"withColumn": ["s", "concat(s, s)"]})),
    st.integers(1, 60).map(lambda times: many(times, {"withColumn": ["id", "id * id"]})),
    st.integers(1, 60).map(lambda times: [*many(times, {"withColumn": ["id", "id + id"]}), {"where": "id > 5"}]),
    st.integers(1, 60).map(
        lambda times: [
            {"select": ["event_time", "struct(id, s) AS s"]},
            *many(times, {"select": ["event_time", "struct(s, s) AS s"]}),
        ]
    ),
    st.integers(1, 30).map(lambda parts: [{"where": f"concat(s, '{'a' * 60}') LIKE '%{'a%' * parts}b'"}]),
    st.integers(1, 60).map(lambda times: [{"where": " AND ".join(f"id > {at}" for at in range(times))}]),
)


def of_one(operations, rows=3):
    return {"events": EVENTS}, [{"from": "events"}, *operations], {"events": rows}


def of_two(left, right, condition):
    streams = {"a": EVENTS, "b": "t TIMESTAMP, n INT, u STRING"}
    return streams, [{"from": "a"}, {"join": [{"from": "b"}], "on": condition}], {"a": left, "b": right}


def in_a_range(low, high, delay):
    streams, (left, join), rows = of_two(
        2, 2, f"s = u AND t BETWEEN event_time - INTERVAL {low} AND event_time + INTERVAL {high}"
    )
    watermarks = [{"withWatermark": [time, delay]} for time in ("event_time", "t")]
    join = {**join, "join": [*join["join"], watermarks[1]], "how": "leftOuter"}
    return streams, [left, watermarks[0], join], rows


def queries():
    """Streams, a query over them, and the number of rows of each."""
    operations = st.lists(OPERATIONS, min_size=1, max_size=2).map(
        lambda drawn: [operation for part in drawn for operation in part]
    )
    watermark = {"withWatermark": ["event_time", "1 minute"]}
    conditions = ["s = u", "s = u AND id + n < 0", "id = n AND event_time <= t + INTERVAL 1 HOUR"]
    return st.one_of(
        operations.map(lambda drawn: of_one([watermark, *drawn])),
        st.builds(of_two, *[st.sampled_from([1, 200, 2_000])] * 2, st.sampled_from(conditions)),
        st.builds(in_a_range, LENGTHS, LENGTHS, LENGTHS),
        st.builds(equal_columns, st.integers(2, 8), st.integers(1, 4)),
    )


def case_of(streams, query, rows, mode, times):
    """Two micro-batches of these numbers of rows: instants, numbers from 0, and a text."""
    values = {"TIMESTAMP": lambda at: times[at % len(times)], "INT": lambda at: at, "STRING": lambda _: "x"}
    kinds = {stream: [column.split()[1] for column in schema.split(", ")] for stream, schema in streams.items()}
    arriving = {name: [[values[kind](at) for kind in kinds[name]] for at in range(n)] for name, n in rows.items()}
    steps = [{"add": arriving}] * 2
    return case_from({"title": "t", "streams": streams, "query": query, "outputMode": mode, "steps": steps}, "e/a")


def _predict(streams, query, rows, mode, times, version):
    operators.MOST_ROWS = sql.MOST_ROWS = FEWER_ROWS
    try:
        predict(case_of(streams, query, rows, mode, times), SparkVersion.parse(version))
    except ModelDefect as defect:
        if isinstance(defect.__cause__, MemoryError):
            raise defect.__cause__ from None
    except (Unpredictable, ValueError):  # not predicted, or no case
        pass


@pytest.mark.skipif(not LIMITED, reason="the system does not say how much memory is taken")
@settings(max_examples=number(6, 600))
@given(
    queries(),
    st.sampled_from(["append", "update", "complete"]),
    st.lists(st.sampled_from(TIMES), min_size=1, max_size=4),
    st.sampled_from(["3.3.4", "4.3.0"]),
)
@example(of_one(over("SELECT id FROM range(0, 1000000000000)")), "append", NOON, "4.3.0")
@example(of_one(many(40, {"withColumn": ["s", "concat(s, s)"]})), "append", NOON, "4.3.0")
@example(of_one([*many(40, {"withColumn": ["id", "id + id"]}), {"where": "id > 5"}]), "append", NOON, "4.3.0")
@example(equal_columns(8, 3), "append", NOON, "4.3.0")
def test_whatever_the_numbers_a_prediction_takes_little_memory_and_time(query, mode, times, version):
    assert what_was_exceeded(_predict, *query, mode, times, version, memory=MEMORY, seconds=SECONDS) is None
