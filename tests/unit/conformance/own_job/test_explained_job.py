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
from conformance.own_job.analyzed_plan import JobPlan, OperatorInput, PlanWatermark, keys_of
from conformance.own_job.explained_job import JobExplanation, NoAnswer, explain_query
from conformance.own_job.first_operator import RowsThere, _condition
from conformance.own_job.job_case import ActingOptions
from conformance.own_job.job_causes import _mistake, _nulls, _other_time, _overflow, _refused, _unparsed, causes_of
from conformance.own_job.job_run import CellAnswer
from conformance.own_job.named_job import JobQueries
from conformance.own_job.sample import silent
from conformance.own_job.treatment import TreatedRow, TreatedRows, _Rows, aligned, treat_rows
from conformance.query.reading import PlanNode
from conformance.runner.resources import Concurrency, EngineUse
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


@pytest.mark.parametrize(
    "schema", ["ad STRING, t TIMESTAMP", "vad STRING, vt TIMESTAMP"], ids=["same names", "longer names"]
)
def test_rows_of_two_streams_are_told_apart_by_the_whole_names_of_their_columns_or_else_by_their_values(schema):
    schemas = {"clicks": parse_schema("ad STRING, t TIMESTAMP"), "views": parse_schema(schema)}
    given = {
        "clicks": [("x", "2026-03-17 12:00:00"), ("y", "2026-03-17 12:01:00")],
        "views": [("x", "2026-03-17 12:07:00")],
    }
    given["views"].append(("y", "2026-03-17 12:08:00"))
    arrival = Add(streams={name: Partitioned(partitions=(tuple(map(list, rows)),)) for name, rows in given.items()})
    case = SimpleNamespace(streams=schemas, steps=[SimpleNamespace(number=1, action=arrival)])
    marks, there = [], {}
    for at, (name, of) in enumerate(schemas.items()):
        columns = [field.name for field in of.fields]
        leaf = PlanNode("Relation", f"[{columns[0]}#1{at},{columns[1]}#2{at}] json", ())
        place = OperatorInput("EventTimeWatermark", at)
        marks.append(
            PlanWatermark(place, columns[1], "1 minute", columns[1], PlanNode("EventTimeWatermark", "", (leaf,)))
        )
        seen = [[ad, f"{time.replace(' ', 'T')}Z"] for ad, time in given[name]]
        shown = [Column(name=field.name, type=field.type.name) for field in of.fields]
        there[place] = RowsThere(OutputSchema.of(tuple(shown)), tuple(map(tuple, seen)))
    rows = [*_Rows(case, SimpleNamespace(watermarks=marks), there).base()]
    assert [(row.stream, show(row.time_us)[-5:]) for row in rows] == [
        ("clicks", "12:00"),
        ("clicks", "12:01"),
        ("views", "12:07"),
        ("views", "12:08"),
    ]


