"""What is written down as data: the YAML files beside the code."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, TypeAlias

import yaml

Json: TypeAlias = Any
"""A value of JSON, as a case writes it: null, a boolean, a number, a text, a list or a mapping of texts to values."""

LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml reads about ten times as fast; PyYAML can be built without it."""


def read_data(package: str, name: str) -> Any:
    """Return the content of a YAML file of a package."""
    return yaml.load((files(package) / name).read_text(encoding="utf-8"), Loader=LOADER)
