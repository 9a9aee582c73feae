"""Variants, and cases as changed by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from conformance.core.case import Case
from conformance.core.data import read_data
from conformance.core.observation import Observation
from conformance.core.versions import VersionRange


def versions_of(variant: str) -> VersionRange:
    """Where a variant of ``versions.yaml`` can run."""
    return VersionRange.parse(read_data("conformance.variants", "versions.yaml")[variant]["spark"])


MARK = "@"
"""Separates the id of a case from the name of the variant; no case id contains it."""

Back: TypeAlias = Callable[[Observation], Observation]
"""From the observation of the changed case to that of the original."""


def unchanged(observation: Observation) -> Observation:
    return observation


@dataclass(frozen=True)
class VariantOutput:
    """A case as changed by a variant."""

    name: str
    """Follows the id of the case: ``rocksdb``, ``restart-3``."""
    case: Case
    back: Back = unchanged


class Variant(Protocol):
    """One kind of change."""

    @property
    def name(self) -> str:
        """As in ``conformance.language.catalogue``."""

    def of(self, case: Case) -> Iterator[VariantOutput]:
        """The changed cases; none if the variant does not apply."""


class VariedCase(Case):
    """A case as changed by a variant, with its own id: ``late-drops/window-still-open@rocksdb``."""

    original: Case
    back: Any
    """A ``Back``."""

    @classmethod
    def of(cls, original: Case, output: VariantOutput) -> VariedCase:
        given = {**dict(output.case), "id": f"{original.id}{MARK}{output.name}"}
        return cls.model_construct(**given, original=original, back=output.back)

    @property
    def variant(self) -> str:
        """``rocksdb``, ``restart-3``"""
        return self.id.removeprefix(f"{self.original.id}{MARK}")

    @property
    def file(self) -> str:
        return self.original.file

    def observation_of_original(self, observation: Observation) -> Observation:
        """The observation as if the engine had run the original case."""
        found: Observation = self.back(observation)
        return found.model_copy(update={"case": self.original.id})
