"""Spark settings that affect how something is computed, not the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.core.case import Case, Expectation, Restart
from conformance.core.versions import VersionRange
from conformance.variants.variant import VariantOutput


@dataclass(frozen=True)
class Settings:
    """The same case with these settings.

    Does not apply to a case that sets one of them to something else or all of them to the same, that damages checkpoint files, whose
    location may change, or that checks a plan or a metric of the progress, which may change.
    """

    name: str
    conf: Mapping[str, str]
    spark: VersionRange | None = None
    """The versions that have the settings."""
    default: bool = False
    """Whether these are the default settings, so that the variant applies only to cases that set them."""
    only: str | None = None
    """The one operation with state for which Spark allows the settings; None if it does for all."""

    def of(self, case: Case) -> Iterator[VariantOutput]:
        changed = set().union(*(_conf(step.action) for step in case.steps))
        same = {key for key, value in self.conf.items() if case.conf.get(key) == value} - changed
        own = (set(case.conf) | changed) & set(self.conf)
        applicable = bool(own) if self.default else own == same and len(same) < len(self.conf)
        stateful = {operation.name for operation in case.operations() if operation.may_keep_state}
        if self.only is not None and stateful != {self.only}:
            return
        if applicable and not _checks_internals(case):
            spark = self.spark if case.spark is None or self.spark is None else case.spark & self.spark
            given = {"conf": {**case.conf, **self.conf}, "spark": spark or case.spark}
            yield VariantOutput(self.name, case.model_copy(update=given))


def _conf(action: object) -> Mapping[str, str]:
    return (action.change.conf or {}) if isinstance(action, Restart) else {}


def _checks_internals(case: Case) -> bool:
    damaged = any(isinstance(step.action, Restart) and step.action.damage for step in case.steps)
    expected: list[Expectation | None] = [step.expect for step in case.steps]
    for entry in case.differs:
        expected += [entry.expect, *entry.steps.values()]
    return damaged or any(one is not None and (one.plan or one.progress) for one in expected)
