"""What variants are called, in cases that opt out of one and on the command line."""

from __future__ import annotations

from collections.abc import Mapping

MEANINGS: Mapping[str, str] = {
    "reversed-rows": "the rows of each partition of a micro-batch come in the opposite order",
    "spread-rows": "the rows of each micro-batch lie in three partitions",
    "one-shuffle-partition": "one shuffle partition, where the case has several",
    "four-shuffle-partitions": "four shuffle partitions",
    "rocksdb": "state in RocksDB, not in HDFS-backed stores",
    "no-codegen": "no code is generated for whole stages, nor for expressions",
    "adaptive": "adaptive query execution is on",
    "time-zone": "the session is in another time zone",
    "shifted-epoch": "everything happens 52 weeks later",
    "restart": "the query is stopped and started again before a step; each step in its turn",
}
"""Name → what is otherwise."""
