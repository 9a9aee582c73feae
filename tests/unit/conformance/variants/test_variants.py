"""Variants: what each makes of a case, and that what it shows is told as of the case."""

import re
from pathlib import Path

import pytest

from conformance.core.case import Case, KafkaSource, Restart
from conformance.core.errors import WrongUsage
from conformance.core.observation import ErrorSeen, Observation
from conformance.core.operations import TransformWithState
from conformance.core.versions import SparkVersion
from conformance.judging.verdict import AS_THE_CASE_SAYS, Verdict
from conformance.language import InvalidCase, read_case
from conformance.language.catalogue import DESCRIPTIONS
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import predict
from conformance.runner.cases import JudgeCases
from conformance.suite import discovery
from conformance.variants.catalogue import SHIFT_MS, VariedCase, variants, varied
from harness.scheduling.cell_run import CellRun, CellTask
from harness.targets.targets import Targets
from reports.results.records import Cell
from tests.support.whole_suite import whole_suite

NEWEST = next(one for one in Targets.load().choose(["4.3.0"]).targets)

CASE = """
title: A title
streams: {events: "event_time TIMESTAMP, id STRING"}
query:
  - from: events
  - withWatermark: [event_time, 10 minutes]
  - groupBy: ["window(event_time, '10 minutes')"]
    agg: [count(*) AS total]
  - select: [window.start, total]
steps:
  - add: {events: [["12:01", a], ["12:02", b], ["12:03", c], ["12:04", d]]}
    expect: {rows: [], watermark: "11:54"}
  - add: {events: [["12:20", a]]}
    expect: {rows: [["12:00", 4]], watermark: "12:10"}
  - add: {events: [["12:05", a]]}
    expect: {rows: [], dropped: 1}
"""


def case(tmp_path: Path, more: str = "", text: str = CASE) -> Case:
    path = tmp_path / "case.yaml"
    path.write_text(text + more)
    return read_case(path, "case")


def made(of: Case, name: str) -> list[VariedCase]:
    return list(varied([of], [name]))


def rows(of: Case, step: int = 1) -> tuple[tuple[object, ...], ...]:
    return of.steps[step - 1].action.streams["events"].partitions  # type: ignore[union-attr, return-value]


def judged(of: Case, observation: Observation) -> Verdict:
    return JudgeCases().verdict(CellRun(CellTask(of, (NEWEST,)), (observation,), None, seconds=0.0))


def test_every_name_is_that_of_a_variant() -> None:
    assert list(variants()) == list(DESCRIPTIONS)


def test_ids_say_which(tmp_path: Path) -> None:
    found = varied([case(tmp_path)], [])
    assert [one.variant for one in found] == [
        *("reversed-rows", "spread-rows", "four-shuffle-partitions", "rocksdb", "changelog-checkpoints"),
        *("checkpoint-format-2", "row-checksum", "no-codegen", "adaptive", "time-zone", "shifted-epoch"),
        *("restart-2", "restart-3"),
    ]
    assert [one.id for one in found] == [f"case@{one.variant}" for one in found]


def test_an_unknown_name() -> None:
    with pytest.raises(WrongUsage, match=r"unknown variant 'rocksbd': did you mean 'rocksdb'\?"):
        varied([], ["rocksbd"])


def test_a_case_may_opt_out_with_a_reason(tmp_path: Path) -> None:
    of = case(tmp_path, "variants: {not: {restart: it forgets, rocksdb: it does not fit}}\n")
    names = {one.variant.partition("-")[0] for one in varied([of], [])}
    assert not names & {"restart", "rocksdb"}
    assert "reversed" in names


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("{not: {rocksbd: a reason}}", "unknown key 'rocksbd' in `not`: did you mean 'rocksdb'?"),
        ("{not: {rocksdb: }}", "null is not a reason"),
        ("{nott: {rocksdb: a reason}}", "unknown key 'nott' in `variants`: did you mean 'not'?"),
        ("{not: {}}", "must not be empty"),
    ],
)
def test_what_is_wrong_with_opting_out(tmp_path: Path, said: str, problem: str) -> None:
    with pytest.raises(InvalidCase) as caught:
        case(tmp_path, f"variants: {said}\n")
    assert problem in str(caught.value)


