"""What people say about images, on the command line and in ``conformance.yaml``."""

import textwrap
from types import SimpleNamespace

import docker.errors
import pytest

from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion
from conformance.language import InvalidCase
from harness.progress import ignore_progress
from harness.runtimes.containers.images import Images, NoImage, built, configured, parse
from harness.targets.targets import Targets

KNOWN = [SparkVersion.parse(version) for version in ("3.4.4", "3.5.9", "4.0.5")]


def test_a_version_a_line_and_all():
    said = parse(["3.5.9=mine:1", "spark-4.0=registry:5000/spark:x", "all=mirror/spark:{spark}"], KNOWN)
    assert said == {"3.5.9": "mine:1", "4.0": "registry:5000/spark:x", "all": "mirror/spark:{spark}"}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("mine:1", "'mine:1' is not VERSION=REFERENCE, like 3.5.9=registry/spark:tag"),
        ("3.5.9=", "'3.5.9=' is not VERSION=REFERENCE, like 3.5.9=registry/spark:tag"),
        ("al=mine:1", "an image is set for 'al', which is not a version, line or `all`. Did you mean all?"),
        ("3.9=mine:1", "an image is set for '3.9', which is not a version, line or `all`. Did you mean 3.5.9?"),
    ],
)
def test_an_invalid_image_option_is_refused(assignment, message):
    with pytest.raises(WrongUsage) as caught:
        parse([assignment], KNOWN)
    assert str(caught.value) == message
    assert caught.value.exit_code == 2


class Daemon:
    """Has some images, and pulls none."""

    def __init__(self, *images):
        self._images = images
        self.client = SimpleNamespace(images=self, api=self)

    def get(self, reference):
        if reference not in self._images:
            raise docker.errors.ImageNotFound("no such image")
        return SimpleNamespace(id="sha256:1", attrs={"RepoDigests": ["x@sha256:2"], "Config": {"User": "spark"}})

    def pull(self, reference, **_):
        yield {"status": "Pulling"}
        yield {"error": f"manifest for {reference} not found"}


def target(version):
    return Targets.load().select([version])[0]


def test_what_was_said_for_the_version_is_stronger_than_for_its_line_and_for_all():
    said = {"3.5.9": "a:1", "3.5": "b:1", "all": "c:{spark}"}
    daemon = Daemon(built(target("3.5.9")))
    assert Images(said).reference(target("3.5.9"), daemon) == "a:1"
    assert Images(said).reference(target("3.5.3"), daemon) == "b:1"
    assert Images(said).reference(target("4.0.5"), daemon) == "c:4.0.5"


def test_what_was_built_here_is_stronger_than_the_official_image():
    assert Images().reference(target("3.5.9"), Daemon(built(target("3.5.9")))) == "watermark-conformance/spark:3.5.9"
    assert Images().reference(target("3.5.9"), Daemon()).startswith("apache/spark:3.5.9-")


def test_a_version_without_an_official_image():
    with pytest.raises(NoImage, match=r"conformance targets build 3\.0\.3"):
        Images().reference(target("3.0.3"), Daemon())


def test_an_image_that_is_here_tells_its_digest():
    image = Images({"3.5": "mine:1"}).get(target("3.5.9"), Daemon("mine:1"), ignore_progress)
    assert (image.digest, image.user) == ("x@sha256:2", "spark")


def test_an_image_that_is_nowhere():
    with pytest.raises(NoImage, match="cannot pull it: manifest for mine:1 not found") as caught:
        Images({"3.5": "mine:1"}).get(target("3.5.9"), Daemon(), ignore_progress)
    assert "--image 3.5.9=registry/spark:tag" in str(caught.value)
    assert caught.value.exit_code == 3


def write(folder, text):
    (folder / "conformance.yaml").write_text(textwrap.dedent(text))
    return folder


def test_a_project_without_a_configuration(tmp_path):
    assert configured(tmp_path) == {}


def test_images_of_a_project_from_below(tmp_path):
    write(tmp_path, 'images: {"3.5": "registry/spark:{spark}", all: "x:1"}')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert configured(below) == {"3.5": "registry/spark:{spark}", "all": "x:1"}


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("image: {}", ":1:1", "did you mean 'images'"),
        ("images: {3.5: x}", ":1:10", "quote it"),
        ('images: {"3.55": x}', ":1:10", "Did you mean 3.5"),
        ('images: {"3.5": [x]}', ":1:17", "the reference of an image"),
        ("images: [", ":1:10", ""),
    ],
)
def test_every_mistake_has_its_place(tmp_path, text, place, message):
    with pytest.raises(InvalidCase) as caught:
        configured(write(tmp_path, text))
    assert f"conformance.yaml{place}" in str(caught.value)
    assert message in str(caught.value)
