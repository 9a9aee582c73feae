"""Where input, checkpoints and state of cases are kept, if not in this machine's temporary folder."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/\S*")


@dataclass(frozen=True)
class StorageUrl:
    """A directory of a file system that Spark can access: ``hdfs://host:8020/tests``, ``s3a://bucket/tests``, ``file:///mnt/shared``."""

    url: str

    def __str__(self) -> str:
        return self.url

    def unique_directory(self) -> StorageUrl:
        """A directory in it that no other run uses."""
        return StorageUrl(f"{self.url.rstrip('/')}/conformance-{secrets.token_hex(4)}")


Storage: TypeAlias = Path | StorageUrl
"""A folder that every machine sees at the same path, or a URL."""


def parse_storage(text: str) -> Storage:
    """A URL or a path."""
    return StorageUrl(text) if _URL.fullmatch(text) else Path(text)
