"""What `check` makes of a program: what an engine says of it becomes queries with samples, or a message that says what to do."""

import re
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from conformance.cli.job_options import SampleFiles, SampleOptions
from conformance.core.errors import WrongUsage
from conformance.core.observation import OwnCodeError
from conformance.own_job.job_case import ActingOptions, write_job, write_options
from conformance.own_job.program import NamedProgram, Survey, as_records, is_program, queries
from conformance.own_job.program_changes import changes
from conformance.own_job.sample import UnusableSample, read_sample
from conformance.runner.resources import EngineUse
from harness.engine.engine import DriverFailed, EngineDied, EngineNeeds, EngineSilent
from harness.engine.protocol import ProgramSeen, QuerySeen, SourceSeen
from harness.errors import HarnessError
from harness.runtimes.own_code import OwnCode
from harness.scheduling.kept_engines import KeptEngines
from tests.support.miniature.two_versions import NEW, OLD

JOB = NamedProgram("job.py", ("--day", "1"))
ORDERS = SourceSeen(name="orders", format="json", ddl="`t` timestamp, `n` bigint")
CLICKS = SourceSeen(name="clicks", format="kafka", ddl="`key` binary, `value` binary")
TABLE = SourceSeen(name="sales", format="delta", ddl=None)


def query(*reads: str, **of: object) -> QuerySeen:
    usual = {"name": None, "output_mode": "append", "trigger": "default", "sink": "parquet", "at": "job.py:9"}
    return QuerySeen(**{**usual, **of}, reads=reads)


def seen(*sources: SourceSeen, queries: tuple[QuerySeen, ...] = (), raised: str = "") -> ProgramSeen:
    error = OwnCodeError(raised=raised, at="job.py:3", during="while building the query") if raised else None
    return ProgramSeen(kind="program", case="job.py", sources=sources, queries=queries, error=error)


@dataclass
class Engine:
    """Answers one survey after another; an exception is raised."""

    answers: list[ProgramSeen | Exception]
    asked: list[dict[str, str]] = field(default_factory=list)
    code = ("/code",)
    closed = ended = False

    def new_directory(self, case: str) -> str:
        return f"/work/{case}"

    def survey(self, request, *, timeout):
        self.asked.append(request.schemas)
        assert request.program in ({"program": "job.py", "arguments": ["--day", "1"]}, {"main": "acme.Main"})
        assert request.code == self.code
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def files(tmp_path: Path):
    """Options that give these samples; each has one row, 2026-03-01 12:00 and 1."""

    def of(*names: str, **schemas: str) -> SampleFiles:
        for name in names:
            (tmp_path / f"{name}.jsonl").write_text('{"t": "2026-03-01 12:00:00", "n": 1}\n')
        given = [f"{name}={tmp_path}/{name}.jsonl" for name in names]
        ddl = [f"{name}={text}" for name, text in schemas.items()]
        return SampleOptions(given, schema=ddl).files(EngineUse(), allow_silent=True)

    return of


