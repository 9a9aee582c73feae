"""The user's choice of images: ``--image 3.5.9=registry/spark:tag``, and ``images:`` in ``conformance.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from conformance.core.errors import WrongUsage
from conformance.core.versions import NotAVersion, SparkVersion

EVERY = "all"
"""The name for an image of every target; its reference then contains ``{spark}``."""


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


def _is_version(name: str) -> bool:
    try:
        SparkVersion.parse(name)
    except NotAVersion:
        return False
    return True
