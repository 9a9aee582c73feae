"""The one Spark session of a process with a JVM, and the settings of every session."""

from __future__ import annotations

from typing import Any


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
    if spark.conf.get("spark.conformance.hadoopDefaults", "true") == "false":
        _forget_hadoops_defaults(spark)
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


def _forget_hadoops_defaults(spark: Any) -> None:
    """Leave of Hadoop's settings what somebody has set; the code has the same defaults where it asks for one."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.clear()
    prefix = "spark.hadoop."
    for key, value in spark.sparkContext.getConf().getAll():
        if key.startswith(prefix):
            settings.set(key[len(prefix) :], value)


def of_any_session() -> dict[str, str]:
    """What is set for every session, and any session may set for itself."""
    one_file_a_partition = str(1 << 30)
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        # A file is charged as much as a partition may hold, so that each file is a partition of its own.
        "spark.sql.files.maxPartitionBytes": one_file_a_partition,
        "spark.sql.files.openCostInBytes": one_file_a_partition,
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }


def _static(work: str) -> dict[str, str]:
    return {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.local.dir": work + "/scratch",
        "spark.sql.warehouse.dir": work + "/warehouse",
        "spark.sql.catalogImplementation": "in-memory",
        **of_any_session(),
    }
