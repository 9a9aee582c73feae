"""The variables an engine is started with."""

from dataclasses import replace
from pathlib import Path

from harness.environments.environment import Environment

PROVISIONED = Environment(
    target="spark-3.5.9",
    python=Path("/cache/3.5.9/bin/python"),
    python_version="3.11.7",
    pyspark="3.5.9",
    spark_home=Path("/cache/3.5.9/pyspark"),
    java_home=Path("/jdk"),
    java_version="17.0.15",
    base_python=Path("/usr/bin/python3.11"),
    root=Path("/cache/3.5.9"),
)
INSTALLED = Environment(
    target="installed-3.5.0-amzn-1",
    python=Path("/venv/bin/python"),
    python_version="3.11.7",
    pyspark="3.5.0-amzn-1",
    spark_home=Path("/usr/lib/spark"),
    java_home=Path("/jdk"),
    java_version="17.0.15",
)
HOST = {
    "PATH": "/usr/bin",
    "HOME": "/home/someone",
    "LC_ALL": "C.UTF-8",
    "JAVA_TOOL_OPTIONS": "-Xmx1g",
    "HTTPS_PROXY": "http://user:secret@proxy.test",
    "GITHUB_TOKEN": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "CONFORMANCE_CONNECT": "sc://host/;token=secret",
    "TZ": "America/New_York",
    "JAVA_HOME": "/another",
    "SPARK_HOME": "/opt/spark",
    "SPARK_CONF_DIR": "/etc/spark",
    "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
    "PYTHONPATH": "/opt/spark/python",
    "PYTHONHOME": "/opt/python",
    "HADOOP_CONF_DIR": "/etc/hadoop",
    "VIRTUAL_ENV": "/venv",
}


def test_a_provisioned_engine_sees_nothing_of_another_spark() -> None:
    environ = PROVISIONED.environ(HOST)
    assert environ == {
        "HOME": "/home/someone",
        "LC_ALL": "C.UTF-8",
        "JAVA_TOOL_OPTIONS": "-Xmx1g",
        "PATH": "/jdk/bin:/cache/3.5.9/bin:/usr/bin",
        "JAVA_HOME": "/jdk",
        "SPARK_HOME": "/cache/3.5.9/pyspark",
        "PYSPARK_PYTHON": "/cache/3.5.9/bin/python",
        "PYSPARK_DRIVER_PYTHON": "/cache/3.5.9/bin/python",
        "PYSPARK_PIN_THREAD": "true",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONIOENCODING": "utf-8",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "UTC",
    }


def test_the_installed_engine_keeps_what_belongs_to_it() -> None:
    environ = INSTALLED.environ(HOST)
    assert environ["PYTHONPATH"] == "/opt/spark/python"
    assert environ["SPARK_CONF_DIR"] == "/etc/spark"
    assert environ["HADOOP_CONF_DIR"] == "/etc/hadoop"
    assert environ["SPARK_HOME"] == "/usr/lib/spark"
    assert environ["PYSPARK_PYTHON"] == "/venv/bin/python"
    assert environ["PATH"] == "/jdk/bin:/usr/bin"
    assert environ["TZ"] == "UTC"
    assert "secret" not in str(environ)


def test_an_engine_of_a_cluster_finds_it() -> None:
    environ = PROVISIONED.environ(HOST | {"KUBECONFIG": "/k", "HADOOP_USER_NAME": "me"}, elsewhere=True)
    found = {
        name: environ.get(name) for name in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME", "KUBECONFIG", "SPARK_LOCAL_IP")
    }
    assert found == {
        "HADOOP_CONF_DIR": "/etc/hadoop",
        "HADOOP_USER_NAME": "me",
        "KUBECONFIG": "/k",
        "SPARK_LOCAL_IP": None,
    }
    assert "secret" not in str(environ)


def test_an_unpacked_spark_comes_first_on_the_python_path() -> None:
    unpacked = replace(INSTALLED, python_path=(Path("/my-spark/python"), Path("/my-spark/python/lib/py4j-src.zip")))
    ours = "/my-spark/python:/my-spark/python/lib/py4j-src.zip"
    assert unpacked.environ(HOST)["PYTHONPATH"] == f"{ours}:/opt/spark/python"
    assert unpacked.environ({})["PYTHONPATH"] == ours


def test_a_host_without_a_path() -> None:
    assert PROVISIONED.environ({})["PATH"] == "/jdk/bin:/cache/3.5.9/bin"