@pytest.fixture
def surveyed():
    def run(files: SampleFiles, *answers: ProgramSeen | Exception, job: NamedProgram = JOB):
        engine = Engine([*answers])

        class Runtime:
            def start(self, target, *, on_progress, needs):
                assert needs.main == job.is_class
                return engine

        kept = KeptEngines(Runtime())
        try:
            answer = Survey(job, kept, files, 120, lambda _: print).made(OLD)
            assert kept.take(OLD, EngineNeeds(main=job.is_class, code=True)) is engine
            engine.close()
            return answer, engine.asked
        finally:
            kept.close()
            assert engine.closed

    return run


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (query("orders"), []),
        (query("orders", output_mode="update"), ["output mode: append on 3.5.9, update on 4.0.5"]),
        (query("orders", trigger="once"), ["trigger: default on 3.5.9, once on 4.0.5"]),
        (query("orders", options={"trigger": "once=True"}), ["trigger: default on 3.5.9, once=True on 4.0.5"]),
        (query("orders", sink="foreachBatch"), ["sink: parquet on 3.5.9, foreachBatch on 4.0.5"]),
        (query("orders", options={"function": "f:9"}), ["function: none on 3.5.9, f:9 on 4.0.5"]),
        (query("orders", name="q"), ["name: none on 3.5.9, q on 4.0.5"]),
        (query("orders", options={"password": "secret"}), ["option password differs"]),
        (
            query("orders", "clicks"),
            [
                "sources: orders on 3.5.9, orders, clicks on 4.0.5",
                "format of clicks: none on 3.5.9, kafka on 4.0.5",
                "columns of clicks: none on 3.5.9, `key` binary, `value` binary on 4.0.5",
            ],
        ),
    ],
)
def test_what_a_program_asks_for_otherwise_on_the_later_version_is_said(now, said) -> None:
    before, after = seen(ORDERS, CLICKS, queries=(query("orders"),)), seen(ORDERS, CLICKS, queries=(now,))
    assert changes(before, OLD, NEW, {OLD: before, NEW: after}.__getitem__) == (tuple(said),)


def test_a_source_that_is_read_otherwise_is_said() -> None:
    other = ORDERS.model_copy(update={"ddl": "`t` date", "options": {"path": "/other"}})
    before, after = seen(ORDERS, queries=(query("orders"),)), seen(other, queries=(query("orders"),))
    (said,) = changes(before, OLD, NEW, {OLD: before, NEW: after}.__getitem__)
    assert said[1] == "option path of orders differs"
    assert said[0].startswith("columns of orders: `t` timestamp, `n` bigint on 3.5.9, `t` date")


def test_queries_that_only_one_version_starts_are_said_with_the_last() -> None:
    one, two = (seen(ORDERS, queries=(query("orders"),) * count) for count in (1, 2))
    more = "starts a query more, number 2, at job.py:9: it is compared with nothing on"
    assert changes(one, OLD, NEW, {OLD: one, NEW: two}.__getitem__) == ((f"4.0.5 {more} 3.5.9",),)
    assert changes(two, OLD, NEW, {OLD: two, NEW: one}.__getitem__) == ((), (f"3.5.9 {more} 4.0.5",))


def test_what_also_differs_between_two_runs_on_one_version_is_none_of_its_changes() -> None:
    runs = (query("orders", options={"path": f"/out/{run}"}, output_mode=m) for run, m in enumerate("abab"))
    before, *more = (seen(ORDERS, queries=(run,)) for run in runs)
    asked = []

    def ask(target):
        asked.append(target)
        return more.pop(0)

    assert changes(before, OLD, NEW, ask) == (("output mode: a on 3.5.9, b on 4.0.5",),)
    assert asked == [NEW, OLD, NEW]


def test_a_program_that_fails_on_the_later_version_is_left_to_its_trial() -> None:
    before = seen(ORDERS, queries=(query("orders"),))
    assert changes(before, OLD, NEW, lambda _: seen(raised="KeyError('x')")) == ((),)


def test_what_is_a_program() -> None:
    assert all(map(is_program, ("job.py", "a/b.py", "acme.job")))
    assert not any(map(is_program, ("acme.job:build", "jobs", "j:f")))