@pytest.mark.parametrize(("shown", "known"), [(3, True), (2, False)], ids=["all", "filtered"])
def test_rows_of_a_union_below_one_watermark_are_those_of_its_branches_one_after_the_other(shown, known):
    schemas = {name: parse_schema(f"{name} STRING, t TIMESTAMP") for name in ("ad", "page")}
    given = {"ad": [["x", "2026-03-17 12:00:00"]], "page": [["y", "2026-03-17 12:07:00"], ["y", None]]}
    arrival = Add(streams={name: Partitioned(partitions=(tuple(rows),)) for name, rows in given.items()})
    case = SimpleNamespace(streams=schemas, steps=[SimpleNamespace(number=1, action=arrival)])
    branches = tuple(PlanNode("Relation", f"[{name}#1,t#2] json", ()) for name in schemas)
    node = PlanNode("EventTimeWatermark", "", (PlanNode("Union", "", branches),))
    place, columns = OperatorInput("EventTimeWatermark", 0), OutputSchema.of((Column(name="t", type="timestamp"),))
    times = ((time and f"{time.replace(' ', 'T')}Z",) for rows in given.values() for _, time in rows)
    there = {place: RowsThere(columns, tuple(times)[:shown])}
    plan = SimpleNamespace(watermarks=[PlanWatermark(place, "t", "1 minute", "t", node)])
    rows = [
        (row.stream, row.time_us and show(row.time_us)[-5:], row.treatment) for row in _Rows(case, plan, there).base()
    ]
    unknown = [("ad", None, "not known"), ("page", None, "not known"), ("page", None, "not known")]
    timed = [("ad", "12:00", "not known"), ("page", "12:07", "not known"), ("page", None, "no event time")]
    assert rows == (timed if known else unknown)


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
    ("changes", "unknown"),
    [
        (lambda rows: rows, ""),
        # 12:00 is the time of a row of each branch: if one of them is filtered, which is not known.
        (lambda rows: rows[:-1], "which rows pass what stands between the watermark and the operator"),
    ],
)
def test_rows_of_a_union_are_those_of_its_branches_as_far_as_their_times_tell(changes, unknown, monkeypatch):
    path = DATA / "sound-union-4.3.0.json"
    _, answer = explained(path, monkeypatch)
    case, plan = answer.job.case, answer.job.plan
    there = rows_shown(answer, path)
    (input,) = plan.inputs(plan.first)
    there[input] = replace(there[input], rows=changes(there[input].rows))
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
    there[input] = replace(there[input], rows=there[input].rows[:-1])
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


@pytest.mark.parametrize(("operator", "known"), [("Filter (n#1 > 2)", True), ("Generate explode(n#1)", False)])
def test_a_query_without_state_has_fates_below_the_operator_that_writes(operator, known, monkeypatch):
    _, answer = explained(DATA / "sound-4.3.0.json", monkeypatch)
    write = "~WriteToMicroBatchDataSourceV1 ForeachBatchSink, 1-2, Append, 0"
    leaf = "Relation [t#2,text#3,ms#4L,who#5,n#1L] json"
    plan = (
        f"== Analyzed Logical Plan ==\nt: timestamp\n{write}\n+- ~{operator}\n   +- {leaf}\n\n== Physical Plan ==\nx\n"
    )
    job = answer.job
    treated = treat_rows(job.case, answer.target.version, job.seen, JobPlan(plan), {}, {})
    assert ("makes other rows" in treated.unknown) != known


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


@pytest.mark.parametrize(
    ("lower", "upper", "windows", "places"),
    [
        ("abc", "abc", None, [0, 1, 2]),
        ("abc", "ac", None, [0, 2]),
        ("aab", "ab", None, [0, 2]),
        ("abc", "ax", None, None),
        ("ab", "aabb", "1212", [0, 0, 1, 1]),
        ("aa", "aaaa", "1212", [0, 0, 1, 1]),
        ("abc", "ca", None, None),
        ("abc", "cab", None, [2, 0, 1]),
        ("aab", "aba", None, [0, 1, 2]),
    ],
)
def test_rows_come_from_the_rows_below_in_their_order(lower, upper, windows, places):
    assert aligned([*lower], [*upper], [*windows] if windows else None) == places


def test_rows_that_have_nothing_in_common_come_from_none_unless_all_pass():
    assert aligned([(), ()], [(), ()]) == [0, 1]
    assert aligned([(), ()], [()]) is None
    assert aligned([("a",), ("b",)], [("b",), ("a",)], ["w", "w"]) == [1, 0]


@pytest.mark.parametrize("suffix", ["", "L"], ids=["int", "bigint"])
def test_a_column_of_a_condition_is_of_the_side_that_has_it_whatever_its_type(suffix):
    names = {"ride": 3, "of_ride": 30, "taxi": 31}
    leaves = [PlanNode("Scan", f"[{name}#{id}{suffix}]", ()) for name, id in names.items()]
    join = PlanNode("StreamingSymmetricHashJoin", f"[ride#3{suffix}], [of_ride#30{suffix}], Inner", tuple(leaves[:2]))
    sides = [(RowsThere(OutputSchema.of((Column(name=name, type="int"),)), ()), [], None) for name in names]
    assert _condition(join, sides) == "l.c0 = r.c0"


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
