"""Samples of a job's streams: rows and their schema from files as people have them."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from conformance.cli.job_options import described
from conformance.core.errors import WrongUsage
from conformance.own_job.job_case import own_function, write_job
from conformance.own_job.many_rows import NO_INSTANT
from conformance.own_job.sample import UnusableSample, read_sample
from conformance.own_job.sample_arrivals import arrivals


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def json_lines(folder: Path, *records: object) -> Path:
    return written(folder, "orders.jsonl", "".join(f"{json.dumps(record)}\n" for record in records))


def test_json_lines_have_a_schema_by_their_values(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path,
        {"order_time": "2026-03-01T12:01:00Z", "user": "ada", "price": 3, "paid": True, "tags": ["a"], "at": {"x": 1}},
        {"order_time": "2026-03-01 12:02", "user": None, "price": 1.5, "paid": False, "tags": [], "at": {"y": "b"}},
    )
    sample = read_sample("orders", path)
    assert {field.name: str(field.type) for field in sample.schema.fields} == {
        "order_time": "timestamp",
        "user": "string",
        "price": "double",
        "paid": "boolean",
        "tags": "array<string>",
        "at": "struct<x:bigint,y:string>",
    }
    assert sample.event_time == 0
    assert [*sample.instants] == [1772366460000000, 1772366520000000]


def test_a_number_of_seconds_is_an_instant_only_where_the_event_time_is_said_to_be(tmp_path: Path) -> None:
    path = json_lines(tmp_path, {"n": 5, "t": 12.5})
    assert [str(field.type) for field in read_sample("a", path).schema.fields] == ["bigint", "double"]
    said = read_sample("a", path, event_time="t")
    assert [str(field.type) for field in said.schema.fields] == ["bigint", "timestamp"]
    assert said.instants[0] == 12_500_000


def test_csv_has_a_header_and_empty_values_are_null(tmp_path: Path) -> None:
    path = written(
        tmp_path, "orders.csv", "time,id,price,zip\n2026-03-01 12:01:00,7,2.5,01234\n2026-03-01 12:02:00,,3,01235\n"
    )
    sample = read_sample("orders", path)
    expected = [("time", "timestamp"), ("id", "bigint"), ("price", "double"), ("zip", "string")]
    assert [(field.name, str(field.type)) for field in sample.schema.fields] == expected
    assert sample.rows[1] == ("2026-03-01 12:02:00", None, Decimal(3), "01235")


def test_a_column_of_csv_with_numbers_and_text_is_text(tmp_path: Path) -> None:
    path = written(tmp_path, "orders.csv", "a,b\n1,1\nx,2\n")
    assert read_sample("orders", path).rows == (("1", 1), ("x", 2))
    assert read_sample("orders", path, ddl="b STRING, a STRING").rows == (("1", "1"), ("2", "x"))


def test_parquet_keeps_instants(tmp_path: Path) -> None:
    moments = [datetime(2026, 3, 1, 12, 1, tzinfo=UTC), None]
    table = pyarrow.table({"t": moments, "price": [Decimal("1.50"), Decimal("2.00")], "n": [1, 2]})
    parquet.write_table(table, tmp_path / "orders.parquet")
    sample = read_sample("orders", tmp_path / "orders.parquet", ddl="t TIMESTAMP, price DECIMAL(10,2), n INT")
    assert sample.rows == (("2026-03-01T12:01:00+00:00", Decimal("1.50"), 1), (None, Decimal("2.00"), 2))
    assert [*sample.instants] == [1772366460000000, NO_INSTANT]


def test_a_column_that_no_row_has_is_refused_or_null_and_what_nobody_reads_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "orders.csv", "t,Who,extra\n2026-03-01 12:01:00,ada,7\n")
    ddl = "t TIMESTAMP, who STRING, n BIGINT"
    with pytest.raises(UnusableSample) as refused:
        read_sample("orders", path, ddl=ddl)
    assert str(refused.value) == (
        f"{path}: no row has the columns who, n of the schema {ddl}; nobody reads its columns Who, extra: "
        "correct the names in the file, or let --missing null fill them with null"
    )
    sample = read_sample("orders", path, ddl=ddl, missing="null")
    assert (sample.rows[0][1:], sample.lacking, sample.unread) == ((None, None), ("who", "n"), ("Who", "extra"))
    assert "null, since no row has them: who, n" in described(sample)
    assert "and not read: Who, extra" in described(sample)


def test_a_row_of_a_topic_stays_the_text_of_its_line_and_closes_windows_in_its_own_format(tmp_path: Path) -> None:
    lines = '{"shop": "a",  "at": "2026-03-01 10:00:00"}', '{"at": "2026-03-01 10:20:00"}', "no JSON"
    path = written(tmp_path, "orders.jsonl", "\n".join(lines))
    sample = read_sample("orders", path, records=True)
    assert (sample.schema.ddl, [row[0] for row in sample.rows]) == ("value STRING", [*lines])
    assert "by value.at as yyyy-MM-dd' 'HH:mm:ss" in described(sample)
    *_, ahead, again = arrivals([sample], 2, again=True)
    assert ahead.rows["orders"] == (('{"at": "2027-03-02 10:20:00"}',),)
    assert again.rows["orders"] == (*ahead.rows["orders"], (lines[0],))
    with pytest.raises(UnusableSample, match="omit --schema, or give the rows a column value"):
        read_sample("orders", path, records=True, ddl="shop STRING")


def test_rows_of_csv_and_rows_with_a_value_are_records_of_a_topic(tmp_path: Path) -> None:
    path = written(tmp_path, "orders.csv", "at,n\n2026-03-01 10:00,7\n")
    assert read_sample("orders", path, records=True).rows == (('{"at": "2026-03-01 10:00", "n": 7}',),)
    path = json_lines(tmp_path, {"value": '{"ts": 1772359200}', "key": "k"})
    sample = read_sample("orders", path, records=True)
    assert (sample.rows[0], sample.instants[0]) == (('{"ts": 1772359200}', "k"), 1_772_359_200_000_000)


def test_a_given_schema_selects_columns_in_its_order(tmp_path: Path) -> None:
    path = json_lines(tmp_path, {"b": "x", "a": 1, "more": 2}, {"a": 2})
    sample = read_sample("orders", path, ddl="a INT, b STRING")
    assert sample.rows == ((1, "x"), (2, None))
    assert sample.event_time is None


@pytest.mark.parametrize(
    ("name", "content", "options", "says"),
    [
        ("orders.txt", "x", {}, "orders.txt: a sample is a file ending in .jsonl, .json, .csv, .parquet"),
        ("orders.jsonl", "", {}, "orders.jsonl: has no rows"),
        ("orders.jsonl", '{"a": 1}\n[1]\n', {}, "orders.jsonl: line 2: not an object from column to value"),
        ("orders.jsonl", '{"a": 1}\n{"a": \n', {}, "orders.jsonl: line 2: not JSON"),
        ("orders.jsonl", "[" * 100_000, {}, "orders.jsonl: line 1: not JSON"),
        (
            "orders.jsonl",
            '{"a": 1}\n{"a": "x"}\n',
            {},
            "orders.jsonl:2: a is bigint in an earlier row and string here; give",
        ),
        ("orders.jsonl", '{"a": [1, "x"]}\n', {}, "orders.jsonl:1: a is bigint in an earlier row and string here"),
        ("orders.jsonl", '{"a": 1}\n', {"event_time": "t"}, "orders.jsonl: has no column 't'; its columns are a"),
        ("orders.jsonl", '{"a": true}\n', {"event_time": "a"}, "the event time a is boolean, not TIMESTAMP"),
        ("orders.jsonl", '{"a": 1}\n', {"ddl": "a INTT"}, "its schema 'a INTT' is wrong at character 3"),
        ("orders.jsonl", '{"a": 1}\n{"a": "x"}\n', {"ddl": "a INT"}, "orders.jsonl:2: a: "),
        ("orders.jsonl", '{"t": 1772366460000}\n', {"event_time": "t"}, "orders.jsonl:1: t: "),
        ("orders.csv", "a,b\n1,2,3\n", {}, "orders.csv: line 2: not as many fields as the first line"),
        ("orders.csv", "a,b,a\n1,2,3\n", {}, "orders.csv: line 1: the column 'a' is there twice"),
        ("orders.jsonl", "{}\n{}\n", {}, "orders.jsonl: its rows have no columns"),
        ("orders.jsonl", '{"s": "é"}'.encode("latin-1"), {}, "invalid continuation byte: write it in UTF-8"),
        ("orders.csv", "a\n1\n".encode("utf-16"), {}, "invalid start byte: write it in UTF-8"),
        ("orders.parquet", b"PAR?", {}, "not Parquet"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, name: str, content: str | bytes, options: dict, says: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UnusableSample) as caught:
        read_sample("orders", path, **options)
    assert says in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert caught.value.exit_code == 2


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnusableSample, match="No such file"):
        read_sample("orders", tmp_path / "none.jsonl")


def test_the_types_of_parquet_are_those_of_the_file(tmp_path: Path) -> None:
    schema = pyarrow.schema(
        [
            ("t", pyarrow.timestamp("us", tz="UTC")),
            ("price", pyarrow.decimal128(10, 2)),
            ("n", pyarrow.int32()),
            ("f", pyarrow.float32()),
            ("day", pyarrow.date32()),
            ("tags", pyarrow.list_(pyarrow.decimal128(4, 1))),
            ("at", pyarrow.struct([("x", pyarrow.int16()), ("y", pyarrow.string())])),
        ]
    )
    row = {"t": datetime(2026, 3, 1, 12, 1, tzinfo=UTC), "price": Decimal("1.50"), "n": 1, "f": 0.5}
    row |= {"day": datetime(2026, 3, 1).date(), "tags": [Decimal("1.5")], "at": {"x": 1, "y": None}}
    parquet.write_table(pyarrow.Table.from_pylist([row], schema), tmp_path / "orders.parquet")
    sample = read_sample("orders", tmp_path / "orders.parquet")
    types = "timestamp decimal(10,2) int float date array<decimal(4,1)> struct<x:smallint,y:string>"
    assert " ".join(str(field.type) for field in sample.schema.fields) == types
    # A number of seconds is an event time only if that is said.
    assert read_sample("orders", tmp_path / "orders.parquet", event_time="n").event_time == 2


@pytest.mark.parametrize(("zone", "hour"), [(None, 12), ("Asia/Kathmandu", 6), ("+02:00", 10)], ids=str)
def test_times_without_a_zone_are_in_that_of_the_session(tmp_path: Path, zone: str | None, hour: int) -> None:
    text = "time,s\n2026-03-01 12:15:00,2026-03-01 12:15 o'clock\n2026-03-01 12:15:00Z,x\n"
    sample = read_sample("orders", written(tmp_path, "orders.csv", text), zone=zone)
    minute = 30 if zone == "Asia/Kathmandu" else 15
    moments = [datetime(2026, 3, 1, hour, minute, tzinfo=UTC), datetime(2026, 3, 1, 12, 15, tzinfo=UTC)]
    assert [*sample.instants] == [moment.timestamp() * 1_000_000 for moment in moments]
    assert sample.rows[0][1] == "2026-03-01 12:15 o'clock"


@pytest.mark.parametrize(
    ("text", "format", "hour"),
    [
        ("01/03/2026 12:15", "dd/MM/yyyy HH:mm", 6),
        ("2026-03-01 12:15 +0100", "yyyy-MM-dd HH:mm Z", 11),
        ("1772367300000", "ms", 12),
        ("1772367300.0", "s", 12),
    ],
)
def test_a_timestamp_of_the_schema_is_read_as_the_file_writes_it(
    tmp_path: Path, text: str, format: str, hour: int
) -> None:
    path = written(tmp_path, "orders.csv", f"time,who\n{text},ada\n,bob\n")
    how = {"ddl": "time TIMESTAMP, who STRING", "zone": "Asia/Kathmandu", "event_time": f"time as {format}"}
    sample = read_sample("orders", path, **how)
    moment = datetime(2026, 3, 1, hour, 30 if hour == 6 else 15, tzinfo=UTC)
    assert [*sample.instants] == [moment.timestamp() * 1_000_000, NO_INSTANT]
    assert [*sample.times()] == [(0, sample.instants[0])]
    assert (sample.event_time, sample.rows[1]) == (0, (None, "bob"))
    with pytest.raises(UnusableSample, match=re.escape(f"orders.csv:2: time: {text!r} is not written as 'ss.SSS'")):
        read_sample("orders", path, **{**how, "event_time": "time as ss.SSS"})


def test_a_time_of_another_form_is_refused_with_the_option_that_says_how_it_is_written(tmp_path: Path) -> None:
    path = written(tmp_path, "orders.csv", "time\n01/03/2026 12:15\n")
    with pytest.raises(UnusableSample, match=r"--event-time 'STREAM=time as dd.MM.yyyy HH:mm', or 'as ms', says how"):
        read_sample("orders", path, ddl="time TIMESTAMP")


def test_a_zone_that_nobody_knows_is_said(tmp_path: Path) -> None:
    path = written(tmp_path, "orders.csv", "time\n2026-03-01 12:15:00\n")
    for zone in ("Europe/Berln", "+99:00", "/etc/passwd"):
        with pytest.raises(UnusableSample, match="is none that is known here"):
            read_sample("orders", path, zone=zone)


def test_rows_beyond_the_limit_are_counted_and_told(tmp_path: Path) -> None:
    path = json_lines(tmp_path, *({"n": n} for n in range(5)))
    sample = read_sample("orders", path, most=3)
    assert (len(sample.rows), sample.skipped) == (3, 2)
    assert described(sample).startswith("orders: 3 rows (the file has 2 more: --rows)")
    assert described(read_sample("orders", path, most=5)).startswith("orders: 5 rows, no event time")


def test_what_is_no_number_is_written_as_cases_write_it(tmp_path: Path) -> None:
    path = written(tmp_path, "orders.jsonl", '{"v": NaN}\n{"v": -Infinity}\n{"v": 1.5}\n')
    sample = read_sample("orders", path)
    assert sample.rows == (("NaN",), ("-Infinity",), (Decimal("1.5"),))
    assert write_job(own_function("jobs:build"), [sample], tmp_path).steps


def test_rows_that_make_too_large_a_case_are_told(tmp_path: Path) -> None:
    sample = read_sample("orders", json_lines(tmp_path, {"s": "x" * 2_500_000}))
    with pytest.raises(WrongUsage, match="take fewer with --rows"):
        write_job(own_function("jobs:build"), [sample], tmp_path / "job")


def test_no_row_is_later_than_the_last_year(tmp_path: Path) -> None:
    path = json_lines(tmp_path, *({"time": f"9999-12-31 23:59:{second}"} for second in (10, 20, 30)))
    sample = read_sample("orders", path)
    assert not [each for each in arrivals([sample], 2) if "much later" in each.name]
    assert write_job(own_function("jobs:build"), [sample], tmp_path / "job").steps


def test_a_time_in_the_text_of_a_record_is_as_much_later_as_that_of_its_arrival(tmp_path: Path) -> None:
    rows = [
        {
            "arrived": f"2026-03-01 12:0{at}:00",
            "data": json.dumps({"at": f"2026-03-01T11:5{at}:00Z", "n": at}),
            "key": "a;b",
        }
        for at in range(4)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sample = read_sample("a", tmp_path / "a.jsonl")
    *_, last = [arrival for arrival in arrivals([sample], 2) if arrival.rows]
    assert last.rows["a"] == (("2027-03-02 12:03", '{"at": "2027-03-02T11:53:00Z", "n": 3}', "a;b"),)
