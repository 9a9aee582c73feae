"""What the logs of a checkpoint say, and what is wrong with a damaged one."""

import zlib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conformance.checkpoints.awaiting import awaiting
from conformance.checkpoints.checkpoint import Checkpoint, read
from conformance.checkpoints.files import DamagedCheckpoint, NoSuchCheckpoint, open_files
from conformance.core.versions import SparkVersion
from reports.terminal.checkpoint import lines
from tests.support.checkpoints import schema, schema_v2, small, write, written_by

V = SparkVersion.parse


def opened(root: Path) -> Checkpoint:
    return read(open_files(str(root)))


def last_run_by(checkpoint: Checkpoint) -> str:
    (line,) = (line.plain for line in lines(checkpoint, datetime.now(UTC)) if "last run by" in line.plain)
    return line.partition("last run by")[2].strip()


def test_the_next_watermark_is_in_the_commit(tmp_path: Path) -> None:
    assert opened(small(tmp_path, watermark_ms=1000)).watermark_ms == 1000


def test_a_commit_of_2_3_says_nothing_of_the_watermark(tmp_path: Path) -> None:
    """The next micro-batch has the watermark of this one (``MicroBatchExecution.populateStartOffsets``)."""
    planned = 'v1\n{"batchWatermarkMs":5000,"batchTimestampMs":1}\n1'
    assert opened(small(tmp_path, offsets__0=planned, commits__0="v1\n{}")).watermark_ms == 5000


def test_a_newline_at_the_end_is_no_source(tmp_path: Path) -> None:
    assert len(opened(small(tmp_path, offsets__0='v1\n{"batchTimestampMs":1}\n1\n')).sources) == 1


@pytest.mark.parametrize("pinned", ["{}", '{"spark.sql.shuffle.partitions":"5"}'])
def test_2_3_and_older_pin_no_policy_of_watermarks(tmp_path: Path, pinned: str) -> None:
    found = opened(small(tmp_path, offsets__0=f'v1\n{{"batchTimestampMs":1,"conf":{pinned}}}\n1'))
    assert last_run_by(found) == "Spark 2.3 or older"


def test_continuous_processing_does_not_tell_its_version(tmp_path: Path) -> None:
    assert last_run_by(opened(small(tmp_path, offsets__0='v1\n\n{"logOffset":1}'))) == "unknown"


def test_a_version_before_4_0_that_ran_after_it_is_not_taken_for_the_only_one(tmp_path: Path) -> None:
    root = written_by("3.4.4", "window_aggregation-hdfs", tmp_path)
    write(root, {"state/0/_metadata/metadata": 'v1\n{"operatorInfo":{"operatorName":"stateStoreSave"}}'})
    expected = "Spark 3.2 – 3.5, as its settings show, after 4.0 or newer; or by a preview of 4.0"
    assert last_run_by(opened(root)) == expected


def test_a_gap_before_the_newest_micro_batch_may_be_refused(tmp_path: Path) -> None:
    later = {"offsets__2": 'v1\n{"batchTimestampMs":1}\n-', "commits__2": "v1\n{}"}
    (change,) = awaiting(opened(small(tmp_path, **later)), V("4.1.0"))
    assert (change.effect, change.link) == ("may be refused", "SPARK-38033")
    assert awaiting(opened(small(tmp_path, offsets__1=later["offsets__2"])), V("4.1.0")) == ()


def test_an_outer_join_with_state_of_2_4_may_be_refused(tmp_path: Path) -> None:
    found = opened(written_by("2.4.8", "outer_join-hdfs", tmp_path))
    assert "SPARK-26187" in [change.link for change in awaiting(found, V("3.0.0")) if change.effect == "may be refused"]


def test_the_state_of_a_micro_batch_that_runs_again_is_that_before_it(tmp_path: Path) -> None:
    """Spark 2.1 had no commit log."""
    later = {f"offsets__{batch}": f'v1\n{{"batchTimestampMs":{batch}}}\n1' for batch in (1, 2)}
    assert opened(small(tmp_path, committed=False, **later)).state_version == 2


