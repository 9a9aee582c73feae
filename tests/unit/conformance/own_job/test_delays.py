"""The table of delays, by the model and the recorded answers of a real engine that ran the query with three of them."""

import json
from dataclasses import replace

import pytest

from conformance.core.errors import WrongUsage
from conformance.own_job import delays
from conformance.own_job.delays import delay_table_of
from conformance.own_job.explained_job import NoAnswer, explain_query
from conformance.own_job.job_case import OwnQuery, write_sample
from conformance.own_job.sample import UnusableSample, read_sample
from conformance.own_job.trial import MOST_BATCHES
from conformance.query_progress.answer import explain_progress
from conformance.runner.resources import Concurrency, EngineUse
from harness.runtimes.options import RuntimeOptions
from tests.support.commands import answer_of
from tests.unit.conformance.own_job.test_explained_job import DATA, explained
from tests.unit.conformance.own_job.test_job_run import Silent

WHERE = EngineUse(runtime=RuntimeOptions(), concurrency=Concurrency())
MINUTE = 60_000


def table(name, monkeypatch, change=lambda answer: answer):
    _, answer = explained(DATA / f"{name}-4.3.0.json", monkeypatch)
    return delay_table_of(change(answer), WHERE, Silent())


def test_a_short_delay_is_named_with_what_a_longer_one_costs(monkeypatch):
    short = table("short-delay", monkeypatch)
    said = [*short.lines()]
    assert said[1] == "  ✗ your 10 min: 2 of 24 rows dropped; 36 min keep all, results come 26 min later, state × 1.6"
    assert [point.delay_ms // MINUTE for point in short.points] == [0, 10, 16, 36]
    assert [point.dropped for point in short.points] == [2, 2, 1, 0]
    assert [point.changed for point in short.points] == [2, 2, 1, 0]
    assert [point.state for point in short.points] == [6, 8, 10, 13]
    assert [point.later_ms // MINUTE for point in short.points] == [-10, 0, 6, 26]
    assert short.exit_code == 1
    assert "  Spark 4.3.0 with 10 min, 16 min, 36 min does what the model says: watermark, rows dropped, state" in said
    record = json.loads(json.dumps(short.record()))
    assert record["checkedOnEngineMs"] == [10 * MINUTE, 16 * MINUTE, 36 * MINUTE]
    assert record["shortestMs"] == {"1": 36 * MINUTE, "0.999": 36 * MINUTE, "0.99": 36 * MINUTE}
    assert len(said) <= 25


def test_a_delay_longer_than_needed_is_named_and_nothing_waits_for_the_watermark(monkeypatch):
    longer = table("sound-deduplication", monkeypatch)
    assert [*longer.lines()][
        1
    ] == "  ● your 1 h: all 24 rows kept; 46 min is enough: results come no later, state × 0.88"
    assert {point.later_ms for point in longer.points} == {0}
    assert longer.exit_code == 0


def test_rows_that_a_version_does_not_count_are_not_said_to_be_checked(monkeypatch):
    short = table("short-delay", monkeypatch)
    for batch in short.answer.job.seen.batches:
        monkeypatch.setitem(vars(batch), "dropped", None)
    assert any("watermark and state; it does not count dropped rows" in line for line in short.lines())


def test_an_engine_that_does_otherwise_than_the_model_has_no_table(monkeypatch):
    own = delays.answer_of

    def otherwise(*asked):
        seen = own(*asked)
        step = seen.steps[-1]
        batches = [batch.model_copy(update={"dropped": (batch.dropped or 0) + 1}) for batch in step.batches]
        return seen.model_copy(update={"steps": (*seen.steps[:-1], step.model_copy(update={"batches": batches}))})

    monkeypatch.setattr(delays, "answer_of", otherwise)
    with pytest.raises(
        NoAnswer, match=r"with a delay of 36 min, the reference model predicts micro-batch \d+ otherwise"
    ):
        table("short-delay", monkeypatch)


def test_code_that_takes_no_other_delay_is_checked_with_its_own_alone(monkeypatch):
    monkeypatch.setattr(
        delays, "answer_of", lambda case, *_: explained(DATA / "short-delay-4.3.0.json", monkeypatch)[1].job.seen
    )
    alone = table("short-delay", monkeypatch)
    assert alone.checked == (10 * MINUTE,)
    assert any("takes no other delay" in line for line in alone.lines())


@pytest.mark.parametrize("name", ["without-refused", "without"])
def test_without_known_rows_or_a_watermark_there_is_no_table(name, monkeypatch):
    with pytest.raises(NoAnswer, match="no table of delays: "):
        table(name, monkeypatch)


def test_what_no_delay_mends_is_named_before_the_table(monkeypatch):
    name = "future-row"
    monkeypatch.setattr(delays, "answer_of", lambda *_: explained(DATA / f"{name}-4.3.0.json", monkeypatch)[1].job.seen)
    said = [*table(name, monkeypatch).lines()]
    what = "a row from the future moved the watermark; all rows after it are late"
    assert said[2] == f"  also: {what}; explain without --delays says more"


def _lines(tmp_path, rows, name="a.jsonl"):
    path = tmp_path / name
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def _row(minute, arrived, **more):
    return {"t": f"2026-03-17 12:{minute:02}:00", "at": f"2026-03-17T13:{arrived:02}:30Z", **more}


def _of_a_file(answer, streams=("a",), **other):
    """The first 24 rows are those of the recorded sample; then come 976, of which 3 are late; each stream has the same."""
    (own,) = answer.samples
    times = [*enumerate(own.instants)]
    newest = times[-1][1]
    times += [(at, newest + at * 10**6 - (at in (100, 200, 300)) * 3600 * 10**6) for at in range(24, 1000)]
    part = replace(own, skipped=976, times=lambda: iter(times), **other)
    return replace(answer, samples=tuple(replace(part, stream=stream) for stream in streams))


def test_all_rows_of_a_file_are_measured_if_the_sample_is_a_part_of_it(monkeypatch):
    whole = table("short-delay", monkeypatch, _of_a_file)
    assert whole.of_file is not None
    assert whole.of_file.rows == 1000
    assert whole.of_file.dropped_with(10 * MINUTE) == 5
    assert "0.500%" in "\n".join(whole.lines())
    assert [delays._share(dropped, 10_000_000) for dropped in (0, 46, 75_000)] == ["0%", "< 0.001%", "0.750%"]
    assert "your 10 min: 5 of 1,000 rows dropped" in "\n".join(whole.lines())
    assert whole.measured.delay_for(0.99) < whole.measured.delay_for(1)
    assert whole.record()["rowsOfFile"] == 1000


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda answer: _of_a_file(answer, event_time=None), "see --event-time"),
    ],
)
def test_rows_beyond_the_sample_that_cannot_be_measured_are_said_not_to_be(change, why, monkeypatch):
    whole = table("short-delay", monkeypatch, change)
    assert whole.of_file is None
    assert any("of the sample alone: " in line and why in line for line in whole.lines())