class TestRows:
    def test_reversed(self, tmp_path: Path) -> None:
        (other,) = made(case(tmp_path), "reversed-rows")
        assert rows(other) == ((("12:04", "d"), ("12:03", "c"), ("12:02", "b"), ("12:01", "a")),)

    def test_spread(self, tmp_path: Path) -> None:
        (other,) = made(case(tmp_path), "spread-rows")
        assert rows(other) == ((("12:01", "a"), ("12:04", "d")), (("12:02", "b"),), (("12:03", "c"),))
        assert rows(other, 2) == ((("12:20", "a"),),)

    def test_partitions_of_the_case_stay(self, tmp_path: Path) -> None:
        text = CASE.replace(
            '[["12:01", a], ["12:02", b], ["12:03", c], ["12:04", d]]', '{partitions: [[["12:01", a]], []]}'
        )
        assert made(case(tmp_path, text=text), "spread-rows") == []

    def test_nothing_to_change(self, tmp_path: Path) -> None:
        text = CASE.replace(', ["12:02", b], ["12:03", c], ["12:04", d]', "")
        of = case(tmp_path, text=text)
        assert made(of, "reversed-rows") == made(of, "spread-rows") == []


class TestSettings:
    def test_they_come_beside_those_of_the_case(self, tmp_path: Path) -> None:
        (other,) = made(case(tmp_path, "conf: {spark.sql.ansi.enabled: true}\n"), "four-shuffle-partitions")
        assert other.conf == {"spark.sql.ansi.enabled": "true", "spark.sql.shuffle.partitions": "4"}

    def test_a_case_that_sets_them_itself(self, tmp_path: Path) -> None:
        of = case(tmp_path, "conf: {spark.sql.shuffle.partitions: 3}\n")
        assert made(of, "four-shuffle-partitions") == []
        assert [one.conf for one in made(of, "one-shuffle-partition")] == [{"spark.sql.shuffle.partitions": "1"}]
        assert made(case(tmp_path), "one-shuffle-partition") == []

    def test_a_case_that_looks_at_the_plan(self, tmp_path: Path) -> None:
        of = case(tmp_path, text=CASE.replace("dropped: 1", "dropped: 1, plan: [StateStoreSave]"))
        assert made(of, "adaptive") == []

    def test_a_case_that_spoils_files(self, tmp_path: Path) -> None:
        of = case(tmp_path, "  - restart: {how: graceful, damage: {gone: delta}}\n    expect: {error: {stage: run}}\n")
        assert made(of, "rocksdb") == []

    def test_versions(self, tmp_path: Path) -> None:
        (everywhere,), (later,) = (
            made(of, "rocksdb") for of in (case(tmp_path), case(tmp_path, 'spark: ["<3.3", ">=4.0"]\n'))
        )
        old, three, new = (SparkVersion.parse(text) for text in ("3.1.3", "3.3.4", "4.3.0"))
        assert [everywhere.applies_to(version) for version in (old, three, new)] == [False, True, True]
        assert [later.applies_to(version) for version in (old, three, new)] == [False, False, True]
        assert later.applies_to(SparkVersion.parse("3.2.4"))


class TestRestart:
    def test_before_each_step_but_the_first(self, tmp_path: Path) -> None:
        second, third = made(case(tmp_path), "restart")
        assert [isinstance(step.action, Restart) for step in second.steps] == [False, True, False, False]
        assert [step.number for step in third.steps] == [1, 2, 3, 4]

    def test_not_where_the_case_says_that_the_same_version_does_not_go_on(self, tmp_path: Path) -> None:
        told = "upgrades: [{cuts: 2, because: it forgets, steps: {2: {rows: []}}}]\n"
        assert [one.variant for one in made(case(tmp_path, told), "restart")] == ["restart-3"]
        other = "upgrades: [{from: '<4', to: '>=4', because: it forgets, steps: {2: {rows: []}}}]\n"
        assert len(made(case(tmp_path, other), "restart")) == 2

    def test_not_beside_a_restart_or_a_start(self, tmp_path: Path) -> None:
        more = "  - restart: graceful\n  - idle: {}\n"
        assert [one.variant for one in made(case(tmp_path, more), "restart")] == ["restart-2", "restart-3"]

    def test_not_in_a_case_that_drives_the_clock(self, tmp_path: Path) -> None:
        driven = case(tmp_path, "trigger: {processingTime: 1 minute}\nspark: '>=3.4'\n")
        for name in ("restart", "kafka", "delta"):
            assert (len(made(driven, name)), bool(made(case(tmp_path), name))) == (0, True)

    def test_what_runs_in_it_is_told_with_the_step_behind_it(self, tmp_path: Path) -> None:
        _, third = made(case(tmp_path), "restart")
        seen = predict(third, NEWEST.version).observation
        ran_again = seen.steps[1].batches[-1]
        steps = list(seen.steps)
        steps[2] = steps[2].model_copy(update={"batches": (ran_again,)})
        told = third.observation_of_original(seen.model_copy(update={"steps": tuple(steps)}))
        assert [step.number for step in told.steps] == [1, 2, 3]
        assert told.steps[2].batches[0] == ran_again
        assert judged(third, seen).status == "conforms"
        assert judged(third, seen.model_copy(update={"steps": tuple(steps)})).status == "violates"

    def test_a_restart_that_fails_is_a_failure_of_the_step_behind_it(self, tmp_path: Path) -> None:
        second, _ = made(case(tmp_path), "restart")
        seen = predict(second, NEWEST.version).observation
        failed = seen.steps[1].model_copy(update={"error": ErrorSeen(stage="run", classes=("X",), message="m")})
        stopped = seen.model_copy(update={"steps": (seen.steps[0], failed)})
        verdict = judged(second, stopped)
        assert (verdict.case, verdict.status) == ("case@restart-2", "violates")
        assert verdict.findings[0].place.step == 2


