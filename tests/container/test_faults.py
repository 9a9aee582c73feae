"""What goes wrong around containers: one clear message, the rest of the matrix intact, nothing left behind."""

import io
import os
import signal
import subprocess
import tarfile

import pytest

from conformance.suite import discovery
from harness.engine.engine import DriverFailed
from harness.engine.request import request_for
from harness.progress import ignore_progress
from harness.runtimes.containers.images import Images
from harness.runtimes.containers.runtime import Confinement, ContainerRuntime
from harness.targets.targets import Targets
from reports.results.reading import Results
from tests.container.conftest import ROOT, SMOKE, of, running_container
from tests.support.effort import full_run_only

pytestmark = pytest.mark.usefixtures("nothing_left")

FAMILY = ROOT / "cases" / "window-eviction"
FEW = sorted(FAMILY.glob("[!k]*.yaml"))[:6]  # that of a key with a collation is of 4.0 and newer
"""Enough that two are done and others go on when the container is killed."""


def cells(folder):
    return {(cell.target, cell.case): cell for cell in Results.read(folder / "results.jsonl").cells}


def statuses(folder):
    return [cell.status for cell in Results.read(folder / "results.jsonl").cells]


def wait_for(process, text):
    """The lines on standard error up to the first that holds a text."""
    said = []
    for line in process.stderr:
        said.append(line)
        if text in line:
            return "".join(said)
    raise AssertionError("".join(said))


def test_no_daemon_is_said_at_once_and_old_results_stay(conformance, tmp_path):
    (tmp_path / "results.jsonl").write_text("of another day")
    run = conformance("run", SMOKE, "--spark", "3.5", "--runtime", "container", DOCKER_HOST="unix:///nowhere.sock")
    assert run.code == 3
    assert "No container engine answers at unix:///nowhere.sock: No such file or directory" in run.said
    assert "--runtime local" in run.said
    assert "Traceback" not in run.said
    assert (tmp_path / "results.jsonl").read_text() == "of another day"


@full_run_only
def test_an_image_that_is_missing_breaks_its_column_only(conformance, spark_43, tmp_path):
    images = ("--image", "3.5.9=nowhere.invalid/spark:1", "--image", f"4.3.0={spark_43}")
    run = conformance("run", SMOKE, "--spark", "4.3.0", "--spark", "3.5.9", "--runtime", "container", *images)
    assert run.code == 3
    found = cells(tmp_path)
    assert found["spark-4.3.0", "late-drops/window-still-open"].status == "conforms"
    broken = found["spark-3.5.9", "late-drops/window-still-open"]
    assert broken.status == "broken"
    assert "This daemon has no image nowhere.invalid/spark:1 and cannot pull it" in run.out
    assert "conformance targets build 3.5.9" in run.out


@pytest.fixture
def image_without_python(daemon):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        passwd = b"root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
        entry = tarfile.TarInfo("etc/passwd")
        entry.size = len(passwd)
        tar.addfile(entry, io.BytesIO(passwd))
    daemon.api.import_image_from_data(archive.getvalue(), repository="watermark-conformance/test", tag="no-python")
    yield "watermark-conformance/test:no-python"
    daemon.images.remove("watermark-conformance/test:no-python")


def test_an_image_without_python(conformance, image_without_python):
    image = f"3.5.9={image_without_python}"
    run = conformance("run", SMOKE, "--spark", "3.5.9", "--runtime", "container", "--image", image)
    assert run.code == 3
    assert f"The image {image_without_python} cannot run Spark 3.5.9: it has no python3." in run.out


def test_an_image_without_pyspark(conformance, daemon, spark_35):
    """The base alone: Python and Java are there."""
    daemon.api.tag(_without_pyspark(daemon, spark_35), "watermark-conformance/test", "no-pyspark")
    try:
        image = "3.5.9=watermark-conformance/test:no-pyspark"
        run = conformance("run", SMOKE, "--spark", "3.5.9", "--runtime", "container", "--image", image)
    finally:
        daemon.images.remove("watermark-conformance/test:no-pyspark")
    assert run.code == 3
    assert "cannot run Spark 3.5.9: its python3 finds no pyspark." in run.out


