"""Frames of the reference model over one stream of a time, a number and a text, and what they emit."""

from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.checkpoint import ModelCheckpoint
from conformance.model.checks import QuerySettings
from conformance.model.columns import Ids
from conformance.model.frame import Frame
from conformance.model.query import Query

SECOND = 1_000_000
VERSIONS = ("3.0.3", "3.5.9", "4.3.0")


def events(version="4.3.0", ids=None, time_zone="UTC"):
    rules = rules_of(SparkVersion.parse(version))
    return Frame.read("events", parse_schema("t TIMESTAMP, n INT, s STRING"), rules, ids or Ids(), time_zone=time_zone)


def watermarked(version="4.3.0", ids=None):
    return events(version, ids).with_watermark("t", "10 seconds")


def two_views(version="4.3.0"):
    """Two readings of the stream, as the views ``v`` and ``w``."""
    ids = Ids()
    return {"v": watermarked(version, ids), "w": watermarked(version, ids)}


def played(frame, *batches, mode="append"):
    """The rows of each batch, and the watermark after all of them, in seconds."""
    query = Query(frame.plan, QuerySettings(mode, "default", {}), ModelCheckpoint(), frame.rules)
    emitted = []
    for rows in batches:
        query.arrive([{"events": [(t * SECOND, n, s) for t, n, s in rows]}])
        emitted.append([row for story in query.run() for row in story.emitted])
    return emitted, query.checkpoint.watermark_ms / 1000
