"""Samples with more rows than a case may have: they stay on disk, and what runs names files with them."""

import json
import tracemalloc
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies

from conformance.core.data import Json
from conformance.core.spark_types import Field, Schema, parse_schema
from conformance.core.values import canonical
from conformance.own_job import many_rows, sample, sample_arrivals
from conformance.own_job.coverage import never_shown
from conformance.own_job.job_case import first_handoffs, own_function, rows_in_files, write_job
from conformance.own_job.job_run import JobRun, next_cells
from conformance.own_job.many_rows import Stored, instant_of, kept, lines_of
from conformance.own_job.sample import Sample, read_sample
from conformance.own_job.sample_arrivals import arrivals
from conformance.runner.resources import EngineUse
from harness.engine.request import request_for
from tests.support.miniature.two_versions import NEW, OLD, TwoVersions
from tests.support.observations import batch, observed, step
from tests.unit.conformance.own_job.test_job_run import whole_run

VALUES: dict[str, strategies.SearchStrategy[Json]] = {
    "timestamp": strategies.sampled_from(["12:05", "2026-03-01 12:05:00.25", "2026-03-01T12:05Z", 7, None]),
    "timestamp_ntz": strategies.sampled_from(["12:05", "2026-03-01 12:05:00.25", None]),
    "bigint": strategies.integers(-(1 << 63), (1 << 63) - 1),
    "double": strategies.floats(allow_nan=False, allow_infinity=False) | strategies.sampled_from(["NaN", "-Infinity"]),
    "decimal": strategies.decimals(-1000, 1000, places=9),
    "string": strategies.text() | strategies.none(),
    "date": strategies.dates().map(str),
    "binary": strategies.binary().map(lambda value: b64encode(value).decode()),
    "boolean": strategies.booleans(),
    "struct": strategies.fixed_dictionaries({"a": strategies.integers(0, 9), "b": strategies.text()}),
    "array": strategies.lists(strategies.integers(0, 9)),
    "map": strategies.dictionaries(strategies.text(), strategies.integers(0, 9)),
}
NESTED = {
    "decimal": "decimal(20,9)",
    "struct": "struct<a: int, b: string>",
    "array": "array<int>",
    "map": "map<string, int>",
}
TYPES = strategies.sampled_from([parse_schema(f"a {NESTED.get(name, name)}").fields[0].type for name in VALUES])


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (many_rows, sample, sample_arrivals):
        monkeypatch.setattr(module, "MOST_IN_A_CASE", 20)


def events(folder: Path, rows: int) -> Sample:
    path = folder / "events.csv"
    with path.open("w") as file:
        file.write("event_time,count\n")
        file.writelines(f"2026-03-01 12:{n * 7 % 60:02d}:{n % 60:02d},{n}\n" for n in range(rows))
    return read_sample("events", path, most=rows)


def test_rows_on_disk_are_those_that_were_read(tmp_path: Path) -> None:
    schema = parse_schema("n BIGINT, text STRING")
    few = kept(((n, "x") for n in range(20)), schema, None)
    many = kept(((n, None) for n in range(500)), schema, None)
    assert isinstance(few, tuple)
    assert [*many] == [(n, None) for n in range(500)]
    assert (many[499], many[-1], many[3:5], len(many)) == ((499, None), (499, None), ((3, None), (4, None)), 500)
    with pytest.raises(IndexError):
        many[500]
    read = events(tmp_path, 100)
    assert read.rows[99] == ("2026-03-01T12:33:39.000000Z", 99)
    assert [*read.instants] == [instant_of(row, read.schema, 0) for row in read.rows]


@given(strategies.data())
def test_a_row_on_disk_is_the_row_that_was_read_whatever_its_types(data: strategies.DataObject) -> None:
    type = data.draw(TYPES)
    schema = Schema("", (Field("a", type),))
    rows = data.draw(strategies.lists(strategies.tuples(VALUES[type.name]), min_size=21, max_size=25))
    many = kept(rows, schema, None)
    assert isinstance(many, Stored)
    assert [canonical(value, type) for (value,) in many] == [canonical(value, type) for (value,) in rows]
    one, *_, last = many.at([3, 20]).lines()
    assert [json.loads(line) for line in lines_of((rows[3], rows[20]), schema)] == [json.loads(one), json.loads(last)]


def test_the_memory_does_not_hold_the_rows(tmp_path: Path) -> None:
    schema = parse_schema("text STRING, n BIGINT")

    def rows() -> Iterator[tuple[str, int]]:
        return ((f"{n:0>2000}", n) for n in range(2_000))

    tracemalloc.start()
    many = kept(rows(), schema, None)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(many) == 2_000
    assert most < 1_000_000  # the text alone has four times as many bytes


def test_the_files_have_the_rows_of_each_micro_batch_and_the_case_the_first(tmp_path: Path) -> None:
    one = events(tmp_path, 100)
    case = write_job(own_function("jobs:build"), [one], tmp_path, again=True)
    files = rows_in_files([one], tmp_path, batches=4, again=True)
    arrived = {
        number: [json.loads(line) for line in Path(of["events"]).read_text().splitlines()]
        for number, of in files.items()
    }
    assert [number for number, arrival in enumerate(arrivals([one], 4, again=True), 1) if arrival.rows] == [*arrived]
    sent = Counter(row["count"] for number, rows in arrived.items() if number < 6 for row in rows)
    assert sent == Counter(range(100))
    for stage in case.steps:
        request = request_for(case, "x", files=files).steps[stage.number - 1]
        assert request.files == files.get(stage.number)
        assert all(len(rows) == 1 for each in request.batches for (rows,) in each.values())
    assert request_for(case, "x", files=files).digests
    assert not request_for(case, "x").digests
    assert rows_in_files([events(tmp_path, 15)], tmp_path, batches=4) == {}


def test_each_cell_gets_the_files_and_few_checkpoints_are_kept(tmp_path: Path) -> None:
    one = events(tmp_path, 100)
    case = write_job(own_function("jobs:build"), [one], tmp_path, batches=9, again=True)
    files = rows_in_files([one], tmp_path, batches=9, again=True)
    before, after = next_cells(JobRun.of(case, OLD, NEW, EngineUse(), files))
    assert before.files == after.files == files
    assert before.keep == first_handoffs(case)


def test_two_versions_get_the_rows_of_the_files(tmp_path: Path) -> None:
    one = events(tmp_path, 100)
    case = write_job(own_function("jobs:build"), [one], tmp_path, batches=4, again=True)
    files = rows_in_files([one], tmp_path, batches=4, again=True)
    run = whole_run(case, TwoVersions(tmp_path, {}), files)
    seen = run.on(OLD).observation
    read = [source.rows for each in seen.steps for micro in each.batches for source in micro.sources]
    assert sum(read) == 100 + 1 + 2


def test_digests_do_not_tell_of_rows_without_a_match() -> None:
    plan = "== Physical Plan ==\nStreamingSymmetricHashJoin [a#1], [b#2], LeftOuter, condition = [ leftOnly = null ]\n"
    progress = {"stateOperators": [{"operatorName": "symmetricHashJoin", "numRowsTotal": 1, "numRowsRemoved": 1}]}
    seen = observed(step(1, batch(0, ["5 rows", "digest 1"], state=(1,), watermark=1, progress=progress)))
    said = "the outer join was never seen to emit a row without a match: add a row that has none"
    assert said in [*never_shown(seen, plan)]
    assert said not in [*never_shown(seen, plan, digests=True)]
