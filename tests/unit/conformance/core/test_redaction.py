"""Secrets of options: hidden wherever they could be read."""

import json
import shlex

import pytest

from conformance.core.wording import is_secret, redact, redact_command, secrets_of, without_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3a://user:SECRET@bucket/x", "s3a://…@bucket/x"),
        ("from s3a://user:SEC@RET@bucket/x on", "from s3a://…@bucket/x on"),
        ("https://token@host", "https://…@host"),
        ("spark://host:7077", "spark://host:7077"),
        ("mail me@host, s3a://bucket/a@b", "mail me@host, s3a://bucket/a@b"),
        ("fs.s3a.secret.key=SECRET", "fs.s3a.secret.key=…"),
        ("jdbc:x?user=u&password=SECRET&ssl=true", "jdbc:x?user=u&password=…&ssl=true"),
        ("fs.s3a.access.key=SECRET spark.executor.memory=2g", "fs.s3a.access.key=… spark.executor.memory=2g"),
        ("sc://host:443/;use_ssl=true;token=SECRET", "sc://host:443/;…"),
    ],
)
def test_text(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_the_path_of_a_jar_is_no_secret() -> None:
    """A setting that a JVM needs when it starts cannot be sent to it later, as secrets are."""
    assert not is_secret("spark.jars", "/jars/spark-token-provider-kafka-0-10_2.12-3.5.7.jar")
    assert is_secret("spark.jars", "https://user:token@host/my.jar")


def test_keys_are_those_that_spark_redacts() -> None:
    """The default of ``spark.redaction.regex``, core/src/main/scala/org/apache/spark/internal/config/package.scala."""
    assert is_secret("spark.hadoop.fs.s3a.secret.key")
    assert all(map(is_secret, ("spark.ssl.keyPassword", "x.TOKEN.y", "fs.s3a.access.key", "accesskey")))
    assert is_secret("spark.executorEnv.X", "password=1")
    assert not is_secret("spark.sql.shuffle.partitions", "4")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("run --conf spark.hadoop.fs.s3a.secret.key=SECRET", "run --conf spark.hadoop.fs.s3a.secret.key=…"),
        ("run --conf=spark.x.password='SECRET with spaces'", "run --conf=spark.x.password=…"),
        ("run --conf 'spark.x.password=SECRET with spaces'", "run --conf spark.x.password=…"),
        ("run --conf spark.ui.enabled=false", "run --conf spark.ui.enabled=false"),
        ("run --storage s3a://u:SECRET@b/x", "run --storage s3a://…@b/x"),
        ("run --storage=s3a://u:SECRET@b/x", "run --storage=s3a://…@b/x"),
        ("run --connect 'sc://h/;token=SECRET;x=1'", "run --connect sc://h/;…"),
        (
            "run --conf spark.executor.extraJavaOptions=-Dpassword=SECRET",
            "run --conf spark.executor.extraJavaOptions=…",
        ),
    ],
)
def test_command_lines(line: str, shown: str) -> None:
    assert " ".join(redact_command(shlex.split(line))) == shown


def test_secrets_are_removed_wherever_they_stand() -> None:
    settings = {"spark.a.password": 'pass"word', "spark.b.token": "true", "spark.c.secret": "12345678"}
    settings["spark.d"] = "plain"
    without = without_secrets(secrets_of(settings, ["s3a://user:p%40ss-word@bucket"]))
    line = json.dumps({"message": 'pass"word at s3a://user:p@ss-word@bucket, p%40ss-word', "ok": True, "n": 12345678})
    assert json.loads(without(line)) == {"message": "… at s3a://…@bucket, …", "ok": True, "n": 12345678}
