"""Checkpoints that old Sparks wrote and that Spark commits for its own tests: what `inspect` says of each, and whether `resume` does with
it what Spark's test expects.

What each holds and what comes after it is what Spark's test says, in its code and in its note on how the checkpoint was made.
"""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from conformance.checkpoints.awaiting import awaiting
from conformance.checkpoints.checkpoint import Checkpoint, copy_detached, lines_of_writer, read
from conformance.checkpoints.files import NoSuchCheckpoint, open_files
from conformance.cli.progress import NoAnswers
from conformance.core.data import Json
from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.own_job.jvm_method import function_or_method
from conformance.own_job.resumption import Resumption, resume
from conformance.own_job.sample import Sample
from conformance.runner.resources import EngineUse
from harness.environments.provision import prepare
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.own_code import Jar, OwnCode
from harness.targets.targets import Targets
from tests.engine.stream_tests import compile_suites, jar_of_tests
from tests.support.effort import full_run_only
from tests.support.once import made_once

# One worker has all of them, because one JVM of a version resumes many checkpoints.
pytestmark = pytest.mark.xdist_group("golden checkpoints")

HERE = Path(__file__).parent / "golden"
FOLDER = "structured-streaming"
RELEASE = SparkVersion(4, 2, 0)
"""The newest whose test jars Maven Central has."""
V = "checkpoint-version-"
OF_4 = f"{V}4.0.0"


@dataclass(frozen=True)
class Golden:
    """What a checkpoint holds, and the suite of Spark that says so."""

    suite: str
    batch: int
    """The newest micro-batch."""
    operator: str | None = None
    """As `inspect` must name it: None if it keeps no state, "" if the state does not tell."""
    partitions: int = 5
    watermark_s: int = 0
    sources: int = 1


_JOIN = {"operator": "symmetricHashJoin", "sources": 2}
_READ = "StateDataSourceReadSuite"
GOLDENS = {
    "checkpoint-test-offsetId-commitId-inconsistent": Golden("MicroBatchExecutionSuite", 4, watermark_s=5),
    f"{V}2.1.0": Golden("StreamSuite", 1, "", partitions=10),
    f"{V}2.3.1-flatMapGroupsWithState-state-format-1": Golden("FlatMapGroupsWithStateSuite", 1, "", watermark_s=5),
    f"{V}2.3.1-for-multi-watermark-policy": Golden("EventTimeWatermarkSuite", 1, watermark_s=10, sources=2),
    f"{V}2.3.1-streaming-aggregate-state-format-1": Golden("StreamingAggregationSuite", 1, ""),
    f"{V}2.3.1-without-commit-log-metadata": Golden("EventTimeWatermarkSuite", 1, "", watermark_s=5),
    f"{V}2.4.0-streaming-join": Golden("StreamingInnerJoinBase", 0, **_JOIN),
    **{
        f"{V}2.4.5-for-compatibility-test-{name}": Golden("StreamingStateStoreFormatCompatibilitySuite", 0, "")
        for name in ("common-functions", "deduplicate", "statistical-functions", "sum-decimal")
    },
    f"{V}3.0.0-streaming-statestore-codec": Golden("StateStoreCompatibilitySuite", 0, "", partitions=1),
    f"{V}3.1.0-flatmapgroupswithstate-repartition": Golden("FlatMapGroupsWithStateDistributionSuite", 0, ""),
    f"{V}3.2.0-deduplication-with-repartition": Golden("StreamingDeduplicationDistributionSuite", 1, ""),
    f"{V}3.2.0-flatmapgroupswithstate1-repartition": Golden("FlatMapGroupsWithStateDistributionSuite", 0, ""),
    f"{V}3.2.0-flatmapgroupswithstate2-repartition": Golden("FlatMapGroupsWithStateDistributionSuite", 0, ""),
    f"{V}3.2.0-session-window-with-repartition": Golden(
        "StreamingSessionWindowDistributionSuite", 1, "", watermark_s=11
    ),
    f"{V}3.2.0-streaming-aggregate-with-repartition": Golden("StreamingAggregationDistributionSuite", 1, ""),
    f"{V}3.3.0-streaming-deduplication": Golden("StreamingDeduplicationSuite", 1, ""),
    f"{V}3.5.1-streaming-deduplication": Golden("StreamingDeduplicationSuite", 1, "dedupe"),
    f"{V}3.5.1-streaming-join": Golden("StreamingInnerJoinBase", 0, **_JOIN),
    f"{V}4.0.0-tws-avro": Golden("OffsetSeqLogSuite", 1, "transformWithStateExec"),
    f"{V}4.0.0-tws-unsaferow": Golden("OffsetSeqLogSuite", 1, "transformWithStateExec"),
    f"{V}4.0.1-dedup-spark-53942": Golden("StreamingQuerySuite", 0, "dedupe"),
    "escaped-path-2.4.0/chk%252520%252525@%252523chk": Golden("StreamingQuerySuite", 0),
    **{
        f"{OF_4}{suffix}/{name}": golden
        for suffix in ("/hdfs", "/rocksdb", "-checkpoint-v2/rocksdb")
        for name, golden in {
            "agg": Golden(_READ, 3, "stateStoreSave"),
            "dedup": Golden(_READ, 3, "dedupe"),
            "limit": Golden(_READ, 3, "globalLimit", partitions=1),
            # (15, 15) and (14, 14) are the latest rows of its inputs, and the smaller watermark counts.
            "join1": Golden(_READ, 4, watermark_s=9, **_JOIN),
            "join2": Golden(_READ, 4, watermark_s=9, **_JOIN),
        }.items()
        if (suffix, name) != ("-checkpoint-v2/rocksdb", "agg")
    },
}


