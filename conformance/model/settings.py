"""The settings of a query that the model knows, and those that change none of its predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.model.operators import OutputMode

Trigger: TypeAlias = Literal["default", "once", "availableNow", "realTime"]

NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
ALLOW_MULTIPLE = "spark.sql.streaming.statefulOperator.allowMultiple"
CHECK_CORRECTNESS = "spark.sql.streaming.statefulOperator.checkCorrectness.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"
TIME_ZONE = "spark.sql.session.timeZone"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
OFFSET_LOG = "spark.sql.streaming.offsetLog.formatVersion"
CLEANUP_FACTOR = "spark.sql.streaming.statefulOperator.incrementalCleanupFactor"
BROADCAST = "spark.sql.autoBroadcastJoinThreshold"

WITHOUT_EFFECT = frozenset(
    {
        TIME_ZONE,
        "spark.sql.adaptive.enabled",
        "spark.sql.codegen.factoryMode",
        "spark.sql.codegen.wholeStage",
        "spark.sql.legacy.interval.enabled",
        "spark.sql.streaming.aggregation.stateFormatVersion",
        "spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition",
        CLEANUP_FACTOR,
        PROVIDER,
        "spark.sql.streaming.stateStore.checkpointFormatVersion",
        "spark.sql.streaming.stateStore.compression.codec",
        ENCODING,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
        "spark.sql.streaming.stateStore.rowChecksum.enabled",
        "spark.sql.streaming.stateStore.skipNullsForStreamStreamJoins.enabled",
        "spark.sql.dropDuplicates.deterministicKeyOrder.enabled",
    }
)
"""Confs that do not change any prediction: where state is kept, and how results are computed."""

KNOWN = (
    frozenset(
        {NO_DATA, POLICY, ALLOW_MULTIPLE, CHECK_CORRECTNESS, PARTITIONS, JOIN_FORMAT, BROADCAST, EVOLUTION, OFFSET_LOG}
    )
    | WITHOUT_EFFECT
)


@dataclass(frozen=True)
class QuerySettings:
    """The settings of a query."""

    mode: OutputMode
    trigger: Trigger
    conf: Mapping[str, str]

    def is_on(self, conf: str) -> bool:
        """Whether a conf that is on by default is on."""
        return self.conf.get(conf, "true").lower() != "false"


def in_rocksdb(settings: QuerySettings) -> bool:
    """Whether a query keeps its state in RocksDB."""
    return "RocksDB" in settings.conf.get(PROVIDER, "")