def test_a_program_lies_in_a_folder_of_the_code_and_brings_its_own_folder(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "job.py").write_text("")
    monkeypatch.chdir(tmp_path)
    code = OwnCode.at([tmp_path])
    program, whole = NamedProgram.named("jobs/job.py", ["x"], code)
    assert (program, whole.folders) == (NamedProgram("jobs/job.py", ("x",)), (tmp_path, tmp_path / "jobs"))
    elsewhere, _ = NamedProgram.named("jobs/job.py", [], OwnCode(()))
    assert elsewhere.path == "job.py"
    assert NamedProgram.named("jobs.job", [], code) == (NamedProgram("jobs.job"), code)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "job.py").write_text("")
    told_apart, of_both = NamedProgram.named("jobs/job.py", [], OwnCode.at([tmp_path / "other"]))
    assert (told_apart.path, of_both.folders) == ("job.py", (tmp_path / "jobs", tmp_path / "other"))
    (tmp_path / "task.py").write_text("from databricks.sdk.runtime import dbutils")
    task, _ = NamedProgram.named("task.py", [], code, values={"a/b": "c"})
    assert task.called == {"program": "task.py", "set": {"a/b": "c"}}
    with pytest.raises(WrongUsage, match=r"there is no file jobs/gone\.py"):
        NamedProgram.named("jobs/gone.py", [], code)
    with pytest.raises(
        WrongUsage, match=r"'jobs\.gone' is neither a program .*, nor a module in .*: is --code missing\?"
    ):
        NamedProgram.named("jobs.gone", [], code)


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ("", True),
        ("import os\nLIMIT = 3\n'''what it does'''\nclass Shop:\n    pass\n", True),
        ("main()\n", False),
        ("query = build(1, 2).writeStream.start()\n", False),
        ("if __name__ == '__main__':\n    build(1, 2)\n", False),
        ("@table\ndef orders(x):\n    pass\n", False),
        ("def (\n", False),
    ],
)
def test_a_file_that_only_defines_functions_is_no_program(tmp_path: Path, more: str, refused: bool) -> None:
    file = tmp_path / "job.py"
    file.write_text(f"def build(spark, orders):\n    return orders.count()\n{more}")
    says = re.escape(f"{file} starts no query, it only defines build: name a function, as {file}:build")
    with pytest.raises(WrongUsage, match=says) if refused else nullcontext():
        NamedProgram.named(str(file), (), OwnCode.at([tmp_path]))


def test_an_engine_that_holds_a_main_method_is_left_to_its_cases(surveyed, files) -> None:
    whole = seen(ORDERS, queries=(query("orders"),))
    # `surveyed` takes the engine again, which the kept engines give only for these needs.
    assert surveyed(files(), whole, job=NamedProgram("acme.Main", is_class=True)) == (whole, [{}])


def test_columns_that_only_a_sample_shows_let_it_go_on(surveyed, files) -> None:
    whole = seen(TABLE, ORDERS, queries=(query("sales"),))
    _, asked = surveyed(files("sales"), seen(TABLE), whole)
    assert asked == [{}, {"sales": "`t` timestamp, `n` bigint"}]
    _, asked = surveyed(files(sales="a INT"), seen(TABLE), whole)
    assert asked == [{}, {"sales": "a INT"}]
    stuck, asked = surveyed(files(), seen(TABLE))
    assert (stuck, asked) == (seen(TABLE), [{}])


@pytest.mark.parametrize(
    ("format", "options", "type"),
    [
        ("glue-kinesis", {}, "string"),
        ("cloudfiles", {"cloudFiles.format": "JSON"}, "string"),
        ("cloudfiles", {"cloudFiles.format": "json", "cloudFiles.schemaHints": "t TIMESTAMP"}, "timestamp"),
        ("cloudfiles", {"cloudFiles.format": "parquet"}, "timestamp"),
        ("delta", {}, "timestamp"),
    ],
)
def test_times_stay_text_where_spark_infers_the_columns_of_json(
    surveyed, files, format: str, options: dict[str, str], type: str
) -> None:
    source = TABLE.model_copy(update={"format": format, "options": options})
    _, asked = surveyed(files("sales"), seen(source), seen(source, queries=(query("sales"),)))
    assert asked == [{}, {"sales": f"`t` {type}, `n` bigint"}]
    ((_, samples),) = queries(JOB, seen(source, queries=(query("sales"),)), files("sales"))
    assert samples[0].schema.ddl == f"`t` {type}, `n` bigint"
    assert [*samples[0].instants] == [1772366400000000]


