"""The image of the tool itself, built from the Dockerfile of this repository: it needs nothing of the machine it runs on."""

import os
import subprocess
from pathlib import Path

import pytest

from harness.environments import installer
from harness.runtimes.containers.builder import find_builder
from reports.results.reading import Results
from tests.support.effort import full_run_only

ROOT = Path(__file__).parents[2]
TAG = "watermark-conformance/test:tool"
BASE = "watermark-conformance/base:bookworm"
"""Made in CI, where nothing can be pulled. It has CPython 3.11 and Java 17."""


@pytest.fixture(scope="module")
def image(daemon, tmp_path_factory):
    if not daemon.images.list(name=BASE):
        if os.environ.get("CONFORMANCE_REQUIRE_DAEMON"):
            pytest.fail(f"no image {BASE}")
        pytest.skip(f"no image {BASE} here: .ci/run makes it")
    builder, variables = find_builder()
    settings = installer.index_settings(os.environ)
    index = [f"{name} = {settings[name]}\n" for name in ("index-url", "trusted-host") if name in settings]
    secret = tmp_path_factory.mktemp("secrets") / "pip.conf"
    secret.write_text("[global]\n" + "".join(index))
    secrets = ["--secret", f"id=pip,src={secret}"]
    if bundle := next((os.environ[name] for name in ("PIP_CERT", "SSL_CERT_FILE") if os.environ.get(name)), None):
        secrets += ["--secret", f"id=ca,src={bundle}"]
    dockerfile = ROOT / ".github" / "Dockerfile"
    options = ["--build-arg", f"BASE_IMAGE={BASE}", "--file", str(dockerfile), "--tag", TAG, *secrets]
    command = [*builder, *options, str(ROOT)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    yield TAG
    daemon.images.remove(TAG, force=True)


@pytest.fixture
def run(image, tmp_path):
    """The program in a container without a network, with a folder of ours, as our user."""

    def run(*arguments, options=()):
        command = ["docker", "run", "--rm", "--network", "none", "-v", f"{tmp_path}:/work", *options, image, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_the_gate_needs_nothing(run):
    done = run("gate", "--from", "3.5.9", "--to", "4.1.4")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "fail the gate" in done.stdout
    assert "known bugs in both" in done.stdout


def test_what_it_writes_belongs_to_the_user_who_asked(run, tmp_path):
    tmp_path.chmod(0o777)
    done = run("case", "new", "mine/case.yaml", options=("--user", "12345:12345"))
    assert done.returncode == 0, done.stdout + done.stderr
    made = tmp_path / "mine" / "case.yaml"
    assert made.stat().st_uid == 12345
    assert run("case", "validate", "mine").returncode == 0


def test_no_part_of_it_runs_as_root_and_no_source_stays(run, image):
    done = subprocess.run(
        ["docker", "run", "--rm", "--entrypoint", "sh", image, "-c", "id -u; ls -d /source"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "65534\n"


@full_run_only
def test_it_runs_cases_in_containers_beside_its_own(run, spark_35, tmp_path):
    """The daemon is the one that runs this container; results and everything else stay with the user who asked."""
    tmp_path.chmod(0o777)
    done = run(
        *("run", "/opt/conformance/lib/python3.11/site-packages/conformance/cases/late-drops/window-still-open.yaml"),
        *("--spark", "3.5.9", "--runtime", "container", "--image", f"3.5.9={spark_35}", "-o", "results.jsonl.xz"),
        options=("-v", "/var/run/docker.sock:/var/run/docker.sock", "--user", "0"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = Results.read(tmp_path / "results.jsonl.xz").cells
    assert (cell.case, cell.target, cell.status) == ("late-drops/window-still-open", "spark-3.5.9", "conforms")