class TestShifted:
    def test_rows_come_later_and_what_is_seen_is_told_earlier(self, tmp_path: Path) -> None:
        of = case(tmp_path)
        (other,) = made(of, "shifted-epoch")
        assert rows(other, 2) == ((("1970-12-31 12:20", "a"),),)
        seen = predict(other, NEWEST.version).observation
        assert seen.steps[0].watermark > SHIFT_MS
        told, straight = other.observation_of_original(seen), predict(of, NEWEST.version).observation
        assert [step.watermark for step in told.steps] == [step.watermark for step in straight.steps]
        assert judged(other, seen).status == "conforms"

    def test_a_query_that_speaks_of_a_certain_time(self, tmp_path: Path) -> None:
        text = CASE.replace("  - withWatermark", "  - where: event_time > '1970-01-01 11:00'\n  - withWatermark")
        assert made(case(tmp_path, text=text), "shifted-epoch") == []


def test_a_cell_says_which_variant_and_holds_what_was_seen_as_of_the_case(tmp_path: Path) -> None:
    second, _ = made(case(tmp_path), "restart")
    seen = predict(second, NEWEST.version).observation
    cell = Cell.of(second, NEWEST.name, judged(second, seen), [seen])
    assert (cell.case, cell.variant, cell.written, cell.file) == ("case@restart-2", "restart-2", "case", "case.yaml")
    assert len(cell.observation.steps) == 3


FAMILIES = ("window-eviction", "several-watermarks", "no-data-batches")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_model_answers_every_variant_as_the_case(family: str) -> None:
    cases = [one for one in discovery.load([discovery.shipped() / family]).cases if one.applies_to(NEWEST.version)]
    wrong, told = [], 0
    for one in varied(cases, []):
        try:
            verdict = judged(one, predict(one, NEWEST.version).observation)
        except Unpredictable:
            continue
        told += 1
        if verdict.status not in AS_THE_CASE_SAYS:
            wrong.append(verdict.describe())
    assert wrong == []
    assert told > 4 * len(cases)


ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROCESSOR = f"""
title: A title
streams: {{events: "event_time TIMESTAMP, id STRING"}}
query:
  - from: events
  - withWatermark: [event_time, 10 minutes]
  - transformWithState: {{by: [id], with: number_rows, outputMode: append, timeMode: EventTime}}
conf:
  spark.sql.streaming.stateStore.providerClass: {ROCKSDB}
steps:
  - add: {{events: [["12:01", a]]}}
    expect: {{rows: [[a, "12:01", 1]]}}
  - restart: {{how: graceful, change: {{query: [{{from: events}}, {{union: [{{from: events}}, {{transformWithState:
      {{by: [id], with: number_rows, outputMode: append, timeMode: None}}}}]}}]}}}}
"""


class TestRowsForPandas:
    def test_every_processor_gets_rows(self, tmp_path: Path) -> None:
        (changed,) = made(case(tmp_path, text=PROCESSOR), "rows-for-pandas")
        processors = [operation for operation in changed.operations() if isinstance(operation, TransformWithState)]
        assert [operation.in_pandas for operation in processors] == [False, False]
        restarted = changed.steps[1].action
        assert isinstance(restarted, Restart)
        (_, union) = restarted.change.query.wire()
        assert union["union"][1]["transformWithState"]["inPandas"] is False
        assert not changed.applies_to(SparkVersion.parse("4.0.5"))
        assert changed.applies_to(SparkVersion.parse("4.1.4"))

    def test_a_case_without_a_processor_over_pandas_has_none(self, tmp_path: Path) -> None:
        assert made(case(tmp_path), "rows-for-pandas") == []
        rows = re.sub("(timeMode: EventTime|timeMode: None)", r"\1, inPandas: false", PROCESSOR)
        assert rows.count("inPandas") == 2
        assert made(case(tmp_path, text=rows), "rows-for-pandas") == []


def test_settings_apply_to_a_case_that_sets_some_of_them_to_the_same(tmp_path: Path) -> None:
    of = case(tmp_path, text=PROCESSOR)
    assert made(of, "rocksdb") == []
    (changed,) = made(of, "checkpoint-format-2")
    assert changed.conf["spark.sql.streaming.stateStore.checkpointFormatVersion"] == "2"
    other = PROCESSOR.replace(ROCKSDB, ROCKSDB.replace("RocksDB", "HDFSBacked"))
    assert made(case(tmp_path, text=other), "checkpoint-format-2") == []