@pytest.fixture(scope="module")
def goldens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all of them."""

    def unpack(place: Path) -> None:
        with zipfile.ZipFile(jar_of_tests("spark-sql_2.13", RELEASE)) as jar:
            jar.extractall(place, [name for name in jar.namelist() if name.startswith(f"{FOLDER}/")])

    return Path(made_once(tmp_path_factory, "golden", unpack)) / FOLDER


def test_each_checkpoint_of_the_jar_is_known(goldens: Path) -> None:
    assert {path.parent.relative_to(goldens).as_posix() for path in goldens.rglob("offsets")} == GOLDENS.keys()


def found(goldens: Path, name: str) -> Checkpoint:
    return read(open_files(str(goldens / name)))


@pytest.mark.parametrize("name", GOLDENS)
def test_inspect_says_what_the_checkpoint_is(name: str, goldens: Path) -> None:
    golden, checkpoint = GOLDENS[name], found(goldens, name)
    assert checkpoint.planned is not None
    assert (checkpoint.planned.batch, checkpoint.watermark_ms) == (golden.batch, golden.watermark_s * 1000)
    assert (len(checkpoint.sources), checkpoint.missing) == (golden.sources, ())
    named = [operator.name or "" for operator in checkpoint.operators]
    assert named == ([] if golden.operator is None else [golden.operator])
    provider = "RocksDB" if "/rocksdb" in name or "tws" in name else "HDFS"
    for operator in checkpoint.operators:
        for store in operator.stores:
            assert (store.partitions, store.provider) == (golden.partitions, provider)
            # The state of every micro-batch is kept, and that of one which is not committed, too.
            assert store.versions == (1, golden.batch + 1)
            assert {schema.format for schema in store.schemas} == formats(goldens / name, store.name)
    assert len({store for operator in checkpoint.operators for store in operator.stores}) == (
        0 if golden.operator is None else 4 if "join" in golden.operator.lower() else 1
    )


def formats(root: Path, store: str) -> set[int]:
    """The formats of schemas, as their first bytes say: the length of a text, then ``v2``."""
    files = [
        path for path in root.rglob("*") if "schema" in str(path).lower() and path.is_file() and path.suffix != ".crc"
    ]
    return {int(path.read_bytes()[3:4]) for path in files if store in (path.parts[-3], "default")}


PREVIEW = re.compile(r"4\.0\.0/(hdfs|rocksdb)/")
"""Spark's developers wrote these in June 2024, before 4.0 had all its settings: they pin what 3.5 pins."""


