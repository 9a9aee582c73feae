"""The image of a target: the user's choice (``--image``, and ``images:`` in ``conformance.yaml``), and the user its driver runs as."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.core.versions import NotAVersion, SparkVersion
from conformance.core.wording import counted
from conformance.language.shape import Key, MapOf, Record, Text
from conformance.language.source import Entries, InvalidCase, ProblemReport, entries_of, read_yaml
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes.containers.client import APIError, DockerClient, ImageNotFound
from harness.runtimes.containers.daemon import DaemonRefused, explained
from harness.targets.targets import Target, Targets

EVERY = "all"
"""The name for an image of every target; its reference then contains ``{spark}``."""

NAME = "conformance.yaml"
"""A project's settings for its runs."""

_IMAGES = MapOf(
    Text('a version such as "3.5.9", a line such as "3.5", or all'),
    Text("the reference of an image, such as registry/spark:{spark}", r"^\S+$"),
    "a mapping of versions to images",
)

_CONFIGURATION = Record(
    "the configuration of a project",
    {"images": Key(_IMAGES, "The container image for each version; `{spark}` in a reference is the version.")},
)


def parse(assignments: Iterable[str], known: Iterable[SparkVersion]) -> dict[str, str]:
    """Parse the values of ``--image``: version, line or ``all`` → reference. Raises ``WrongUsage`` for another form or name."""
    images = {}
    for assignment in assignments:
        name, equals, reference = assignment.partition("=")
        if not equals or not reference.strip():
            raise WrongUsage(f"{assignment!r} is not VERSION=REFERENCE, like 3.5.9=registry/spark:tag")
        images[name.strip().removeprefix("spark-")] = reference.strip()
    check(images, known)
    return images


