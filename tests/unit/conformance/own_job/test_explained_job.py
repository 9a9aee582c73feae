"""What a job's explanation says of the answers of real engines, which are recorded for each faulty and sound job."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.account.account import Span
from conformance.cli import explain
from conformance.core.case import Add, Partitioned
from conformance.core.errors import WrongUsage
from conformance.core.observation import Column, ErrorSeen, Observation
from conformance.core.spark_types import parse_schema
from conformance.core.values import show
from conformance.judging.step_comparison import OutputSchema
from conformance.own_job import explained_job
from conformance.own_job.analyzed_plan import WHOLE, JobPlan, OperatorInput, PlanWatermark, keys_of
from conformance.own_job.explained_job import JobExplanation, NoAnswer, explain_query
from conformance.own_job.first_operator import NotKnown, RowsThere, _condition, _keys
from conformance.own_job.job_case import ActingOptions
from conformance.own_job.job_causes import _mistake, _nulls, _other_time, _overflow, _refused, _unparsed, causes_of
from conformance.own_job.job_run import CellAnswer
from conformance.own_job.named_job import JobQueries
from conformance.own_job.sample import silent
from conformance.own_job.treatment import TreatedRow, TreatedRows, _Rows, treat_rows
from conformance.query.reading import PlanNode
from conformance.runner.resources import Concurrency, EngineUse
from harness.driver.backend import ROW_FROM
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import CellRun
from harness.targets.targets import Targets
from tests.support.commands import answer_of
from tests.support.explained_jobs import JOBS, named
from tests.unit.conformance.own_job.test_job_run import Silent

DATA = Path(__file__).parent / "data" / "explained"
RECORDED = sorted(DATA.glob("*.json"))


def explained(path, monkeypatch, *more):
    name, _, version = path.stem.rpartition("-")
    job, recorded = JOBS[name], json.loads(path.read_text())

    def answers(cells, *_):
        seen = {cell.case.id: recorded[cell.case.id] for cell in cells}
        return {
            cell.case.id: CellAnswer(cell, CellRun(cell, (Observation.model_validate(seen[cell.case.id]),), None, 0.0))
            if seen[cell.case.id]
            else CellAnswer(cell, None, "no answer")
            for cell in cells
        }

    monkeypatch.setattr(explained_job, "run_cells", answers)
    monkeypatch.setattr(explained_job, "run_cell", lambda cell, *rest: answers([cell], *rest)[cell.case.id])
    (target,) = Targets.load().select([version])
    where = EngineUse(runtime=RuntimeOptions(conf=job.conf), concurrency=Concurrency())
    return job, explain_query(job.query, (*job.samples, *more), target, where, Silent(), batches=6)


def rows_shown(answer, path):
    """The rows at places of the plan, as the engine showed them."""
    case, plan, recorded = answer.job.case, answer.job.plan, json.loads(path.read_text())
    places = [mark.input for mark in plan.watermarks] + [*plan.inputs(plan.first)]
    return {
        place: RowsThere.of(Observation.model_validate(recorded[f"{case.id}-{number}"]))
        for number, place in enumerate(places, 1)
    }


@pytest.mark.parametrize("path", RECORDED, ids=[path.stem for path in RECORDED])
def test_the_cause_is_named_also_by_progress_and_no_second_one_and_each_row_has_its_treatment(path, monkeypatch):
    job, answer = explained(path, monkeypatch)
    assert named(answer) == job.expected(str(answer.target.version))
    assert answer.exit_code == 0 or not path.stem.startswith("sound")
    assert all(cause.evidence for cause in answer.causes)
    for detail in (0, 1, 2):
        assert all(line == line.rstrip() for line in answer.lines(detail))
    record = json.loads(json.dumps(answer.record()))
    assert [cause["id"] for cause in record["causes"]] == [*job.causes]
    assert len(record["rows"]) == sum(len(sample.rows) for sample in job.samples)


def test_a_source_with_the_same_columns_that_the_query_does_not_read_hides_no_treatment(monkeypatch):
    path = DATA / "short-delay-4.3.0.json"
    (sample,) = JOBS["short-delay"].samples
    _, alone = explained(path, monkeypatch)
    _, beside = explained(path, monkeypatch, replace(sample, stream="other", rows=()))
    assert beside.job.treated.rows == alone.job.treated.rows
    assert {row.treatment for row in beside.job.treated.rows} > {"late"}


def read_at(place, names, rows, origins):
    """A case with a stream for each of these names, and the rows that an engine showed at a watermark."""
    given = {"ad": [["x", "2026-03-17 12:00:00"]], "page": [["y", "2026-03-17 12:07:00"], ["y", None]]}
    schemas = {name: parse_schema("key STRING, t TIMESTAMP") for name in names}
    arrival = Add(streams={name: Partitioned(partitions=(tuple(given[name]),)) for name in names})
    case = SimpleNamespace(streams=schemas, steps=[SimpleNamespace(number=1, action=arrival)])
    there = {place: RowsThere(OutputSchema.of((Column(name="t", type="timestamp"),)), tuple(rows), origins)}
    plan = SimpleNamespace(
        watermarks=[PlanWatermark(place, "t", "1 minute", "t", PlanNode("EventTimeWatermark", "", ()))]
    )
    return [
        (row.stream, row.time_us and show(row.time_us)[-5:], row.treatment) for row in _Rows(case, plan, there).base()
    ]


def test_rows_of_streams_with_the_same_columns_are_told_apart_by_where_they_come_from():
    place, rows = OperatorInput("EventTimeWatermark", 0), [("2026-03-17T12:00:00Z",), (None,)]
    known = read_at(place, ("ad", "page"), rows, (("ad", 0), ("page", 1)))
    assert known == [("ad", "12:00", "not known"), ("page", None, "filtered"), ("page", None, "no event time")]
    assert {treatment for *_, treatment in read_at(place, ("ad", "page"), rows, None)} == {"not known"}


@pytest.mark.parametrize(
    ("files", "origins"),
    [
        (("file:///c/streams/b/000001.json 0", "file:///c/streams/a%20b/x.json 8589934593"), (("a%20b", 1), ("b", 0))),
        (("hdfs://h/c/stream=b/part-0.txt 3", "hdfs://h/c/stream=b/part-0.txt 2"), (("b", 2), ("b", 3))),
        # Behind a shuffle or a Python function, Spark knows no file.
        (("file:///c/streams/b/000001.json 0", " 1"), None),
    ],
)
def test_rows_there_are_in_the_order_of_the_sample_and_know_where_they_come_from(files, origins):
    columns = [{"name": "n", "type": "bigint"}, {"name": ROW_FROM, "type": "string"}, {"name": "m", "type": "bigint"}]
    batch = SimpleNamespace(rows=[(number, file, 0) for number, file in enumerate(files)])
    there = RowsThere.of(SimpleNamespace(columns=tuple(map(Column.model_validate, columns)), batches=[batch]))
    assert there.origins == origins
    assert there.columns.names == (("n", "m") if origins else ("n", ROW_FROM, "m"))
    assert [row[0] for row in there.rows] == ([1, 0] if origins else [0, 1])


@pytest.mark.parametrize(
    ("name", "sink", "causes"),
    [
        ("other-column", "memory", ["sink-without-update-mode", "watermark-on-other-column"]),
        ("sound-update", "memory", []),
        ("sound-update", "parquet", ["sink-without-update-mode"]),
        ("sound-update", "foreachBatch", []),
        ("sound-offset", "parquet", []),
        # The key of a record is not the window.
        ("sound-values", "kafka", ["sink-without-update-mode"]),
        ("sound-values", "foreachBatch", []),
    ],
)
def test_a_sink_that_takes_no_updates_is_the_cause_in_update_mode(name, sink, causes, monkeypatch):
    _, answer = explained(DATA / f"{name}-4.3.0.json", monkeypatch)
    assert [cause.id for cause in causes_of(replace(answer.job, sink=sink))] == causes


@pytest.mark.parametrize(("zone", "cause"), [("Europe/Berlin", "daylight-saving"), ("UTC", "short-delay")])
def test_the_clock_of_the_session_is_the_cause_only_in_its_zone(zone, cause, monkeypatch):
    _, answer = explained(DATA / "clock-set-back-4.3.0.json", monkeypatch)
    assert [each.id for each in causes_of(replace(answer.job, zone=zone))] == [cause]


def test_options_of_sources_that_do_not_act_are_named(monkeypatch):
    _, answer = explained(DATA / "sound-4.3.0.json", monkeypatch)
    acting = ActingOptions("files", {"a": {}}, "latestFirst=true of a")
    with_options = replace(answer, query=replace(answer.query, options=(acting,)))
    said = "  not tried: latestFirst=true of a; the rows came in the order of the sample"
    assert [said in each.lines(2) for each in (answer, with_options)] == [False, True]


@pytest.mark.parametrize(
    ("number", "cause"), [("ms", "milliseconds-as-seconds"), ("n", "null-event-time"), ("other", "null-event-time")]
)
def test_milliseconds_of_which_from_unixtime_makes_no_timestamp_are_the_cause(number, cause, monkeypatch):
    _, answer = explained(DATA / "null-after-parsing-4.3.0.json", monkeypatch)
    (mark,) = answer.job.plan.watermarks
    made = replace(mark, expression=f"to_timestamp(from_unixtime({number}, yyyy-MM-dd HH:mm:ss))")
    named = _nulls(replace(answer.job, plan=SimpleNamespace(watermarks=[made])))
    assert named.id == cause


@pytest.mark.parametrize(
    ("says", "named"),
    [
        ("dropDuplicates is not supported after aggregation on a streaming DataFrame", "several-operators-below-3.5"),
        ("mapGroupsWithState is not supported with aggregation on a DataFrame", "several-operators-below-3.5"),
        ("Failed to copy node.\nIs otherCopyArgs specified correctly for EventTimeWatermark.", "nested-event-time"),
        ("The event time in withWatermark must be a top-level column, but 'a.b' is nested", "nested-event-time"),
        ("[EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE] The event time `at` has the type", "event-time-of-another-type"),
        ("Event time must be defined on a window or a timestamp, but at is a date", "event-time-of-another-type"),
        ("Redefining watermark is disallowed.", "watermark-set-twice"),
        ("Append output mode not supported when there are streaming aggregations without watermark", None),
    ],
)
def test_what_a_version_refuses_is_the_cause(says, named):
    cause = _refused(SimpleNamespace(message=f"{says};;\nDeduplicate", first_line=says))
    assert (cause and cause.id) == named


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (
            "[CANNOT_PARSE_TIMESTAMP] Text '09:10+02:00' could not be parsed, unparsed text found at index 5.",
            "'+02:00'",
        ),
        ("You may get a different result: Fail to parse '09:10+02:00' in the new parser.", "see the text"),
    ],
)
def test_a_text_that_does_not_parse_is_named_with_what_its_pattern_leaves(says, why):
    cause = _unparsed(SimpleNamespace(message=says, first_line=says), JobPlan(""))
    assert why in cause.what
    assert cause.evidence == ("the query fails: the text '09:10+02:00' does not parse",)


def test_a_query_that_fails_does_not_wait(monkeypatch):
    _, answer = explained(DATA / "append-waits-4.3.0.json", monkeypatch)
    _, refused = explained(DATA / "windows-refused-4.3.0.json", monkeypatch)
    seen = answer.job.seen.model_copy(update={"steps": (*answer.job.seen.steps, *refused.job.seen.steps)})
    assert [cause.id for cause in causes_of(replace(answer.job, seen=seen))] == ["two-event-times"]
    error = refused.job.seen.error.model_copy(update={"message": "the disk is full"})
    steps = (*answer.job.seen.steps, refused.job.seen.steps[0].model_copy(update={"error": error}))
    assert causes_of(replace(answer.job, seen=seen.model_copy(update={"steps": steps}))) == ()


def test_what_an_engine_does_not_tell_is_no_all_clear(monkeypatch):
    _, answer = explained(DATA / "sound-4.3.0.json", monkeypatch)
    steps = [
        step.model_copy(update={"batches": [batch.model_copy(update={"dropped": None}) for batch in step.batches]})
        for step in answer.job.seen.steps
    ]
    seen = answer.job.seen.model_copy(update={"steps": steps})
    job = replace(answer.job, seen=seen, treated=replace(answer.job.treated, unknown="which rows"))
    lines = [*JobExplanation(answer.query, answer.target, job).lines()]
    assert "  ● no cause for missing rows or growing state is known" in lines
    assert any("dropped rows not known" in line for line in lines)


def test_a_query_without_an_answer_hides_no_other(monkeypatch, capsys):
    _, answer = explained(DATA / "short-delay-4.3.0.json", monkeypatch)
    asked = [(replace(answer.query, title=title), ()) for title in "abc"]

    def explain_one(query, *_, **__):
        if query.title == "b":
            raise NoAnswer("the code fails", of_the_code=True)
        return replace(answer, query=query)

    monkeypatch.setattr(explained_job, "explain_query", explain_one)
    monkeypatch.setattr(explain, "queries", lambda *_: JobQueries(tuple(asked), None, ("a note",)))
    code = explain._explain_job(SimpleNamespace(), "4.3.0", None, None, 6, verbose=False, as_json=False)
    said = capsys.readouterr()
    assert code == 1
    assert said.out.count(" on 4.3.0: 24 rows in") == 2
    assert (said.err.count("b: the code fails"), said.err.count("a note")) == (1, 1)


def test_rows_of_a_column_that_the_engine_does_not_show_are_not_without_event_time(monkeypatch):
    path = DATA / "sound-4.3.0.json"
    _, answer = explained(path, monkeypatch)
    case, (mark,) = answer.job.case, answer.job.plan.watermarks
    there = {mark.input: RowsThere.of(Observation.model_validate(json.loads(path.read_text())[f"{case.id}-1"]))}
    plan = SimpleNamespace(watermarks=[replace(mark, column="elsewhere")])
    assert {row.treatment for row in _Rows(case, plan, there).base()} == {"not known"}


@pytest.mark.parametrize(
    ("origins", "unknown"),
    [(True, ""), (False, "which rows of the sample the operator gets")],
    ids=["known", "not known"],
)
def test_rows_of_a_union_are_those_of_its_branches(origins, unknown, monkeypatch):
    path = DATA / "sound-union-4.3.0.json"
    _, answer = explained(path, monkeypatch)
    case, plan = answer.job.case, answer.job.plan
    there = rows_shown(answer, path)
    (input,) = plan.inputs(plan.first)
    there[input] = replace(there[input], origins=there[input].origins if origins else None)
    treated = treat_rows(case, answer.target.version, answer.job.seen, plan, there, {})
    assert treated.unknown == unknown
    assert {row.stream for row in treated.of("out")} == (set() if unknown else {"a", "b"})


def test_a_row_of_a_union_without_an_event_time_has_no_window_and_leaves_the_others_known(monkeypatch):
    path = DATA / "sound-union-4.3.0.json"
    _, answer = explained(path, monkeypatch)
    case, plan, there = answer.job.case, answer.job.plan, rows_shown(answer, path)
    (input,), mark = plan.inputs(plan.first), plan.watermarks[-1]
    at = there[mark.input].place(mark.column)
    *rows, last = there[mark.input].rows
    null = tuple(None if place == at else value for place, value in enumerate(last))
    there[mark.input] = replace(there[mark.input], rows=(*rows, null))
    there[input] = replace(there[input], rows=there[input].rows[:-1], origins=there[input].origins[:-1])
    reading = _Rows(case, plan, there)
    assert [row.treatment for row in reading.base()].count("no event time") == 1
    assert sum(len(numbers) for _, numbers, _ in reading.under(plan.first.children[0], input)) == 29


@pytest.mark.parametrize(
    ("name", "treatment"), [("sound-unique-then-window", "not known"), ("sound-deduplication", "filtered")]
)
def test_rows_that_reach_only_an_operator_above_the_first_are_not_filtered(name, treatment, monkeypatch):
    path = DATA / f"{name}-4.3.0.json"
    _, answer = explained(path, monkeypatch)
    case, plan, there = answer.job.case, answer.job.plan, rows_shown(answer, path)
    first = case.steps[0]
    sent = {**first.action.streams, "b": Partitioned(partitions=((["ada"],),))}
    steps = (first.model_copy(update={"action": Add(streams=sent)}), *case.steps[1:])
    more = {"streams": {**case.streams, "b": parse_schema("who2 STRING")}, "steps": steps}
    treated = treat_rows(case.model_copy(update=more), answer.target.version, answer.job.seen, plan, there, {})
    assert [row.treatment for row in treated.rows if row.stream == "b"] == [treatment]
    assert ("the rows of b, which do not reach" in treated.unknown) == (treatment == "not known")


def test_without_a_row_no_engine_runs(monkeypatch):
    _, answer = explained(DATA / "sound-4.3.0.json", monkeypatch)
    where = EngineUse(runtime=RuntimeOptions(), concurrency=Concurrency())
    with pytest.raises(WrongUsage, match="no stream of it has rows"):
        explain_query(answer.query, [silent("a", "t TIMESTAMP")], answer.target, where, Silent(), batches=6)


@pytest.mark.parametrize("known", [True, False])
def test_a_query_without_state_has_treatments_as_far_as_the_engine_shows_which_rows_it_emits(known, monkeypatch):
    path = DATA / "sound-stateless-4.3.0.json"
    _, answer = explained(path, monkeypatch)
    case = answer.job.case
    there = RowsThere.of(Observation.model_validate(json.loads(path.read_text())[f"{case.id}-2"]))
    there = replace(there, rows=there.rows[1:], origins=there.origins[1:] if known else None)
    treated = treat_rows(case, answer.target.version, answer.job.seen, answer.job.plan, {WHOLE: there}, {})
    assert ("which rows it emits" in treated.unknown) != known
    shown = [(row.treatment, row.batch) for row in treated.rows[:5]]
    assert shown == ([("filtered", None), *[("out", 0)] * 3, ("out", 1)] if known else [("not known", None)] * 5)


def test_every_job_is_recorded():
    assert {path.stem.rpartition("-")[0] for path in RECORDED} == {*JOBS}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (["jobs/o.py", "--results", "r.jsonl"], "--results"),
        (["a.b:c", "--from", "3.5.9"], "--from"),
        (["q.sql", "--progress", "p.jsonl"], "--progress"),
        (["late-drops/window-still-open", "--sample", "a=b.csv"], "is not a job"),
        (["my/late.yaml", "--sample", "a=b.csv"], "is not a job"),
        (["late-drops/window-still-open", "--set", "a=b"], "is not a job"),
        (["late-drops/window-still-open", "--output-mode", "update"], "is not a job"),
        (["a.b:c", "--sample", "a=nowhere.csv"], "No such file"),
    ],
)
def test_options_of_a_job_and_of_a_case_exclude_each_other(given, what, capsys):
    code, _, err = answer_of(capsys, "explain", *given)
    assert code == 2
    assert what in " ".join(err.split())


def test_a_delay_that_keeps_all_rows_is_named_with_their_number(monkeypatch):
    _, answer = explained(DATA / "short-delay-of-sessions-4.3.0.json", monkeypatch)
    assert "a delay of 41 minutes keeps 24 of 24 rows" in answer.causes[0].fix
    first = answer.job.treated.of("late")[0]
    # The row of 11:50 makes a session until 11:55; the newest row of the micro-batch before is of 12:35, and the delay 10 minutes.
    assert (first.time_us, first.batch, first.late_by_ms) == (1773748200 * 10**6, 6, 30 * 60_000)


@pytest.mark.parametrize("suffix", ["", "L"], ids=["int", "bigint"])
def test_a_column_of_a_condition_is_of_the_side_that_has_it_whatever_its_type(suffix):
    names = {"ride": 3, "of_ride": 30, "taxi": 31}
    leaves = [PlanNode("Scan", f"[{name}#{id}{suffix}]", ()) for name, id in names.items()]
    join = PlanNode("StreamingSymmetricHashJoin", f"[ride#3{suffix}], [of_ride#30{suffix}], Inner", tuple(leaves[:2]))
    sides = [(RowsThere(OutputSchema.of((Column(name=name, type="int"),)), (), ()), [], None) for name in names]
    assert _condition(join, sides) == "l.c0 = r.c0"


def test_a_key_that_an_aggregation_computes_is_the_last_column_of_its_name():
    names = ("event", "src", "src")
    there = RowsThere(OutputSchema.of(tuple(Column(name=name, type="string") for name in names)), (), ())
    arguments = " [event#1.src, event#1], [event#1.src AS src#9, event#1 AS e#8, count(1) AS n#5L]"
    assert [*_keys(PlanNode("Aggregate", arguments, ()), (there, [], None))] == ["c2", "c0"]
    with pytest.raises(NotKnown, match="does not get the key upper"):
        [*_keys(PlanNode("Aggregate", " [upper(src#2)], [count(1) AS n#5L]", ()), (there, [], None))]


@pytest.mark.parametrize(
    ("window", "late_by_ms", "passed"),
    [
        (None, 60_000, "the watermark had passed it by 1 min"),
        (Span(0, 60), 60_000, "the watermark had passed its window by 1 min"),
        (Span(0, 60), 0, "the watermark had reached the end of its window"),
        (None, 0, "the watermark had reached it"),
    ],
)
def test_a_row_is_late_too_if_the_watermark_is_where_its_window_ends(window, late_by_ms, passed):
    assert TreatedRow("a", 1, "", window=window, late_by_ms=late_by_ms).passed == passed


def test_the_watermark_before_the_first_row_has_a_date(monkeypatch):
    _, answer = explained(DATA / "sound-4.3.0.json", monkeypatch)
    assert any(line.startswith("  micro-batch 0: 4 in, watermark 1970-01-01, ") for line in answer.lines())


@pytest.mark.parametrize(
    ("pattern", "mistake"),
    [
        ("yyyy-MM-dd HH:mm:ss", None),
        ("yyyy-MM-dd hh:mm:ss a", None),
        ("dd.MM.yyyy HH:mm", None),
        ("HH:mm dd/MM/yyyy", None),
        ("yyyy-DDD HH:mm", None),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", None),
        ("yyyy-MM-dd hh:mm", "HH for the hour from 0 to 23"),
        ("YYYY-MM-dd HH:mm", "yyyy for the year"),
        ("yyyy-mm-dd HH:mm", "MM for the month"),
        ("dd/mm/yyyy", "MM for the month"),
        ("dd/mm/yyyy HH:MM", "MM for the month, mm for the minute"),
        ("yyyy-MM-dd HH:MM", "mm for the minute"),
        ("yyyy-MM-DD HH:mm", "dd for the day of the month"),
    ],
)
def test_a_mistake_in_a_pattern_is_named(pattern, mistake):
    found = _mistake(f"to_timestamp(text, Some({pattern}), TimestampType, Some(UTC), true)")
    assert (found and found[1]) == mistake


@pytest.mark.parametrize("name", ["t", "event time", "zeit-ü"])
def test_a_plan_tells_its_watermarks_and_first_operator(name):
    text = (
        "== Analyzed Logical Plan ==\nn: bigint\n"
        "Aggregate [who#1, window#9-T600000ms], [count(1) AS n#5L]\n"
        "+- ~Filter isnotnull(t#7-T600000ms)\n"
        "   +- EventTimeWatermark 0a-1b, t#7: timestamp, 10 minutes\n"
        "      +- Project [cast(x#2 as timestamp) AS t#7, who#1]\n"
        "         +- Relation [x#2,who#1] json\n\n== Optimized Logical Plan ==\nLocalRelation\n"
    )
    plan = JobPlan(text.replace("t#7", f"{name}#7"))
    (mark,) = plan.watermarks
    assert (mark.column, mark.delay_ms, mark.expression) == (name, 600_000, "cast(x as timestamp)")
    assert mark.input == OperatorInput("EventTimeWatermark", 0)
    assert plan.first is not None
    assert keys_of(plan.first) == ("who#1", "window#9-T600000ms")
    assert [str(place) for place in plan.inputs(plan.first)] == ["Aggregate 0 0"]


def test_columns_whose_order_is_not_promised_are_followed_up_the_plan():
    plan = JobPlan(
        "== Analyzed Logical Plan ==\nall: array<int>\n"
        "Project [who#1, kept#6 AS all#7, sorted#8, n#5L, struct(a, kept#6) AS both#9]\n"
        "+- Aggregate [who#1], [who#1, collect_set(x#2, 0, 0) AS kept#6, sort_array(collect_list(x#2, 0, 0), true) AS sorted#8, "
        "count(1) AS n#5L]\n"
        "   +- Relation [x#2,who#1] json\n"
    )
    assert plan.in_no_order == {"kept", "all", "both"}


@pytest.mark.parametrize(
    ("side", "stateful"),
    [("Relation [who#3] csv", ["Aggregate"]), ("StreamingRelation FileSource[/in], [who#3]", ["Aggregate", "Join"])],
)
def test_a_join_with_a_table_keeps_no_state_in_a_query_that_is_refused(side, stateful):
    plan = JobPlan(
        "~Aggregate [who#1], [count(1) AS n#5L]\n"
        "+- ~Join Inner, (who#1 = who#3)\n"
        "   :- ~StreamingRelation FileSource[/in], [who#1]\n"
        f"   +- ~{side}\n"
    )
    assert [node.name for node in plan.stateful] == stateful


@pytest.mark.parametrize(
    ("expression", "cause"),
    [
        ("cast(date_format(placed, yyyy-MM-dd'T'hh:mm, Some(UTC)) as timestamp)", "HH for the hour from 0 to 23"),
        ("to_timestamp(text, dd/mm/yyyy, TimestampType, Some(UTC), true)", "MM for the month"),
        ("to_timestamp(text, yyyy-MM-dd HH:mm:ss, TimestampType, Some(UTC), true)", None),
        ("to_timestamp(concat(yummy, ddmm), yyyy-MM-dd hh:mm a)", None),
    ],
)
def test_a_pattern_that_gives_another_time_is_the_cause_of_late_rows(expression, cause):
    late = (TreatedRow("a", 3, "13:05, d", "late", late_by_ms=40_920_000),)
    job = SimpleNamespace(
        plan=SimpleNamespace(watermarks=[SimpleNamespace(expression=expression)]),
        treated=SimpleNamespace(of={"late": late}.get),
    )
    named = _other_time(job)
    assert (named and named.fix) == cause
    assert named is None or named.evidence[1] == "1 row late, such as a (13:05, d), by 11 h 22 min"


@pytest.mark.parametrize(
    ("timeout", "causes"), [("NoTimeout", ["state-without-timeout"]), ("ProcessingTimeTimeout", [])]
)
def test_a_timeout_by_the_clock_need_not_act_in_a_sample(timeout, causes, monkeypatch):
    _, answer = explained(DATA / "no-timeout-4.3.0.json", monkeypatch)
    plan = JobPlan(answer.job.plan.text.replace("NoTimeout", timeout))
    assert [cause.id for cause in causes_of(replace(answer.job, plan=plan))] == causes


def test_what_waits_above_the_first_operator_is_in_state_and_no_window_is_said_to_release_it(monkeypatch):
    _, answer = explained(DATA / "windows-of-windows-wait-4.3.0.json", monkeypatch)
    assert {row.treatment for row in answer.job.treated.rows} == {"in state"}
    assert not any("comes out when" in line for line in answer.lines())


@pytest.mark.parametrize(
    ("value", "message", "cause"),
    [
        (1_757_829_600_000_000, "[ARITHMETIC_OVERFLOW] overflow. Use 'try_add'", "us is 1757829600000000"),
        (1_757_829_600_000, "[ARITHMETIC_OVERFLOW] overflow. Use 'try_add'", None),
        (1_757_829_600_000_000, "[DIVIDE_BY_ZERO] Division by zero.", None),
        ("n/a", "long overflow", None),
    ],
)
def test_an_overflow_beside_a_column_of_microseconds_is_of_another_unit(value, message, cause):
    row = TreatedRow("a", 1, "", values={"page": "/", "us": value})
    job = SimpleNamespace(treated=SimpleNamespace(rows=[row]))
    found = _overflow(job, ErrorSeen(stage="run", classes=(), message=message))
    assert (found and (found.id, found.evidence[-1])) == (cause and ("microseconds-as-seconds", cause))


def test_if_late_rows_are_not_known_the_delay_is_what_progress_says(monkeypatch):
    _, answer = explained(DATA / "short-delay-4.3.0.json", monkeypatch)
    rows = tuple(replace(row, treatment="not known") for row in answer.job.treated.rows)
    (cause,) = causes_of(replace(answer.job, treated=TreatedRows(rows, unknown="which rows reach the watermark")))
    assert cause.id == "short-delay"
    assert cause.evidence[0].startswith("stateStoreSave dropped 2, first in micro-batch")
    assert cause.fix.startswith("a delay of more than 45 min (10 min now) keeps all so far")


@pytest.mark.parametrize(("known", "causes"), [(True, []), (False, ["short-delay"])])
def test_a_version_that_counts_no_dropped_rows_has_the_cause_of_its_progress_if_it_is_not_known_which_are_late(
    known, causes, monkeypatch
):
    _, answer = explained(DATA / "short-delay-4.3.0.json", monkeypatch)
    treated = answer.job.treated
    rows = tuple(replace(row, treatment="not known") for row in treated.rows)
    job = replace(answer.job, treated=replace(treated, rows=rows, prediction=treated.prediction if known else None))
    for operator in job.run.operators:
        operator.dropped, operator.counts_dropped = 0, False
    assert [cause.id for cause in causes_of(job)] == causes
