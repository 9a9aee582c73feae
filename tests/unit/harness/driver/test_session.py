"""What the driver makes of Hadoop's settings."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from harness.driver.jobs.threads import SessionOfThread, belonging_to
from harness.driver.session import (
    MANAGER,
    SESSION_SETTINGS,
    _clear_hadoop_defaults,
    _static_settings,
    own_jars,
    own_settings,
    settings_of_each,
)


class Settings(dict[str, str]):
    """As much of a Hadoop ``Configuration`` as it needs."""

    set = dict.__setitem__


def test_of_hadoops_settings_those_stay_that_somebody_has_set():
    settings = Settings({"io.file.buffer.size": "4096", "fs.s3a.endpoint": "https://default"})
    ours = {"spark.hadoop.fs.s3a.endpoint": "https://ours", "spark.app.name": "conformance"}
    context = SimpleNamespace(
        _jsc=SimpleNamespace(hadoopConfiguration=lambda: settings),
        getConf=lambda: SimpleNamespace(getAll=lambda: list(ours.items())),
    )
    _clear_hadoop_defaults(SimpleNamespace(sparkContext=context))
    assert settings == {"fs.s3a.endpoint": "https://ours"}


def test_settings_of_queries_that_nobody_asked_for_and_that_are_no_defaults():
    defaults = {"spark.sql.a": "true", "spark.sql.b": "1", "spark.sql.given": "x"}
    has = {
        "spark.sql.a": "false",
        "spark.sql.b": "1",
        "spark.sql.given": "y",
        "spark.sql.acme": "z",
        "spark.executor": "1",
    }
    has |= {"spark.sql.session.timeZone": "CET", "spark.sql.catalog.token": "sesame", "spark.sql.static": "s"}
    has["spark.sql.catalog.url"] = "jdbc:postgresql://me:sesame@host/db"
    has |= {"spark.app.id": "local-1", "spark.driver.port": "4711", "spark.master": "local[1]", "spark.app.x.y": "1"}

    def unset(key):
        if key == "spark.sql.static":
            raise ValueError

    own = own_settings(has.items(), {"spark.sql.given": "y"}, SimpleNamespace(unset=unset), defaults.get)
    settings, fixed = (
        ["spark.sql.a=false (by default true)", "spark.sql.acme=z"],
        ["spark.executor=1", "spark.sql.static=s"],
    )
    assert own == {"settings": settings, "fixed": fixed}


def test_jars_that_did_not_come_with_pyspark_or_are_not_as_they_came(tmp_path):
    jars, package = tmp_path / "pyspark" / "jars", tmp_path / "pyspark"
    jars.mkdir(parents=True)
    for name in ("same.jar", "patched.jar", "added.jar", "notes.txt"):
        (jars / name).write_bytes(b"12345")
    (tmp_path / "acme.jar").touch()
    path = ":".join([str(tmp_path / "acme.jar"), str(tmp_path / "gone.jar"), *map(str, jars.iterdir()), "/etc"])
    assert own_jars(str(package), str(package), path) == ["jar acme.jar"]
    record = tmp_path / "pyspark-3.5.9.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("pyspark/jars/same.jar,sha256=x,5\npyspark/jars/patched.jar,sha256=x,4\npyspark/a.py,,\n")
    assert own_jars(str(package), str(package), path) == ["jar acme.jar", "jar added.jar", "jar patched.jar"]


class ContextSettings(Settings):
    """As much of a ``SparkConf`` of the JVM as it needs."""

    remove = dict.pop


def spark_of(version, settings):
    return SimpleNamespace(
        version=version,
        sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: SimpleNamespace(conf=lambda: settings))),
    )


@pytest.mark.parametrize(
    ("master", "asks"),
    [("local", True), ("local[1]", True), ("local[*,3]", True), ("local-cluster[1,1,1024]", False), ("yarn", False)],
)
def test_the_ports_of_a_local_jvm_ask_for_a_secret(master, asks):
    """Spark makes one where it runs alone; on a cluster `spark.authenticate` wants one of the user's. Source: SecurityManager."""
    assert ("spark.authenticate" in _static_settings("work", master)) is asks


def test_a_query_of_spark_2_gets_the_settings_of_the_context_so_those_of_sessions_are_not_there():
    """SPARK-27253: a clone of a session begins with the context's settings, and a query runs in a clone."""
    settings = ContextSettings(
        {**SESSION_SETTINGS, "spark.sql.shuffle.partitions": "3", MANAGER: "x", "spark.driver.memory": "1g"}
    )
    spark = spark_of("2.4.8", settings)
    taken = settings_of_each(spark)
    assert taken == {**SESSION_SETTINGS, "spark.sql.shuffle.partitions": "3"}
    assert settings == {"spark.driver.memory": "1g"}


def test_from_3_on_a_query_has_those_of_its_session():
    settings = ContextSettings(SESSION_SETTINGS)
    assert settings_of_each(spark_of("3.0.3", settings)) == {}
    assert settings == SESSION_SETTINGS


def test_a_python_function_is_made_by_the_settings_of_the_case_that_its_thread_runs():
    """pyspark asked the first session of the process, so `--conf` and settings of a program were without effect."""

    class Session(SimpleNamespace):
        """As pyspark's."""

    only = SessionOfThread(Session(conf="first"))
    with belonging_to(session=Session(conf="case")), ThreadPoolExecutor(1) as other:
        assert (only.conf, other.submit(lambda: only.conf).result()) == ("case", "first")
    assert only.conf == "first"
    assert isinstance(only, Session)