def test_files_of_two_streams_are_measured_in_the_order_of_arrival(tmp_path, monkeypatch):
    _, answer = explained(DATA / "short-delay-4.3.0.json", monkeypatch)
    rows = {"a": [_row(5, 0), _row(30, 1), _row(6, 3)], "b": [_row(5, 0), _row(20, 1), _row(7, 3)]}
    files = {stream: _lines(tmp_path, of, f"{stream}.jsonl") for stream, of in rows.items()}
    parts = [read_sample(stream, path, ddl="t TIMESTAMP", arrived="at", most=1) for stream, path in files.items()]
    both = replace(answer, samples=parts, every_us=MINUTE * 1000)
    first = [part.instants[0] for part in parts]
    measured = delays._of_file(both, first, lambda time: time)
    # The newest of b, 12:20, holds the watermark.
    assert dict(measured.late) == {13 * MINUTE: 1, 14 * MINUTE: 1}
    assert measured.rows == 6


def test_files_without_times_of_arrival_are_measured_beside_each_other_as_their_samples_arrive(tmp_path, monkeypatch):
    _, answer = explained(DATA / "short-delay-4.3.0.json", monkeypatch)
    rows = {"a": (5, 10, 20, 21, 22, 6), "b": (5, 12, 20, 59, 21, 22, 7)}
    files = {stream: _lines(tmp_path, [_row(at, 0) for at in of], f"{stream}.jsonl") for stream, of in rows.items()}
    parts = [read_sample(stream, path, ddl="t TIMESTAMP", most=1) for stream, path in files.items()]
    measured = delays._of_file(replace(answer, samples=parts), [part.instants[0] for part in parts], lambda time: time)
    # Both have brought 12:20 when 12:06 and 12:07 come last; 12:59 comes with the rows after it.
    assert dict(measured.late) == {14 * MINUTE: 1, 13 * MINUTE: 1}
    assert measured.rows == 13
    made = table("short-delay", monkeypatch)
    for samples, order in (
        (made.answer.samples, "the order of the file stands"),
        (parts, "the order of each file, and"),
    ):
        said = replace(made, answer=replace(made.answer, samples=samples)).lines()
        assert any(line.startswith(f"  {order}") for line in said)


