"""What people say about images: ``--image 3.5.9=registry/spark:tag``, and ``images:`` in ``conformance.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import ClassVar

from conformance.core.versions import NotAVersion, SparkVersion

EVERY = "all"
"""The name under which one image stands for every target; its reference then holds ``{spark}``."""


class NotAnImage(ValueError):
    """What was said names no image for a target."""

    exit_code: ClassVar[int] = 2


def parse(assignments: Iterable[str], known: Iterable[SparkVersion]) -> dict[str, str]:
    """What ``--image`` says: version, line or ``all`` → reference.

    Raises:
        NotAnImage: no ``=``, no reference, or something before it that is no version, line or ``all``.
    """
    said = {}
    for assignment in assignments:
        name, there, reference = assignment.partition("=")
        if not there or not reference.strip():
            raise NotAnImage(f"{assignment!r} names no image; write VERSION=REFERENCE, like 3.5.9=registry/spark:tag")
        said[name.strip().removeprefix("spark-")] = reference.strip()
    check(said, known)
    return said


def check(said: Mapping[str, str], known: Iterable[SparkVersion]) -> None:
    """See that each image is for something there is.

    Raises:
        NotAnImage: for a name that is no version, line or ``all``.
    """
    versions = tuple(known)
    names = [EVERY, *dict.fromkeys(version.line for version in versions), *map(str, versions)]
    for name in said:
        if name not in names and not _is_version(name):
            near = get_close_matches(name, names, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise NotAnImage(f"an image for {name!r}, which is no version, line or `{EVERY}`.{meant}")


def _is_version(name: str) -> bool:
    try:
        SparkVersion.parse(name)
    except NotAVersion:
        return False
    return True
