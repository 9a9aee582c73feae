"""A real broker: cases answer through topics as they do through files, the user's broker is left as it was, and no broker stays behind."""

import re
import subprocess
import sys
import time

import psutil
import pytest

from conformance.suite.selection import SMOKE, only_tagged
from harness.environments import provision
from harness.environments.provision import prepare
from harness.progress import ignore_progress
from harness.runtimes import kafka_broker
from harness.runtimes.kafka_broker import OwnBroker
from harness.targets.targets import Targets
from reports.results.reading import Results
from tests.engine.typed import ROOT, conformance, start
from tests.support.effort import full_run_only, sample
from tests.support.whole_suite import whole_suite

DEMO = ROOT / "cases" / "late-drops" / "rows-from-kafka-answer-as-from-files.yaml"
ENDED = """
import sys, time
from harness.environments.provision import prepare
from harness.progress import ignore_progress
from harness.runtimes.kafka_broker import OwnBroker
from harness.targets.targets import Targets
(target,) = Targets.load().select([sys.argv[1]])
broker = OwnBroker(prepare(target), ignore_progress)
broker.wait()
print(broker._folder, broker.guard.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def newest():
    (target,) = Targets.load().select(["newest"], obstacle=provision.obstacle)
    return target


@pytest.fixture(scope="module")
def broker(newest):
    """One that stands for the user's: open to all of the machine."""
    settings = kafka_broker._settings
    everybody = {"listener.security.protocol.map": "CASES:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kafka_broker, "_settings", lambda *given: {**settings(*given), **everybody})
        found = OwnBroker(prepare(newest), ignore_progress)
    found.wait()
    found.servers = found.servers.partition("@")[2]
    yield found
    found.close()


@pytest.fixture(scope="module")
def results(newest, broker, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kafka")
    cases = only_tagged([case for case in whole_suite().cases if case.applies_to(newest.version)], [SMOKE])
    paths = [str(ROOT / "cases" / f"{case.id}.yaml") for case in sample(cases, 4)]
    options = ("--source", "kafka", "--kafka", broker.servers, "--spark", str(newest.version))
    done = conformance(folder, "run", *paths, str(DEMO), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return Results.read(folder / "results.jsonl")


def test_cases_answer_through_topics_as_through_files(results):
    assert len(results.cells) >= 5
    assert {cell.status for cell in results.cells} <= {"conforms", "differs", "bug"}
    assert {cell.case.endswith("@kafka") for cell in results.cells} == {True, False}


def test_the_header_names_connector_and_broker(results, broker):
    (target,) = results.header.targets
    assert target.kafka.startswith("spark-sql-kafka-0-10 ")
    assert target.kafka.endswith(f", broker {broker.servers}")


TOPICS = """
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;

public class Topics {
    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            admin.listTopics().names().get().forEach(System.out::println);
        }
    }
}
"""


def test_the_topics_of_cases_are_removed_from_the_users_broker(results, broker, tmp_path):
    (running,) = psutil.Process(broker.guard.pid).children()
    java, *options = running.cmdline()
    program = tmp_path / "Topics.java"
    program.write_text(TOPICS)
    jars = options[options.index("-cp") + 1]
    listed = subprocess.run(
        [java, "-cp", jars, str(program), broker.servers], capture_output=True, text=True, check=False
    )
    assert listed.returncode == 0, listed.stderr
    assert [name for name in listed.stdout.split() if name.startswith("conformance-")] == []


@full_run_only
def test_a_broker_of_the_run_that_is_killed_is_named_and_another_one_is_started(newest, tmp_path):
    cases = [
        ROOT / "cases" / "late-drops" / f"{name}.yaml"
        for name in ("window-still-open", "window-ending-at-the-epoch-is-late")
    ]
    words = ["run", *cases, DEMO, "--source", "kafka", "--spark", str(newest.version), "--side-by-side", "1"]
    run = start(tmp_path, *words, COLUMNS="1000")
    shown = []
    for line in run.stderr:
        shown.append(line)
        if "● conforms" in line and sum("● conforms" in earlier for earlier in shown) == 1:
            alive = [child.as_dict(["cmdline", "pid"]) for child in psutil.Process(run.pid).children(recursive=True)]
            (java,) = [psutil.Process(child["pid"]) for child in alive if "kafka.Kafka" in (child["cmdline"] or ())]
            java.kill()
    assert run.wait() == 0, "".join(shown) + run.stdout.read()
    assert re.search(r"the Kafka broker 127\.0\.0\.1:\d+ takes no connection: ", "".join(shown))
    assert sum("starting a Kafka broker" in line for line in shown) == 2


def test_a_broker_ends_when_its_host_is_killed(newest):
    host = subprocess.Popen(
        [sys.executable, "-c", ENDED, str(newest.version)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    folder, guard = host.stdout.readline().split()
    processes = [psutil.Process(int(guard)), *psutil.Process(int(guard)).children()]
    assert len(processes) == 2
    host.kill()
    host.wait()
    psutil.wait_procs(processes, timeout=600)
    assert not any(process.is_running() for process in processes)
    while (ROOT / folder).exists():
        time.sleep(0.1)


UNION = """
def actions(spark, orders, clicks):
    return orders.union(clicks).withWatermark("at", "10 minutes").groupBy("at", "who").count()
"""


def test_a_job_with_silent_streams_is_tried_from_files_and_from_topics(tmp_path):
    (tmp_path / "jobs.py").write_text(UNION)
    for stream, minutes in (("orders", (1, 4, 9, 21)), ("clicks", (0, 3, 7, 20))):
        rows = (f"2026-03-01 12:{minute:02d}:00,ada" for minute in minutes)
        (tmp_path / f"{stream}.csv").write_text("\n".join(["at,who", *rows]) + "\n")
    samples = ("--sample", "orders=orders.csv", "--sample", "clicks=clicks.csv", "--code", ".")
    sides = ("--from", "3.5.9", "--to", "4.3.0", "--source", "kafka", "--batches", "2", "--no-repeat-rows")
    done = conformance(tmp_path, "check", "jobs:actions", *samples, *sides)
    assert done.returncode == 0, done.stdout + done.stderr
    for ran in ("3.5.9, silent streams", "4.3.0, silent streams", "3.5.9, silent topics", "4.3.0, silent topics"):
        assert f"] {ran} " in done.stderr, done.stderr
    assert "3.5.9 → 4.3.0, silent streams, checkpoint before step 2" in done.stderr
