"""What awaits a checkpoint is what cases show on real engines, or what Spark's source says."""

from __future__ import annotations

import pytest

from conformance.checkpoints.awaiting import AwaitingChange, changes
from conformance.core.case import Case
from tests.support.whole_suite import whole_suite


def links(case: Case) -> set[str | None]:
    """The tickets and pages that a case names."""
    return {*case.links, *(entry.link for entry in (*case.differs, *case.upgrades))}


@pytest.mark.parametrize("change", changes(), ids=lambda change: f"{next(iter(change.when))} to {change.to}")
def test_each_rule_names_its_evidence(change: AwaitingChange) -> None:
    assert (change.case is None) is (change.source is not None)
    if change.case is None:
        return
    (case,) = (one for one in whole_suite().cases if one.id == change.case)
    assert change.link in links(case)
    if change.error is not None:
        errors = [entry.error for entry in case.upgrades] + [step.expect.error for step in case.steps]
        assert change.error in {name for error in errors if error for name in error.classes}
    entries = [entry for entry in case.upgrades if entry.link == change.link]
    assert {entry.way_round for entry in entries} <= {change.workaround}