def test_a_micro_batch_that_is_not_committed_runs_again_with_its_own_watermark(tmp_path: Path) -> None:
    planned = 'v1\n{"batchWatermarkMs":500,"batchTimestampMs":1}\n{"logOffset":1}'
    found = opened(small(tmp_path, watermark_ms=1000, offsets__1=planned))
    assert (found.unfinished, found.watermark_ms) == (True, 500)


def test_the_newest_entry_counts_by_number(tmp_path: Path) -> None:
    later = {f"offsets__{batch}": f'v1\n{{"batchTimestampMs":{batch}}}\n-' for batch in (2, 9, 10)}
    found = opened(small(tmp_path, committed=False, **later, **{"offsets__.10.crc": b"\0"}))
    assert (found.planned.batch, found.sources[0].offset) == (10, None)


@pytest.mark.parametrize(
    ("offset", "kind"),
    [
        ('{"logOffset":3}', "files"),
        ('{"orders":{"0":5,"1":7}}', "Kafka"),
        ('{"sourceVersion":1,"reservoirId":"a","reservoirVersion":4,"index":-1,"isStartingVersion":false}', "Delta"),
        ("12", "rate, socket or memory"),
        ('{"shard":1}', "unknown"),
        ("x", "unknown"),
    ],
)
def test_an_offset_tells_the_kind_of_its_source(tmp_path: Path, offset: str, kind: str) -> None:
    assert opened(small(tmp_path, offsets__0=f"v1\n{{}}\n{offset}")).sources[0].kind == kind


def test_a_source_has_a_name_in_format_2(tmp_path: Path) -> None:
    found = opened(small(tmp_path, offsets__0='v2\n{}\norders:{"logOffset":1}\nclicks:-'))
    assert [(one.name, one.offset) for one in found.sources] == [("orders", '{"logOffset":1}'), ("clicks", None)]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("offsets__0", "", "the first line is not a format version such as v1: the entry is incomplete"),
        ("offsets__0", "v1", "the entry is incomplete"),
        (
            "offsets__0",
            'v1\n{"batchWater',
            "a line is not the JSON object that Spark writes: the entry is damaged or incomplete",
        ),
        ("offsets__0", "v1\n[1]", "a line is not the JSON object that Spark writes"),
        ("offsets__0", 'v1\n{"conf":[]}', "a line is not the JSON object that Spark writes"),
        ("offsets__0", 'v1\n{"batchWatermarkMs":"x"}', "batchWatermarkMs is not a number of milliseconds"),
        ("offsets__0", b"\xff\xfe", "this is not UTF-8 text"),
        ("commits__0", "v1\n{", "a line is not the JSON object that Spark writes"),
        ("sources__0__0", 'v1\n{"path":"file:/in', "a line is not the JSON object that Spark writes"),
        ("sources__0__0", 'v1\n{"path":"file:///in/a`b.json"}', "a line names a path that is no URI"),
        ("sources__0__0", "v1\n[]", "a line is not the JSON object that Spark writes"),
        ("metadata", '{"id":"5a1d"}', "this is not the metadata of a query, or it is incomplete"),
        ("offsets__0", "v9\n{}\n1", "the format of this entry is v9, which is unknown: known are v1 to v2"),
        ("commits__0", "v3\n{}", "the format of this entry is v3, which is unknown"),
        ("metadata", "{}", "this is not the metadata of a query, or it is incomplete"),
        ("state__0___metadata__metadata", "v1\n{}", "this is not the metadata of a stateful operator"),
    ],
)
def test_the_error_names_the_damaged_file(tmp_path: Path, name: str, content: str | bytes, why: str) -> None:
    files = {name: content} if "state" not in name else {"state/0/_metadata/metadata": content}
    small(tmp_path)
    write(tmp_path, {path.replace("__", "/"): text for path, text in files.items()})
    with pytest.raises(DamagedCheckpoint, match=why) as raised:
        opened(tmp_path)
    assert str(raised.value.path) in str(raised.value)


def test_an_offset_log_behind_the_commit_log_is_damaged(tmp_path: Path) -> None:
    assert "commits/1 says that micro-batch 1 ran" in str(opened(small(tmp_path, commits__1="v1\n{}")).missing[0])
    for entry in (tmp_path / "offsets").iterdir():
        entry.unlink()
    assert [str(missing.path) for missing in opened(tmp_path).missing] == ["offsets/1"]