def _without_pyspark(daemon, image):
    container = daemon.containers.create(image, entrypoint=["true"], command=["true"])
    try:
        return container.commit(changes="ENV PATH=/usr/local/bin:/usr/bin:/bin").id
    finally:
        container.remove()


def test_an_image_of_another_spark(conformance, spark_43):
    run = conformance("run", SMOKE, "--spark", "3.5.9", "--runtime", "container", "--image", f"3.5.9={spark_43}")
    assert run.code == 3
    assert f"The image {spark_43} cannot run Spark 3.5.9: it contains Spark 4.3.0." in run.out


def test_a_container_that_is_killed_is_replaced(conformance, daemon, spark_35, tmp_path):
    image = f"3.5.9={spark_35}"
    arguments = ("run", *FEW, "--spark", "3.5.9", "--runtime", "container", "--image", image)
    run = conformance.start(*arguments, "--side-by-side", "1")
    wait_for(run, "[2/")
    running_container(daemon, run).kill()
    _, said = run.communicate(timeout=600)
    # The case had the engine after others, who may have caused its end: it ran again in a new one.
    assert run.returncode == 0, said
    assert set(statuses(tmp_path)) == {"conforms"}
    # What came before the second answer was read above.
    assert said.count("spark-3.5.9: Spark 3.5.9,") == 1


def test_a_container_without_memory(conformance, spark_35):
    image = f"3.5.9={spark_35}"
    run = conformance("run", SMOKE, "--spark", "3.5.9", "--runtime", "container", "--image", image, "--memory", "160m")
    assert run.code == 3
    assert "its container out of memory: the limit is 160m, --memory raises it" in run.out


@full_run_only
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_a_run_that_is_stopped(conformance, spark_35, how):
    image = f"3.5.9={spark_35}"
    run = conformance.start("run", FAMILY, "--spark", "3.5.9", "--runtime", "container", "--image", image)
    wait_for(run, "● conforms")
    run.send_signal(how)
    _, said = run.communicate(timeout=600)
    assert run.returncode == 130, said
    assert "results.jsonl lacks" in said


def test_what_a_sigkill_left_is_cleaned_up(conformance, daemon, spark_35):
    image = f"3.5.9={spark_35}"
    run = conformance.start("run", FAMILY, "--spark", "3.5.9", "--runtime", "container", "--image", image)
    before = wait_for(run, "● conforms")  # not the first cell, which may need no engine
    run.send_signal(signal.SIGSTOP)
    untouched = conformance("targets", "clean")
    assert f"kept: container {running_container(daemon, run).id[:12]}, of process {run.pid}" in untouched.out, before
    run.kill()
    run.wait()
    assert len(of(daemon, run.pid)) == 2
    cleaned = conformance("targets", "clean")
    assert cleaned.code == 0
    assert cleaned.out.count("✓ removed: ") >= 2
    assert of(daemon, run.pid) == []


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 24 MB, where the daemon and we are root on one machine."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m,mode=777", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        if os.environ.get("CONFORMANCE_REQUIRE_DAEMON"):
            raise AssertionError(mounted.stderr)
        pytest.skip(f"mounting a small disk takes root: {mounted.stderr}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@full_run_only
def test_a_full_disk_is_not_taken_for_an_answer_of_spark(daemon, small_disk, spark_35):
    (target,) = Targets.load().select(["3.5.9"])
    options = {"type": "none", "o": "bind", "device": str(small_disk)}
    runtime = ContainerRuntime(Images({"3.5.9": spark_35}), Confinement(volume=options))
    try:
        engine = runtime.start(target, on_progress=ignore_progress)
        (small_disk / "ballast").write_bytes(b"x" * (30 << 20))
    except OSError:
        pass  # that is the full disk
    try:
        (case,) = discovery.load([SMOKE]).cases
        with pytest.raises(DriverFailed, match=r"[Nn]o space"):
            engine.observe(request_for(case, engine.new_directory(case.id)), step_timeout=600)
        (small_disk / "ballast").unlink()
        observation = engine.observe(request_for(case, engine.new_directory(case.id)), step_timeout=600)
        assert len(observation.steps) == len(case.steps)
    finally:
        runtime.close()
    assert of(daemon, os.getpid()) == []
