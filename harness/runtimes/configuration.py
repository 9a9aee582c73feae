"""``conformance.yaml``: a project's settings for its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformance.language.compound_shapes import Key, MapOf, Record
from conformance.language.node import Entries, entries_of
from conformance.language.problem import InvalidCase, Report
from conformance.language.shape import Json, Text
from conformance.language.source import read_yaml
from harness.runtimes.containers.choice import NotAnImage, check
from harness.targets.catalogue import Targets

NAME = "conformance.yaml"

_IMAGES = MapOf(
    Text('a version such as "3.5.9", a line such as "3.5", or all'),
    Text("the reference of an image, such as registry/spark:{spark}", r"^\S+$"),
    "a mapping of versions to images",
)

_CONFIGURATION = Record(
    "the configuration of a project",
    {"images": Key(_IMAGES, "The container image for each version; `{spark}` in a reference is the version.")},
)


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