@pytest.mark.parametrize(
    ("key", "value", "damaged", "effects"),
    [
        ("spark.sql.shuffle.partitions", "abc", True, []),
        ("spark.sql.streaming.queryEvolution.enableSourceEvolution", "-1", True, []),
        ("spark.sql.streaming.stateStore.encodingFormat", "evil.X", True, []),
        ("spark.sql.shuffle.partitions", "200", False, []),
        ("spark.sql.streaming.multipleWatermarkPolicy", "last", True, []),
        ("spark.sql.streaming.stateStore.providerClass", "evil.X", False, ["may be refused"]),
    ],
)
def test_a_pinned_setting_that_spark_may_not_take(
    tmp_path: Path, key: str, value: str, damaged: bool, effects: list[str]
) -> None:
    entry = f'v1\n{{"batchTimestampMs":1,"conf":{{"{key}":"{value}"}}}}\n-'
    found = opened(small(tmp_path, offsets__0=entry))
    assert [str(missing.path) for missing in found.missing] == ["offsets/0"] * damaged
    assert all(key in str(missing) for missing in found.missing)
    assert [change.effect for change in awaiting(found, V("4.1.0"))] == effects


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "pass the folder that the query has as checkpointLocation"),
        ("none", "there is no such folder"),
        ("x.zip", "this is a file, not a checkpoint folder"),
    ],
)
def test_what_is_no_checkpoint(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "x.zip").touch()
    with pytest.raises(NoSuchCheckpoint, match=why):
        opened(tmp_path / name)


@pytest.mark.parametrize(
    ("type_", "nullable", "expected"),
    [
        ("string", False, ["STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"]),
        ("string", True, []),
        ("long", False, []),  # no key is a long; `index` is Spark's own
        ("timestamp", False, []),  # a time with a watermark is NOT NULL on every version
    ],
)
def test_a_key_of_a_join_that_is_not_null_may_be_refused_from_4_0_on(
    tmp_path: Path, type_: str, nullable: bool, expected: list[str]
) -> None:
    content = schema_v2(
        schema(("field0", "string", True), ("field1", "timestamp", True), ("index", "long", True)),
        schema(("id", type_, nullable), ("matched", "boolean", True)),
    )
    name = "state/0/0/left-keyWithIndexToValue/_metadata/schema"
    found = opened(write(small(tmp_path), {name: content}))
    refusals = [change.error for change in awaiting(found, V("4.1.0")) if change.effect == "may be refused"]
    assert refusals == expected


def test_a_missing_id_is_refused_from_4_2_on(tmp_path: Path) -> None:
    small(tmp_path)
    (tmp_path / "metadata").unlink()
    (change,) = awaiting(opened(tmp_path), V("4.2.0"))
    assert change.error == "STREAMING_CHECKPOINT_MISSING_METADATA_FILE"
    assert awaiting(opened(tmp_path), V("4.1.0")) == ()


def test_how_long_ago_it_ran(tmp_path: Path) -> None:
    now = datetime.fromtimestamp(1_700_000_000 + 7300, UTC)
    shown = [line.plain for line in lines(opened(small(tmp_path)), now)]
    assert "  micro-batch     0, committed; planned 2023-11-14 22:13:20 UTC, 2 hours ago" in shown


def test_an_entry_of_a_log_that_does_not_fit_the_checksum_beside_it_may_be_refused(tmp_path: Path) -> None:
    root = small(tmp_path)
    content = (root / "offsets/0").read_bytes()
    checksums = root / "offsets/.0.crc"
    checksums.write_bytes(b"crc\0" + (512).to_bytes(4, "big") + zlib.crc32(content).to_bytes(4, "big"))
    assert [change.effect for change in awaiting(opened(root), V("4.3.0"))] == []
    (root / "offsets/0").write_bytes(content.replace(b":0}", b":1}"))
    assert [change.effect for change in awaiting(opened(root), V("4.3.0"))] == ["may be refused"]
