"""Where input, checkpoints and state of cases lie, when it is not this machine's folder for temporary files."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/\S*")


@dataclass(frozen=True)
class StorageUrl:
    """A directory of a file system that Spark reaches: ``hdfs://host:8020/tests``, ``s3a://bucket/tests``, ``file:///mnt/shared``."""

    url: str

    def __str__(self) -> str:
        return self.url

    def of_a_run(self) -> StorageUrl:
        """A directory in it that no other run has."""
        return StorageUrl(f"{self.url.rstrip('/')}/conformance-{secrets.token_hex(4)}")


Storage: TypeAlias = Path | StorageUrl
"""A folder that every machine has at the same path, or a URL."""


def storage(text: str) -> Storage:
    """What a person means by it."""
    return StorageUrl(text) if _URL.fullmatch(text) else Path(text)