def test_a_package_that_a_later_line_lacks_is_named(surveyed, files) -> None:
    whole = seen(ORDERS, queries=(query("orders"),))
    said = {"job.py:8": "Failed to find the data source: delta. Please", "job.py:9": "", "job.py:10": "No FileSystem x"}
    answer, _ = surveyed(files(), whole.model_copy(update={"passed_over": said}))
    mended = answer.passed_over.pop("job.py:8")
    assert mended.startswith("no package of Delta Lake is loaded: add --package 3.5=io.delta:delta-spark_2.12:")
    assert answer.passed_over == {"job.py:9": "", "job.py:10": "No FileSystem x"}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (seen(ORDERS), "job.py ended and started no query"),
        (seen(), r"job.py ended and started no query, .* Of a pipeline, let a table read a stream"),
        (
            seen(raised="NotGiven('the widget day has no value: give it, --set day=VALUE')"),
            "job.py: the widget day has no value: give it, --set day=VALUE; it is asked for at job.py:3",
        ),
        (
            seen(raised="SystemExit(1)"),
            r"job.py on 3.5.9: your code raised SystemExit\(1\) at job.py:3, while building the query",
        ),
        (
            seen(
                TABLE.model_copy(update={"options": {"readChangeFeed": "true"}}),
                raised="AnalysisException('… with name `_change_type` cannot be resolved')",
            ),
            r"job.py: sales is a change feed, whose rows have _change_type \(insert, .* add those that the job reads",
        ),
        (
            seen(raised="WithoutEnd('…')"),
            "job.py on 3.5.9: it starts queries, or waits for their end, again and again at job.py:3",
        ),
        (EngineSilent("no answer"), "job.py did not end within 120 s"),
        (EngineDied("gone"), "job.py cannot be run: gone"),
        (DriverFailed("refused"), "job.py cannot be tried: refused"),
    ],
)
def test_a_program_that_cannot_be_compared_says_why(surveyed, files, answer, says) -> None:
    with pytest.raises(HarnessError if isinstance(answer, DriverFailed) else WrongUsage, match=says):
        surveyed(files(), answer)


def test_each_query_has_all_streams_and_rows_of_those_that_it_reads(files, tmp_path: Path) -> None:
    whole = seen(
        ORDERS, CLICKS, queries=(query("orders", sink="foreachBatch"), query("orders", "clicks", trigger="once"))
    )
    (first, samples), (second, both) = queries(JOB, whole, files("orders", "clicks"))
    assert [(each.stream, len(each.rows)) for each in samples] == [("orders", 1), ("clicks", 0)]
    assert [len(each.rows) for each in both] == [1, 1]
    assert [each.text for each in first.statements] == [
        "the function of foreachBatch at job.py:9 is not called: the rows that it would get are compared, not what it does"
    ]
    assert second.statements == ()
    case = write_job(second, both, tmp_path, batches=2)
    assert case.path.name == "job-2.yaml"
    called = {"program": "job.py", "arguments": ["--day", "1"], "query": 2}
    assert case.query.wire() == [{"call": called, "with": ["orders", "clicks"]}]
    assert (case.trigger, case.title) == ("once", "job.py, query 2 of 2 gives the same rows")
    alone = write_job(first, samples, tmp_path, batches=2)
    assert all("clicks" not in arrival for step in alone.steps for arrival in step.arrivals())


def test_what_follows_a_read_of_what_no_query_has_written_is_not_tried_and_no_sink_is_retried(files) -> None:
    whole = seen(ORDERS, queries=(query("orders", sink="foreachBatch"),))
    whole = whole.model_copy(update={"passed_over": {"job.py:9": "", "job.py:7": "no package of kafka is loaded"}})
    ((first, _),) = queries(replace(JOB, sinks=True), whole, files("orders"))
    assert [each.text.partition(": ")[2] for each in first.statements] == [
        "the rows of the partitions it read are compared, not what it wrote, nor how often; no micro-batch comes again, as after an "
        "exception or a kill, so its retry is not tried",
        "no package of kafka is loaded: what follows is not tried",
        "what follows is not tried",
    ]
    assert first.statements[1].text.startswith("job.py:7: ")
    assert first.statements[2].text.startswith("job.py:9 reads what a query has not written in a trial")


