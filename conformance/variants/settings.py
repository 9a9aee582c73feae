"""Spark settings that say how something is computed, and not what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.core.case import Case, Expectation, Restart
from conformance.core.versions import VersionRange
from conformance.variants.variant import VariantOutput


@dataclass(frozen=True)
class Settings:
    """The same case with these settings.

    It says nothing of a case that sets one of them itself, spoils files of a checkpoint, which it may put elsewhere, or looks
    at a plan or at a metric of the progress, which it may change.
    """

    name: str
    conf: Mapping[str, str]
    spark: VersionRange | None = None
    """The versions that have the settings."""
    usual: bool = False
    """Whether the settings are those of a case that sets nothing: then only a case that does is another one with them."""

    def of(self, case: Case) -> Iterator[VariantOutput]:
        own = set(case.conf).union(*(_conf(step.action) for step in case.steps))
        sensible = bool(own & set(self.conf)) is self.usual
        if sensible and not _looks_inside(case):
            spark = self.spark if case.spark is None or self.spark is None else case.spark & self.spark
            given = {"conf": {**case.conf, **self.conf}, "spark": spark or case.spark}
            yield VariantOutput(self.name, case.model_copy(update=given))


def _conf(action: object) -> Mapping[str, str]:
    return (action.change.conf or {}) if isinstance(action, Restart) else {}


def _looks_inside(case: Case) -> bool:
    damaged = any(isinstance(step.action, Restart) and step.action.damage for step in case.steps)
    expected: list[Expectation | None] = [step.expect for step in case.steps]
    for entry in case.differs:
        expected += [entry.expect, *entry.steps.values()]
    return damaged or any(one is not None and (one.plan or one.progress) for one in expected)
