"""What is written down as data: the YAML files beside the code."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml


def read_data(package: str, name: str) -> Any:
    """The content of a YAML file of a package."""
    return yaml.safe_load((files(package) / name).read_text(encoding="utf-8"))
