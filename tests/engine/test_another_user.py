"""Another user of this machine at every port that a run opens: nothing is answered to them, and the run ends as it would have."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from harness.environments.provision import prepare
from harness.progress import ignore_progress
from harness.runtimes import kafka_broker
from harness.runtimes.kafka_broker import OwnBroker
from harness.targets.targets import Targets
from tests.engine.compiled import java_jar, needs_javac
from tests.engine.typed import ROOT, start
from tests.support.effort import full_run_only

ATTACK = r"""
import json, socket, struct, sys
kafka = struct.pack(">hhi", 3, 0, 7) + struct.pack(">h6s", 6, b"nobody") + struct.pack(">i", 0)
MESSAGES = {
    "py4j": b"c\nz:java.lang.System\ngetProperty\nsjava.home\ne\n",
    "JDWP": b"JDWP-Handshake",
    "Kafka": struct.pack(">i", len(kafka)) + kafka,
    "HTTP": b"GET / HTTP/1.0\r\n\r\n",
    "nothing": b"\0" * 64,
}
for line in sys.stdin:
    for name, message in MESSAGES.items():
        answered = b""
        try:
            with socket.create_connection(("127.0.0.1", int(line)), timeout=1) as other:
                other.sendall(message)
                answered = other.recv(64)
        except OSError:
            pass
        print(json.dumps([name, answered.decode("latin-1")]), flush=True)
    print("[]", flush=True)
"""
"""Reads ports, and tries each; metadata are what a client of Kafka asks for first."""
NOBODY = "65534"
MAIN = """
import org.apache.spark.sql.SparkSession;

public class Names {
    public static void main(String[] arguments) throws Exception {
        SparkSession spark = SparkSession.builder().getOrCreate();
        spark.readStream().schema("who STRING").json("names").writeStream().format("console").start().awaitTermination();
    }
}
"""

pytestmark = [
    full_run_only,
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0 or shutil.which("setpriv") is None,
        reason="only root on Linux is another user, too",
    ),
]


@pytest.fixture
def nobody() -> Iterator[subprocess.Popen[str]]:
    command = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", sys.executable, "-c", ATTACK]
    if Path(sys.executable).resolve().is_relative_to("/root"):
        command[-3] = "/usr/bin/python3"
    with subprocess.Popen(command, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def tried(nobody: subprocess.Popen[str], port: int) -> dict[str, str]:
    """What nobody is answered at a port, by message."""
    assert nobody.stdin is not None
    assert nobody.stdout is not None
    print(port, file=nobody.stdin, flush=True)
    return dict(iter(lambda: json.loads(nobody.stdout.readline()), []))  # type: ignore[union-attr]


def served(answered: dict[str, str]) -> list[str]:
    """The messages of which the answer is that of a server, and not a refusal."""
    started = {"py4j": "!y", "JDWP": "JDWP", "HTTP": "HTTP"}
    wrong = [name for name, beginning in started.items() if answered[name].startswith(beginning)]
    return wrong + (["Kafka"] if answered["Kafka"][4:8] == "\0\0\0\7" else [])


def ports(process: psutil.Process) -> set[int]:
    """Where it and the processes below it listen."""
    found = set()
    for each in [process, *process.children(recursive=True)]:
        with suppress(psutil.Error):
            found |= {at.laddr.port for at in each.net_connections("inet") if at.status == psutil.CONN_LISTEN}
    return found


def test_a_broker_that_is_open_answers_everybody(
    nobody: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages are such that a server without a secret answers."""
    settings = kafka_broker._settings
    everybody = {"listener.security.protocol.map": "CASES:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    (newest,) = Targets.load().select(["newest"])
    for more, expected in (({}, []), (everybody, ["Kafka"])):
        monkeypatch.setattr(kafka_broker, "_settings", lambda *given, more=more: {**settings(*given), **more})
        broker = OwnBroker(prepare(newest), ignore_progress)
        broker.wait()
        try:
            assert served(tried(nobody, int(broker.servers.rpartition(":")[2]))) == expected
        finally:
            broker.close()


@needs_javac
@pytest.mark.parametrize("what", ["a case with a topic", "a main method"])
def test_no_port_of_a_run_serves_another_user(what: str, nobody: subprocess.Popen[str], tmp_path: Path) -> None:
    if what == "a main method":
        (tmp_path / "Names.java").write_text(MAIN)
        java_jar(tmp_path / "names.jar", prepare(Targets.load().select(["4.3"])[0]))
        (tmp_path / "names.csv").write_text("who\nada\nbob\n")
        words = [
            "check",
            "--main",
            "Names",
            "--jar",
            "names.jar",
            "--sample",
            "names=names.csv",
            "--from",
            "4.2",
            "--to",
            "4.3",
        ]
    else:
        words = [
            "run",
            str(ROOT / "cases/late-drops/rows-from-kafka-answer-as-from-files.yaml"),
            "--spark",
            "newest",
            "--fresh",
        ]
    run = start(tmp_path, *words, COLUMNS="1000")
    answers: dict[int, dict[str, str]] = {}
    while run.poll() is None:
        for port in ports(psutil.Process(run.pid)) - answers.keys():
            answers[port] = tried(nobody, port)
        time.sleep(0.2)
    out, err = run.communicate()
    assert run.returncode == 0, out + err
    assert len(answers) >= 4, "py4j, the calls of Python, Spark's own, and of Kafka or JDWP"
    assert {port: wrong for port, answered in answers.items() if (wrong := served(answered))} == {}