def test_of_the_changes_of_a_table_only_their_rows_are_tried(files) -> None:
    changes = SourceSeen(name="sales", format="changes", ddl=None)
    whole = seen(ORDERS, changes, queries=(query("sales"), query("orders")))
    (first, _), (second, _) = queries(JOB, whole, files("orders", "sales"))
    (said,) = first.statements
    assert said.text.startswith("the changes of sales are those of its sample: what Spark does to find them")
    assert second.statements == ()


def of_options(format: str, **options: str) -> ProgramSeen:
    source = SourceSeen(name="orders", format=format, ddl=ORDERS.ddl, options={"path": "/in", **options}, at="job.py:4")
    return seen(source, CLICKS, queries=(query("orders"), query("clicks")))


@pytest.mark.parametrize(
    ("format", "options", "named"),
    [
        ("delta", {"startingVersion": "5", "withEventTimeOrder": "true"}, "withEventTimeOrder=true"),
        ("delta", {"ignoreDeletes": "true", "skipChangeCommits": "false"}, "ignoreDeletes=true"),
        ("table", {"maxBytesPerTrigger": "1g", "ignoreDeletes": "true"}, None),
        (
            "iceberg",
            {
                "stream-from-timestamp": "1",
                "streaming-max-files-per-micro-batch": "2",
                "streaming-max-rows-per-micro-batch": "2",
            },
            "streaming-max-rows-per-micro-batch=2",
        ),
        ("delta", {"maxFilesPerTrigger": "12", "maxBytesPerTrigger": "1g"}, None),
        ("kafka", {"startingOffsets": '{"orders": {"0": 23, "1": -2}}', "minOffsetsPerTrigger": "4"}, None),
        (
            "kafka",
            {"startingTimestamp": "1000", "minPartitions": "3", "failOnDataLoss": "false"},
            "startingTimestamp=1000, failOnDataLoss=false",
        ),
        (
            "json",
            {"latestFirst": "true", "maxFileAge": "1d", "maxFilesPerTrigger": "12"},
            "maxFileAge=1d, maxFilesPerTrigger=12",
        ),
        (
            "cloudfiles",
            {
                "cloudFiles.maxFilesPerTrigger": "9",
                "cloudFiles.includeExistingFiles": "false",
                "cloudFiles.cleanSource": "MOVE",
            },
            "cloudFiles.includeExistingFiles=false, cloudFiles.cleanSource=MOVE",
        ),
        ("kinesis", {"kinesis.startingPosition": "LATEST", "maxFetchRecordsPerShard": "9"}, None),
        ("rate", {"rowsPerSecond": "9", "rampUpTime": "5s"}, None),
    ],
)
def test_options_that_decide_which_rows_come_are_not_tried_and_the_answer_says_so(
    files, format, options, named
) -> None:
    named = named or ", ".join(f"{name}={value}" for name, value in options.items())
    others = {"kafka.bootstrap.servers": "h:9", "multiLine": "true", "subscribe": "orders", "schemaLocation": "/s"}
    (first, _), (second, _) = queries(JOB, of_options(format, **options, **others), files("orders", "clicks"))
    (said,) = first.statements
    assert (said.kind, said.glyph) == ("unsupported", "–")
    assert said.text.partition(", and have no ")[0] == (
        f"{named} of the source orders ({format}) {'are' if ',' in named else 'is'} not tried: the rows of the sample come in its order, "
        "whatever the source would give"
    )
    lacking = {
        "place of the real source to begin or end at": ("tarting", "stream-from"),
        "updates or deletes of a table": ("skipChange", "ignore", "readChange"),
        "first snapshot of a table": ("withEventTimeOrder",),
    }
    about = [what for what, names in lacking.items() if any(name in named for name in names)]
    assert said.text.split(", and have no ")[1:] == about
    assert second.statements == ()  # it does not read the source