@pytest.mark.parametrize("name", GOLDENS)
def test_the_version_that_wrote_it_is_among_those_that_may_have(name: str, goldens: Path) -> None:
    lines = lines_of_writer(found(goldens, name))
    version = re.search(r"[1-4]\.\d+(?=\.\d)", name)
    wrote = version[0] if version is not None and version[0] >= "2.4" else "2.3"
    assert wrote in lines or PREVIEW.search(name)
    assert wrote not in ("2.3", "2.4", "3.0", "3.1") or lines == (wrote,)


def test_a_checkpoint_that_spark_refuses_has_a_warning(goldens: Path) -> None:
    """Spark's tests expect the refusals of these; `resume` shows the others, which depend on the query."""
    refused = {
        name: [
            change.link
            for change in awaiting(found(goldens, name), SparkVersion(4, 3, 0))
            if change.effect != "changes"
        ]
        for name in (
            "checkpoint-test-offsetId-commitId-inconsistent",
            f"{V}2.4.0-streaming-join",
            f"{V}2.3.1-for-multi-watermark-policy",
        )
    }
    assert [*refused.values()] == [["SPARK-38033"], ["SPARK-51779", "SPARK-26187"], []]


@dataclass(frozen=True)
class Resumed:
    """A query of Spark's test, the rows that it adds, and what it expects."""

    golden: str
    query: str
    """A function of `golden_queries`; or a method of the Scala here, ``golden.Queries.latest``."""
    schema: str
    added: Sequence[Sequence[tuple[Json, ...]]]
    """The rows of each stream."""
    rows: Sequence[tuple[Json, ...]] = ()
    """All that come out; in complete mode, of the last micro-batch."""
    mode: str = "append"
    error: str | None = None
    """What the error that refuses the checkpoint says."""
    watermark_s: int | None = None
    """The last watermark; None if the test does not say."""

    @property
    def id(self) -> str:
        return f"{self.golden.removeprefix(V)}: {self.query}"


def _joins(golden: str, query: str, *numbers: int, error: str | None = None) -> Resumed:
    """A join of a stream with itself; only even numbers match."""
    rows = [(n, n) for n in numbers]
    matches = [(n, n, n, n) for n in numbers if n % 2 == 0]
    return Resumed(golden, query, "a INT, b BIGINT", (rows, rows), () if error else matches, error=error)