def test_rows_are_divided_by_when_they_arrived(tmp_path):
    path = _lines(tmp_path, [_row(5, 0), _row(1, 7), _row(2, 7), _row(50, 59)])
    sample = read_sample("a", path, ddl="t TIMESTAMP", arrived="at")
    assert sample.unread == ()
    case = write_sample(OwnQuery("x", "a.b:c", "x"), [sample], tmp_path, batches=6, every_us=5 * MINUTE * 1000)
    rows = [[row[0][-8:-3] for part in step.action.streams["a"].partitions for row in part] for step in case.steps]
    assert rows == [["12:05"], ["12:01", "12:02"], ["12:50"]]
    assert [instant // 10**6 % 3600 for instant, _ in sample.times()] == [30, 450, 450, 3570]


@pytest.mark.parametrize(
    ("row", "arrived", "instant"),
    [
        ({"at": 1_773_748_800}, "at", 1_773_748_800 * 10**6),
        ({"at": "1773748800123"}, "at as ms", 1_773_748_800_123_000),
        ({"at": "17737"}, "at as ms", None),
        ({"at": 1_773_748_800_123}, "at as ms", 1_773_748_800_123_000),
        ({"at": "17.03.2026 12:00"}, "at as dd.MM.yyyy HH:mm", 1_773_748_800 * 10**6),
        ({"at": "soon"}, "at", None),
        ({"other": 1}, "at", None),
    ],
)
def test_times_of_arrival_are_read_however_they_are_written(row, arrived, instant, tmp_path):
    path = _lines(tmp_path, [{"t": "2026-03-17 12:00:00", **row}])
    if instant is None:
        with pytest.raises(UnusableSample, match="the time of arrival at: "):
            read_sample("a", path, arrived=arrived)
    else:
        assert [*read_sample("a", path, arrived=arrived).arrived] == [instant]


def test_the_column_of_arrival_is_not_the_event_time_by_default(tmp_path):
    path = _lines(tmp_path, [{"at": "2026-03-17 13:00:00", "t": "2026-03-17 12:00:00"}])
    assert read_sample("a", path).event_time == 0
    assert read_sample("a", path, arrived="at").event_time == 1


def test_a_file_that_is_not_in_the_order_of_arrival_is_not_measured(tmp_path):
    sample = read_sample("a", _lines(tmp_path, [_row(1, 7), _row(2, 5)]), arrived="at")
    with pytest.raises(UnusableSample, match="not in the order of at"):
        [*sample.times()]


def test_the_first_rows_and_all_rows_have_the_same_times(tmp_path):
    for name, rows in {
        "a.jsonl": [{"t": f"2026-03-17 12:0{at}:00.5"} for at in range(5)],
        "b.jsonl": [{"t": 1_773_748_800 + at} for at in range(5)],
        "c.jsonl": [{"value": json.dumps({"ts": 1_773_748_800_000 + at})} for at in range(5)],
    }.items():
        sample = read_sample("a", _lines(tmp_path, rows, name))
        assert [time for _, time in sample.times()] == [*sample.instants], name
    zoned = read_sample("a", _lines(tmp_path, [{"t": "2026-03-17 12:00:00"}]), zone="Europe/Berlin")
    assert [time for _, time in zoned.times()] == [*zoned.instants]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (
            ["a.b:c", "--delays", "--arrival", "time"],
            "in another order than that of the file no row is as late as it was",
        ),
        (["a.b:c", "--trigger-interval", "1 minute"], "no column has arrival times: to know when rows arrive"),
        (["a.b:c", "--arrival-time", "a=at", "--trigger-interval", "soon"], "is not a duration"),
        (["a.b:c", "--arrival-time", "b=at"], "there is no sample b"),
        (["late-drops/window-still-open", "--delays"], "is not a job"),
    ],
)
def test_options_about_delays_that_cannot_be_answered_are_refused(given, what, tmp_path, capsys):
    sample = ["--sample", f"a={_lines(tmp_path, [_row(1, 1)])}"] if given[0] == "a.b:c" else []
    code, _, err = answer_of(capsys, "explain", *given, *sample)
    assert code == 2
    assert what in " ".join(err.replace("│", " ").split())


