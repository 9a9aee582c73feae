"""The state of a stateful processor over a restart: other columns, modes and folders.

The rules are those of `StateSchemaCompatibilityChecker` and of "Schema Resolution" in the Avro specification."""

from dataclasses import replace
from itertools import product

import pytest

from conformance.model.checks import columns_of_state
from conformance.model.errors import Refused, Unpredictable
from tests.support.group_functions import ROCKSDB, at, batches, emitted, function, processor, started

ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
THRESHOLD = "spark.sql.streaming.stateStore.valueStateSchemaEvolutionThreshold"
AVRO = {**ROCKSDB, ENCODING: "avro"}
TYPES = ("BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY")
PROMOTIONS = {
    ("INT", "BIGINT"),
    ("INT", "FLOAT"),
    ("INT", "DOUBLE"),
    ("BIGINT", "FLOAT"),
    ("BIGINT", "DOUBLE"),
    ("FLOAT", "DOUBLE"),
    ("STRING", "BINARY"),
    ("BINARY", "STRING"),
}
"""Schema Resolution: "the writer's schema may be promoted to the reader's as follows"."""


class Job:
    """A query that is restarted with other columns of its state."""

    def __init__(self, conf) -> None:
        self._conf = conf
        self._checkpoint = None

    def numbers(self, keeps, *keys, moved=(), conf=None, name="number_rows", time_ms=None, **modes):
        """The numbers of rows with these keys in one micro-batch of a new run."""
        frame = processor(name, keeps=keeps, **modes)
        mode = modes.get("mode", "append")
        before = self._checkpoint and replace(self._checkpoint, folders=moved or self._checkpoint.folders)
        query = started(frame, mode, "once", {**self._conf, **(conf or {})}, before)
        query.arrive([{"events": [(at(10), key) for key in keys]}])
        rows = [row for batch in query.run(time_ms) for row in batch.emitted]
        self._checkpoint = query.checkpoint
        return [number for _, _, number in rows]

    def refused(self, *arguments, **options):
        with pytest.raises(Refused) as refused:
            self.numbers(*arguments, **options)
        return refused.value


def test_a_name_in_avro_has_upper_and_lower_case() -> None:
    job = Job(AVRO)
    job.numbers("count BIGINT", "a")
    assert job.numbers("Count BIGINT", "a") == [1]


@pytest.mark.parametrize(("old", "new"), [*product(TYPES, TYPES)])
def test_a_column_changes_its_type_in_avro_as_schema_resolution_says_and_never_in_unsaferow(old, new) -> None:
    before, after = f"count BIGINT, note {old}", f"count BIGINT, note {new}"
    for conf, is_read, name in (
        (AVRO, old == new or (old, new) in PROMOTIONS, "state in Avro of another schema"),
        (ROCKSDB, old == new, "state of another value"),
    ):
        job = Job(conf)
        job.numbers(before, "a")
        if is_read:
            assert job.numbers(after, "a") == [2]
        else:
            assert job.refused(after, "a").name == name


def test_a_value_that_no_row_updated_is_still_written_with_the_first_schema() -> None:
    job = Job(AVRO)
    job.numbers("count BIGINT", "a", "b")
    job.numbers("other BIGINT", "a")
    assert job.numbers("count BIGINT", "a", "b") == [1, 2]


def test_the_error_names_the_newest_schema_that_cannot_be_read_of_all_earlier_ones() -> None:
    job = Job(AVRO)
    for keeps in ("count BIGINT, note STRING", "count BIGINT, note STRING, more INT", "count BIGINT"):
        job.numbers(keeps, "a")
    message = job.refused("count BIGINT, note BIGINT", "a").message
    assert "new value_schema=StructType(StructField(count,LongType,true),StructField(note,LongType,true))" in message
    assert message.endswith("StructField(note,StringType,true),StructField(more,IntegerType,true))")


@pytest.mark.parametrize("most", [1, 2, 3])
def test_changes_are_fewer_than_the_threshold_and_the_same_schema_is_none(most) -> None:
    job, limit = Job(AVRO), {THRESHOLD: str(most)}
    job.numbers("count BIGINT", "a")
    for change in range(most - 1):
        for _ in range(2):
            job.numbers(f"count BIGINT, c{change} INT", "a", conf=limit)
    refused = job.refused("count BIGINT, last INT", "a", conf=limit)
    assert refused.name == "too many schemas of state"
    assert f"evolutions {most} exceeds the maximum number of state schema evolutions, {most}" in refused.message


