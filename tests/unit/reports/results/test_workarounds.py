"""The catalogue of workarounds is valid, and names bugs and cases of the suite."""

from __future__ import annotations

import pytest

from conformance.core.data import read_data
from reports.results.known_bug import KnownBug, read_workarounds, workaround
from tests.support.whole_suite import whole_suite

ENTRY = {"ticket": "SPARK-1", "workaround": "Do it.", "source": "SPARK-1"}
CASES = whole_suite().cases


def test_every_entry_is_about_a_bug_of_the_cases_and_its_case_exists() -> None:
    bugs = {(one.link, one.introduced_by) for case in CASES for one in (*case.differs, *case.upgrades) if one.bug}
    found = read_workarounds(read_data("reports.results", "workarounds.yaml"))
    assert [key for key in found if key not in bugs] == []
    ids = {case.id for case in CASES}
    assert [one.case for one in found.values() if one.case is not None and one.case not in ids] == []


def test_a_case_that_shows_a_setting_has_it() -> None:
    found = workaround(None, "SPARK-34081")
    assert found is not None
    case = next(case for case in CASES if case.id == found.case)
    key, _, value = str(found.setting).partition("=")
    assert str(case.conf[key]) == value


def test_a_bug_knows_its_workaround() -> None:
    assert "both inputs" in str(KnownBug("SPARK-58904", None).workaround)
    assert KnownBug("SPARK-38593", None).workaround is None
    assert KnownBug(None, None).workaround is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"ticket": "1"}, "ticket"),
        ({"introduced_by": "SPARK-2"}, "needs either"),
        ({"workaround": "do"}, "workaround"),
        ({"source": "someone"}, "source"),
        ({"setting": "x"}, "setting"),
        ({"more": "x"}, r"(?s)more.*Extra inputs"),
        ({"workaround": 1}, r"(?s)workaround.*valid string"),
    ],
)
def test_a_wrong_entry_is_refused(change: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_workarounds([ENTRY | change])


def test_an_entry_may_not_be_there_twice() -> None:
    with pytest.raises(ValueError, match="same bug"):
        read_workarounds([ENTRY, ENTRY])
