"""What progress of real engines shows is named first, and nothing else; sound progress has no cause."""

import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from conformance.query_progress.answer import ProgressExplanation, explain_progress
from conformance.query_progress.causes import rule, written
from conformance.suite.discovery import shipped
from tests.support.commands import answer_of
from tests.unit.conformance.query_progress.lines import pretty, progress

DATA = Path(__file__).parent / "data"
LOGS = sorted(DATA.rglob("*.jsonl"))
CAUSE = {
    "watermark-after-aggregation": "watermark-not-used",
    "watermark-on-other-column": "watermark-not-used",
    "null-after-parsing": "null-event-time",
}
UNNAMED = {"watermark-after-aggregation", "join-without-bound", "deduplication-without-event-time"}
"""Before 3.2 an operator has no name."""
NEVER = {
    "stateStoreSave": "watermark-not-used",
    "symmetricHashJoin": "join-without-bound",
    "dedupe": "deduplication-without-event-time",
}


def explained(path) -> ProgressExplanation:
    with path.open() as file:
        return explain_progress(file)


@pytest.mark.parametrize("path", LOGS, ids=[str(path.relative_to(DATA)) for path in LOGS])
def test_the_cause_is_named_and_no_second_one(path):
    (query,) = explained(path).queries
    name = CAUSE.get(path.stem, path.stem)
    if path.stem in UNNAMED and path.parent.name == "3.0.3":
        name = "state-never-removed"
    expected = [] if path.stem.startswith("sound") else [name]
    assert [cause.id for cause in query.causes] == expected
    assert all(cause.evidence for cause in query.causes)


@pytest.mark.parametrize(("name", "causes"), [("join-without-bound", ["state-never-removed"]), ("sound-complete", [])])
def test_before_3_2_a_join_is_known_by_its_rows_where_the_sink_counts_none(name, causes):
    lines = map(json.loads, (DATA / "3.0.3" / f"{name}.jsonl").read_text().splitlines())
    uncounted = [line | {"sink": {"description": "ForeachBatchSink", "numOutputRows": -1}} for line in lines]
    (query,) = explain_progress(uncounted).queries
    assert [cause.id for cause in query.causes] == causes


def test_logs_of_the_oldest_and_the_newest_version_are_here():
    assert {path.parent.name for path in LOGS} >= {"3.0.3", "4.3.0"}


def test_each_cause_names_a_statement_of_the_specification():
    for said in written().values():
        number, sentence = rule(said["rule"])
        assert re.fullmatch(r"\d+\.\d+", number)
        assert sentence


def test_an_answer_has_at_most_25_lines_of_100_columns_and_the_same_as_json(capsys):
    for path in LOGS:
        code, text, _ = answer_of(capsys, "explain", "--progress", str(path))
        assert code == 0
        assert len(text.splitlines()) <= 25
        assert max(map(len, text.splitlines())) <= 100
    code, text, _ = answer_of(capsys, "explain", "--json", "--progress", *map(str, LOGS[:1]))
    (query,) = json.loads(text)["queries"]
    assert (code, query["causes"][0]["rule"]) == (0, "4.2")
    assert query["runs"][0]["over_time"]


def test_each_symptom_has_a_table_whose_cases_are_there(capsys):
    _, text, _ = answer_of(capsys, "explain", "--help")
    symptoms = re.search(r"a case that shows it: (.*?)\.", " ".join(text.replace("│", " ").split()))
    names = re.findall(r"[a-z-]+", symptoms[1].replace(" or ", " "))
    assert len(names) == 7
    for name in names:
        code, text, _ = answer_of(capsys, "explain", "--symptom", name, "--json")
        rows = json.loads(text)
        assert code == 0
        assert len(rows) >= 3
        assert all((shipped() / f"{row['case']}.yaml").is_file() and row["fix"] for row in rows)
    code, _, errors = answer_of(capsys, "explain", "--symptom", "no-idea")
    assert (code, "is not one of no-output, rows-missing" in " ".join(errors.split())) == (2, True)