def test_the_sixteenth_change_is_too_much_and_unsaferow_counts_none() -> None:
    avro, unsaferow = Job(AVRO), Job(ROCKSDB)
    for change in range(16):
        avro.numbers(f"count BIGINT, c{change} INT", "a")
        unsaferow.numbers(f"c{change} BIGINT", "a")
    assert avro.refused("count BIGINT", "a").name == "too many schemas of state"
    assert unsaferow.numbers("c16 BIGINT", "a") == [17]


@pytest.mark.parametrize("first", ["avro", "unsaferow"])
def test_the_encoding_is_that_of_the_first_micro_batch(first) -> None:
    other = {ENCODING: {"avro": "unsaferow", "unsaferow": "avro"}[first]}
    job = Job({**ROCKSDB, ENCODING: first})
    job.numbers("count BIGINT", "a")
    assert job.numbers("number BIGINT", "a", conf=other) == [1 if first == "avro" else 2]


def test_the_schema_is_compared_before_the_modes_and_the_time_mode_before_the_output_mode() -> None:
    job = Job(ROCKSDB)
    job.numbers("count BIGINT", "a")
    assert job.refused("count INT", "a", time_mode="None").name == "state of another value"
    assert job.refused("count BIGINT", "a", time_mode="None", mode="update").message == (
        "Cannot change timeMode between restarts."
    )
    assert "outputMode" in job.refused("count BIGINT", "a", mode="update").message
    assert job.numbers("count BIGINT", "a") == [2]


def test_a_copy_goes_on_and_a_moved_checkpoint_lacks_the_schemas() -> None:
    job = Job(ROCKSDB)
    job.numbers(None, "a")
    refused = job.refused(None, "a", moved=("moved", "copied"))
    assert (refused.name, refused.classes) == ("schemas of state in the folder before", ("FileNotFoundException",))
    assert job.numbers(None, "a", moved=("copied",)) == [2]
    with pytest.raises(Unpredictable, match="moved after it was copied"):
        job.numbers(None, "a", moved=("copied", "moved"))


def test_where_no_processor_has_state_a_checkpoint_may_be_moved() -> None:
    frame = function("count_rows", timeout="NoTimeout")
    query = started(frame)
    assert emitted(query, [(10, "a")]) == [("a", 1)]
    again = started(frame, checkpoint=replace(query.checkpoint, folders=("moved",)))
    assert emitted(again, [(10, "a")]) == [("a", 2)]


def test_of_two_processors_each_takes_over_its_own_state() -> None:
    def numbered(keeps):
        below = processor("number_rows", event_time="event_time").select("key AS k", "event_time AS t")
        return processor("number_rows", frame=below, event_time="event_time", keeps=keeps)

    query = started(numbered("count BIGINT"))
    assert emitted(query, [(10, "a"), (11, "a")])[-1] == ("a", at(11), 2)
    again = started(numbered("number BIGINT"), checkpoint=query.checkpoint)
    assert emitted(again, [(12, "a")]) == [("a", at(12), 3)]
    below = processor("number_rows", event_time="event_time").drop_duplicates("number", within_watermark=True)
    query = started(below)
    batches(query, [(10, "a")])
    with pytest.raises(Refused, match="state/1/_stateSchema"):
        emitted(started(below, checkpoint=replace(query.checkpoint, folders=("moved",))), [(11, "a")])


def test_processors_with_one_variable_share_its_state_and_others_are_not_known() -> None:
    job = Job(ROCKSDB)
    job.numbers(None, "a")
    assert job.numbers(None, "a", name="number_rows_an_hour_back") == [2]
    assert job.refused(None, "a", name="number_rows_for_a_day").name == "state of another value"
    with pytest.raises(Unpredictable, match="the state of another one"):
        job.numbers(None, "a", name="count_until_watermark")
    expiring = Job(ROCKSDB)
    expiring.numbers(None, "a", name="number_rows_for_a_day", time_ms=0)
    with pytest.raises(Unpredictable, match="a time to live"):
        expiring.numbers("number BIGINT", "a", name="number_rows_for_a_day", time_ms=0)
    in_avro = Job(AVRO)
    in_avro.numbers(None, "a")
    with pytest.raises(Unpredictable, match="the state of another one"):
        in_avro.numbers(None, "a", name="number_rows_for_a_day")


def test_a_number_in_another_type_is_not_known() -> None:
    with pytest.raises(Unpredictable, match="a column of type string"):
        Job(AVRO).numbers("note STRING, more BIGINT", "a")


@pytest.mark.parametrize(
    "ddl", ["count BIGINT NOT NULL", "`count` BIGINT", "count DECIMAL(10, 2)", "count BIGINT, at DATE", "a ARRAY<INT>"]
)
def test_columns_that_avro_would_not_keep_as_they_are_are_not_known(ddl) -> None:
    with pytest.raises(Unpredictable, match="the columns"):
        columns_of_state(ddl)