def test_avro_is_for_processors_only(tmp_path: Path) -> None:
    """Spark refuses it for every other operation with state."""
    (changed,) = made(case(tmp_path, text=PROCESSOR), "avro-state")
    assert changed.conf["spark.sql.streaming.stateStore.encodingFormat"] == "avro"
    assert made(case(tmp_path), "avro-state") == []


def test_rows_in_memory_stay_there_in_one_partition(tmp_path: Path) -> None:
    text = CASE.replace(
        '"event_time TIMESTAMP, id STRING"', '{schema: "event_time TIMESTAMP, id STRING", source: memory}'
    )
    one = case(tmp_path, text=text.replace("steps:", "outputMode: update\ntrigger: realTime\nsteps:"))
    assert made(one, "spread-rows") == made(one, "kafka") == []
    (other,) = made(one, "reversed-rows")
    assert other.in_memory == {"events"}


class TestFromKafka:
    """The rows as records of topics."""

    def test_a_topic_has_a_partition_for_each_of_its_most_partitioned_arrival(self, tmp_path: Path) -> None:
        text = CASE.replace('{events: [["12:05", a]]}', '{events: {partitions: [[["12:05", a]], [], []]}}')
        (found,) = made(case(tmp_path, text=text), "kafka")
        assert found.id == "case@kafka"
        assert found.topics == {"events": KafkaSource(partitions=3)}

    def test_all_variants_need_nothing_that_spark_does_not_ship(self, tmp_path: Path) -> None:
        assert not {"kafka", "delta", "iceberg"} & {one.variant for one in varied([case(tmp_path)], [])}

    def test_every_stream_is_read_from_a_table(self, tmp_path: Path) -> None:
        (found,) = made(case(tmp_path), "delta")
        assert (found.id, found.tables, found.source) == ("case@delta", {"events": "delta"}, "delta")

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(
                ('"event_time TIMESTAMP, id STRING"', '{schema: "event_time TIMESTAMP, id STRING", source: kafka}'),
                id="a topic already",
            ),
            pytest.param(("from: events", "from: events\n    name: mine"), id="a named source"),
            pytest.param(
                ("steps:", 'trigger: availableNow\nsteps:\n  - backlog: [{events: [["12:00", a]]}, {events: []}]'),
                id="all at once",
            ),
        ],
    )
    def test_it_does_not_apply(self, tmp_path: Path, change: tuple[str, str]) -> None:
        assert change[0] in CASE
        written = case(tmp_path, text=CASE.replace(*change))
        assert made(written, "kafka") == made(written, "iceberg") == []

    def test_what_differs_may_depend_on_the_source(self, tmp_path: Path) -> None:
        differs = (
            "differs:\n"
            '  - {spark: ">=3.0", source: files, because: it reads files, link: SPARK-50046, steps: {1: {watermark: "11:00"}}}\n'
            '  - {spark: ">=3.0", source: kafka, because: it reads topics, link: SPARK-50046, steps: {1: {watermark: "11:30"}}}\n'
        )
        written = case(tmp_path, differs)
        (from_kafka,) = made(written, "kafka")
        reasons = [one.differs_on(NEWEST.version) for one in (written, from_kafka)]
        assert [entry and entry.because for entry in reasons] == ["it reads files", "it reads topics"]

    @pytest.mark.parametrize(
        ("id", "ticket"),
        [
            ("several-watermarks/silent-streams-do-not-lend-their-watermark", "SPARK-50046"),
            ("recovery/inner-join-goes-on-while-one-input-is-silent", "SPARK-57003"),
        ],
    )
    def test_bugs_that_show_with_files_only_are_not_expected_of_topics(self, id: str, ticket: str) -> None:
        written = next(one for one in whole_suite().cases if one.id == id)
        (from_kafka,) = made(written, "kafka")
        of_files = written.differs_on(SparkVersion(3, 5, 9))
        assert (of_files.bug, of_files.link) == (True, ticket)
        assert from_kafka.differs_on(SparkVersion(3, 5, 9)) is None

    def test_a_verdict_is_that_of_the_source(self, tmp_path: Path) -> None:
        differs = 'differs:\n  - {spark: ">=3.0", source: files, because: of files, bug: SPARK-50046, steps: {3: {dropped: 0}}}\n'
        written = case(tmp_path, differs)
        (from_kafka,) = made(written, "kafka")
        seen = predict(from_kafka, NEWEST.version).observation
        assert judged(from_kafka, seen).status == "conforms"
        assert judged(written, seen.model_copy(update={"case": written.id})).status == "violates"
