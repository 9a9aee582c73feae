"""The one Spark session of the process, and who it says it is."""

from __future__ import annotations

import platform
from typing import Any

from . import PROTOCOL
from .places import operating_system

_APIS = {
    "dropDuplicatesWithinWatermark": "DataFrame",
    "applyInPandasWithState": "GroupedData",
    "transformWithState": "GroupedData",
    "transformWithStateInPandas": "GroupedData",
}


def start(work: str, conf: dict[str, str]) -> Any:
    """Start Spark in local mode. ``work``: a directory for its scratch files; ``conf``: static settings of the target."""
    from pyspark.java_gateway import ensure_callback_server_started
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("watermark-conformance")
    for key, value in _static(work).items():
        builder = builder.config(key, value)
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if spark.conf.get("spark.conformance.writeChecksums", "true") == "false":
        _write_no_checksums(spark)
    # Once and here: starting it is not made for several threads, and each query's micro-batches come back through it.
    ensure_callback_server_started(spark.sparkContext._gateway)
    return spark


def _write_no_checksums(spark: Any) -> None:
    """Hadoop has a method for it and no setting. The file system is one object for the whole process."""
    jvm = spark.sparkContext._jvm
    local = jvm.org.apache.hadoop.fs.FileSystem.get(
        jvm.java.net.URI("file:///"), spark.sparkContext._jsc.hadoopConfiguration()
    )
    local.setWriteChecksum(False)


def _static(work: str) -> dict[str, str]:
    one_file_a_partition = str(1 << 30)
    return {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.local.dir": work + "/scratch",
        "spark.sql.warehouse.dir": work + "/warehouse",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        # A file is charged as much as a partition may hold, so that each file is a partition of its own.
        "spark.sql.files.maxPartitionBytes": one_file_a_partition,
        "spark.sql.files.openCostInBytes": one_file_a_partition,
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }


def identity(spark: Any) -> dict[str, Any]:
    """The fields of ``Identity``."""
    from pyspark.sql import DataFrame, GroupedData

    holders = {"DataFrame": DataFrame, "GroupedData": GroupedData}
    jvm = spark.sparkContext._jvm
    return {
        "protocol": PROTOCOL,
        "spark": spark.version,
        "scala": jvm.scala.util.Properties.versionNumberString(),
        "java": jvm.System.getProperty("java.version"),
        "python": platform.python_version(),
        "os": operating_system(),
        "apis": sorted(name for name, holder in _APIS.items() if hasattr(holders[holder], name)),
    }


def slots(spark: Any) -> int | None:
    """Tasks the cluster runs at once, as far as its executors are there; None in local mode.

    The first job waits for the first executor: a cluster that gives none is known of before any case.
    """
    context = spark.sparkContext
    if context.master.startswith("local["):
        return None
    context.parallelize([0], 1).count()
    return int(context.defaultParallelism)


def new_session(spark: Any) -> Any:
    """A session of its own for one case, active in this thread as a user's only session would be.

    Some checks read the active session's settings and not those of the query's (the chained-operator check of 3.1, for one).
    """
    session = spark.newSession()
    jvm = spark.sparkContext._jvm
    try:
        companion = jvm.org.apache.spark.sql.classic.SparkSession  # 4.0 and newer
        companion.setActiveSession(session._jsparkSession)
    except TypeError:  # before, the name is a package that cannot be called
        jvm.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
    return session


def is_alive(spark: Any) -> bool:
    """Whether the JVM still answers; an error of a dead one says nothing about Spark's semantics."""
    try:
        spark.sparkContext._jvm.System.currentTimeMillis()
    except Exception:  # whatever py4j makes of a connection that is gone
        return False
    return True