@pytest.mark.parametrize(
    ("format", "options", "source", "keys", "shown"),
    [
        (
            "csv",
            {"MAXFILESPERTRIGGER": "1", "latestFirst": "True", "cleanSource": "DELETE"},
            "files",
            {"maxFilesPerTrigger": 1, "latestFirst": True, "cleanSource": "delete"},
            "maxFilesPerTrigger=1, latestFirst=true, cleanSource=delete of orders",
        ),
        (
            "cloudfiles",
            {"cloudFiles.maxFilesPerTrigger": "5"},
            "files",
            {"maxFilesPerTrigger": 5},
            "maxFilesPerTrigger=5 of orders",
        ),
        ("delta", {"maxFilesPerTrigger": "2"}, "files", {"maxFilesPerTrigger": 2}, "maxFilesPerTrigger=2 of orders"),
        (
            "iceberg",
            {"streaming-max-files-per-micro-batch": "3"},
            "files",
            {"maxFilesPerTrigger": 3},
            "streaming-max-files-per-micro-batch=3 of orders",
        ),
        (
            "kafka",
            {"startingOffsets": "Latest", "maxOffsetsPerTrigger": "3", "minPartitions": "4"},
            "kafka",
            {"source": "kafka", "startingOffsets": "latest", "maxOffsetsPerTrigger": 3, "minPartitions": 4},
            "startingOffsets=latest, maxOffsetsPerTrigger=3, minPartitions=4 of orders",
        ),
    ],
)
def test_options_of_files_and_topics_act_in_a_case_of_their_own(
    files, tmp_path, format, options, source, keys, shown
) -> None:
    whole = of_options(format, **options)
    (first, samples), (second, _) = queries(JOB, whole, files("orders", "clicks"))
    assert first.options == (ActingOptions(source, {"orders": keys}, shown),)
    assert first.statements == second.options == ()
    case = write_options(first, [replace(each, rows=each.rows * 24) for each in samples], tmp_path, first.options[0])
    assert [declared.model_dump(by_alias=True, exclude_none=True) for declared in case.files.values()] == [keys] * (
        source == "files"
    )
    waiting, *others = [type(step.action).__name__ for step in case.steps]
    if source == "files":
        assert [len(each["orders"].partitions[0]) for each in case.steps[0].arrivals()] == [2] * 12
        assert (waiting, others) == ("Backlog", ["Restart", "Add"])
    else:
        assert case.topics["orders"].starting_offsets == "latest"
        assert (waiting, others) == ("Add", ["Add", "Restart", "Add"])
    # The trigger once takes no notice of limits.
    once = whole.model_copy(update={"queries": (query("orders", trigger="once"),)})
    ((alone, _),) = queries(JOB, once, files("orders"))
    assert (alone.options, len(alone.statements)) == ((), 1)


