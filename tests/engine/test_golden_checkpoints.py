"""Checkpoints that old Sparks wrote and that Spark commits for its own tests: what `inspect` says of each, and whether `resume` does with
one of each kind what Spark's test expects.

What each holds and what comes after it is what Spark's test says, in its code and in its note on how the checkpoint was made.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from conformance.checkpoints.awaiting import awaiting
from conformance.checkpoints.checkpoint import Checkpoint, lines_of_writer, read
from conformance.checkpoints.files import open_files
from conformance.checkpoints.state_rows import rows_in_state
from conformance.cli.progress import NoAnswers
from conformance.core.data import Json
from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.own_job.jvm_method import function_or_method
from conformance.own_job.resumption import GivenCheckpoint, Resumption, resume
from conformance.own_job.sample import Sample
from conformance.runner.resources import EngineUse
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.own_code import OwnCode
from harness.targets.targets import Targets
from tests.engine.stream_tests import jar_of_tests
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


@pytest.mark.parametrize("name", [name for name, golden in GOLDENS.items() if golden.operator is not None])
def test_the_rows_in_hdfs_backed_state_are_counted(name: str, goldens: Path) -> None:
    files = open_files(str(goldens / name))
    (operator,) = rows_in_state(files, read(files))
    if "/rocksdb" in name or "tws" in name:
        assert operator.unread.startswith("its state store is RocksDB")
    else:
        assert (operator.unread, bool(operator.rows)) == ("", True)
        has_schema = name.split("-")[2] >= "3.1"
        assert ({store.times for store in operator.stores} != {"not known"}) is has_schema


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
    """A function of `golden_queries`."""
    schema: str
    added: Sequence[Sequence[tuple[Json, ...]]]
    """The rows of each stream."""
    rows: Sequence[tuple[Json, ...]] = ()
    """All that come out."""
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
_DEDUPLICATED, _JOINED = f"{V}3.5.1-streaming-deduplication", f"{V}3.5.1-streaming-join"
_COUNTED = [(3, 6, 3), (2, 4, 2), (1, 2, 1)]
_KEY, _VALUE = (f"{which}_SCHEMA_NOT_COMPATIBLE|StateSchemaNotCompatible" for which in ("KEY", "VALUE"))
SHORT = (
    Resumed(
        _DEDUPLICATED, "distinct_a", "a STRING, b INT, c STRING", ([("a", 5, "a"), ("c", 9, "c")],), [("c", 9, "c")]
    ),
    _joins(_JOINED, "inner", 6, 7, 8, 9, 10),
    *(
        Resumed(_JOINED, query, "a INT, b BIGINT, Name STRING", (_NAMED, _NAMED), error=error)
        for query, error in (("inner_with_another_key", _KEY), ("inner_with_another_value", _VALUE))
    ),
)
OF_OTHERS = (
    # The format of its state is 1, though the session asks for 2.
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
        f"{V}3.2.0-streaming-aggregate-with-repartition",
        "counted_keys_repartitioned",
        "value INT",
        ([(3,), (2,), (1,)],),
        _COUNTED,
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
)
COUNTED_IN_ONE = replace(OF_OTHERS[4], query="counted_keys_in_one_partition")
"""Spark's test expects these with as many partitions as in the checkpoint; on 3.5 the session's number does not matter."""
INNER_JOIN_OF_2_4 = _joins(f"{V}2.4.0-streaming-join", "inner", 6, 7, 8, 9, 10)
OF_4_ONLY = (
    # A bug: the counts start again, because rows do not reach the partitions that hold their state. Seen since 4.1 (SPARK-53942).
    replace(COUNTED_IN_ONE, rows=[(3, 6, 1), (2, 4, 1), (1, 2, 1)]),
    # Spark's test expects its rows; outside Spark's tests, 4.1 and newer cannot write the schema of such state (SPARK-51779).
    replace(INNER_JOIN_OF_2_4, error="Unsupported schema writer version: 1"),
    # Spark's tests read the state of these and resume none: the rows follow from what they hold.
    Resumed(f"{OF_4}/hdfs/dedup", "distinct_a", "a INT, b BIGINT", ([(6, 6), (7, 7)],), [(7, 7)]),
    *(_joins(f"{OF_4}{suffix}/rocksdb/join2", "inner", 16, 17, 18) for suffix in ("", "-checkpoint-v2")),
)
CONF = {
    "spark.sql.streaming.multipleWatermarkPolicy": "max",
    "spark.sql.streaming.aggregation.stateFormatVersion": "2",
    "spark.sql.streaming.statefulOperator.useStrictDistribution": "true",
    "spark.sql.shuffle.partitions": "5",
}
"""What Spark's tests set for their sessions, and the checkpoint must override."""


class Engines:
    """The engines that resume some, one of each version, as long as the tests run."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._of: dict[str, EngineUse] = {}

    def resume(self, root: Path, case: Resumed, version: str) -> Resumption:
        if version not in self._of:
            use = EngineUse(runtime=RuntimeOptions(conf=CONF, own_code=OwnCode.at([HERE])))
            self._of[version] = replace(use, kept=self._stack.enter_context(use.keeping_engines()))
        use = self._of[version]
        (target,) = Targets.load().choose([version]).targets
        samples = [
            Sample(f"s{number}", parse_schema(case.schema), tuple(rows), None) for number, rows in enumerate(case.added)
        ]
        job = function_or_method(f"golden_queries:{case.query}", case.mode, use.runtime.jars)
        return resume(GivenCheckpoint.at(str(root / case.golden)), job, samples, target, use, NoAnswers())


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    with ExitStack() as stack:
        yield Engines(stack)


def on_versions() -> Iterator[object]:
    for version in ("4.3.0", "3.5.9"):
        for case in (
            *SHORT,
            *OF_OTHERS,
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
    assert sorted((row for batch in batches for row in batch.rows), key=repr) == sorted(case.rows, key=repr)
