"""The broker and the connector of a run, with fake ones: which are used, and what is told if one cannot be had."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.core.errors import WrongUsage, end_waits
from conformance.core.versions import SparkVersion, releases
from harness.driver.outage import refusal
from harness.environments.jars import JarsNotFetched
from harness.errors import HarnessError
from harness.runtimes import kafka_broker, kafka_guard
from harness.runtimes.kafka_broker import (
    Kafka,
    OwnBroker,
    connector,
    parse_servers,
)
from tests.support import environments as fakes

SPARK = SparkVersion.parse("3.5.9")


@pytest.fixture
def environment(tmp_path):
    return fakes.with_jars(tmp_path, "spark-core_2.12-3.5.9.jar", "snappy-java-1.1.10.jar")


def told(_line):
    """Nobody reads the progress."""


class TestAddress:
    @pytest.mark.parametrize(
        "text", ["localhost", "localhost:", "kafka://localhost:9092", "localhost:0", "a:1;b:2", ""]
    )
    def test_what_is_none_is_refused(self, text):
        with pytest.raises(WrongUsage, match="is not HOST:PORT of a Kafka broker, such as localhost:9092"):
            Kafka(text)

    def test_there_may_be_several(self):
        assert parse_servers("one:9092, [::1]:9093") == (("one", 9092), ("::1", 9093))

    def test_a_broker_that_does_not_listen_is_told_before_anything_runs(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else can
            with pytest.raises(HarnessError, match=r"no broker listens at 127\.0\.0\.1:"):
                Kafka(f"127.0.0.1:{taken.getsockname()[1]}")


def test_each_jar_of_the_broker_and_of_the_connectors_has_a_known_sha256():
    known = kafka_broker._known()
    assert all(re.fullmatch(r"[0-9a-f]{64}", sha256) for sha256 in known.values())
    assert all(re.fullmatch(r"[\w.-]+\.jar", name) for name in known)
    assert len({*known.values()}) == len(known) > 150
    assert f"kafka_2.13-{kafka_broker.VERSION}.jar" in known
    connectors = {name.removesuffix(".jar") for name in known if name.startswith("spark-sql-kafka-0-10_")}
    lines = {SparkVersion.parse(name.rpartition("-")[2]).line for name in connectors}
    assert lines == {version.line for version in releases()} - {"4.3"}  # the repository that was asked had none of 4.3


class TestConnector:
    def found(self, monkeypatch, environment, *, has, unreachable=False):
        asked = []

        def fetch(wanted, name, _environment, **_):
            asked.append((wanted.version, name))
            if wanted.version not in has:
                raise JarsNotFetched(wanted, "there is none", unreachable=unreachable)
            folder = environment.spark_home.parent
            names = (f"{wanted.artifact}-{has[wanted.version]}.jar", "kafka-clients-3.4.1.jar", "snappy-java-1.1.8.jar")
            return tuple(folder / name for name in names)

        monkeypatch.setattr(kafka_broker, "fetch_with_dependencies", fetch)
        return asked, lambda version=SPARK: connector(version, environment, told)

    def test_it_is_that_of_the_release_without_what_spark_ships(self, monkeypatch, environment):
        asked, found = self.found(monkeypatch, environment, has={"3.5.9": "3.5.9"})
        assert found()[0] == "3.5.9"
        assert [jar.name for jar in found()[1]] == ["spark-sql-kafka-0-10_2.12-3.5.9.jar", "kafka-clients-3.4.1.jar"]
        assert asked[0] == ("3.5.9", "spark-sql-kafka-0-10_2.12-for-3.5.9")

    @pytest.mark.parametrize(
        ("spark", "has", "order"),
        [
            ("3.5.9", "3.5.7", ["3.5.9", "3.5.8", "3.5.7"]),
            ("3.5.9", "[3.0.0,3.5.9]", [*(f"3.5.{patch}" for patch in range(9, -1, -1)), "[3.0.0,3.5.9]"]),
            # 4.1.0 and 4.1.2 lack a jar that their connector needs, in some repositories; 4.1.1 has it.
            ("4.1.0", "4.1.1", ["4.1.0", "4.1.1"]),
        ],
        ids=["the nearest", "that of an earlier line", "a later patch where there is no earlier one"],
    )
    def test_where_the_release_has_none_it_is_another(self, monkeypatch, environment, spark, has, order):
        asked, found = self.found(monkeypatch, environment, has={has: "3.4.2"})
        assert found(SparkVersion.parse(spark))[0] == "3.4.2"
        assert [version for version, _ in asked] == order

    def test_a_version_without_any_is_told(self, monkeypatch, environment):
        _, found = self.found(monkeypatch, environment, has={})
        with pytest.raises(HarnessError, match=r"Spark 3.5.9 has no connector for Kafka"):
            found()

    def test_a_repository_that_does_not_answer_is_asked_once(self, monkeypatch, environment):
        asked, found = self.found(monkeypatch, environment, has={}, unreachable=True)
        with pytest.raises(JarsNotFetched):
            found()
        assert len(asked) == 1


class TestAccess:
    @pytest.fixture(autouse=True)
    def one_connector(self, monkeypatch):
        connector = ("3.5.7", (Path("/jars/a.jar"), Path("/jars/b.jar")))
        monkeypatch.setattr(kafka_broker, "connector", lambda *_: connector)

    def test_engines_share_one_broker_which_ends_with_the_run(self, monkeypatch, environment):
        started = []

        class Fake:
            servers = "127.0.0.1:9999"

            def __init__(self, *_):
                started.append(self)
                self.closed, self.exit_code = False, None
                self.guard = SimpleNamespace(poll=lambda: self.exit_code)

            def close(self):
                self.closed = True

        monkeypatch.setattr(kafka_broker, "OwnBroker", Fake)
        mine = Kafka()
        found = [mine.access(SPARK, environment, given, told) for given in ("", "/mine.jar")]
        assert [one.settings["spark.jars"] for one in found] == [
            "/jars/a.jar,/jars/b.jar",
            "/mine.jar,/jars/a.jar,/jars/b.jar",
        ]
        assert found[0].servers == "127.0.0.1:9999"
        assert found[0].description == "spark-sql-kafka-0-10 3.5.7, own broker 3.9.1"
        started[0].exit_code = 137
        mine.access(SPARK, environment, "", told)
        assert [one.closed for one in started] == [True, False], "one that has ended is replaced, and leaves nothing"
        mine.close()
        assert [one.closed for one in started] == [True, True]

    def test_a_broker_that_does_not_start_is_not_tried_again(self, monkeypatch, environment):
        tried = []

        class Fails:
            servers = "127.0.0.1:9999"

            def __init__(self, *_):
                tried.append(1)

            def wait(self):
                raise HarnessError("no")

        monkeypatch.setattr(kafka_broker, "OwnBroker", Fails)
        mine = Kafka()
        mine.access(SPARK, environment, "", told)
        # An engine that got the address before the broker failed learns of it, too.
        for _ in range(2):
            with pytest.raises(HarnessError, match=r"^no$"):
                mine.wait()
        with pytest.raises(HarnessError, match=r"^no$"):
            mine.access(SPARK, environment, "", told)
        assert len(tried) == 1

    def test_the_users_broker_is_used_and_none_is_started(self, environment):
        with socket.create_server(("127.0.0.1", 0)) as theirs:
            servers = f"127.0.0.1:{theirs.getsockname()[1]}"
            mine = Kafka(servers)
            found = mine.access(SPARK, environment, "", told)
            assert (found.servers, mine.is_the_users) == (servers, True)
            assert found.description == f"spark-sql-kafka-0-10 3.5.7, broker {servers}"
        with pytest.raises(HarnessError, match=f"no broker listens at {servers}"):
            mine.access(SPARK, environment, "", told)


class TestOwnBroker:
    """A Java that is a script; ``$last`` is the file with the settings."""

    LISTEN = """
