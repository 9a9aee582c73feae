"""Entries of ``differs`` that call a feature unsupported and name no error, where that cannot be seen: no method is missing.

Without ``error``, only a missing method counts (docs/case-language/versions-that-differ.md). The reference model says what a version does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from conformance.core.case import Case, Differs
from conformance.core.versions import SparkVersion, releases
from conformance.judging.expected import Unsupported
from conformance.judging.verdict import lacks_the_feature
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import predict


@dataclass(frozen=True)
class UnstatedError:
    """An entry whose cells will violate it: these versions have every method of the query."""

    case: Case
    version: SparkVersion
    """The newest version of the entry."""
    entry: Differs
    seen: str
    """What the version does instead: ``it runs``, or the class and the stage of its error."""

    @property
    def path(self) -> Path:
        return self.case.path

    @property
    def line(self) -> int:
        return self.case.lines.get(f"differs.{self.case.differs.index(self.entry) + 1}", 1)

    @property
    def message(self) -> str:
        return (
            f"without `error`, `unsupported` means that a method is missing, and on {self.version} none is ({self.seen}): "
            "add `error: {class, message}`, the error by which the version shows that it lacks the feature"
        )


def unstated_errors(cases: Iterable[Case]) -> Iterator[UnstatedError]:
    """The entries of these cases without an error that a missing method would not meet, by what the model predicts of their newest
    version. A case that the model cannot predict there is left out."""
    for case in cases:
        for entry in case.differs:
            versions = [one for one in releases() if case.applies_to(one) and case.differs_on(one) is entry]
            if entry.unsupported is None or entry.error is not None or not versions:
                continue
            with suppress(Unpredictable):
                error = predict(case, versions[-1]).observation.error
                if not lacks_the_feature(Unsupported(entry.unsupported, entry), error):
                    seen = "it runs" if error is None else str(error.behaviour)
                    yield UnstatedError(case, versions[-1], entry, seen)
