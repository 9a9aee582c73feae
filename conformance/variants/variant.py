"""What a variant is, and a case in the shape that one gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from conformance.core.case import Case
from conformance.core.observation import Observation

MARK = "@"
"""Between the id of a case and what makes it another: no id of a case has it."""

Back: TypeAlias = Callable[[Observation], Observation]
"""From what an engine showed of the changed case to what that says of the case as written."""


def unchanged(observation: Observation) -> Observation:
    return observation


@dataclass(frozen=True)
class VariantOutput:
    """One way to run a case otherwise."""

    name: str
    """Behind the case's id: ``rocksdb``, ``restart-3``."""
    case: Case
    back: Back = unchanged


class Variant(Protocol):
    """One kind of change."""

    @property
    def name(self) -> str:
        """As in ``conformance.language.variant_names``."""
        ...

    def of(self, case: Case) -> Iterator[VariantOutput]:
        """The ways to run the case otherwise; none where this variant says nothing of it."""
        ...


class VariedCase(Case):
    """A case as one variant runs it, under an id of its own: ``late-drops/window-still-open@rocksdb``."""

    original: Case
    back: Any
    """A ``Back``."""

    @classmethod
    def of(cls, original: Case, made: VariantOutput) -> VariedCase:
        given = {**dict(made.case), "id": f"{original.id}{MARK}{made.name}"}
        return cls.model_construct(**given, original=original, back=made.back)

    @property
    def variant(self) -> str:
        """``rocksdb``, ``restart-3``"""
        return self.id.removeprefix(f"{self.original.id}{MARK}")

    @property
    def file(self) -> str:
        return self.original.file

    def said_of_the_original(self, observation: Observation) -> Observation:
        """What an engine showed of this, as if it had been asked the original."""
        found: Observation = self.back(observation)
        return found.model_copy(update={"case": self.original.id})
