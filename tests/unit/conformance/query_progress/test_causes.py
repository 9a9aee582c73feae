"""What progress of real engines shows is named first, and nothing else; sound progress has no cause."""

import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from conformance.query_progress.answer import ProgressExplanation, explain_progress, rule
from conformance.query_progress.causes import _written
from tests.support.commands import answer_of
from tests.unit.conformance.query_progress.lines import pretty, progress

DATA = Path(__file__).parent / "data"
LOGS = sorted(DATA.rglob("*.jsonl"))
CAUSE = {"watermark-after-aggregation": "watermark-not-used", "null-after-parsing": "null-event-time"}
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


def test_logs_of_the_oldest_and_the_newest_version_are_here():
    assert {path.parent.name for path in LOGS} >= {"3.0.3", "4.3.0"}


def test_each_cause_names_a_statement_of_the_specification():
    for said in _written().values():
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


def test_without_progress_it_says_so_and_exits_with_2(tmp_path, capsys):
    (tmp_path / "x.log").write_text('{"other": 1}\n')
    code, _, errors = answer_of(capsys, "explain", "--progress", str(tmp_path / "x.log"))
    assert code == 2
    assert re.search(r"no progress of a streaming query in .*x\.log \(.*x\.log:1: ", errors)


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
