"""The one Spark session of a process with a JVM, and the settings of every session."""

from __future__ import annotations

import os
from typing import Any

from .class_path import order_class_path
from .pinned_threads import pin_threads

_ONE_FILE_PER_PARTITION = str(1 << 30)

SESSION_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    # Opening a file costs as much as a partition may hold, so each file is a partition of its own.
    "spark.sql.files.maxPartitionBytes": _ONE_FILE_PER_PARTITION,
    "spark.sql.files.openCostInBytes": _ONE_FILE_PER_PARTITION,
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}
"""Settings of every session; a session can override them."""
_FIRST_WHOSE_QUERIES_KEEP_THEM = 3
"""The first major version of Spark whose queries have the settings of their session, whatever the context says (SPARK-27253)."""


def start(work: str, conf: dict[str, str], hidden: dict[str, str]) -> Any:
    """Start Spark, in local mode by default.

    ``work``: a directory for scratch files; ``conf``: static settings of the target; ``hidden``: settings that are secrets.
    """
    from pyspark.java_gateway import ensure_callback_server_started
    from pyspark.sql import SparkSession

    shown = {**_static_settings(work), **conf}
    order_class_path(shown, os.environ.get("SPARK_HOME", ""))
    if hidden:
        _start_jvm(shown)
    builder = SparkSession.builder.master("local[1]").appName("watermark-conformance")
    for key, value in {**shown, **hidden}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    pin_threads(spark.sparkContext._gateway)
    if spark.conf.get("spark.conformance.writeChecksums", "true") == "false":
        _write_no_checksums(spark)
    if spark.conf.get("spark.conformance.hadoopDefaults", "true") == "false":
        _clear_hadoop_defaults(spark)
    # Here, because starting it is not thread-safe; every query calls `foreachBatch` through it.
    ensure_callback_server_started(spark.sparkContext._gateway)
    return spark


def settings_of_each(spark: Any) -> dict[str, str]:
    """What to set in each new session, because the context does not have it (any more).

    Before 3.0 a query runs with the settings of the context, even if its session has overridden them. So they are taken out of the context,
    and a new session would be without them.
    """
    if int(spark.version.split(".")[0]) >= _FIRST_WHOSE_QUERIES_KEEP_THEM:
        return {}
    context = spark.sparkContext._jsc.sc().conf()
    taken = {key: context.get(key) for key in SESSION_SETTINGS}
    for key in taken:
        context.remove(key)
        spark.builder._options.pop(key, None)  # pyspark sets these anew whenever it asks for the session
    return taken


def _start_jvm(shown: dict[str, str]) -> None:
    """Start the JVM with these settings only: what it starts with are its arguments, which every user of the machine can read."""
    from pyspark import SparkConf, SparkContext

    conf = SparkConf(False)
    for key, value in {"spark.master": "local[1]", **shown}.items():
        conf.set(key, value)
    SparkContext._ensure_initialized(conf=conf)


def _write_no_checksums(spark: Any) -> None:
    """Hadoop has no setting for this, only a method. The process has one file system object."""
    jvm = spark.sparkContext._jvm
    local = jvm.org.apache.hadoop.fs.FileSystem.get(
        jvm.java.net.URI("file:///"), spark.sparkContext._jsc.hadoopConfiguration()
    )
    local.setWriteChecksum(False)


def _clear_hadoop_defaults(spark: Any) -> None:
    """Keep only the Hadoop settings that were set explicitly; the code that reads a setting has the same defaults."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.clear()
    prefix = "spark.hadoop."
    for key, value in spark.sparkContext.getConf().getAll():
        if key.startswith(prefix):
            settings.set(key[len(prefix) :], value)


def _static_settings(work: str) -> dict[str, str]:
    return {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.local.dir": work + "/scratch",
        "spark.sql.warehouse.dir": work + "/warehouse",
        "spark.sql.catalogImplementation": "in-memory",
        **SESSION_SETTINGS,
    }
