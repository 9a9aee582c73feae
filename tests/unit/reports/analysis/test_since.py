"""Since when a version behaves as it does."""

import pytest

from reports.analysis.change import since, turns
from reports.results.records import TargetRecord
from tests.support import cells as a
from tests.support.observations import differs


def told(before: str, after: str, old: str | None, new: str | None, label: str | None = None) -> str:
    """What is said of a case with one entry for the version before, and one for the version after."""
    entries = tuple(
        differs(versions, because="it is so", link="SPARK-1", steps=a.ONLY_FIRST) for versions in (old, new) if versions
    )
    cells = [
        a.cell(a.CASE, f"spark-{version}", a.LOST if ranges else a.CALM, entries)
        for version, ranges in ((before, old), (after, new))
    ]
    targets = [TargetRecord(name=f"spark-{version}", spark=version) for version in (before, after)]
    if label is not None:
        targets[1] = TargetRecord(name=label, spark=after)
    return str(since(cells[0], targets[0], cells[1], targets[1]))


@pytest.mark.parametrize(
    ("before", "after", "old", "new", "said"),
    [
        # Up to 3.5 it was otherwise: 4.0.0 changed it, and 4.0.5 showed it.
        ("3.5.9", "4.0.5", "<4.0", None, "4.0 (seen on 4.0.5)"),
        ("3.5.9", "4.0.5", None, ">=4.0.2", "4.0.2 (seen on 4.0.5)"),
        ("4.2.1", "4.3.0", None, ">=4.3", "4.3"),
        ("3.5.9", "4.3.0", ">=3.4,<4.1", None, "4.1 (seen on 4.3.0)"),
        ("3.5.3", "3.5.4", "<3.5.4", None, "3.5.4"),
        ("3.5.9", "4.0.5", None, None, "4.0.5"),
        # Going back, nothing was changed by a release.
        ("4.0.5", "3.5.9", None, "<4.0", "3.5.9"),
    ],
)
def test_the_release_that_changed_it_and_the_one_that_showed_it(before, after, old, new, said) -> None:
    assert told(before, after, old, new) == said


def test_another_build_is_named_as_it_is() -> None:
    assert told("3.5.9", "4.0.5", "<4.0", None, label="ours") == "ours"


def test_where_the_behaviour_turns() -> None:
    answers = {"3.3.4": a.CALM, "3.4.4": a.CALM, "3.5.9": a.BROKEN, "4.0.5": a.LOST, "4.1.4": a.LOST, "4.2.1": a.CALM}
    targets = [TargetRecord(name=f"spark-{version}", spark=version) for version in answers]
    cells = [a.cell(a.CASE, f"spark-{version}", answer) for version, answer in answers.items()]
    found = list(turns([None, *cells], [TargetRecord(name="absent", spark="3.2.4"), *targets]))
    # 3.5.9 shows nothing, so 4.0.5 is compared with 3.4.4.
    assert [(turn.place, turn.before[1].spark, turn.after[1].spark) for turn in found] == [
        (4, "3.4.4", "4.0.5"),
        (6, "4.1.4", "4.2.1"),
    ]
    assert [str(turn.since) for turn in found] == ["4.0.5", "4.2.1"]
    assert found[0].before[0] is cells[1]