_NAMED = [(n, n, "a") for n in range(6, 11)]
_WORDS = (("hello world spark streaming", "key1", 40), ("world hello structured streaming", "key2", 41))
_SESSIONS = (*_WORDS, ("spark streaming", "key1", 25))
_KEYS = f"{V}3.3.0-streaming-deduplication", f"{V}3.5.1-streaming-deduplication"
_KEY, _VALUE = (
    "KEY_SCHEMA_NOT_COMPATIBLE|StateSchemaNotCompatible",
    "VALUE_SCHEMA_NOT_COMPATIBLE|StateSchemaNotCompatible",
)
SHORT = (
    Resumed(
        _KEYS[1],
        "distinct_a",
        "a STRING, b INT, c STRING",
        ([("a", 5, "a"), ("b", 2, "b"), ("c", 9, "c")],),
        [("c", 9, "c")],
    ),
    _joins(f"{V}3.5.1-streaming-join", "inner", 6, 7, 8, 9, 10),
    *(
        Resumed(f"{V}3.5.1-streaming-join", query, "a INT, b BIGINT, Name STRING", (_NAMED, _NAMED), error=error)
        for query, error in (("inner_with_another_key", _KEY), ("inner_with_another_value", _VALUE))
    ),
)
_SPREAD = (5.5901699437494745, 6.454972243679028, 31.25, 41.666666666666664)
_SAME = (-0.625, -0.8333333333333334, -0.13483997249264842)
_OTHER = (1.25, 1.6666666666666667, 0.31622776601683794)
OF_OTHERS = (
    Resumed(
        f"{V}2.3.1-streaming-aggregate-state-format-1",
        "counts",
        "value INT",
        ([(3,), (2,), (1,)],),
        [(3, 3), (2, 2), (1, 1)],
        mode="update",
    ),
    Resumed(
        f"{V}2.3.1-without-commit-log-metadata",
        "windows",
        "value INT",
        ([(25,), (50,)],),
        [(10, 3), (15, 1), (25, 1)],
    ),
    # The smaller watermark, that of the first stream, though the session asks for the larger.
    Resumed(
        f"{V}2.3.1-for-multi-watermark-policy",
        "union",
        "value INT",
        ([(120,)], [(130,)]),
        [(120,), (130,)],
        watermark_s=110,
    ),
    _joins(f"{V}2.4.0-streaming-join", "outer", 7, 8, error="(?i)leftouter join with state format version 1"),
    Resumed(
        f"{V}2.4.5-for-compatibility-test-common-functions",
        "common",
        "value INT",
        ([(n,) for n in range(10, 20)],),
        [
            (
                i,
                *[i + 7.5] * 3,
                f"{i + 7.5}000",
                4,
                i,
                i,
                i + 15,
                i + 15,
                i,
                i + 15,
                *[4 * i + 30] * 3,
                [*range(i, 20, 5)],
                [0, 1, 2],
            )
            for i in range(5)
        ],
        mode="complete",
    ),
    Resumed(
        f"{V}2.4.5-for-compatibility-test-statistical-functions",
        "statistical",
        "value BIGINT",
        ([(n,) for n in range(10, 20)],),
        [(i, -1.36, 0.0, 3, 4, 4, 4, 4, *_SPREAD, *(_OTHER if i in (1, 4) else _SAME)) for i in range(5)],
        mode="complete",
    ),
    Resumed(
        f"{V}2.4.5-for-compatibility-test-deduplicate",
        "distinct",
        "value BIGINT",
        ([(3,), (4,), (5,), (6,)],),
        [(15, 5, "5", 105, 10), (16, 6, "6", 106, 11)],
    ),
    Resumed(
        f"{V}2.4.5-for-compatibility-test-sum-decimal",
        "decimals",
        "value INT",
        ([(n,) for n in range(10, 20)],),
        mode="complete",
        error="ROW_FORMAT_VALIDATION_FAILURE|InvalidUnsafeRowException",
    ),
    Resumed(
        f"{V}3.0.0-streaming-statestore-codec",
        "counts",
        "value INT",
        ([(1,), (2,)],),
        [(1, 2), (2, 2)],
        mode="update",
    ),
    Resumed(
        f"{V}3.2.0-deduplication-with-repartition",
        "distinct_keys_repartitioned",
        "value INT",
        ([(2,), (3,), (4,), (5,)],),
        [(5, 10, 15)],
        mode="update",
    ),
    Resumed(
        f"{V}3.2.0-streaming-aggregate-with-repartition",
        "counted_keys_repartitioned",
        "value INT",
        ([(3,), (2,), (1,)],),
        [(3, 6, 3), (2, 4, 2), (1, 2, 1)],
        mode="update",
    ),
    # Spark's test adds the first row and looks at the plan; the second, of another user, ends all sessions before.
    Resumed(
        f"{V}3.2.0-session-window-with-repartition",
        "sessions",
        "a STRING, b STRING, c BIGINT",
        ([_SESSIONS[-1], ("end", "key3", 100)],),
        [(word, user, at, at + 10, 1) for words, user, at in _SESSIONS for word in words.split()],
    ),
    replace(SHORT[0], golden=_KEYS[0]),
    *(replace(SHORT[0], golden=golden, query="distinct_a_and_b", error=_KEY) for golden in _KEYS),
)
COUNTED_IN_ONE = Resumed(
    f"{V}3.2.0-streaming-aggregate-with-repartition",
    "counted_keys_in_one_partition",
    "value INT",
    ([(3,), (2,), (1,)],),
    [(3, 6, 3), (2, 4, 2), (1, 2, 1)],
    mode="update",
)
"""Spark's test expects these with as many partitions as in the checkpoint; on 3.5 the session's number does not matter."""
INNER_JOIN_OF_2_4 = _joins(f"{V}2.4.0-streaming-join", "inner", 6, 7, 8, 9, 10)
_COUNTED = ([("a", "b", 1)],)
_TIMED_OUT = [("a", "b", "1"), ("a", "a", "-1")]
OF_SCALA = (
    Resumed(
        f"{V}2.3.1-flatMapGroupsWithState-state-format-1",
        "golden.Queries.latest",
        "a STRING, b INT",
        ([("a", 10), ("b", 31)],),
        [("a", 15), ("b", 31), ("a", -1)],
        mode="update",
    ),
    # Spark's tests end before what the checkpoint keeps times out; here its ten seconds passed long ago.
    *(
        Resumed(f"{V}{golden}", f"golden.Queries.{query}", "a STRING, b STRING, c BIGINT", _COUNTED, rows, "update")
        for golden, query, rows in (
            ("3.1.0-flatmapgroupswithstate-repartition", "counts", _TIMED_OUT),
            ("3.2.0-flatmapgroupswithstate2-repartition", "counts", _TIMED_OUT),
            (
                "3.2.0-flatmapgroupswithstate1-repartition",
                "countsWithInitialState",
                [*_TIMED_OUT, ("c", "c", "-1")],
            ),
        )
    ),
)
OF_4_ONLY = (
    # A bug: the counts start again, because rows do not reach the partitions that hold their state. Seen since 4.1 (SPARK-53942).
    replace(COUNTED_IN_ONE, rows=[(3, 6, 1), (2, 4, 1), (1, 2, 1)]),
    # Spark's test expects its rows; outside Spark's tests, 4.1 and newer cannot write the schema of such state (SPARK-51779).
    replace(INNER_JOIN_OF_2_4, error="Unsupported schema writer version: 1"),
    Resumed(
        f"{V}4.0.1-dedup-spark-53942",
        "distinct_keys",
        "value INT",
        ([(2,), (3,), (3,), (4,), (5,)],),
        [(5, 10, 15)],
    ),
    # Spark's tests read the state of these and resume none: the rows follow from what they hold.
    *(
        each
        for root in (f"{OF_4}/hdfs", f"{OF_4}/rocksdb", f"{OF_4}-checkpoint-v2/rocksdb")
        for each in (
            Resumed(
                f"{root}/agg",
                "counts_of_a",
                "a INT, b BIGINT",
                ([(n, n) for n in range(1, 8)],),
                [(1, 2), (2, 3), (3, 4), (4, 4), (5, 3), (6, 2), (7, 1)],
                mode="update",
            ),
            Resumed(f"{root}/dedup", "distinct_a", "a INT, b BIGINT", ([(6, 6), (7, 7)],), [(7, 7)]),
            Resumed(f"{root}/limit", "limit", "a INT, b BIGINT", ([(13, 13)],)),
            _joins(f"{root}/join1", "inner", 16, 17, 18),
            _joins(f"{root}/join2", "inner", 16, 17, 18),
        )
        if each.golden in GOLDENS
    ),
    # Builds before 4.0.0 wrote these: the metadata of their snapshots have column families and lack a count that 4.3.0 requires beside
    # them. Spark's tests read only their offset logs; the query is what their metadata and schemas say.
    *(
        Resumed(
            f"{OF_4}-tws-{row}",
            "golden.Processed.counts",
            "a STRING",
            ([("a",)],),
            mode="update",
            error="InternalKeys",
        )
        for row in ("avro", "unsaferow")
    ),
)
NOT_RESUMED = {
    f"{V}2.1.0": "no micro-batch is committed",  # Spark 2.1 has no log of commits, and what the last one had read is gone.
    # `resume` leaves out a micro-batch that is not committed, and this one is what Spark refuses.
    "checkpoint-test-offsetId-commitId-inconsistent": None,
    # It keeps no state: Spark's test is about the names of the folders of the checkpoint and of the sink.
    "escaped-path-2.4.0/chk%252520%252525@%252523chk": None,
}
"""Why a checkpoint is not resumed, as the error says; None if `resume` would not meet what Spark's test is about."""
CONF = {
    "spark.sql.streaming.multipleWatermarkPolicy": "max",
    "spark.sql.streaming.aggregation.stateFormatVersion": "2",
    "spark.sql.streaming.statefulOperator.useStrictDistribution": "true",
    "spark.sql.shuffle.partitions": "5",
}
"""What Spark's tests set for their sessions, and the checkpoint must override."""


