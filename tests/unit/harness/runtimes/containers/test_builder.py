"""What builds images, with programs that only write down how they were called."""

import os

import pytest

from conformance.core.errors import WrongUsage
from harness.errors import HarnessError
from harness.runtimes.containers.builder import build, find_builder
from harness.targets.targets import Targets
from tests.support.environments import script

SCRIPT = """case "$1" in
  buildx) exit {buildx};;
  version) echo {version};;
  build)
    echo "$@" > {folder}/called; echo "$DOCKER_BUILDKIT" >> {folder}/called
    for word in "$@"; do case "$word" in id=pip,src=*) cat "${{word#id=pip,src=}}" > {folder}/pip;; esac; done
    echo "#7 [4/4] RUN pip install"; echo "{says}"; exit {code};;
esac
"""


@pytest.fixture
def program(tmp_path):
    def program(name, folder="bin", *, buildx=1, version="20.10.24", says="", code=0):
        text = SCRIPT.format(folder=tmp_path, buildx=buildx, version=version, says=says, code=code)
        return str(script(tmp_path / folder / name, text))

    return program


@pytest.fixture
def environ(tmp_path):
    return {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{tmp_path / 'other'}{os.pathsep}/usr/bin:/bin/",
        "HOME": str(tmp_path),
    }


def only(environ, tmp_path):
    return {**environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{tmp_path / 'other'}"}


def target():
    return Targets.load().select(["3.5.9"])[0]


def test_a_client_with_buildx(program, environ, tmp_path):
    docker = program("docker", buildx=0, version="28.0.0")
    command, variables = find_builder(only(environ, tmp_path))
    assert command == [docker, "build", "--progress=plain"]
    assert "DOCKER_BUILDKIT" not in variables


def test_an_old_client_is_told_to_use_buildkit(program, environ, tmp_path):
    docker = program("docker")
    command, variables = find_builder(only(environ, tmp_path))
    assert (command[0], variables["DOCKER_BUILDKIT"]) == (docker, "1")


def test_a_new_client_without_buildx_is_passed_over(program, environ, tmp_path):
    program("docker", version="28.2.2")
    docker = program("docker", "other")
    assert find_builder(only(environ, tmp_path))[0][0] == docker


def test_podman_where_no_docker_can(program, environ, tmp_path):
    program("docker", version="28.2.2")
    podman = program("podman", "other")
    assert find_builder(only(environ, tmp_path))[0] == [podman, "build"]


def test_nothing_that_builds(program, environ, tmp_path):
    with pytest.raises(HarnessError, match="Neither is installed"):
        find_builder(only(environ, tmp_path))
    docker = program("docker", version="28.2.2")
    with pytest.raises(HarnessError, match=f"Found: {docker} without its plugin buildx"):
        find_builder(only(environ, tmp_path))


def test_what_is_built(program, environ, tmp_path):
    program("docker")
    said = []
    assert build(target(), on_progress=said.append, environ=environ) == "watermark-conformance/spark:3.5.9"
    called, buildkit = (tmp_path / "called").read_text().splitlines()
    assert buildkit == "1"
    assert "--build-arg BASE_IMAGE=debian:bookworm-slim" in called
    assert "REQUIREMENTS=pyspark==3.5.9 pandas" in called
    assert "secret" not in called
    assert said == ["#7 [4/4] RUN pip install"]


def test_a_base_image_may_be_named_by_digest(program, environ, tmp_path):
    program("docker")
    base = f"registry.example:5000/debian@sha256:{'0' * 64}"
    build(target(), base=base, environ=environ)
    assert f"--build-arg BASE_IMAGE={base} " in (tmp_path / "called").read_text()


def test_the_bundle_and_the_index_of_this_machine_go_along_as_secrets(program, environ, tmp_path):
    program("docker")
    (tmp_path / "ca.pem").touch()
    build(
        target(),
        base="mine:1",
        environ={
            **environ,
            "REQUESTS_CA_BUNDLE": str(tmp_path / "ca.pem"),
            "PIP_INDEX_URL": "https://u:p@mirror/simple",
        },
    )
    called = (tmp_path / "called").read_text()
    assert f"--secret id=ca,src={tmp_path / 'ca.pem'}" in called
    assert "BASE_IMAGE=mine:1" in called
    assert "mirror" not in called
    assert (tmp_path / "pip").read_text() == "[global]\nindex-url = https://u:p@mirror/simple\n"


def test_an_index_that_was_given_is_stronger(program, environ, tmp_path):
    program("docker")
    build(target(), index_url="https://given/simple", environ={**environ, "PIP_INDEX_URL": "https://mirror/simple"})
    assert (tmp_path / "pip").read_text() == "[global]\nindex-url = https://given/simple\n"


def test_a_bundle_that_is_not_there(program, environ, tmp_path):
    program("docker")
    with pytest.raises(WrongUsage, match=r"no CA bundle at .*none\.pem"):
        build(target(), ca=tmp_path / "none.pem", environ=environ)


@pytest.mark.parametrize(
    ("says", "advice"),
    [
        ("SSL: certificate verify failed", "--ca bundle.pem"),
        ("ERROR: No matching distribution found for pyspark", "--index-url, --base"),
        ("pull access denied for x", "--base registry/debian:tag"),
        ("out of cheese", "Behind a mirror"),
    ],
)
def test_a_build_that_fails(program, environ, says, advice):
    program("docker", says=says, code=1)
    with pytest.raises(HarnessError) as caught:
        build(target(), environ=environ)
    assert says in str(caught.value)
    assert advice in str(caught.value)


def test_a_target_that_no_distribution_runs_needs_a_base(program, environ, tmp_path):
    program("docker")
    (old,) = (one for one in Targets.load().every_line() if one.base is None)
    with pytest.raises(WrongUsage, match=r"both CPython >=3\.7,<3\.8 and Java 8 .* \(--base IMAGE\)"):
        build(old, environ=environ)
    assert build(old, base="registry/java8-python37", environ=environ).endswith(str(old.version))