def test_without_progress_it_says_so_and_exits_with_2(tmp_path, capsys):
    (tmp_path / "x.log").write_text('{"other": 1}\n')
    code, _, errors = answer_of(capsys, "explain", "--progress", str(tmp_path / "x.log"))
    assert code == 2
    code, _, errors_of_none = answer_of(capsys, "explain", "--progress", str(tmp_path / "none.log"))
    assert (code, errors_of_none.strip().endswith("none.log: there is no such file or folder")) == (2, True)
    assert re.search(r"x\.log has no progress of a streaming query \(.*x\.log:1: .*at level INFO", errors, re.DOTALL)


@pytest.mark.parametrize(
    "arguments",
    [("--progress", "x", "case"), ("--progress", "x", "--spark", "3.5"), ()],
    ids=["case", "version", "nothing"],
)
def test_progress_or_a_case_is_asked_for(arguments, capsys):
    assert answer_of(capsys, "explain", *arguments)[0] == 2


def topic(read, latest):
    source = {"description": "KafkaV2[Subscribe[orders]]", "numInputRows": 3}
    return {"sources": [{**source, "endOffset": {"orders": read}, "latestOffset": {"orders": latest}}]}


def test_a_partition_that_lags_explains_dropped_rows_before_the_delay():
    lines = [
        progress(n, high=n, mark=max(0, n - 2), state={"stateStoreSave": 3}, dropped=n > 3, out=1) for n in range(6)
    ]
    assert [cause.id for cause in explain_progress(lines).queries[0].causes] == ["short-delay"]
    lines[-1] |= topic({"0": 100, "1": 40}, {"0": 100, "1": 940})
    (cause,) = explain_progress(lines).queries[0].causes
    assert cause.id == "lagging-partition"
    assert "orders-1 is 900 offsets behind, the next 0" in cause.evidence[0]


MARK = {"state": {"stateStoreSave": 3}}
POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


def again(first, *lines, **more):
    """Progress of a second run of the query, from this micro-batch on."""
    return [{**progress(first + n, **line), **more, "runId": "c" * 8} for n, line in enumerate(lines)]


def named(lines):
    (query,) = explain_progress(lines).queries
    return [cause.id for cause in query.causes]


def sources(*names):
    return {"sources": [{"description": name, "numInputRows": 3} for name in names]}


@pytest.mark.parametrize(("order", "causes"), [("xy", []), ("yx", ["restart-with-other-order"])])
def test_a_restart_with_sources_in_another_order_is_named(order, causes):
    first = [progress(n, high=n * 10, mark=n * 10 - 15, out=1, **MARK) | sources("x", "y") for n in range(3)]
    later = [{"high": n * 10, "mark": n * 10 - 15, "out": 1, **MARK} for n in range(3, 6)]
    assert named([*first, *again(3, *later, **sources(*order))]) == causes


NOOP = "org.apache.spark.sql.execution.datasources.noop.NoopTable$"


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (f"{NOOP}@1a2b3c", f"{NOOP}@4d5e6f", False),
        ("ForeachWriterTable(PythonWriter@1a,Left(E@2b))", "ForeachWriterTable(PythonWriter@3c,Left(E@4d))", False),
        (f"{NOOP}@1a2b3c", "NoopTable", False),
        (f"{NOOP}@1a2b3c", f"{NOOP.replace('Noop', 'Console')}@1a2b3c", True),
        ("FileSink[/lake/x]", "FileSink[file:/lake/x]", False),
        ("FileSink[/lake/x]", "FileSink[hdfs://name:8020/lake/x]", False),
        ("FileSink[s3a://one/lake/x]", "FileSink[s3a://two/lake/x]", True),
        ("FileSink[/lake/x]", "FileSink[/lake/y]", True),
        ("FileSink[abfss://lake@cafe.example.net/x]", "FileSink[abfss://lake@beef.example.net/x]", True),
    ],
)
def test_what_versions_write_of_one_sink_or_source_is_no_other_after_a_restart(before, after, changed):
    def of(description):
        return {"sink": {"description": description}, **sources(description)}

    first = [{**progress(n, high=n, **MARK), **of(before)} for n in range(2)]
    (query,) = explain_progress([*first, *again(2, {"high": 2, **MARK}, **of(after))]).queries
    assert len(query.record()["changed"]) == 2 * changed


