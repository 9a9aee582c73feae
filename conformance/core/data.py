"""What is written down as data: the YAML files beside the code."""

from hashlib import sha256
from importlib.resources import files
from typing import Any, TypeAlias

import yaml

Json: TypeAlias = Any
"""A value of JSON, as a case writes it: null, a boolean, a number, a text, a list or a mapping of texts to values."""

LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml reads about ten times as fast; PyYAML can be built without it."""


def text_digest(text: str) -> str:
    """Return the first 128 bits of the SHA-256 of a text, 32 hexadecimal digits.

    That is enough to tell contents apart. Digests are most of what published results weigh, as they cannot be compressed.
    """
    return sha256(text.encode()).hexdigest()[:32]


def read_data(package: str, name: str) -> Any:
    """Return the content of a YAML file of a package."""
    return yaml.load((files(package) / name).read_text(encoding="utf-8"), Loader=LOADER)
