"""Building an image: what it is made from, and what must not stay in it."""

import subprocess

import pytest

from harness.errors import HarnessError
from harness.runtimes.containers.builder import build
from harness.targets.targets import Targets

TAG = "watermark-conformance/test:built"


@pytest.fixture
def target():
    return Targets.load().select(["3.5"])[0]


@pytest.fixture
def base(spark_35):
    """Any image with Python and Java will do, and this one is there."""
    return spark_35


@pytest.fixture
def remove(daemon):
    yield
    for image in daemon.images.list(filters={"reference": TAG}):
        daemon.images.remove(image.id, force=True)


@pytest.mark.usefixtures("remove")
def test_secrets_stay_in_no_layer(target, base, tmp_path, monkeypatch):
    word = "hush-" + "a1b2c3d4e5f6"
    for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    bundle = tmp_path / "corporate.pem"
    bundle.write_text(f"# {word}\n")
    said = []
    # Nothing is fetched: the index does not exist, and what is asked for is there already.
    build(
        target,
        base=base,
        ca=bundle,
        index_url=f"https://user:{word}@index.invalid/simple",
        requirements=("pip",),
        tag=TAG,
        on_progress=said.append,
    )
    assert said, "a build tells how far it is"
    history = subprocess.run(["docker", "history", "--no-trunc", TAG], capture_output=True, text=True, check=True)
    assert word not in history.stdout
    with subprocess.Popen(["docker", "save", TAG], stdout=subprocess.PIPE) as saved:
        before = b""
        while chunk := saved.stdout.read(1 << 20):
            assert word.encode() not in before + chunk
            before = chunk[-64:]


@pytest.mark.usefixtures("remove")
def test_a_build_that_fails_says_why_and_what_to_do(target, base):
    with pytest.raises(HarnessError) as caught:
        build(target, base=base, requirements=("no-such-package-of-anybody==1",), tag=TAG)
    assert "Building watermark-conformance/test:built on" in str(caught.value)
    assert "--index-url" in str(caught.value)


def test_a_base_that_is_not_there(conformance):
    run = conformance("targets", "build", "3.5.9", "--base", "nowhere.invalid/debian:1")
    assert run.code == 3
    assert "Building watermark-conformance/spark:3.5.9 on nowhere.invalid/debian:1 failed" in run.said
    assert "Name one on this machine or your mirror" in run.said