@pytest.mark.parametrize(("policy", "causes"), [(None, []), ("max", ["restart-with-other-policy"])])
def test_a_restart_with_another_policy_is_named_by_an_event_log(policy, causes):
    event = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
    lines = [progress(n, high=n * 10, mark=n * 10 - 15, out=1, sources=[1, 1], **MARK) for n in range(3)]
    later = [{"high": n * 10, "mark": n * 10 - 15, "out": 1, "sources": [1, 1], **MARK} for n in range(3, 6)]
    logged = [{"Event": event, "progress": one} for one in (*lines, *again(3, *later))]
    logged[3:3] = [{"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {POLICY: policy} if policy else {}}]
    assert named(map(json.dumps, logged)) == causes


@pytest.mark.parametrize(("rows", "causes"), [(200, ["short-delay"]), (40, ["backlog-in-many-batches"])])
def test_a_restart_that_divides_a_backlog_explains_rows_that_are_late_since(rows, causes):
    first = [progress(n, rows=200, high=n * 10, mark=n * 10 - 15, out=1, **MARK) for n in range(3)]
    later = [
        {"rows": rows, "low": n, "high": n * 10, "mark": n * 10 - 15, "dropped": 1, "out": 1, **MARK} for n in (3, 4)
    ]
    assert named([*first, *again(3, *later)]) == causes


@pytest.mark.parametrize(
    ("falls", "causes"),
    [((0, 5, 10), ["other-event-time"]), ((0, 5, 900), ["short-delay"]), ((300, 305), ["short-delay"])],
)
def test_event_times_that_fall_back_by_half_a_day_are_of_another_pattern(falls, causes):
    times = [700, 705, 715, *falls]
    lines = [progress(n, high=at, mark=700 if n > 2 else 0, dropped=n > 2, out=1, **MARK) for n, at in enumerate(times)]
    assert named(lines) == causes


@pytest.mark.parametrize(("out", "causes"), [(0, ["join-waits"]), (1, [])])
def test_a_join_that_emitted_nothing_waits(out, causes):
    lines = [progress(n, high=n, mark=0, out=out, state={"symmetricHashJoin": 2 + n // 2}) for n in range(3)]
    assert named(lines) == causes


@pytest.mark.parametrize(
    ("totals", "grows"),
    [
        ((10, 17, 20, 25), True),
        ((10, 17, 20, 20), False),
        ((*range(1, 9), 8, 8), True),
        ((*range(1, 9), 8, 8, 8), False),
    ],
)
def test_state_that_stopped_growing_does_not_grow(totals, grows):
    days = ((n * 1440, total) for n, total in enumerate(totals))
    lines = [progress(n, high=n, mark=n - 9, out=1, state={"dedupe": total}) for n, total in days]
    assert named(lines) == ["deduplication-without-event-time"] * grows


@pytest.mark.parametrize(
    ("rows", "cause"), [(2, "join-waits"), (1, "append-before-any-later-row")], ids=["join", "aggregation"]
)
def test_before_operators_had_names_a_join_is_what_keeps_each_row_of_several_sources(rows, cause):
    lines = [progress(n, high=n, mark=0, sources=[1, 1], state={None: rows * (n + 1)}) for n in range(3)]
    assert named(lines) == [cause]


@pytest.mark.parametrize(("out", "causes"), [(lambda n: n, []), (lambda n: 1, ["watermark-not-used"])])
def test_complete_mode_keeps_its_state_and_update_mode_should_not(out, causes):
    of_days = ((n, n * 1440 * 6) for n in range(1, 8))
    lines = [progress(n, high=at, mark=at, out=out(n), state={"stateStoreSave": n}) for n, at in of_days]
    assert named(lines) == causes


def test_an_event_log_tells_the_version_of_each_run():
    event = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
    lines = [progress(0, high=0), progress(1, high=1), *again(2, {"high": 2})]
    logged = [{"Event": event, "progress": one} for one in lines]
    for at, version in ((2, "4.1.4"), (0, "3.5.9")):
        settings = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.sql.streaming.x": "1"}}
        logged[at:at] = [{"Event": "SparkListenerLogStart", "Spark Version": version}, settings]
    (query,) = explain_progress(map(json.dumps, logged)).queries
    assert query.record()["changed"] == ["before micro-batch 2: Spark 3.5.9 → 4.1.4"]
    for detail, shown in ((2, True), (0, True), (-1, False)):
        assert any("restart: before micro-batch 2: Spark 3.5.9" in line for line in query.lines(detail)) == shown


def test_rows_dropped_by_several_runs_are_summed_and_a_source_of_an_earlier_run_is_idle():
    line = {"high": 9, "low": 1, "mark": 5, "dropped": 2, "out": 1, "sources": [3, 0], **MARK}
    first = progress(0, **line | {"sources": [3, 3], "high": 5, "mark": 1, "dropped": 1})
    (query,) = explain_progress([first, *again(1, line, line | {"high": 11}, line | {"high": 12})]).queries
    assert [cause.id for cause in query.causes] == ["short-delay", "idle-source"]
    assert query.causes[0].evidence[0] == "7 dropped in 2 runs"
    assert any("source 1 S1: 0 rows since the restart" in line for line in query.lines())


def idle(minute):
    return {**progress(99, rows=0, mark=0, ran=False), "timestamp": progress(minute)["timestamp"]}


@pytest.mark.parametrize(
    ("lines", "evidence"),
    [
        ([], "not a row in 30 min; 0 micro-batches ran"),
        (
            [progress(n, rows=0, state={"stateStoreSave": 0}) for n in range(3)],
            "not a row in 35 min; 3 micro-batches ran",
        ),
        (
            [progress(n, high=n, mark=n - 1, state={"stateStoreSave": 3}, out=1) for n in range(6)],
            "the last rows came at 2026-03-01T12:05; none in 30 min; 3 in state",
        ),
        ([progress(n, high=n, mark=n - 1, out=1) for n in range(7)], None),
        ([progress(n, high=n, mark=n - 1, out=1) for n in (0, 20)], None),
        ([progress(n, rows=0, high=n, mark=n - 1, out=1, state={"stateStoreSave": 3}) for n in range(3, 9)], None),
        ([progress(n, rows=0, state={"stateStoreSave": n}) for n in range(3)], None),
    ],
    ids=["none ran", "none had rows", "half an hour", "less", "rare rows", "counted by event time", "seen in state"],
)
def test_sources_that_bring_no_rows_are_named_after_half_an_hour(lines, evidence):
    (query,) = explain_progress([*lines, *(idle(minute) for minute in range(5 if not lines else 9, 36))]).queries
    assert [(cause.id, cause.evidence) for cause in query.causes] == ([("no-rows", (evidence,))] if evidence else [])


def test_the_cause_stands_before_the_facts_and_a_sound_query_after_one_with_a_cause():
    sound = [{**progress(n, high=n), "id": "sound"} for n in range(3)]
    late = [progress(n, high=n, mark=max(0, n - 2), dropped=n > 1, out=1, **MARK) for n in range(3)]
    answer = [*explain_progress([*sound, *late]).lines()]
    assert [line.split(" (")[0] for line in answer if "orders" in line] == ['query "orders"'] * 2
    assert answer[1].startswith("  ✗ 1. the delay is shorter")
    assert len([line for line in answer if line.startswith("  rows: ")]) == 2
    assert [*explain_progress([*late, *sound]).lines()] == answer


def test_files_after_the_first_are_of_the_option_too(tmp_path, capsys):
    for n in range(2):
        (tmp_path / f"{n}.jsonl").write_text(json.dumps(progress(n, high=n)))
    code, text, _ = answer_of(capsys, "explain", "--json", "--progress", *map(str, sorted(tmp_path.iterdir())))
    (query,) = json.loads(text)["queries"]
    assert (code, query["runs"][0]["batches"]) == (0, 2)


def test_an_event_log_tells_settings_failures_and_idle_triggers():
    event = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"
    key = "spark.sql.streaming.multipleWatermarkPolicy"
    settings = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {key: "max"}}
    about = {"id": "a" * 8, "runId": "b" * 8}
    run = [progress(0, high=0, mark="1970-01-01T00:00:00.000Z"), progress(1, high=9, mark=-9)]
    again = {**progress(2, high=20, mark=1), "runId": "c" * 8}
    lines = [{"Event": f"{event}ProgressEvent", "progress": one} for one in (*run, again)]
    lines[2:2] = [settings, {"Event": f"{event}TerminatedEvent", **about, "exception": "java.lang.Error: no disk"}]
    (query,) = explain_progress(json.dumps(line) for line in lines).queries
    assert query.query.runs[0].exception == "java.lang.Error: no disk"
    assert [*query.record()["changed"]] == [f"before micro-batch 2: {key} unset → max"]
    (failed,) = explain_progress(json.dumps(line) for line in (lines[0], lines[1], lines[3])).queries
    for detail in (-1, 2):
        assert [*failed.lines(detail)][1] == "  ✗ it ended with an error: java.lang.Error: no disk"
        assert not any("no disk" in line for line in query.lines(detail))
    assert failed.page.failure
    lines[1:1] = [{"Event": f"{event}IdleEvent", **about}]
    lines[0]["progress"] = progress(0, high=9, mark=-9, state={"stateStoreSave": 3})
    lines[2]["progress"] = progress(1, high=9, mark=-1, state={"stateStoreSave": 3})
    (query,) = explain_progress(json.dumps(line) for line in lines[:3]).queries
    assert [cause.id for cause in query.causes] == ["no-data-batches-off"]


def test_the_listener_of_the_page_writes_what_is_explained(tmp_path, monkeypatch):
    page = (Path(__file__).parents[4] / "docs" / "your-query-in-production.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))
    monkeypatch.setitem(sys.modules, "pyspark.sql", ModuleType("pyspark.sql"))
    streaming = ModuleType("pyspark.sql.streaming")
    streaming.StreamingQueryListener = object
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming", streaming)
    listeners = []
    exec(code, {"spark": SimpleNamespace(streams=SimpleNamespace(addListener=listeners.append))})
    for batch in range(3):
        one = SimpleNamespace(json=pretty(progress(batch, high=batch)))
        listeners[0].onQueryProgress(SimpleNamespace(progress=one))
    assert explained(tmp_path / "progress.jsonl").queries[0].query.runs[0].batches == 3


def sent(*counts, **more):
    """Progress of micro-batches with so many rows of each of two sources; rows of both move the watermark."""
    moved = [max((at for at in range(n) if all(counts[at])), default=0) for n in range(len(counts))]
    return [
        progress(n, high=10 + n, mark=5 + moved[n], sources=rows, out=1, **{**MARK, **more})
        for n, rows in enumerate(counts)
    ]


@pytest.mark.parametrize(
    ("counts", "more", "causes"),
    [
        ([(3, 3), *[(3, 0)] * 4], {}, ["idle-source"]),
        ([(3, 3), *[(3, 0)] * 4, (3, 3), *[(3, 0)] * 4], {}, []),
        ([(3, 3), *[(3, 0)] * 4, (3, 3), *[(3, 0)] * 9], {}, ["idle-source"]),
        ([(3, 3), *[(3, 0)] * 4], {"state": {}}, []),
    ],
    ids=["silent", "slow", "silent for longer than usual", "no state waits"],
)
def test_a_source_that_is_slow_or_holds_nothing_is_not_idle(counts, more, causes):
    assert named(sent(*counts, **more)) == causes


@pytest.mark.parametrize(
    ("operator", "causes"),
    [("stateStoreSave", ["null-event-time"]), ("dedupe", []), ("dedupeWithinWatermark", []), (None, [])],
)
def test_null_event_times_lose_no_row_of_a_deduplication_or_without_state(operator, causes):
    state = {operator: 3} if operator else {}
    lines = [progress(n, high=n, low="1970-01-01T00:00:00.000Z", mark=n - 9, out=1, state=state) for n in range(3)]
    assert named(lines) == causes


@pytest.mark.parametrize("times", [(1, 9000, 2, 3, 4, 5), (60, 50, 40, 30, 20, 10)], ids=["future row", "newest first"])
@pytest.mark.parametrize(
    ("operators", "dropped"), [({"stateStoreSave": 3}, 0), ({}, 0), ({"stateStoreSave": 3}, 2)], ids=str
)
def test_rows_behind_the_watermark_are_no_cause_where_no_operator_drops_them(times, operators, dropped):
    lines = []
    for n, high in enumerate(times):
        mark = max([5, *times[:n]]) - 5
        lines.append(progress(n, high=high, mark=mark, out=1, state=operators, dropped=dropped * (high < mark)))
    assert bool(named(lines)) == bool(dropped)


@pytest.mark.parametrize(("days", "causes"), [(4, []), (5, ["watermark-not-used"])])
def test_windows_of_a_month_keep_their_state_for_a_month(days, causes):
    of_days = ((n, n * days * 1440) for n in range(8))
    lines = [progress(n, high=at, mark=at, out=1, state={"stateStoreSave": n + 1}) for n, at in of_days]
    (query,) = explain_progress(lines).queries
    assert [cause.id for cause in query.causes] == causes
    assert [cause.evidence[-1] for cause in query.causes] == [f"the watermark has moved by {days * 7} d"] * len(causes)
    rows = "stateStoreSave: 8 rows, more after 8 micro-batches, never fewer"
    same = f"windows, join bounds or timeouts longer than {days * 7} d"
    assert query.record()["not_known"] == [f"{rows}, as with {same}"] * (not causes)
    assert any(line.startswith(f"  not known: why state grows: {rows}") for line in query.lines(-1)) == (not causes)


def grown(name, total=lambda n: n + 1, **operator):
    """Progress of two hours, in which the state of an operator grows."""
    lines = []
    for n in range(8):
        one = progress(n, high=n * 15, mark=max(0, n * 15 - 10), out=1, sources=[1, 1], state={name: total(n)})
        one["stateOperators"][0] |= {"numShufflePartitions": 2} | operator
        lines.append(one)
    return lines


@pytest.mark.parametrize(
    ("name", "operator", "causes"),
    [
        ("stateStoreSave", {"allRemovalsTimeMs": 0}, ["watermark-not-used"]),
        ("stateStoreSave", {"allRemovalsTimeMs": 4}, []),
        ("symmetricHashJoin", {"allRemovalsTimeMs": 0}, ["join-without-bound"]),
        ("symmetricHashJoin", {"allRemovalsTimeMs": 4}, []),
        ("applyInPandasWithState", {"allRemovalsTimeMs": 0}, ["state-without-timeout"]),
        ("stateStoreSave", {}, []),
    ],
)
def test_many_rows_take_time_to_look_through_for_some_to_remove(name, operator, causes):
    many, few = ([grown(name, lambda n, size=size: size + n, **operator)] for size in (60_000, 50_000))
    assert named(*many) == causes
    assert named(*few) == (causes if name == "applyInPandasWithState" else [])


@pytest.mark.parametrize("taken", [[9, 0, 0, 0, 0, 0, 0, 0], [0, 0, 4, 0, 0, 0, 9, 0]])
def test_what_else_the_jvm_does_may_take_the_time_now_and_then(taken):
    lines = grown("stateStoreSave", lambda n: 90_000 + n)
    for line, ms in zip(lines, taken, strict=True):
        line["stateOperators"][0]["allRemovalsTimeMs"] = ms
    assert named(lines) == (["watermark-not-used"] if sum(map(bool, taken)) * 4 <= taken.count(0) else [])


@pytest.mark.parametrize(
    ("name", "metrics", "causes"),
    [
        ("dedupe", {"numRowsReadDuringEviction": 0}, ["deduplication-without-event-time"]),
        ("transformWithStateInPandasExec", {"numRegisteredTimers": 0}, ["state-without-timeout"]),
        ("transformWithStateInPandasExec", {"numRegisteredTimers": 1}, []),
        ("transformWithStateInPandasExec", {"numRegisteredTimers": 0, "numValueStateWithTTLVars": 1}, []),
        ("dedupeWithinWatermark", {"numRowsReadDuringEviction": 0}, []),
        ("anotherAggregation", {"numRowsReadDuringEviction": 0}, ["watermark-not-used"]),
    ],
)
def test_metrics_of_an_operator_say_whether_it_looks_for_rows_to_remove(name, metrics, causes):
    assert named(grown(name, customMetrics=metrics)) == causes


def test_complete_mode_keeps_all_whatever_the_name_of_the_aggregation():
    lines = grown("anotherAggregation", customMetrics={"numRowsReadDuringEviction": 0})
    for line in lines:
        line["sink"]["numOutputRows"] = line["stateOperators"][0]["numRowsTotal"]
    assert named(lines) == []


def test_a_deduplication_that_reads_its_state_is_no_cause_before_the_watermark_passes_it():
    lines = grown("dedupe", customMetrics={"numRowsReadDuringEviction": 9})
    assert named(lines) == []
    assert explain_progress(lines).queries[0].record()["not_known"] == []


@pytest.mark.parametrize(("without_data", "causes"), [(False, ["join-without-bound"]), (True, [])])
def test_an_idle_query_shows_by_micro_batches_without_data_whether_a_join_has_a_bound(without_data, causes):
    lines = grown("symmetricHashJoin")
    more = {"rows": 0, "mark": 105, "sources": [0, 0], "state": {"symmetricHashJoin": 8}, "out": 1}
    assert named([*lines, progress(8, ran=without_data, **more)]) == causes


def test_live_rows_that_are_late_after_a_first_run_with_all_of_the_past_are_no_backlog():
    first = [progress(0, rows=200, high=0, mark=0, out=1, **MARK)]
    late = [{"rows": 9, "low": n - 30, "high": n, "mark": n - 15, "dropped": 1, "out": 1, **MARK} for n in range(1, 6)]
    assert named([*first, *again(1, *late)]) == ["short-delay"]


@pytest.mark.parametrize(
    ("aggregated", "joined", "causes"),
    [(4, 3, ["append-before-any-later-row"]), (0, 3, ["join-waits"]), (0, 0, [])],
)
def test_what_waits_is_in_the_upper_operator_that_keeps_rows(aggregated, joined, causes):
    state = {"stateStoreSave": aggregated, "symmetricHashJoin": joined}
    lines = [progress(n, high=n * 9, mark=n * 9 - 9, state=state) for n in (0, 1)]
    lines[1]["stateOperators"][1]["numRowsRemoved"] = 2
    assert named(lines) == causes


@pytest.mark.parametrize(
    ("event_time", "watermark", "cause"),
    [
        ("1970-01-21T13:00:00.000Z", "1970-01-21T12:50:00.000Z", "seconds-as-milliseconds"),
        ("2026-03-01T12:00:00.000Z", "1970-01-21T12:50:00.000Z", "seconds-as-milliseconds"),
        ("1970-01-01T00:29:33.000Z", "1970-01-01T00:19:33.000Z", "seconds-as-microseconds"),
        ("+58136-03-11T12:00:00.000Z", "+58136-03-11T11:50:00.000Z", "milliseconds-as-seconds"),
        ("+294247-01-10T04:00:54.775Z", "+294247-01-10T03:50:54.775Z", "microseconds-as-seconds"),
    ],
)
def test_a_wrong_unit_is_known_by_the_event_times_or_by_the_watermark(event_time, watermark, cause):
    lines = [progress(n, high=event_time, mark=watermark if n else 0, out=1, **MARK) for n in range(3)]
    assert named(lines) == [cause]