def test_a_trigger_interval_that_makes_too_many_micro_batches_is_refused(monkeypatch, tmp_path):
    _, answer = explained(DATA / "short-delay-4.3.0.json", monkeypatch)
    rows = [_row(at % 60, at % 60) for at in range(MOST_BATCHES + 1)]
    sample = read_sample("a", _lines(tmp_path, rows), arrived="at")
    with pytest.raises(WrongUsage, match=f"at most {MOST_BATCHES}: take a longer one"):
        explain_query(answer.query, [sample], answer.target, WHERE, Silent(), batches=6, every_us=10**6)


def test_progress_tells_the_least_disorder_and_no_more(tmp_path, capsys):
    def progress(batch, lowest, highest, watermark):
        times = {"min": lowest, "max": highest, "avg": highest, "watermark": watermark}
        state = {
            "operatorName": "stateStoreSave",
            "numRowsTotal": 1,
            "numRowsUpdated": 1,
            "numRowsDroppedByWatermark": 0,
        }
        return {
            "id": "1" * 8,
            "runId": "2" * 8,
            "batchId": batch,
            "timestamp": f"2026-03-17T12:0{batch}:00.000Z",
            "numInputRows": 2,
            "eventTime": {key: f"2026-03-17T{value}:00.000Z" for key, value in times.items()},
            "durationMs": {"addBatch": 1, "triggerExecution": 2},
            "stateOperators": [state],
            "sources": [{"description": "x", "numInputRows": 2}],
            "sink": {"description": "y", "numOutputRows": 0},
        }

    rows = [progress(0, "12:00", "12:10", "11:00"), progress(1, "11:45", "12:20", "12:00")]
    path = _lines(tmp_path, rows)
    (said,) = [line for line in explain_progress(rows).disorder_lines() if "behind" in line]
    assert "at least 1 row was 25 min behind the newest of earlier micro-batches, in micro-batch 1" in said
    code, out, _ = answer_of(capsys, "explain", "--progress", str(path), "--delays")
    assert code == 0
    assert "25 min behind" in out
    assert "--arrival-time" in out


@pytest.mark.parametrize(
    ("own", "keeping", "listed", "tried"),
    [
        (10, 36, [0, 10, 16, 20, 36], [36, 20]),
        (10, 11, [0, 10, 11], [11, 6]),
        (10, 10, [0, 10], [5]),
        (10, 4, [0, 4, 7, 10], [4, 7]),
        (0, 0, [0], [1]),
    ],
)
def test_an_engine_runs_with_the_shortest_delay_that_keeps_all_and_another(own, keeping, listed, tried):
    minutes = [delay * MINUTE for delay in listed]
    assert [delay / MINUTE for delay in delays._tried(own * MINUTE, keeping * MINUTE, minutes)] == tried
