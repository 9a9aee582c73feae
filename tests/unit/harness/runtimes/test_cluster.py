"""Which texts name a cluster, and what Spark is told of it."""

import socket

import pytest

from conformance.core.errors import WrongUsage
from harness.errors import HarnessError
from harness.runtimes.cluster import Cluster, settings_of


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://one.example:7077,two.example:7077", False),
        ("yarn", False),
        ("k8s://https://cluster.example:6443", False),
    ],
)
def test_what_names_a_cluster(text, here):
    cluster = Cluster.parse(text)
    assert cluster.on_this_machine is here
    told = cluster.settings("/work/engine-1")
    assert told["spark.master"] == text
    assert told["spark.executorEnv.PYTHONPATH"] == "/work/engine-1/engine"
    assert told["spark.locality.wait"] == "60s"
    assert ("spark.driver.bindAddress" in told) is not here


@pytest.mark.parametrize("text", ["", "local[4]", "127.0.0.1:7077", "mesos://a:5050", "local-cluster[2]"])
def test_what_does_not(text):
    with pytest.raises(WrongUsage, match="spark://host:7077"):
        Cluster.parse(text)


def test_an_unreachable_master_is_reported_at_once():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(HarnessError, match=f"cannot connect to the master spark://127.0.0.1:{port}"):
        Cluster.parse(f"spark://127.0.0.1:{port}").check()


def test_one_of_several_masters_is_enough():
    with socket.socket() as master, socket.socket() as free:
        master.bind(("127.0.0.1", 0))
        master.listen()
        free.bind(("127.0.0.1", 0))
        ports = free.getsockname()[1], master.getsockname()[1]
        free.close()
        Cluster.parse("spark://" + ",".join(f"127.0.0.1:{port}" for port in ports)).check()


def test_settings():
    assert settings_of(["spark.executor.memory=2g", "spark.x=a=b"]) == {"spark.executor.memory": "2g", "spark.x": "a=b"}
    for text in ("executor.memory=2g", "spark.executor.memory", "=1"):
        with pytest.raises(WrongUsage, match="--conf spark"):
            settings_of([text])
