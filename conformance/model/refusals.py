"""What Spark refuses, as data (``refusals.yaml``): how each refusal is worded, where it comes, and on which versions.

Whether a query is one that is refused is decided in ``checks``, ``frame`` and the operators, where the refusal is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from conformance.core.versions import VersionRange
from conformance.model.versioned_data import read, spark_of

Stage: TypeAlias = Literal["analysis", "start", "run"]


class Refused(Exception):
    """Spark answers with an error.

    Attributes:
        name: of the refusal, as in ``refusals.yaml``.
        stage: building the frame, starting the query, or running it.
        classes: error classes and simple names of exceptions it shows.
        message: its text, or the part of it that is known.
    """

    def __init__(self, name: str, stage: Stage, classes: tuple[str, ...], message: str) -> None:
        super().__init__(f"{' < '.join(classes)} at {stage}: {message}")
        self.name = name
        self.stage = stage
        self.classes = classes
        self.message = message


@dataclass(frozen=True)
class Wording:
    """How a refusal is worded on a range of versions."""

    stage: Stage
    classes: tuple[str, ...]
    text: str
    """May hold ``{what}``, what the refusal is about."""
    spark: VersionRange | None = None
    """None where it is all versions."""

    def error(self, name: str, what: str = "") -> Refused:
        return Refused(name, self.stage, self.classes, self.text.replace("{what}", what))


@dataclass(frozen=True)
class Refusal:
    """Something that is refused, with its wordings; where no wording holds on a version, it is not refused there."""

    name: str
    source: str
    wordings: tuple[Wording, ...]


@cache
def refusals() -> tuple[Refusal, ...]:
    """Everything the model knows to be refused."""
    return tuple(
        Refusal(
            name,
            entry["source"],
            tuple(
                Wording(one["stage"], tuple(one["classes"]), one["text"], spark_of(one)) for one in entry["wordings"]
            ),
        )
        for name, entry in read("refusals.yaml").items()
    )
