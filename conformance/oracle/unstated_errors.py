"""Entries of ``differs`` that call a feature unsupported and name no error, where that cannot be seen: no method is missing.

Without ``error``, only a missing method counts (docs/case-language/versions-that-differ.md). The reference model says what a version does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from conformance.core.case import Case
from conformance.core.versions import releases
from conformance.judging.expected import Unsupported
from conformance.judging.verdict import lacks_the_feature
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import predict


class UnstatedError(NamedTuple):
    """An entry whose cells will violate it, and why."""

    path: Path
    line: int
    message: str


def unstated_errors(cases: Iterable[Case]) -> Iterator[UnstatedError]:
    """Judge these entries by the newest version of each; a case that the model cannot predict there is left out."""
    for case in cases:
        for number, entry in enumerate(case.differs, 1):
            versions = [
                release for release in releases() if case.applies_to(release) and case.differs_on(release) is entry
            ]
            if entry.unsupported is None or entry.error is not None or not versions:
                continue
            with suppress(Unpredictable):
                error = predict(case, versions[-1]).observation.error
                if not lacks_the_feature(Unsupported(entry.unsupported, entry), error):
                    yield UnstatedError(
                        case.path,
                        case.lines.get(f"differs.{number}", 1),
                        f"without `error`, `unsupported` means that a method is missing, and on {versions[-1]} none is "
                        f"({'it runs' if error is None else error.behaviour}): add `error: {{class, message}}`, the error by "
                        "which the version shows that it lacks the feature",
                    )
