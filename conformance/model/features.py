"""Constructs that not every version has, as data: ``features.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from conformance.core.versions import VersionRange
from conformance.model.versioned_data import read


@dataclass(frozen=True)
class Feature:
    """A construct."""

    spark: VersionRange
    """The versions that have it."""
    link: str


@cache
def features() -> Mapping[str, Feature]:
    """Every such construct by its name."""
    return {name: Feature(VersionRange.parse(one["spark"]), one["link"]) for name, one in read("features.yaml").items()}