def check(images: Mapping[str, str], known: Iterable[SparkVersion]) -> None:
    """Check that each image is for a known version or line. Raises ``WrongUsage`` if a name is not a version, line or ``all``."""
    versions = tuple(known)
    names = [EVERY, *dict.fromkeys(version.line for version in versions), *map(str, versions)]
    for name in (name for name in images if name not in names):
        try:
            SparkVersion.parse(name)
        except NotAVersion:
            near = get_close_matches(name, names, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            message = f"an image is set for {name!r}, which is not a version, line or `{EVERY}`.{meant}"
            raise WrongUsage(message) from None


def configured(folder: Path) -> dict[str, str]:
    """The images that the configuration of the folder, or of its nearest parent that has one, names: version, line or ``all`` → reference.

    Raises:
        InvalidCase: the file has problems; it lists all of them, by line and column.
    """
    path = next((above / NAME for above in (folder, *folder.parents) if (above / NAME).is_file()), None)
    if path is None:
        return {}
    report = ProblemReport(path)
    node = read_yaml(path, report)
    if node is not None and _CONFIGURATION.check(node, report):
        images = node.get("images") if isinstance(node, Entries) else None
        versions = [target.version for target in Targets.load().entries]
        for entry in entries_of(images):
            try:
                check({str(entry.key.value): ""}, versions)
            except WrongUsage as error:
                report.add(entry.key, str(error))
    if node is None or report.problems:
        raise InvalidCase(report.problems)
    content: Json = node.plain()
    return dict(content.get("images", {}))


_BUILT = "watermark-conformance/spark"
"""The repository of the images that ``conformance targets build`` makes."""
_SPARK_UID = "185"
"""The uid of the user ``spark`` in Apache's images."""


class NoImage(HarnessError):
    def __init__(self, target: Target, why: str) -> None:
        super().__init__(
            f"{why}\n"
            f"Build one from PyPI: conformance targets build {target.version}\n"
            f"or name another: --image {target.version}=registry/spark:tag, or `images:` in conformance.yaml"
        )


@dataclass(frozen=True)
class Image:
    reference: str
    id: str
    """``sha256:…``"""
    digest: str
    """``registry/name@sha256:…`` if it came from a registry, else its id."""
    user: str
    """The configured user: empty, ``spark``, ``185`` or ``185:0``."""

    @classmethod
    def of(cls, reference: str, client: DockerClient) -> Self:
        """The daemon's image of this name; raises docker's errors."""
        image: Any = client.client.images.get(reference)
        digest = next(iter(image.attrs.get("RepoDigests") or ()), image.id)
        return cls(reference, image.id, digest, (image.attrs.get("Config") or {}).get("User") or "")


@dataclass(frozen=True)
class Images:
    """The choice of images: the user's for the version, its line, or all; what ``targets build`` made, if it is there; the official."""

    chosen: Mapping[str, str] = field(default_factory=dict)
    """Version (``3.5.9``), line (``3.5``) or ``all`` → reference; ``{spark}`` in it is the version."""

    def reference(self, target: Target, client: DockerClient) -> str:
        """The reference of the image for a target. Raises ``NoImage`` if none is chosen or built, and Apache publishes none."""
        for name in (str(target.version), target.version.line, EVERY):
            if name in self.chosen:
                return self.chosen[name].replace("{spark}", str(target.version))
        if _has(client, built(target)):
            return built(target)
        if target.image is None:
            raise NoImage(target, f"Apache publishes no image of Spark {target.version} with Python.")
        return target.image

    def available(self, target: Target, client: DockerClient) -> Image | None:
        """The image for a target if the daemon has it; nothing is pulled. Raises ``DaemonRefused`` if the daemon refuses the request."""
        try:
            reference = self.reference(target, client)
        except NoImage:
            return None
        return Image.of(reference, client) if _has(client, reference) else None

    def get(self, target: Target, client: DockerClient, on_progress: ProgressCallback) -> Image:
        """The image for a target, pulled if the daemon does not have it. Raises ``NoImage``, or ``DaemonRefused`` if it refuses."""
        reference = self.reference(target, client)
        if not _has(client, reference):
            _pull(client, reference, target, on_progress)
        try:
            return Image.of(reference, client)
        except ImageNotFound as error:
            raise _not_pulled(reference, target, explained(error)) from error
        except APIError as error:
            raise DaemonRefused(f"to look at the image {reference}", error) from error


def built(target: Target) -> str:
    """The name of the image that ``conformance targets build`` makes."""
    return f"{_BUILT}:{target.version}"


def remove_built(client: DockerClient) -> Iterator[tuple[str, int]]:
    """Remove the images of ``targets build``; yield the name and bytes of each. Raises ``DaemonRefused`` if a container uses it."""
    for image in client.client.images.list(name=_BUILT):
        # The user may have given the same image a name of their own.
        for name in (tag for tag in image.tags if tag.startswith(f"{_BUILT}:")):
            try:
                client.client.images.remove(name)
            except APIError as error:
                raise DaemonRefused(f"to remove the image {name}", error) from error
            yield name, int(image.attrs.get("Size", 0))


def _has(client: DockerClient, reference: str) -> bool:
    try:
        client.client.images.get(reference)
    except ImageNotFound:
        return False
    except APIError as error:
        raise DaemonRefused(f"to look for the image {reference}", error) from error
    return True


def _pull(client: DockerClient, reference: str, target: Target, on_progress: ProgressCallback) -> None:
    on_progress(f"pulling {reference}")
    api: Any = client.client.api
    done: set[str] = set()
    try:
        name, pinned, _ = reference.partition("@")
        tag = None if pinned or ":" in name.rpartition("/")[2] else "latest"
        for event in api.pull(reference, tag=tag, stream=True, decode=True):
            if "error" in event:
                raise _not_pulled(reference, target, event["error"])
            if event.get("status") == "Pull complete":
                done.add(event["id"])
                on_progress(f"pulling {reference}: {counted(len(done), 'layer')} done")
    except (APIError, OSError) as error:
        raise _not_pulled(reference, target, explained(error)) from error


def _not_pulled(reference: str, target: Target, why: str) -> NoImage:
    return NoImage(target, f"This daemon has no image {reference} and cannot pull it: {why}")


def choose_account(passwd: str, configured: str) -> str | None:
    """The user of the driver, ``185:0``: the image's own, else ``spark``, else ``nobody``; None if the image has no user but root.

    Hadoop's login needs the user's name, so a number that is not in ``/etc/passwd`` does not work. Images of Spark 3.1 and 3.2 run as
    such a number, those of 3.3 as root.

    ``passwd``: the text of the image's ``/etc/passwd``, of which lines of another form are skipped; ``configured``: ``Image.user``.
    """
    lines = [line.split(":") for line in passwd.splitlines() if line.count(":") >= 3]
    known = [(name, uid, gid) for name, _, uid, gid, *_ in lines if uid.isdigit() and gid.isdigit() and int(uid)]
    for wanted in (configured.partition(":")[0], _SPARK_UID, "nobody"):
        for name, uid, gid in known:
            if wanted in (name, uid):
                return f"{uid}:{gid}"
    return None
