"""Known bugs: the ticket, and the release that fixed them."""

import pytest

from conformance.core.versions import SparkVersion
from reports.results.known_bug import KnownBug, first_outside, fixes
from reports.results.records import Cell
from tests.support.runs import cell


def bug(spark: str, introduced_by: str | None = None) -> Cell:
    one = cell("late/a", "spark-3.5.3", "bug")
    assert one.differs is not None
    link = None if introduced_by else "SPARK-2"
    entry = one.differs.model_copy(update={"spark": spark, "link": link, "introduced_by": introduced_by})
    return one.model_copy(update={"differs": entry})


@pytest.mark.parametrize(
    ("spark", "ranges", "fixed"),
    [
        ("3.5.3", ">=3.5,<3.5.4", "3.5.4"),
        ("3.5.0", ">=3.5,<3.5.4", "3.5.4"),
        ("3.4.2", ">=3.4,<3.4.4 or >=3.5,<3.5.4", "3.4.4"),
        ("3.4.4", ">=3.4,<3.5.2", "3.5.2"),
        ("3.5.1", "<3.5.4", "3.5.4"),
        ("3.5.3", ">=3.0", None),
        ("4.3.0", ">=4.3", None),
    ],
)
def test_a_bug_is_gone_in_the_first_later_release_without_it(spark, ranges, fixed) -> None:
    found = first_outside(ranges, SparkVersion.parse(spark))
    assert (None if found is None else str(found)) == fixed


@pytest.mark.parametrize(
    ("ranges", "fixed"),
    [
        ((">=3.4,<3.4.4 or >=3.5,<3.5.4", "<3.4.4"), ["3.4.4", "3.5.4"]),
        ((">=4.0,<4.2", ">=3.1,<4.0"), ["4.2.0"]),
        # 3.5.0 does not have it, but 3.5.9 does: no release of the line fixed it.
        ((">=3.4.4,<3.5 or >=3.5.4,<4.0",), ["4.0.0"]),
        ((">=3.4,<3.4.2 or >=4.3",), []),
    ],
)
def test_each_line_that_fixed_a_bug_names_its_release(ranges, fixed) -> None:
    assert [str(release) for release in fixes(ranges)] == fixed


def test_a_fixed_bug() -> None:
    known = KnownBug.of(bug(">=3.5,<3.5.4"), "3.5.3")
    assert known == KnownBug("SPARK-2", "3.5.4", replaced_in="3.5.4")
    assert str(known) == "known bug, fixed in 3.5.4"
    assert known.ticket == " (SPARK-2)"


def test_entries_of_one_ticket_are_one_bug_and_those_of_another_follow_it() -> None:
    own = bug("<3.5").differs
    assert own is not None
    again = own.model_copy(update={"spark": ">=3.5,<3.5.4"})
    other = own.model_copy(update={"spark": ">=3.5.4,<4.0", "link": "SPARK-3"})
    known = KnownBug.of(bug("<3.5"), "3.4.0", (own, again, other))
    assert known == KnownBug("SPARK-2", "4.0.0", replaced_in="3.5.4")
    assert str(known) == "known bug, fixed in 3.5.4, followed by another one up to 4.0.0, which has none"


def test_a_bug_of_every_release() -> None:
    known = KnownBug.of(bug(">=3.5"), "3.5.3")
    assert known == KnownBug("SPARK-2", None)
    assert str(known) == "known bug, not fixed in any release"


def test_a_bug_without_a_ticket_names_what_introduced_it() -> None:
    known = KnownBug.of(bug(">=3.5", introduced_by="SPARK-9"), "3.5.3")
    assert known == KnownBug(None, None, "SPARK-9")
    assert known.ticket == " (no ticket, introduced by SPARK-9)"


def test_the_release_that_fixed_it_is_unknown_for_a_target_without_a_spark_version() -> None:
    assert KnownBug.of(bug(">=3.5,<3.5.4"), "nightly") == KnownBug("SPARK-2", None)


@pytest.mark.parametrize("status", ["broken", "conforms", "differs", "unsupported", "violates"])
def test_only_the_status_bug_is_a_known_bug(status) -> None:
    assert KnownBug.of(bug(">=3.5").model_copy(update={"status": status}), "3.5.3") is None
    assert KnownBug.of(None, "3.5.3") is None
    assert KnownBug.of(bug(">=3.5").model_copy(update={"differs": None}), "3.5.3") is None
