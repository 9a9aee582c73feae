"""The user's choice of images: ``--image 3.5.9=registry/spark:tag``, and ``images:`` in ``conformance.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.core.versions import NotAVersion, SparkVersion
from conformance.language.shape import Key, MapOf, Record, Text
from conformance.language.source import Entries, InvalidCase, Report, entries_of, read_yaml
from harness.targets.targets import Targets

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


class NotAnImage(WrongUsage):
    """A choice of image is invalid."""


def parse(assignments: Iterable[str], known: Iterable[SparkVersion]) -> dict[str, str]:
    """Parse the values of ``--image``: version, line or ``all`` → reference.

    Raises:
        NotAnImage: no ``=``, no reference, or a name that is not a version, line or ``all``.
    """
    images = {}
    for assignment in assignments:
        name, equals, reference = assignment.partition("=")
        if not equals or not reference.strip():
            raise NotAnImage(f"{assignment!r} is not VERSION=REFERENCE, like 3.5.9=registry/spark:tag")
        images[name.strip().removeprefix("spark-")] = reference.strip()
    check(images, known)
    return images


def check(images: Mapping[str, str], known: Iterable[SparkVersion]) -> None:
    """Check that each image is for a known version or line.

    Raises:
        NotAnImage: a name is not a version, line or ``all``.
    """
    versions = tuple(known)
    names = [EVERY, *dict.fromkeys(version.line for version in versions), *map(str, versions)]
    for name in images:
        if name not in names and not _is_version(name):
            near = get_close_matches(name, names, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise NotAnImage(f"an image is set for {name!r}, which is not a version, line or `{EVERY}`.{meant}")


@dataclass(frozen=True)
class Configuration:
    """A project's settings."""

    images: Mapping[str, str] = field(default_factory=dict)
    """Version, line or ``all`` → the reference of a container image."""

    @classmethod
    def read(cls, folder: Path) -> Configuration:
        """The configuration of the folder, or of its nearest parent that has one; an empty one if none does.

        Raises:
            InvalidCase: the file has problems; it lists all of them, by line and column.
        """
        path = next((above / NAME for above in (folder, *folder.parents) if (above / NAME).is_file()), None)
        if path is None:
            return cls()
        report = Report(path)
        node = read_yaml(path, report)
        if node is not None and _CONFIGURATION.check(node, report):
            images = node.get("images") if isinstance(node, Entries) else None
            versions = [target.version for target in Targets.load().entries]
            for entry in entries_of(images):
                try:
                    check({str(entry.key.value): ""}, versions)
                except NotAnImage as error:
                    report.add(entry.key, str(error))
        if node is None or report.problems:
            raise InvalidCase(report.problems)
        content: Json = node.plain()
        return cls(images=dict(content.get("images", {})))


def _is_version(name: str) -> bool:
    try:
        SparkVersion.parse(name)
    except NotAVersion:
        return False
    return True
