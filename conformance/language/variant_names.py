"""Names of variants, which cases may exclude and the command line selects."""

from __future__ import annotations

from collections.abc import Mapping

DESCRIPTIONS: Mapping[str, str] = {
    "reversed-rows": "the rows of each partition of a micro-batch arrive in the opposite order",
    "spread-rows": "the rows of each micro-batch are spread over three partitions",
    "one-shuffle-partition": "the case sets several shuffle partitions and runs with one",
    "four-shuffle-partitions": "there are four shuffle partitions",
    "rocksdb": "state is kept in RocksDB instead of HDFS-backed stores",
    "changelog-checkpoints": "state in RocksDB is checkpointed as changelogs",
    "checkpoint-format-2": "state in RocksDB has checkpoint format 2, with an id for each version of a store",
    "avro-state": "rows of the state in RocksDB are encoded with Avro",
    "row-checksum": "each row of the state has a checksum",
    "rows-for-pandas": "stateful processors get rows instead of pandas DataFrames",
    "no-codegen": "code generation is off, for whole stages and for expressions",
    "adaptive": "adaptive query execution is on",
    "time-zone": "the session is in another time zone",
    "shifted-epoch": "everything happens 52 weeks later",
    "kafka": "the rows are records of a topic of Kafka",
    "restart": "the query is restarted before a step, for each step in turn",
}
"""Name → what differs."""