import re, socket, sys, time
port = re.search(r'advertised.listeners=.*:([0-9]+)', open(sys.argv[1]).read())[1]
taken = socket.create_server(('127.0.0.1', int(port)))
time.sleep(600)
"""

    @pytest.fixture
    def start(self, monkeypatch, environment):
        monkeypatch.setattr(kafka_broker, "fetch_with_dependencies", lambda *_, **__: (Path("/jars/kafka.jar"),))

        def start(script):
            fakes.script(environment.java_home / "bin" / "java", f"for last; do :; done\n{script}")
            broker = OwnBroker(environment, told)
            broker.wait()
            return broker

        return start

    def test_it_listens_and_its_data_is_removed(self, start, monkeypatch):
        monkeypatch.setattr(
            kafka_broker.uuid, "uuid4", lambda: uuid.UUID(int=0xF8 << 120)
        )  # its text begins with a dash
        listen = f'exec {sys.executable} -c "{self.LISTEN}" "$last"'
        broker = start(f'case "$*" in *format*--cluster-id=-*) exit 0;; *format*) exit 2;; esac\n{listen}')
        secret, _, address = broker.servers.partition("@")
        host, port = address.split(":")
        assert refusal(host, int(port)) is None
        settings = broker._folder / "server.properties"
        assert "process.roles=broker,controller" in settings.read_text()
        # Every user of the machine can connect to both ports, and read the arguments of a program.
        assert "=CASES:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT\n" in settings.read_text()
        assert settings.read_text().count(f'user_conformance="{secret}";') == 2
        assert len(secret) == 64
        assert not broker._folder.stat().st_mode & 0o077
        arguments = [process / "cmdline" for process in Path("/proc").glob("[0-9]*")]
        assert not any(secret.encode() in file.read_bytes() for file in arguments if file.exists())
        broker.close()
        broker.close()
        assert not broker._folder.exists()
        assert refusal(host, int(port))

    def test_a_run_that_is_stopped_does_not_wait_for_it(self, start):
        stop = threading.Timer(0.5, end_waits)
        stop.start()
        began = time.monotonic()
        with pytest.raises(HarnessError, match="the run was stopped"):
            start("exec sleep 600")
        assert time.monotonic() - began < 30

    def test_another_user_who_takes_its_port_is_not_taken_for_it(self, start, monkeypatch):
        monkeypatch.setattr(kafka_broker, "this_user_listens", lambda _: False)
        with pytest.raises(HarnessError, match="it ended with exit code 1"):
            start(
                f'case "$*" in *format*) exit 0;; esac\ntimeout 2 {sys.executable} -c "{self.LISTEN}" "$last"; exit 1'
            )

    @pytest.mark.parametrize(
        ("script", "python", "says"),
        [
            ("echo its last words; exit 3", sys.executable, r"it ended with exit code 3\n.*\nits last words"),
            ('case "$*" in *format*) exit 0;; esac; exit 1', sys.executable, "it ended with exit code 1"),
            ("kill -9 $$", sys.executable, "it ended with signal SIGKILL"),
            ("exit 0", "/no/python", "/no/python"),
        ],
        ids=["format", "start", "killed", "guard"],
    )
    def test_one_that_does_not_start_leaves_no_files(self, start, monkeypatch, tmp_path, script, python, says):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr(sys, "executable", python)
        with pytest.raises((HarnessError, FileNotFoundError), match=says):
            start(script)
        assert list((tmp_path / "temporary").iterdir()) == []


def test_the_guard_removes_a_broker_whose_host_was_killed(tmp_path):
    folder = tmp_path / "broker"
    folder.mkdir()
    seen = tmp_path / "pid"
    command = [
        sys.executable,
        "-c",
        f"import os, time; open({str(seen)!r}, 'w').write(str(os.getpid())); time.sleep(600)",
    ]
    guard = [sys.executable, kafka_guard.__file__, str(folder), str(tmp_path / "log"), json.dumps([command])]
    host = f"import subprocess, time; subprocess.Popen({guard!r}, stdin=subprocess.PIPE, start_new_session=True); time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", host])
    while not (seen.exists() and seen.read_text()):
        assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    while folder.exists():
        pass
    with pytest.raises(ProcessLookupError):
        os.kill(int(seen.read_text()), 0)
