"""What differs between versions as data: features (``features.yaml``) and refusals (``refusals.yaml``).

Whether a query is refused is decided in ``checks``, ``frame`` and the operators, which raise the refusal by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from conformance.core.data import read_data
from conformance.core.versions import SparkVersion, VersionRange
from conformance.model.errors import Refused, Stage


def range_of(entry: dict[str, Any]) -> VersionRange | None:
    """The versions of an entry; None for all versions."""
    return VersionRange.parse(entry["spark"]) if "spark" in entry else None


def applies(spark: VersionRange | None, version: SparkVersion) -> bool:
    return spark is None or version in spark


@dataclass(frozen=True)
class Wording:
    """How a refusal is worded on a range of versions."""

    stage: Stage
    classes: tuple[str, ...]
    text: str
    """May contain ``{what}``, the subject of the refusal."""
    spark: VersionRange | None = None
    """None for all versions."""

    def error(self, name: str, what: str = "") -> Refused:
        return Refused(name, self.stage, self.classes, self.text.replace("{what}", what))


@dataclass(frozen=True)
class Feature:
    """A construct that some versions lack."""

    spark: VersionRange
    """The versions that have it."""
    link: str
    missing: Wording | None = None
    """How the other versions refuse it; None if it is a setting or an option."""


@cache
def features() -> Mapping[str, Feature]:
    """Every such construct by its name."""
    return {
        name: Feature(
            VersionRange.parse(one["spark"]),
            one["link"],
            Wording("analysis", (one["error"]["class"],), one["error"]["text"]) if "error" in one else None,
        )
        for name, one in read_data("conformance.model", "features.yaml").items()
    }


@dataclass(frozen=True)
class Refusal:
    """Something that Spark refuses. Versions without a wording do not refuse it."""

    name: str
    source: str
    wordings: tuple[Wording, ...]

    def wording(self, version: SparkVersion) -> Wording | None:
        """None if the version does not refuse it."""
        return next((one for one in self.wordings if applies(one.spark, version)), None)


@cache
def refusals() -> tuple[Refusal, ...]:
    """Every refusal that the model knows."""
    return tuple(
        Refusal(
            name,
            entry["source"],
            tuple(
                Wording(one["stage"], tuple(one["classes"]), one["text"], range_of(one)) for one in entry["wordings"]
            ),
        )
        for name, entry in read_data("conformance.model", "refusals.yaml").items()
    )