def test_each_checkpoint_is_resumed_or_cannot_be(goldens: Path, tmp_path: Path) -> None:
    resumed = {case.golden for case in (*SHORT, *OF_OTHERS, *OF_SCALA, *OF_4_ONLY)}
    assert resumed | NOT_RESUMED.keys() == GOLDENS.keys()
    assert not resumed & NOT_RESUMED.keys()
    for number, (name, error) in enumerate(NOT_RESUMED.items()):
        if error is not None:
            files = open_files(str(goldens / name))
            with pytest.raises(NoSuchCheckpoint, match=error):
                copy_detached(files, read(files), tmp_path / str(number))


class Engines:
    """The engines that resume some, as long as the tests run: of each version one for Python, and one with the Scala."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        self._of: dict[tuple[str, bool], EngineUse] = {}

    def resume(self, root: Path, case: Resumed, version: str) -> Resumption:
        scala = "." in case.query
        if (version, scala) not in self._of:
            jars = [compiled(version, self._folder / f"{version}.jar")] if scala else []
            use = EngineUse(runtime=RuntimeOptions(conf=CONF, own_code=OwnCode.at([HERE]), jars=jars))
            self._of[version, scala] = replace(use, kept=self._stack.enter_context(use.keeping_engines()))
        use = self._of[version, scala]
        (target,) = Targets.load().choose([version]).targets
        samples = [
            Sample(f"s{number}", parse_schema(case.schema), tuple(rows), None) for number, rows in enumerate(case.added)
        ]
        name = case.query if scala else f"golden_queries:{case.query}"
        job = function_or_method(name, case.mode, use.runtime.jars)
        files = open_files(str(root / case.golden))
        return resume(files, read(files), job, samples, target, use, NoAnswers())


def compiled(version: str, jar: Path) -> Jar:
    """The queries in Scala; transformWithState is there from 4.0 on."""
    (target,) = Targets.load().select([version])
    sources = [each for each in HERE.glob("*.scala") if version > "4" or each.stem != "Processed"]
    compile_suites(sources, prepare(target, on_progress=print), (), jar.with_suffix(""))
    return Jar(Path(shutil.make_archive(str(jar), "zip", jar.with_suffix(""))))


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    with ExitStack() as stack:
        yield Engines(stack, tmp_path_factory.mktemp("compiled"))


def on_versions() -> Iterator[object]:
    for version in ("4.3.0", "3.5.9"):
        for case in (
            *SHORT,
            *OF_OTHERS,
            *OF_SCALA,
            *(OF_4_ONLY if version > "4" else (COUNTED_IN_ONE, INNER_JOIN_OF_2_4)),
        ):
            marks = () if version > "4" and case in SHORT else full_run_only
            yield pytest.param(case, version, id=f"{case.id} on {version}", marks=marks)


@pytest.mark.parametrize(("case", "version"), [*on_versions()])
def test_resume_does_what_sparks_test_expects(case: Resumed, version: str, goldens: Path, engines: Engines) -> None:
    resumed = engines.resume(goldens, case, version)
    error = resumed.verdict.error
    if case.error is not None:
        assert resumed.verdict.outcome == "refused", resumed.verdict
        assert error is not None
        assert re.search(case.error, f"{error.classes} {error.message}")
        return
    assert resumed.verdict.outcome == "resumed", error
    assert resumed.observation is not None
    batches = [batch for step in resumed.observation.steps for batch in step.batches]
    assert batches[0].id == resumed.checkpoint.state_version
    assert (batches[0].watermark or 0) == resumed.checkpoint.watermark_ms
    assert case.watermark_s is None or batches[-1].next_watermark == case.watermark_s * 1000
    if case.mode == "complete":
        batches = batches[-1:]
    assert ordered([row for batch in batches for row in batch.rows]) == [
        [pytest.approx(value, rel=1e-12) if isinstance(value, float) else value for value in row]
        for row in ordered(case.rows)
    ]


def ordered(rows: Sequence[Sequence[Json]]) -> list[list[Json]]:
    return sorted(([*row] for row in rows), key=repr)
