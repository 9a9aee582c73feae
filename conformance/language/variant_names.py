"""Names of variants, which cases may exclude and the command line selects."""

from __future__ import annotations

from collections.abc import Mapping

DESCRIPTIONS: Mapping[str, str] = {
    "reversed-rows": "the rows of each partition of a micro-batch arrive in the opposite order",
    "spread-rows": "the rows of each micro-batch are spread over three partitions",
    "one-shuffle-partition": "the case sets several shuffle partitions and runs with one",
    "four-shuffle-partitions": "there are four shuffle partitions",
    "rocksdb": "state is kept in RocksDB instead of HDFS-backed stores",
    "no-codegen": "code generation is off, for whole stages and for expressions",
    "adaptive": "adaptive query execution is on",
    "time-zone": "the session is in another time zone",
    "shifted-epoch": "everything happens 52 weeks later",
    "restart": "the query is restarted before a step, for each step in turn",
}
"""Name → what differs."""