@pytest.mark.parametrize(
    ("format", "options", "source", "keys", "shown", "rewritten"),
    [
        (
            "delta",
            {"startingVersion": "2", "skipChangeCommits": "true"},
            "delta",
            {"startingVersion": 2, "skipChangeCommits": True},
            "startingVersion=2, skipChangeCommits=true of orders",
            True,
        ),
        (
            "table",
            {"startingVersion": "latest"},
            "delta",
            {"startingVersion": "latest"},
            "startingVersion=latest of orders",
            False,
        ),
        (
            "delta",
            {"startingVersion": "812"},
            "delta",
            {"startingVersion": 3},
            "startingVersion=812 as version 3 of orders",
            False,
        ),
        ("delta", {"startingVersion": "0"}, "delta", {"startingVersion": 0}, "startingVersion=0 of orders", False),
        (
            "delta",
            {"startingTimestamp": "2026-03-01", "readChangeFeed": "true"},
            "delta",
            {"startingTimestamp": 3, "readChangeFeed": True},
            "startingTimestamp=2026-03-01 as version 3, readChangeFeed=true of orders",
            True,
        ),
        (
            "iceberg",
            {"stream-from-timestamp": "1767225600000"},
            "iceberg",
            {"startingTimestamp": 3},
            "stream-from-timestamp=1767225600000 as version 3 of orders",
            False,
        ),
    ],
)
def test_options_of_tables_act_on_commits_of_which_most_wait(
    files, tmp_path, format, options, source, keys, shown, rewritten
) -> None:
    (first, samples), _ = queries(JOB, of_options(format, **options), files("orders", "clicks"))
    assert first.options == (ActingOptions(source, {"orders": {"source": source, **keys}}, shown),)
    assert first.statements == ()
    case = write_options(first, [replace(each, rows=each.rows * 24) for each in samples], tmp_path, first.options[0])
    assert case.tables == {"orders": source}
    assert case.table_options == {"orders": {key: str(value).lower() for key, value in keys.items()}}
    rows = [[len(each["orders"].partitions[0]) for each in step.arrivals() if each] for step in case.steps]
    assert rows == [[4] * 4, [4], [4], [], [1]]
    assert case.steps[3].action.rewritten == rewritten


def test_a_limit_of_a_table_acts_on_its_commits_too_where_other_options_do(files) -> None:
    options = {"maxFilesPerTrigger": "2", "startingVersion": "1"}
    (first, _), _ = queries(JOB, of_options("delta", **options), files("orders", "clicks"))
    assert [(acting.source, *acting.streams["orders"].values()) for acting in first.options] == [
        ("files", 2),
        ("delta", "delta", 2, 1),
    ]


def test_a_flow_says_what_of_a_pipeline_is_not_tried_as_a_query(files) -> None:
    def said(**options: str) -> list[str]:
        flow = query("orders", options={"flow": "totals", **options})
        ((first, _),) = queries(JOB, seen(ORDERS, queries=(flow,)), files("orders"))
        return [each.text for each in first.statements]

    (alone,) = said()
    assert alone.startswith("the flow totals ran as a query in append mode with availableNow")
    assert said(batch="top") == [alone, "not tried, since no streaming query of Spark fills it: top"]


def test_options_with_their_default_have_nothing_to_say(files) -> None:
    options = {"latestFirst": "false", "cleanSource": "off", "failOnDataLoss": "true", "withEventTimeOrder": "FALSE"}
    (first, _), _ = queries(JOB, of_options("json", **options), files("orders", "clicks"))
    assert first.statements == ()


@pytest.mark.parametrize(
    ("format", "options", "says"),
    [
        ("json", {"maxFilesPerTrigger": "0"}, "maxFilesPerTrigger=0: maxFilesPerTrigger takes a positive integer"),
        ("csv", {"maxFileAge": "a week"}, "maxFileAge=a week: maxFileAge takes a time such as 12h or 7d"),
        ("json", {"latestFirst": "yes"}, "latestFirst=yes: latestFirst takes true or false"),
        ("json", {"cleanSource": "remove"}, "cleanSource=remove: cleanSource takes off, delete or archive"),
        ("json", {"cleanSource": "Archive"}, "cleanSource=archive alone: add sourceArchiveDir, or use delete"),
        ("cloudfiles", {"cloudFiles.maxFilesPerTrigger": "many"}, "maxFilesPerTrigger takes a positive integer"),
        (
            "kafka",
            {"startingOffsets": "newest"},
            "startingOffsets=newest: startingOffsets takes earliest, latest, or JSON",
        ),
        ("kafka", {"startingOffsets": '{"orders": 5}'}, "startingOffsets={"),
        ("kafka", {"endingOffsets": "latest"}, "endingOffsets takes no value: a streaming query has no end; omit it"),
        ("kafka", {"startingTimestamp": "2026-03-01"}, "startingTimestamp takes milliseconds since 1970"),
        ("kafka", {"minPartitions": "0"}, "minPartitions=0: minPartitions takes a positive integer"),
        ("delta", {"startingVersion": "-1"}, "startingVersion takes latest, or an integer from 0 on"),
        ("delta", {"startingVersion": "1", "startingTimestamp": "2026-03-01"}, "omit one of them"),
        ("iceberg", {"stream-from-timestamp": "2026-03-01"}, "stream-from-timestamp takes milliseconds since 1970"),
    ],
)
def test_an_option_with_a_value_that_spark_refuses_is_said_before_it_runs(files, format, options, says) -> None:
    with pytest.raises(WrongUsage) as refused:
        queries(JOB, of_options(format, **options), files("orders", "clicks"))
    assert str(refused.value).startswith(f"job.py:4: the source orders ({format}): Spark refuses ")
    assert says in str(refused.value)


