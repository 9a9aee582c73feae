"""Queries of the reference model with state functions and stateful processors."""

from conformance.core.operations import ApplyInPandasWithState, TransformWithState
from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.checkpoint import ModelCheckpoint
from conformance.model.checks import QuerySettings
from conformance.model.columns import Ids
from conformance.model.frame import Frame
from conformance.model.query import Query
from conformance.model.sql import run as sql

NEWEST = SparkVersion.parse("4.3.0")
SECOND = 1_000_000
ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
}
NO_WATERMARK = "no watermark"


def at(seconds):
    return int(seconds * SECOND)


def events(version=NEWEST, schema="t TIMESTAMP, k STRING", delay="10 seconds"):
    frame = Frame.read("events", parse_schema(schema), rules_of(version), Ids())
    return frame if delay == NO_WATERMARK else frame.with_watermark("t", delay)


def function(name, version=NEWEST, *, frame=None, by=("k",), mode="append", timeout="EventTimeTimeout"):
    operation = ApplyInPandasWithState(by=by, with_=name, output_mode=mode, timeout=timeout)
    return (frame or events(version)).apply_in_pandas_with_state(operation)


def processor(
    name,
    version=NEWEST,
    *,
    frame=None,
    mode="append",
    time_mode="EventTime",
    event_time=None,
    initial=None,
    keeps=None,
):
    frame = frame or events(version)
    begins = None if initial is None else sql(initial, {"": frame})
    operation = TransformWithState(
        by=("k",), with_=name, output_mode=mode, time_mode=time_mode, event_time_column=event_time, state=keeps
    )
    return frame.transform_with_state(operation, begins)


def started(frame, mode="append", trigger="default", conf=ROCKSDB, checkpoint=None):
    return Query(frame.plan, QuerySettings(mode, trigger, conf), checkpoint or ModelCheckpoint(), frame.rules)


def batches(query, *arrivals):
    """The micro-batches of arrivals, one after the other, each until the query is idle."""
    found = []
    for rows in arrivals:
        query.arrive([{"events": [(at(time) if time is not None else None, key) for time, key in rows]}])
        found += query.run()
    return found


def emitted(query, *arrivals):
    return [row for batch in batches(query, *arrivals) for row in batch.emitted]
