"""The parts of a page that are worked out: the timeline, who arrived when, the scale, the query as PySpark."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.account.account import BatchAccount, account, batches_of
from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.language.reader import case_from
from conformance.suite import discovery
from reports.analysis.step_table import step_table
from reports.html.addresses import InAFolder, InOneFile, SourceLink, case_key, slug
from reports.html.pyspark_script import pyspark, pyspark_script
from reports.html.texts import duration, visible
from reports.html.timeline import TimeScale, timeline
from reports.results.reading import Results
from tests.support.whole_suite import whole_suite

SAMPLE = Path(__file__).parents[3] / "browser" / "sample"
CASES = {case.id: case for case in discovery.load([SAMPLE / "cases"]).cases}
CELLS = {(cell.case, cell.target): cell for cell in Results.read(SAMPLE / "results.jsonl").cells}
LATE = "late-drops/late-by-the-watermark-of-the-batch-before"
REPLAY = "recovery/replay-filters-late-rows-as-the-first-attempt-did"


def told(id: str, version: str) -> tuple[BatchAccount, ...]:
    seen = CELLS[id, f"spark-{version}"].observation
    assert seen is not None
    return batches_of(account(CASES[id], SparkVersion.parse(version), seen))


def fates(id: str, version: str) -> list[list[str]]:
    return [[row.fate for row in one.rows] for one in told(id, version)]


class TestArrivals:
    def test_a_backlog_is_a_row_for_each_micro_batch_and_the_count_of_drops_tells_which_was_late(self) -> None:
        assert fates(LATE, "4.3.0") == [["taken"], ["taken"], ["taken"]]
        assert fates(LATE, "3.3.4") == [["taken"], ["taken"], ["late"]]

    def test_a_replay_has_the_rows_of_what_it_replays(self) -> None:
        assert fates(REPLAY, "3.3.4") == [["taken"], ["late"], ["late"]]
        assert [one.restarted for one in told(REPLAY, "4.3.0")] == [None, None, "crash-before-commit"]

    def test_a_no_data_batch_has_none_and_a_null_time_is_null(self) -> None:
        found = fates("late-drops/null-event-time-is-never-late", "4.3.0")
        assert "null" in {fate for each in found for fate in each}
        assert fates("late-drops/window-still-open", "4.3.0")[1] == []

    @pytest.mark.parametrize("id", CASES)
    def test_every_case_can_be_drawn_on_every_version(self, id: str) -> None:
        for (case, target), cell in CELLS.items():
            if case != id or cell.observation is None:
                continue
            version = SparkVersion.parse(target.removeprefix("spark-"))
            drawn = timeline(CASES[id], told(id, str(version)))
            batches = sum(len(step.batches) for step in cell.observation.steps)
            assert (drawn is None) == (batches == 0)
            if drawn is not None:
                assert len(drawn.columns) == batches
                assert drawn.described.count("Micro-batch ") == batches
            table = step_table(CASES[id], version, cell)
            assert len(table.steps) == len(CASES[id].steps)
            assert any(step.differs for step in table.steps) == (cell.status == "violates")


class TestModel:
    def test_a_prediction_is_a_column_of_its_own(self) -> None:
        cell = CELLS[LATE, "spark-3.3.4"]
        model = CELLS[LATE, "spark-4.3.0"].observation
        told = step_table(CASES[LATE], SparkVersion(3, 3, 4), cell, model)
        assert told.sides == ("Expected", "Engine", "Model")
        lines = [line for block in told.steps[0].blocks for line in block.sides[2]]
        assert any(line.differs for line in lines)


class TestTimeScale:
    def test_order_is_kept_and_an_empty_gap_takes_little_room(self) -> None:
        scale = TimeScale.of([0, 10, 20, 30, 1_000_000])
        heights = [scale.at(instant) for instant in (0, 5, 10, 30, 1_000_000)]
        assert heights == sorted(heights)
        assert scale.at(5) == 0.5
        assert scale.height < 10
        assert scale.breaks == ((30, 1_000_000),)

    @pytest.mark.parametrize("instants", [[], [5], [5, 5]])
    def test_no_gap_at_all(self, instants: list[int]) -> None:
        assert TimeScale.of(instants).height == 0
        assert TimeScale.of(instants).at(7) == 0


class TestPySpark:
    def test_it_is_python(self) -> None:
        for case in ALL:
            compile(pyspark(case), case.id, "exec")

    def test_a_script_is_python_unless_a_script_cannot_do_it(self) -> None:
        without = {case.id for case in ALL if pyspark_script(case) is None}
        for case in ALL:
            if case.id not in without:
                compile(pyspark_script(case) or "", case.id, "exec")
        assert len(without) < len(ALL) / 4
        assert any(id.startswith("recovery/killed-") for id in without)

    def test_it_reads_as_one_would_write_it(self) -> None:
        text = pyspark(CASES["late-drops/window-still-open"])
        assert (
            'events = (\n    spark.readStream.schema("event_time TIMESTAMP, count INT")\n    .json("events/")\n)'
            in text
        )
        assert (
            """    .groupBy(expr("window(event_time, '10 minutes')").alias("window"))\n    .agg(expr("sum(count) AS total"))"""
            in text
        )
        assert text.endswith('query.writeStream.outputMode("update").start()')

    def test_what_it_reads_is_what_the_case_reads(self) -> None:
        for source, shown in (
            (
                "kafka",
                'events = (\n    spark.readStream.format("kafka")\n    .option("subscribe", "events")\n    .load()\n)',
            ),
            ("delta", 'events = spark.readStream.format("delta").load("events/")'),
        ):
            stream = {"schema": "t TIMESTAMP", "source": source}
            case = case_from(
                {"title": "x", "streams": {"events": stream}, "query": [{"from": "events"}], "steps": [{"idle": {}}]},
                "x",
            )
            compile(pyspark(case), "x", "exec")
            assert shown in pyspark(case)
            assert pyspark_script(case) is None

    def test_a_function_of_streams_and_a_sink_are_imported_and_called(self) -> None:
        streams = {"orders": "t TIMESTAMP", "clicks": "t TIMESTAMP"}
        query = {"call": "acme_jobs.attribution:build", "with": ["orders", "clicks"]}
        about = {"title": "x", "streams": streams, "query": query, "sink": "acme_jobs.sinks:write"}
        case = case_from({**about, "steps": [{"idle": {}}]}, "x")
        text = pyspark(case)
        compile(text, "x", "exec")
        assert "from acme_jobs.attribution import build\nquery = build(spark, orders, clicks)\n" in text
        assert text.endswith(
            'from acme_jobs.sinks import write\nquery.writeStream.outputMode("append").foreachBatch(write).start()'
        )
        assert pyspark_script(case) is None
        assert (
            pyspark_script(
                case_from(
                    {**about, "query": [{"from": "orders"}, {"union": [{"from": "clicks"}]}], "steps": [{"idle": {}}]},
                    "x",
                )
            )
            is None
        )

    def test_each_view_of_a_query_in_sql(self) -> None:
        text = pyspark(shipped("unsupported/append-sql-union-without-watermark"))
        assert 'views.createOrReplaceTempView("views")' in text
        assert text.index("createOrReplaceTempView") < text.index("spark.sql(")

    def test_sorting_and_a_limit(self) -> None:
        text = pyspark(shipped("output-modes/complete-mode-limit-takes-the-first-rows"))
        assert '    .orderBy(expr("total").desc(), expr("since"))\n    .limit(2)\n' in text

    def test_a_source_has_its_name_in_each_query_that_reads_it(self) -> None:
        case = shipped("recovery/renamed-source-is-read-from-the-beginning")
        assert 'spark.readStream.name("orders").schema(' in pyspark(case)
        script = pyspark_script(case) or ""
        schema = "event_time TIMESTAMP, n INT"
        assert script.count("orders = source(") == 2
        assert script.index(f'source("orders", "{schema}", "orders")') < script.index(
            f'source("orders", "{schema}", "sales")'
        )


ALL: tuple[Case, ...] = whole_suite().cases


def shipped(id: str) -> Case:
    return next(case for case in ALL if case.id == id)


class TestAddresses:
    @pytest.mark.parametrize("text", ["..", ".", "a/b", "", "ü", "x" * 300, "a b", "-", "con?", "\ud800"])
    def test_a_slug_is_a_file_name_and_tells_texts_apart(self, text: str) -> None:
        made = slug(text)
        assert made not in ("", ".", "..")
        assert not set(made) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
        assert len(made) <= 100
        assert made != slug(text + "!")

    def test_in_a_folder_and_in_one_file(self) -> None:
        key = case_key("late-drops/x")
        assert InAFolder().page("matrix", key) == "../../matrix.html"
        assert InAFolder().page(key, "index", "A") == "cases/late-drops/x.html#A"
        assert InOneFile().page(key, "index", "A") == "#case/late-drops/x:A"


@pytest.mark.parametrize(
    ("text", "label", "href"),
    [
        ("SPARK-40925", "SPARK-40925", "https://issues.apache.org/jira/browse/SPARK-40925"),
        ("https://www.example.org/a/b#the-place", "example.org – the place", "https://www.example.org/a/b#the-place"),
        ("https://example.org", "example.org", "https://example.org"),
        ("WatermarkTracker", "WatermarkTracker", None),
        ("javascript:alert(1)", "javascript:alert(1)", None),
        ("https://[", "https://[", None),
    ],
)
def test_sources(text: str, label: str, href: str | None) -> None:
    assert SourceLink.of(text) == SourceLink(label, href)


def test_invisible_characters_are_named() -> None:
    assert visible("a\u202eb\x00c\ud800d\n") == "a⟨right-to-left override⟩b⟨u+0000⟩c⟨u+d800⟩d\n"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 s"),
        (12, "0 s"),
        (4261, "4.3 s"),
        (5000, "5 s"),
        (59_949, "59.9 s"),
        (59_950, "1 min 0 s"),
        (184_000, "3 min 4 s"),
        (7_530_000, "2 h 5 min"),
    ],
)
def test_durations(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


def test_a_target_other_than_a_release_has_no_version() -> None:
    target = Results.read(SAMPLE / "results.jsonl").header.targets[0]
    assert target.version == SparkVersion(3, 3, 4)
    assert target.model_copy(update={"spark": "model"}).version is None