def test_the_columns_of_a_sample_are_those_that_the_program_says(files) -> None:
    typed = ORDERS.model_copy(update={"ddl": "`t` string, `n` decimal(9,2)"})
    ((_, samples),) = queries(JOB, seen(typed, queries=(query("orders"),)), files("orders"))
    assert samples[0].schema.ddl == "`t` string, `n` decimal(9,2)"
    ((_, samples),) = queries(
        JOB, seen(typed, queries=(query("orders"),)), files("orders", orders="t TIMESTAMP, n INT")
    )
    assert samples[0].schema.ddl == "t TIMESTAMP, n INT"


@pytest.mark.parametrize(
    ("found", "names", "says"),
    [
        (
            seen(ORDERS, CLICKS, queries=(query("orders", "clicks"),)),
            ["orders"],
            r"reads 2 sources; give a sample of each \(`conformance sample` writes some\):",
        ),
        (seen(ORDERS, queries=(query("orders"),)), [], r"--sample orders=orders.jsonl   # json: t timestamp, n bigint"),
        (seen(CLICKS, queries=(query("clicks"),)), [], r"# kafka: value \(text\), or lines that are its text"),
        (
            seen(ORDERS, TABLE),
            ["orders"],
            r"# delta: its columns, which only the source itself says\n  it reads more, perhaps",
        ),
        (
            seen(ORDERS, queries=(query("orders"),)),
            ["ordres"],
            "unknown source 'ordres' of job.py: did you mean 'orders'",
        ),
        (
            seen(ORDERS, queries=(query("orders", trigger="continuous"),)),
            ["orders"],
            "job.py:9: a query with the trigger continuous cannot be tried",
        ),
    ],
)
def test_what_is_missing_or_unknown_is_listed_with_what_to_write(files, found, names, says) -> None:
    with pytest.raises(WrongUsage, match=says):
        queries(JOB, found, files(*names))


def test_a_source_that_no_query_reads_needs_no_sample(files) -> None:
    ((_, samples),) = queries(JOB, seen(ORDERS, CLICKS, queries=(query("orders"),)), files("orders"))
    assert [(each.stream, len(each.rows)) for each in samples] == [("orders", 1), ("clicks", 0)]


def test_a_sample_of_a_topic_gets_what_a_record_has(tmp_path: Path) -> None:
    path = tmp_path / "clicks.jsonl"
    path.write_text('{"t": "2026-03-01 12:00:00", "topic": "other"}\n{"t": "2026-03-01 12:01:00", "topic": "x"}\n')
    records = as_records(read_sample("clicks", path))
    assert records.schema.ddl == "`t` timestamp, `topic` string, partition INT, offset BIGINT, timestampType INT"
    assert [row[1:] for row in records.rows] == [("other", 0, 0, 0), ("x", 0, 1, 0)]
    assert records.event_time == 0
    path.write_text('{"value": {"a": 1}}\n')
    with pytest.raises(UnusableSample, match=r"value is struct<a: ?bigint>"):
        as_records(read_sample("clicks", path))
