"""Jars of Maven Central, which some tests start something from; each is fetched once for a machine."""

import os
import urllib.request
from pathlib import Path

from harness.environments.cache_directory import cache_dir

CENTRAL = "https://repo1.maven.org/maven2"


def jar(coordinates: str) -> Path:
    """``group:artifact:version`` → where it lies."""
    group, artifact, version = coordinates.split(":")
    name = f"{artifact}-{version}.jar"
    path = cache_dir() / "jars" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(f"{CENTRAL}/{group.replace('.', '/')}/{artifact}/{version}/{name}") as answer:
            part = path.with_suffix(f".{os.getpid()}.part")  # another worker may fetch it, too
            part.write_bytes(answer.read())
            part.replace(path)
    return path
